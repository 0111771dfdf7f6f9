"""Storage folding: whether elements of a buffer may share a memory location, exactly through isl."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.affine import linear as lin
from compiler.affine.linear import Linear
from compiler.analysis.sets import Undecided, mapping, points, sample, surely_injective
from compiler.analysis.shared_element import orders
from compiler.analysis.statements import Statement, Use, uses_of
from compiler.program.tree import Program


def is_injective(forms: Sequence[Linear], shape: Sequence[int]) -> bool:
    """Whether forms over the dimensions give different elements of a shape different locations; False if undecided."""
    # [d0 mod 4], shape [8]: [d0] -> [(d0) mod 4] : 0 <= d0 < 8 is not injective: 0 and 4 have one location.
    names = {d: f"d{d}" for d in range(len(shape))}
    inside = [f"0 <= {names[d]} < {n}" for d, n in enumerate(shape)]
    return surely_injective(mapping(names.values(), [lin.to_isl(form, names) for form in forms], inside))


def clash(program: Program, buffer: str, forms: Sequence[Linear]) -> str | None:
    """Find an element that another element overwrites between a write and a later use, if `forms` over the index are
    the location. Returns a sentence about both, or about a query that isl did not decide, or None."""
    uses = uses_of(program, buffer)
    writes = [(s, u) for s, u in uses if u.how != "read"]
    later = [(s, u) for s, u in uses if u.how != "write"]
    for first in writes:
        for between in writes:
            for last in later:
                sentence = _clash(program, buffer, forms, first, between, last)
                if sentence is not None:
                    return sentence
    return None


Instance = tuple[Statement, Use]


def _clash(
    program: Program, buffer: str, forms: Sequence[Linear], first: Instance, between: Instance, last: Instance
) -> str | None:
    """The sentence of `clash` if `between` writes the location of `first` before `last` uses its element; else None."""
    # T[x0], T[y0] written in one loop, T[z1] read in the next, location d0 mod 4:
    #   x0 = z1 and (x0 != y0) and x0 mod 4 = y0 mod 4 and x0 < y0  ->  (x0, y0, z1) = (0, 4, 0)
    names = [{n: f"{v}{n}" for n in s.loops} for v, (s, _) in zip("xyz", (first, between, last), strict=True)]
    private = program.private_loops(buffer)
    constraints = [f"{names[0][n]} = {later[n]}" for later in names[1:] for n in private]
    for (s, u), instance in zip((first, between, last), names, strict=True):
        constraints += s.domain(instance, u)
    index = [
        [lin.to_isl(f, instance) for f in u.forms]
        for (_, u), instance in zip((first, between, last), names, strict=True)
    ]
    constraints += [f"{a} = {b}" for a, b in zip(index[0], index[2], strict=True)]
    differ = " or ".join(f"{a} != {b}" for a, b in zip(index[0], index[1], strict=True)) or "false"
    constraints.append(f"({differ})")
    for form in forms:
        locations = [
            lin.to_isl(lin.substitute(form, dict(enumerate(u.forms)), program.ranges), instance)
            for (_, u), instance in zip((first, between), names[:2], strict=True)
        ]
        constraints.append(f"{locations[0]} = {locations[1]}")
    variables = [v for instance in names for v in instance.values()]
    for before in orders(first[0], between[0], names[0], names[1]):
        for after in orders(between[0], last[0], names[1], names[2]):
            try:
                point = sample(points(variables, [*constraints, *before, *after]))
            except Undecided:
                return f"whether elements of '{buffer}' that share a place live at once was not decided in the budget"
            if point is not None:
                values = dict(zip(variables, point, strict=True))
                instances = [{n: values[v] for n, v in instance.items()} for instance in names]
                element = [
                    ",".join(str(lin.evaluate(f, p)) for f in u.forms)
                    for (_, u), p in zip((first, between), instances, strict=False)
                ]
                return (
                    f"{between[0].instance(instances[1])} writes {buffer}[{element[1]}] to the place of "
                    f"{buffer}[{element[0]}] before {last[0].instance(instances[2])} has used that"
                )
    return None
