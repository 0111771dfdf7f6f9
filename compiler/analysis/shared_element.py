"""Two instances that touch one element, as a system of constraints for isl, and the order of two instances."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from compiler.affine import linear as lin
from compiler.affine.linear import Linear
from compiler.analysis.sets import Undecided, points, sample
from compiler.analysis.statements import Statement, Use
from compiler.program.tree import Program

Points = tuple[dict[int, int], dict[int, int]]
"""Two instances, each as the values of its loops."""


def orders(s: Statement, t: Statement, x: Mapping[int, str], y: Mapping[int, str]) -> Iterator[list[str]]:
    """Yield the disjuncts, each a list of constraints, by which an instance of `s` precedes one of `t`; `x` and `y`
    name their loops.

    Two common loops, `s` before `t` in their body:  x0 < y0 | x0 = y0 and x1 < y1 | x0 = y0 and x1 = y1
    """
    depth = s.common(t)
    equal: list[str] = []
    for left, right in ((x[n], y[n]) for n in s.loops[:depth]):
        if left != right:
            yield [*equal, f"{left} < {right}"]
            equal.append(f"{left} = {right}")
    if s is not t and s.positions[depth] < t.positions[depth]:
        yield equal


class SharedElement:
    """Instances of two statements, `s` and `t`, that touch one element by `use` and `later`. left, right: isl's
    variable of each of their loops, by number. Loops in `equal`, and those whose values must agree, have one variable
    in both."""

    def __init__(
        self, program: Program, s: Statement, t: Statement, use: Use, later: Use, equal: Sequence[int] = ()
    ) -> None:
        self.program = program
        self.s, self.t, self.use, self.later = s, t, use, later
        forced = set(equal) | (set(program.private_loops(use.buffer)) & set(s.loops) & set(t.loops))
        shared = set(s.loops[: s.common(t)])
        forced |= {n for n in shared if program.loops[n].extent == 1}
        for f, g in zip(use.index, later.index, strict=True):
            if f is not None and g is not None:
                forced |= _forced(f, g, shared, program.ranges, forced)
        self.left = {n: f"z{n}" if n in forced else f"x{n}" for n in s.loops}
        self.right = {n: f"z{n}" if n in forced else f"y{n}" for n in t.loops}
        self.variables = tuple(dict.fromkeys([*self.left.values(), *self.right.values()]))

    def constraints(self) -> list[str]:
        """Return the domains of both instances, with guards and access conditions, and the equality of indices."""
        constraints = dict.fromkeys([*self.s.domain(self.left, self.use), *self.t.domain(self.right, self.later)])
        for f, g in zip(self.use.index, self.later.index, strict=True):
            if f is None or g is None:
                continue
            a, b = lin.to_isl(f, self.left), lin.to_isl(g, self.right)
            if a != b:
                constraints[f"{a} = {b}"] = None
        return list(constraints)

    def points(self, point: Sequence[int] | None) -> Points | None:
        """Map the result of `solve` to its two instances; None if there is no solution or isl did not decide.

        Variables (z0, y1), with left loops {0: z0} and right loops {0: z0, 1: y1}: (3, 5) -> ({0: 3}, {0: 3, 1: 5}).
        """
        if not point:
            return None if point is None or self.variables else ({}, {})
        values = dict(zip(self.variables, point, strict=False))
        return {n: values[v] for n, v in self.left.items()}, {n: values[v] for n, v in self.right.items()}

    def solve(self, more: Sequence[str], variables: Sequence[str] = ()) -> tuple[int, ...] | None:
        """Return values of all variables, then of `variables`, that also meet `more`; None without any, () if
        undecided."""
        # T[x0] and T[y1] of two loops with extent 8, no further constraint:
        #   [x0, y1] : 0 <= x0 <= 7 and 0 <= y1 <= 7 and x0 = y1  ->  (0, 0)
        try:
            return sample(points([*self.variables, *variables], [*self.constraints(), *more]))
        except Undecided:
            return ()


def _coefficients(form: Linear) -> dict[int, int] | None:
    """The factors of a form's variables, or None if it has quotients."""
    if any(not isinstance(atom, int) for atom, _ in form.terms):
        return None
    return dict(form.terms)  # type: ignore[arg-type]


def _forced(f: Linear, g: Linear, shared: set[int], ranges: lin.Ranges, forced: set[int]) -> set[int]:
    """The shared loops whose two values must agree if f(x) = g(y), by the ranges alone, if those of `forced` agree.

    f = g = 4*i + j: 4*(xi - yi) + (xj - yj) = 0 forces i and j for j in [0, 4), and neither for j in [0, 5).
    """
    left, right = _coefficients(f), _coefficients(g)
    if left is None or right is None:
        return set()
    terms: list[tuple[int, int, int, int | None]] = []  # factor, its smallest and largest multiple, the loop of x - y
    for n in sorted(left.keys() | right.keys()):
        a, b, extent = left.get(n, 0), right.get(n, 0), ranges[n][1]
        if n in shared and a == b:
            if n not in forced:
                terms.append((abs(a), -extent, extent, n))
        else:
            terms += [(a, 0, extent, None)] if a else []
            terms += [(-b, 0, extent, None)] if b else []
    low = high = f.constant - g.constant
    for factor, smallest, largest, _ in terms:
        low += min(factor * smallest, factor * largest)
        high += max(factor * smallest, factor * largest)
    agreeing: set[int] = set()
    for factor, smallest, largest, loop in sorted(terms, key=lambda term: -abs(term[0])):
        low -= min(factor * smallest, factor * largest)
        high -= max(factor * smallest, factor * largest)
        if loop is None or not (-factor < low and high < factor):
            break
        agreeing.add(loop)
    return agreeing
