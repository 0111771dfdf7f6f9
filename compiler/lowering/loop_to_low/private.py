"""Local buffers outside thread loops: each thread keeps the part that it alone touches; of fragments each warp does.

A buffer of scope local that lives around several stages has an element for each thread at the loop level. Where every
access is at a place that the thread decides, the same in all stages, plus one that it does not, threads never share an
element; then each has a buffer of the size of the latter, and the former is left out.

    C.local[64, 64], accessed at [4 ty + i, 4 tx + j]  ->  C.local[4, 4] a thread, accessed at [i, j]
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from compiler.affine import linear as lin
from compiler.affine.linear import Linear, Quotient
from compiler.analysis.barriers import THREADS
from compiler.analysis.sets import Undecided, points, sample
from compiler.analysis.statements import uses_of
from compiler.program.tree import Alloc, Block, Loop, Program, walk
from compiler.support.errors import LoweringError


@dataclass(frozen=True)
class Side:
    """One dimension of a part: its start and its extent. If loops step through it with gaps, `steps` has each step in
    the buffer, the step in the part, and the number of steps."""

    low: int
    extent: int
    steps: tuple[tuple[int, int, int], ...] = ()

    def at(self, form: Linear) -> Linear:
        """The index in the dimension, from the part of the form that threads do not decide."""
        shorter = {step: place for step, place, _ in self.steps}
        if not shorter:
            return form - lin.constant(self.low)
        return Linear(tuple((atom, shorter[factor]) for atom, factor in form.terms))

    def isl(self, name: str) -> tuple[str, list[str], list[str]]:
        """Any place that threads do not decide, in isl's syntax: the form, its variables and their ranges."""
        if not self.steps:
            return name, [name], [f"{self.low} <= {name} < {self.low + self.extent}"]
        names = [f"{name}_{number}" for number in range(len(self.steps))]
        form = " + ".join(f"{step}*{variable}" for variable, (step, _, _) in zip(names, self.steps, strict=True))
        ranges = [f"0 <= {variable} < {extent}" for variable, (_, _, extent) in zip(names, self.steps, strict=True)]
        return form, names, ranges


