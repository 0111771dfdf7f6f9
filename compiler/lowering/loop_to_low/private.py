"""Local buffers outside thread loops: each thread, for fragments each warp, owns a part of the buffer.

At the loop level a buffer of scope local around several stages has the elements of all threads. If each index is a
form over threads, the same in all stages, plus a form over other loops, and threads share no element, then each thread
has a buffer of the extents of the latter form, and the former is dropped. What a replicated stage writes each thread
has for itself.

    C.local[64, 64], accessed at [4 ty + i, 4 tx + j]  ->  C.local[4, 4] a thread, accessed at [i, j]
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from compiler.affine import linear as lin
from compiler.affine.linear import Linear, Quotient
from compiler.analysis.sets import Undecided, points, sample
from compiler.analysis.stages import THREADS, copied_along, is_warp_sum, replicated
from compiler.analysis.statements import uses_of
from compiler.intrinsics.warp import LANES, QUAD
from compiler.program.tree import Alloc, Block, Loop, Program, walk
from compiler.support.errors import LoweringError


@dataclass(frozen=True)
class PartDimension:
    """One dimension of a part: its first index and its extent. If the part drops the gaps between the indices, `low` is
    0 and `steps` has for each loop the step in the buffer, the step in the part, and the extent."""

    low: int
    extent: int
    steps: tuple[tuple[int, int, int], ...] = ()

    def at(self, form: Linear) -> Linear:
        """Return the index in the part, for an index in the buffer without its terms over threads; 0 for an extent of
        1. If the part drops gaps, the factor of each term must be one of `steps`."""
        if self.extent == 1:
            return lin.constant(0)
        part_steps = {step: part_step for step, part_step, _ in self.steps}
        if not part_steps:
            return form - lin.constant(self.low)
        return Linear(tuple((atom, part_steps[factor]) for atom, factor in form.terms))

    def isl(self, name: str) -> tuple[str, list[str], list[str]]:
        """Return the buffer index of any element of the part in isl's syntax: the form, its variables, which are named
        after `name`, and their ranges. Example: steps ((1, 1, 2), (16, 2, 2)) give "1*x_0 + 16*x_1", with 0 <= x_0 < 2
        and 0 <= x_1 < 2."""
        if not self.steps:
            return name, [name], [f"{self.low} <= {name} < {self.low + self.extent}"]
        names = [f"{name}_{number}" for number in range(len(self.steps))]
        form = " + ".join(f"{step}*{variable}" for variable, (step, _, _) in zip(names, self.steps, strict=True))
        ranges = [f"0 <= {variable} < {extent}" for variable, (_, _, extent) in zip(names, self.steps, strict=True)]
        return form, names, ranges


@dataclass(frozen=True)
class PrivatePart:
    """The part of a buffer that each thread, or each warp for a fragment, owns: `sides` has one `PartDimension` a
    dimension."""

    sides: tuple[PartDimension, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The extent of the part in each dimension of the buffer."""
        return tuple(side.extent for side in self.sides)

    def at(self, index: Sequence[Linear], threads: Collection[int]) -> list[Linear]:
        """Return the index in the part for an index over loops; `threads` are the numbers of the thread loops among
        them, whose terms are dropped. Raises LoweringError for a term that mixes thread loops with others."""
        own = dict.fromkeys(threads, lin.variable(0))
        return [side.at(_split_by_threads(form, own, "")[1]) for form, side in zip(index, self.sides, strict=True)]


def private_parts(program: Program) -> dict[str, PrivatePart]:
    """Map the name of each local or fragment buffer outside thread loops to its part. Raises LoweringError if threads,
    or for a fragment warps, share an element, if accesses differ in their terms over threads, if isl cannot decide, or
    if a term of an index mixes thread loops with others."""
    names = [alloc.buffer.name for alloc in program.allocs.values() if _is_around_threads(program, alloc)]
    return {name: _part_of(program, name) for name in names}


