"""Regions: the box of a buffer that accesses touch in one iteration of outer loops, and buffers shrunk to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.ir import Attribute

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear, Quotient
from compiler.dialects.access import AxisAttr
from compiler.dialects.combiner import identity
from compiler.program.names import fresh
from compiler.program.tree import Access, Alloc, Block, Buffer, Node, Program, key_of, renumbered

WINDOW = "w."
"""The prefix of the labels of axes that are bound to the low end of a window."""


@dataclass(frozen=True)
class Interval:
    """`extent` elements of one dimension from `low`, a form over the outer loops."""

    low: Linear
    extent: int


def region(
    program: Program, buffer: str, blocks: Sequence[Block], outer: set[int], writes: bool | None
) -> list[Interval]:
    """The box that the reads (writes False), writes (True) or both (None) of blocks touch for fixed loops `outer`, an
    interval for each dimension; the whole buffer without any such access.

    A hull: exact for boxes; where two lower ends do not differ by a constant, the whole dimension.
    """
    spans: list[Interval] | None = None
    shape = program.buffers[buffer].shape
    for block in blocks:
        chosen = [a for a in block.reads if writes is not True] + [a for a in block.writes if writes is not False]
        for access in chosen:
            if access.buffer != buffer:
                continue
            touched = [
                _clipped(_span(block.at(form, program.ranges), outer, program.ranges, size), size)
                for form, size in zip(access.index, shape, strict=True)
            ]
            spans = touched if spans is None else [hull(a, b, n) for a, b, n in zip(spans, touched, shape, strict=True)]
    return spans or [Interval(lin.constant(0), n) for n in shape]


def _clipped(span: Interval, size: int) -> Interval:
    """Clip a span to its dimension, of `size` elements. A constant span becomes its intersection with the dimension, of
    at least one element. A span that depends on outer loops becomes the whole dimension if it is at least as long, else
    it is unchanged."""
    if span.low.is_constant:
        low = max(span.low.constant, 0)
        high = min(span.low.constant + span.extent, size)
        return Interval(lin.constant(low), max(high - low, 1))
    return span if span.extent < size else Interval(lin.constant(0), size)


def _span(form: Linear, outer: set[int], ranges: lin.Ranges, size: int) -> Interval:
    """The values of an index for fixed outer loops: `2*i + j` for outer i and j in [0, 3) is 3 elements from `2*i`. All
    `size` elements if that is undecided."""
    low, extra_low, extra_high = lin.constant(form.constant), 0, 0
    for atom, factor in form.terms:
        variables = lin.variables_of(atom)
        term = Linear(((atom, factor),), 0)
        if variables <= outer:
            low = low + term
            continue
        if not variables & outer:
            smallest, largest = lin.bounds(term, ranges)
        elif isinstance(atom, Quotient) and not atom.is_mod:
            inner = _span(atom.form, outer, ranges, 1 << 62)
            base = lin.floordiv(inner.low, atom.divisor, ranges)
            if factor < 0:
                return Interval(lin.constant(0), size)
            remainder = lin.mod(inner.low, atom.divisor, ranges)
            top = lin.bounds(remainder, ranges)[1]
            low = low + base.scaled(factor)
            smallest, largest = 0, factor * ((top + inner.extent - 1) // atom.divisor)
        else:
            return Interval(lin.constant(0), size)
        extra_low += smallest
        extra_high += largest
    return Interval(low + lin.constant(extra_low), extra_high - extra_low + 1)


def hull(a: Interval, b: Interval, size: int) -> Interval:
    """The smallest span that contains both if their low ends differ by a constant; else the whole dimension.

    2 elements from `i` and 2 from `i + 1` are 3 from `i`; with 2 from `2*i` they are all `size` elements.
    """
    gap = b.low - a.low
    if not gap.is_constant:
        return Interval(lin.constant(0), size)
    start, end = min(0, gap.constant), max(a.extent, gap.constant + b.extent)
    return Interval(a.low + lin.constant(start), end - start)


def inside(forms: Sequence[Linear], shape: Sequence[int], ranges: lin.Ranges) -> list[Condition]:
    """The conditions, not proved by ranges, that an index is in a shape: 6 - i >= 0 for i + 1 in [8], i in [0, 7]."""
    conditions = []
    for form, size in zip(forms, shape, strict=True):
        conditions += [Condition(form), Condition(lin.constant(size - 1) - form)]
    return [c for c in conditions if not c.always(ranges)]


def folded(program: Program, buffer: str, spans: Sequence[Interval]) -> Program:
    """Shrink a temporary to a window, a span for each dimension; no change if it is the whole buffer: indices become
    relative to the low end of the window.

    Where the low end is a multiple of the extent, the index is taken modulo the extent; else every block that accesses
    the buffer gains an axis bound to the low end.
    """
    old = program.buffers[buffer]
    windows: dict[int, Interval] = {}
    for d, (span, n) in enumerate(zip(spans, old.shape, strict=True)):
        if span.extent < n or not span.low.is_constant or span.low.constant:
            windows[d] = span
    if not windows:
        return program
    shape = tuple(windows[d].extent if d in windows else n for d, n in enumerate(old.shape))
    after = program.map_blocks(lambda block: windowed(program, block, buffer, windows, buffer, cyclic=True))
    return with_buffer(after, buffer, replace(old, shape=shape))


def windowed(
    program: Program, block: Block, buffer: str, spans: Mapping[int, Interval], name: str, cyclic: bool = False
) -> Block:
    """Return a block whose accesses to `buffer` go to the buffer `name`, with indices relative to the windows `spans`,
    by dimension; the same block if it does not touch the buffer.

    An index into a cyclic window whose low end is a multiple of its extent is taken modulo the extent; any other low
    end that moves becomes an axis of the block.
    """
    if not touches(block, buffer):
        return block
    offsets: dict[int, Linear] = {}
    for d, span in spans.items():
        if span.low.is_constant:
            offsets[d] = span.low
        elif not (cyclic and _aligned(span)):
            block, axis, low = window_axis(program, block, span.low)  # the last spatial axis: no other moves
            offsets[d] = lin.variable(axis) + lin.constant(low)

    def redirect(access: Access) -> Access:
        index = list(access.index)
        for d, span in spans.items():
            index[d] = index[d] - offsets[d] if d in offsets else lin.mod(index[d], span.extent, block.axis_ranges)
        return replace(access, buffer=name, index=tuple(index))

    return with_accesses(block, buffer, redirect)


def touches(block: Block, buffer: str) -> bool:
    """Whether a block reads or writes a buffer, other than as the table of a gather."""
    return any(access.buffer == buffer for access in block.reads) or buffer in block.targets


def with_accesses(block: Block, buffer: str, change: Callable[[Access], Access]) -> Block:
    """Return a block with `change` applied to its reads and writes of a buffer; the table of a gather stays."""
    reads, writes = (
        tuple(change(access) if access.buffer == buffer else access for access in accesses)
        for accesses in (block.reads, block.writes)
    )
    return replace(block, reads=reads, writes=writes)


def _aligned(span: Interval) -> bool:
    low = span.low
    return low.constant % span.extent == 0 and all(factor % span.extent == 0 for _, factor in low.terms)


def conditional(access: Access, conditions: Iterable[Condition], type: Attribute) -> Access:
    """Return a read with `conditions`, each once, instead of its own. A conditional read without an `otherwise` reads
    zero of `type` where a condition fails."""
    where = tuple(dict.fromkeys(conditions))
    otherwise = identity("add", type) if where and access.otherwise is None else access.otherwise
    return replace(access, where=where, otherwise=otherwise)


def window_axis(program: Program, block: Block, low: Linear) -> tuple[Block, int, int]:
    """Find or add a spatial axis bound to `low` less its least value; return the block, the axis and the least value.

    Low `4*i + 2` for i in [0, 8): an axis of 29 values bound to `4*i`, and 2.
    """
    smallest, largest = lin.bounds(low, program.ranges)
    form = low - lin.constant(smallest)
    for number, bound in enumerate(block.bindings[: block.spatial]):
        if bound == form and block.axes[number].size > largest - smallest:
            return block, number, smallest
    position = block.spatial
    label = fresh(f"{WINDOW}0", [axis.label for axis in block.axes])
    block = insert_axis(block, position, AxisAttr(label, largest - smallest + 1), form)
    return block, position, smallest


def insert_axis(block: Block, position: int, axis: AxisAttr, binding: Linear) -> Block:
    """Return a block with an axis and its binding inserted at a position; axes from there on are renumbered."""
    shift = {n: lin.variable(n + 1) for n in range(position, len(block.axes))}
    return replace(
        renumbered(block, shift),
        axes=(*block.axes[:position], axis, *block.axes[position:]),
        bindings=(*block.bindings[:position], binding, *block.bindings[position:]),
    )


def with_buffer(program: Program, name: str, buffer: Buffer) -> Program:
    """Replace the buffer of the allocation of the buffer `name`; accesses stay."""
    return program.replaced((name,), lambda _: [Alloc(buffer)])


def moved_alloc(program: Program, name: str, loop: int | None) -> Program:
    """Move an allocation to the start of a loop's body or, for None, of the function."""
    alloc = program.allocs[name]
    program = program.replaced((name,), lambda _: [])
    if loop is None:
        return replace(program, body=(alloc, *program.body))

    def into(node: Node) -> Sequence[Node]:
        return [replace(node, body=(alloc, *node.body))]  # type: ignore[union-attr,arg-type]

    return program.replaced(loop, into)


def alloc_first(program: Program, name: str) -> Program:
    """Move an allocation before the first use of its buffer, within the same body; no change if it is there already,
    the buffer is unused or no temporary."""
    if name not in program.allocs:
        return program
    place = program.places[(name,)]
    depth = len(place.loops)
    users = program.readers[name] + program.writers[name]
    firsts = [program.places[b.label].positions for b in users]
    first = min(firsts, default=None)
    if first is None or first[depth] > place.positions[depth]:
        return program
    alloc = program.allocs[name]
    siblings = place.loops[-1].body if place.loops else program.body
    anchor = key_of(siblings[first[depth]])
    cleared = program.replaced((name,), lambda _: [])
    return cleared.replaced(anchor, lambda node: [alloc, node])
