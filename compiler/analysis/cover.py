"""Exact coverage through isl: elements set before reads, elements that padding overwrites, axis values of a block."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.affine import linear as lin
from compiler.analysis.sets import Undecided, mapping, points, sample, surely_injective, surely_within
from compiler.analysis.shared_element import SharedElement, orders
from compiler.analysis.statements import Statement, Use, statements, uses_of
from compiler.program.tree import Program

Instance = tuple[Statement, Use]


def covered(program: Program, buffer: str, depth: int, reader: str | None = None) -> bool:
    """Whether each read or update of an element of a buffer follows a write or init of it in the same iteration of the
    first `depth` loops around the blocks. With `reader`, only the uses of that block are checked. False also if isl
    does not decide within its budget."""
    uses = uses_of(program, buffer)
    needs = [(s, u) for s, u in uses if u.how != "write" and reader in (None, s.block.label)]
    resets = [(s, u) for s, u in uses if u.how == "write"]
    return all(_set_before(program, depth, need, resets) for need in needs)


def _set_before(program: Program, depth: int, need: Instance, resets: Sequence[Instance]) -> bool:
    """Whether each instance of `need` surely follows a write in `resets` to its element, within `depth` outer loops."""
    # T[x1] read in a later nest than the one that writes T[y0], depth 0:
    #   [x1] : 0 <= x1 <= 7  is a subset of  [x1] : exists y0 : (0 <= x1 <= 7 and 0 <= y0 <= 7 and x1 = y0)
    s, use = need
    x = {n: f"x{n}" for n in s.loops}
    any_element = [f"e{d}" for d, form in enumerate(use.index) if form is None]
    point = [*x.values(), *any_element]
    sizes = program.buffers[use.buffer].shape
    free = [f"0 <= e{d} < {sizes[d]}" for d, form in enumerate(use.index) if form is None]
    domain = [*s.domain(x, use), *free]
    ways = []
    for t, reset in resets:
        if s.common(t) < depth:
            continue
        y = {n: f"y{n}" for n in t.loops}
        same = [f"{x[n]} = {y[n]}" for n in s.loops[:depth]]
        for d, (mine, theirs) in enumerate(zip(use.index, reset.forms, strict=True)):
            same.append(f"{f'e{d}' if mine is None else lin.to_isl(mine, x)} = {lin.to_isl(theirs, y)}")
        for order in orders(t, s, y, x):
            constraints = [*domain, *t.domain(y, reset), *same, *order]
            ways.append(points(point, constraints, y.values()))
    reads = points(point, domain)
    try:
        return surely_within(reads, "; ".join(ways)) if ways else sample(reads) is None
    except Undecided:
        return False


def overrun(program: Program, loop: int, extent: int, buffer: str) -> str | None:
    """Find an element that iterations of a loop from `extent` on write and that an earlier iteration, or an instance
    outside the loop, uses. Returns a sentence about the element, or about a query that isl did not decide, or None."""
    # T[x0] written in the loop, read as T[y1] outside, extent 6:  x0 = y1 and x0 >= 6  ->  (x0, y1) = (6, 6)
    uses = uses_of(program, buffer)
    beyond = [(s, u) for s, u in uses if loop in s.loops and u.how != "read"]
    for s, write in beyond:
        for t, use in uses:
            shared = SharedElement(program, s, t, write, use)
            limits = [f"{shared.left[loop]} >= {extent}"]
            limits += [f"{shared.right[loop]} < {extent}"] if loop in shared.right else []
            point = shared.solve(limits)
            if point is None:
                continue
            points = shared.points(point)
            if points is None:
                return f"whether it writes elements of '{buffer}' that '{t.block.label}' uses was not decided"
            verb = "reads" if use.how == "read" else "writes"
            return f"it would write the element of '{buffer}' that {t.instance(points[1])} {verb}"
    return None


def runs_for_all(before: Program, after: Program, label: str) -> bool:
    """Whether a block in `after` surely runs for all axis values as in `before`, in each iteration of the loops around
    it in both; False if undecided."""
    # Y with axis a0 = l1, and afterwards with the guard l1 <= 6 too: False, since 7 is missing in
    #   [l1, a0] : 0 <= l1 <= 7 and 6 + -1*l1 >= 0 and a0 = l1
    common = sorted(before.outer(label) & after.outer(label))
    return surely_within(_axes(before, label, common), _axes(after, label, common))


def runs_once(program: Program, label: str) -> bool:
    """Whether surely no two instances of a block have equal axis values, as for axis 4*l0 + l1 with 0 <= l1 < 4."""
    statement = statements(program)[label, False]
    names = {n: f"l{n}" for n in statement.loops}
    index = [lin.to_isl(form, names) for form in statement.block.bindings]
    return surely_injective(mapping(names.values(), index, statement.domain(names)))


def _axes(program: Program, label: str, common: Sequence[int]) -> str:
    """The set, in isl's syntax, of the values of the loops `common` and of the axes in the instances of a block."""
    statement = statements(program)[label, False]
    names = {n: f"l{n}" for n in statement.loops}
    axes = {f"a{n}": lin.to_isl(form, names) for n, form in enumerate(statement.block.bindings)}
    domain = [*statement.domain(names), *(f"{axis} = {form}" for axis, form in axes.items())]
    heads = [*(names[n] for n in common), *axes]
    return points(heads, domain, [v for n, v in names.items() if n not in common])