def _is_around_threads(program: Program, alloc: Alloc) -> bool:
    """Return whether a buffer of scope local or fragment is allocated outside a thread loop whose blocks access it; for
    a fragment a thread loop along y or z, or a loop of a warp's sum. False for other scopes."""
    outside = {loop.number for loop in program.enclosing((alloc.buffer.name,))}
    if alloc.buffer.scope not in ("local", "fragment"):
        return False
    blocks = [*program.readers[alloc.buffer.name], *program.writers[alloc.buffer.name]]
    inner = [loop for block in blocks for loop in program.enclosing(block.label) if loop.number not in outside]
    kinds = THREADS if alloc.buffer.scope == "local" else THREADS[1:]
    return any(loop.kind in kinds or is_warp_sum(loop) for loop in inner)


def _part_of(program: Program, name: str) -> PrivatePart:
    thread_forms: list[tuple[Linear, ...]] = []
    remainders: list[list[Linear]] = []
    shape = program.buffers[name].shape
    for statement, use in uses_of(program, name):
        own = _thread_loops(program, statement.block)
        if program.buffers[name].scope == "fragment":  # a warp's
            own = {number: form for number, form in own.items() if not form.depends_on(THREADS.index("thread_x"))}
        forms = [form if size > 1 else lin.constant(0) for form, size in zip(use.forms, shape, strict=True)]
        pairs = [_split_by_threads(form, own, name) for form in forms]
        thread_forms.append(tuple(thread_form for thread_form, _ in pairs))
        remainders.append([remainder for _, remainder in pairs])
    if any(forms != thread_forms[0] for forms in thread_forms):
        raise LoweringError(f"threads share the local buffer '{name}': its places differ from nest to nest")
    columns = list(zip(*remainders, strict=True))
    bounds = [[lin.bounds(remainder, program.ranges) for remainder in column] for column in columns]
    spans = [(min(low for low, _ in column), max(high for _, high in column)) for column in bounds]
    sides = [_part_dimension(column, span, program.ranges) for column, span in zip(columns, spans, strict=True)]
    _check_disjoint(program, name, thread_forms[0], sides)
    return PrivatePart(tuple(sides))


def _part_dimension(remainders: Sequence[Linear], span: lin.Range, ranges: lin.Ranges) -> PartDimension:
    """Return the dimension of a part for indices without thread terms, of range `span`, one index for each access;
    without gaps if all indices are sums of loops, without a constant, with different positive steps, each beyond the
    reach of the smaller steps.

    16 v + e for v < 2, e < 2  ->  2 v + e
    """
    with_gaps = PartDimension(span[0], span[1] - span[0] + 1)
    extents: dict[int, int] = {}
    for form in remainders:
        if form.constant or any(not isinstance(atom, int) or factor <= 0 for atom, factor in form.terms):
            return with_gaps
        for atom, factor in form.terms:
            assert isinstance(atom, int)
            extents[factor] = max(extents.get(factor, 1), ranges[atom][1] + 1)
        if len({factor for _, factor in form.terms}) != len(form.terms):
            return with_gaps
    steps, size, reach = [], 1, 0
    for factor, extent in sorted(extents.items()):
        if factor <= reach:
            return with_gaps
        steps.append((factor, size, extent))
        size *= extent
        reach += factor * (extent - 1)
    return PartDimension(0, size, tuple(steps))