@dataclass(frozen=True)
class PrivatePart:
    """The part of a buffer that each thread keeps."""

    sides: tuple[Side, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the part."""
        return tuple(side.extent for side in self.sides)

    def at(self, index: Sequence[Linear], threads: Collection[int]) -> list[Linear]:
        """The index in the part of an index over loops; `threads` are the thread loops among them."""
        kinds = dict.fromkeys(threads, 0)
        return [side.at(_divided(form, kinds, "")[1]) for form, side in zip(index, self.sides, strict=True)]


def parts(program: Program) -> dict[str, PrivatePart]:
    """The local buffers of which each thread keeps a part.

    Raises LoweringError where threads share an element of a local buffer.
    """
    names = [alloc.buffer.name for alloc in program.allocs.values() if _is_around_threads(program, alloc)]
    return {name: _part_of(program, name) for name in names}


def _is_around_threads(program: Program, alloc: Alloc) -> bool:
    """Whether a local buffer lives outside the thread loops of the blocks that touch it."""
    outside = {loop.number for loop in program.enclosing((alloc.buffer.name,))}
    if alloc.buffer.scope not in ("local", "fragment"):
        return False
    blocks = [*program.readers[alloc.buffer.name], *program.writers[alloc.buffer.name]]
    inner = [loop for block in blocks for loop in program.enclosing(block.label) if loop.number not in outside]
    return any(loop.kind in THREADS for loop in inner)


def _part_of(program: Program, name: str) -> PrivatePart:
    owns: list[tuple[Linear, ...]] = []
    rests: list[list[Linear]] = []
    for statement, use in uses_of(program, name):
        kinds = _threads(program, statement.block)
        pairs = [_divided(form, kinds, name) for form in use.forms]
        owns.append(tuple(by_thread for by_thread, _ in pairs))
        rests.append([remainder for _, remainder in pairs])
    if any(by_thread != owns[0] for by_thread in owns):
        raise LoweringError(f"threads share the local buffer '{name}': its places differ from nest to nest")
    columns = list(zip(*rests, strict=True))
    bounds = [[lin.bounds(remainder, program.ranges) for remainder in column] for column in columns]
    spans = [(min(low for low, _ in column), max(high for _, high in column)) for column in bounds]
    sides = [_side(column, span, program.ranges) for column, span in zip(columns, spans, strict=True)]
    _check_apart(program, name, owns[0], sides)
    return PrivatePart(tuple(sides))


def _side(rests: Sequence[Linear], span: lin.Range, ranges: lin.Ranges) -> Side:
    """A dimension of a part: without its gaps, where all loops of a step have one extent and steps do not overlap.

    16 v + e for v < 2, e < 2  ->  2 v + e
    """
    full_side = Side(span[0], span[1] - span[0] + 1)
    extents: dict[int, int] = {}
    for form in rests:
        if form.constant or any(not isinstance(atom, int) or factor <= 0 for atom, factor in form.terms):
            return full_side
        for atom, factor in form.terms:
            assert isinstance(atom, int)
            extents[factor] = max(extents.get(factor, 1), ranges[atom][1] + 1)
        if len({factor for _, factor in form.terms}) != len(form.terms):
            return full_side
    steps, size, reach = [], 1, 0
    for factor, extent in sorted(extents.items()):
        if factor <= reach:
            return full_side
        steps.append((factor, size, extent))
        size *= extent
        reach += factor * (extent - 1)
    return Side(0, size, tuple(steps))


def _threads(program: Program, block: Block) -> dict[int, int]:
    """The thread loops around a block, by the number of their kind."""
    around = program.enclosing(block.label)
    return {loop.number: THREADS.index(loop.kind) for loop in around if loop.kind in THREADS}


def _divided(form: Linear, kinds: Mapping[int, int], name: str) -> tuple[Linear, Linear]:
    """The part of a form over thread kinds, and the remainder."""
    thread_part, remainder = lin.constant(0), lin.constant(form.constant)
    for atom, factor in form.terms:
        term = Linear(((atom, factor),))
        inside = term.variables()
        if inside <= kinds.keys() and inside:
            thread_part = thread_part + _renamed(term, kinds)
        elif inside.isdisjoint(kinds):
            remainder = remainder + term
        else:
            raise LoweringError(f"a place in the local buffer '{name}' mixes threads with other loops")
    return thread_part, remainder


def _renamed(form: Linear, kinds: Mapping[int, int]) -> Linear:
    """A form over thread loops as one over their kinds."""
    total = lin.constant(form.constant)
    for atom, factor in form.terms:
        if isinstance(atom, Quotient):
            total = total + Linear(((replace(atom, form=_renamed(atom.form, kinds)), factor),))
        else:
            total = total + lin.variable(kinds[atom]).scaled(factor)
    return total


def _check_apart(program: Program, name: str, owns: Sequence[Linear], sides: Sequence[Side]) -> None:
    """Raise LoweringError where two threads, or of fragments two warps, have an element in common."""
    kinds = THREADS[1:] if program.buffers[name].scope == "fragment" else THREADS
    kernel = program.enclosing((name,))[:1] or program.body
    loops = [loop for loop in walk(kernel) if isinstance(loop, Loop) and loop.kind in kinds]
    extents = {
        THREADS.index(kind): max(loop.extent for loop in loops if loop.kind == kind)
        for kind in sorted({loop.kind for loop in loops})
    }
    text = [f"0 <= {v}{n} < {extents[n]}" for v in "ab" for n in extents]
    variables = [f"{v}{n}" for v in "ab" for n in extents]
    for d, (thread_form, side) in enumerate(zip(owns, sides, strict=True)):
        places = []
        for v in "ab":
            form, names, ranges = side.isl(f"{v}x{d}")
            places.append(f"{lin.to_isl(thread_form, {n: f'{v}{n}' for n in extents})} + {form}")
            variables += names
            text += ranges
        text.append(" = ".join(places))
    text.append(f"({' or '.join(f'a{n} != b{n}' for n in extents) or '1 = 0'})")
    try:
        shared = sample(points(variables, text))
    except Undecided:
        raise LoweringError(f"whether threads share the local buffer '{name}' could not be decided") from None
    if shared is not None:
        who = (
            "warps share elements of the fragment" if kinds != THREADS else "threads share elements of the local buffer"
        )
        raise LoweringError(f"{who} '{name}': it has to be shared")