def _thread_loops(program: Program, block: Block) -> dict[int, Linear]:
    """Return the values of a block's loops over threads, by number, as forms over positions in THREADS. Those of a sum
    of a warp or of half of one are the thread along x, of sums of rows of four the row x / 4 and the place in it."""
    enclosing_loops = program.enclosing(block.label)
    own = {loop.number: lin.variable(THREADS.index(loop.kind)) for loop in enclosing_loops if loop.kind in THREADS}
    depth = next((n for n, loop in enumerate(enclosing_loops) if is_warp_sum(loop)), len(enclosing_loops))
    x, ranges = lin.variable(THREADS.index("thread_x")), {THREADS.index("thread_x"): (0, LANES - 1)}
    by_extent = {LANES: x, LANES // 2: x, LANES // QUAD: lin.floordiv(x, QUAD, ranges), QUAD: lin.mod(x, QUAD, ranges)}
    return own | {loop.number: by_extent[loop.extent] for loop in enclosing_loops[depth:]}


def _split_by_threads(form: Linear, own: Mapping[int, Linear], name: str) -> tuple[Linear, Linear]:
    """Split a form into a form over thread dimensions, by `own` from loop numbers to forms over positions in THREADS,
    and the remainder: 4*ty + i gives 4*y and i. Raises LoweringError, which names the buffer `name`, for a term that
    mixes both."""
    thread_part, remainder = lin.constant(0), lin.constant(form.constant)
    for atom, factor in form.terms:
        term = Linear(((atom, factor),))
        variables = term.variables()
        if variables <= own.keys() and variables:
            thread_part = thread_part + _renamed(term, own)
        elif variables.isdisjoint(own):
            remainder = remainder + term
        else:
            raise LoweringError(f"a place in the local buffer '{name}' mixes threads with other loops")
    return thread_part, remainder


def _renamed(form: Linear, own: Mapping[int, Linear]) -> Linear:
    total = lin.constant(form.constant)
    for atom, factor in form.terms:
        if isinstance(atom, Quotient):
            total = total + Linear(((replace(atom, form=_renamed(atom.form, own)), factor),))
        else:
            total = total + own[atom].scaled(factor)
    return total


def _check_disjoint(
    program: Program, name: str, thread_forms: Sequence[Linear], sides: Sequence[PartDimension]
) -> None:
    """Raise LoweringError if two threads, or for a fragment two warps, share an element, or if isl cannot decide it.
    isl looks for a point of 0 <= a0, b0 < 16 and 0 <= ax0, bx0 < 4 and 4*a0 + ax0 = 4*b0 + bx0 and a0 != b0."""
    kinds = THREADS[1:] if program.buffers[name].scope == "fragment" else THREADS
    kernel = program.enclosing((name,))[:1] or program.body
    copied = copied_along(program, name, replicated(program, kernel[0]))
    loops = [loop for loop in walk(kernel) if isinstance(loop, Loop) and loop.kind in kinds and loop.kind not in copied]
    labels = {statement.block.label for statement, _ in uses_of(program, name)}
    accessing = {loop.number for label in labels for loop in program.enclosing(label)}
    extents: dict[int, int] = {}
    for kind in sorted({loop.kind for loop in loops}):  # threads beyond the loops around all accesses have no part
        own = [loop.extent for loop in loops if loop.kind == kind and loop.number in accessing]
        extents[THREADS.index(kind)] = max(own or [loop.extent for loop in loops if loop.kind == kind])
    text = [f"0 <= {v}{n} < {extents[n]}" for v in "ab" for n in extents]
    variables = [f"{v}{n}" for v in "ab" for n in extents]
    for d, (thread_form, side) in enumerate(zip(thread_forms, sides, strict=True)):
        places = []
        for v in "ab":
            form, names, ranges = side.isl(f"{v}x{d}")
            places.append(f"{lin.to_isl(thread_form, {n: f'{v}{n}' for n in extents})} + {form}")
            variables += names
            text += ranges
        text.append(" = ".join(places))
    text.append(f"({' or '.join(f'a{n} != b{n}' for n in extents) or '1 = 0'})")
    try:
        shared_element = sample(points(variables, text))
    except Undecided:
        raise LoweringError(f"whether threads share the local buffer '{name}' could not be decided") from None
    if shared_element is not None:
        owners = (
            "warps share elements of the fragment" if kinds != THREADS else "threads share elements of the local buffer"
        )
        raise LoweringError(f"{owners} '{name}': it has to be shared")
