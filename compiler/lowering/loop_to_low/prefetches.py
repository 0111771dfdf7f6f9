"""Prefetches: the cache lines that a loop will touch some iterations later, asked for at once or a share at a time.

A loop's attribute `prefetch` names buffers. `B = 2` asks, at the start of each iteration, for what the iteration two
further on touches of B. `B = [1, "k.0"]` asks in each iteration for one share of what the next iteration of the
surrounding loop `k.0` touches; the shares of all iterations within one of `k.0`, those of loops between counted, are
the whole, and as even as lines allow. They are brought to L2, since L1 would not hold them until then.

`python -m benchmarks.price prefetches`, times without over with: 1.09 for the second form, on a convolution of 7 x 7
images with 512 channels; the first form is within noise (0.985 to 0.998) on a core of Zen 5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IndexType, IntegerAttr, MemRefType, StringAttr
from xdsl.ir import Attribute, Block, Region, SSAValue

from compiler.affine import linear as lin
from compiler.affine.linear import Atom, Linear
from compiler.dialects.upstream import builders
from compiler.lowering.loop_to_low.context import Context
from compiler.program.tree import Access, Loop, blocks_in, loops_in
from compiler.program.tree import Block as Computed
from compiler.support.errors import LoweringError
from compiler.types.elements import element_bytes

LINE = 64
"""The bytes of a cache line."""
STRAIGHT = 64
"""The most prefetches that stand one behind the other; more are a loop."""
STRAIGHT_SHARE = 8
"""The same for a share, which starts anywhere."""


def emit_prefetches(context: Context, loop: Loop) -> None:
    """Emit the prefetches of a loop's attribute, at the start of its body."""
    asked = dict(loop.attributes).get("prefetch")
    if not isinstance(asked, DictionaryAttr):
        return
    for name, wish in asked.data.items():
        _emit(context, loop, name, *_wish(context, loop, wish))


def _wish(context: Context, loop: Loop, wish: Attribute) -> tuple[Loop, int]:
    """The loop whose later iteration is meant, and how much later."""
    match wish:
        case IntegerAttr():
            return loop, wish.value.data
        case ArrayAttr(data=(IntegerAttr() as ahead, StringAttr(data=label))):
            around = context.program.enclosing(loop.number)
            outer = next((each for each in around if each.label == label), None)
            wrong = "is not around it" if outer is None else "runs at once" if outer.kind == "vectorized" else ""
            if outer is None or wrong:
                raise LoweringError(f"loop '{loop.label}' prefetches for loop '{label}', which {wrong}")
            return outer, ahead.value.data
    raise LoweringError(f"the attribute prefetch of loop '{loop.label}' is not a distance or [distance, loop]")


@dataclass(frozen=True)
class _Window:
    """A box of a buffer: where each dimension starts and how many elements of it are touched."""

    buffer: SSAValue
    starts: tuple[Linear, ...]
    sizes: tuple[int, ...]
    written: bool
    locality: int = 3

    @property
    def shape(self) -> tuple[int, ...]:
        type = self.buffer.type
        assert isinstance(type, MemRefType)
        return type.get_shape()

    @property
    def element_bytes(self) -> int:
        """The size of an element, in bytes."""
        type = self.buffer.type
        assert isinstance(type, MemRefType)
        return element_bytes(type.element_type)

    @property
    def merged(self) -> tuple[int, ...]:
        """The sizes, with the inner dimensions that are touched as a whole counted into the one around them; at least
        one, as a buffer without dimensions has one element."""
        sizes = list(self.sizes) or [1]
        for d in range(len(sizes) - 1, 0, -1):
            if sizes[d] != prod(self.shape[d:]):
                break
            sizes[d - 1 : d + 1] = [sizes[d - 1] * sizes[d]]
        return tuple(sizes)


def _emit(context: Context, loop: Loop, name: str, outer: Loop, ahead: int) -> None:
    for window in _windows(context, outer, name, ahead):
        sizes = window.merged
        step = max(1, LINE // window.element_bytes)
        lines = -(-sizes[-1] // step) + (not _aligned(window, step) and sizes[-1] % step != 1)
        counts = [*sizes[:-1], lines]
        if outer is loop:
            _all(context, window, counts, step)
        else:
            _share(context, replace(window, locality=2), counts, step, _turn(context, outer, loop))


def _aligned(window: _Window, step: int) -> bool:
    """Whether the window's rows surely start at cache lines: in a temporary, at multiples of a line's elements."""
    if isinstance(window.buffer.owner, Block):
        return False
    shape = window.shape
    sizes = lin.strides(shape)
    factors = [
        size * factor
        for form, size in zip(window.starts, sizes, strict=True)
        for factor in (form.constant, *(f for _, f in form.terms))
    ]
    rows = [size for size, count in zip(sizes[:-1], window.sizes[:-1], strict=True) if count > 1]
    return all(number % step == 0 for number in (*factors, *rows))


def _all(context: Context, window: _Window, counts: Sequence[int], step: int) -> None:
    total = prod(counts)
    if total <= STRAIGHT:
        for number in range(total):
            _one(context, window, _split(number, counts), step)
        return
    scopes = context.scopes
    _loop(context, scopes.index_constant(0), scopes.index_constant(total), window, counts, step)


@dataclass(frozen=True)
class _Turn:
    """Which iteration of a loop this is within one of a loop around it, and how many there are."""

    number: Linear
    count: int


def _turn(context: Context, outer: Loop, loop: Loop) -> _Turn:
    """Lanes of a vectorized loop between run at once: they count as one iteration."""
    number, count = lin.constant(0), 1
    for inner in (loop, *reversed(context.program.enclosing(loop.number))):
        if inner is outer:
            break
        if inner.kind != "vectorized":
            number = number + context.form_of(inner).scaled(count)
            count *= inner.extent
    return _Turn(number, count)


def _share(context: Context, window: _Window, counts: Sequence[int], step: int, turn: _Turn) -> None:
    """Lines floor(turn * total / turns) and the next few, of which the last may be the first of the next share."""
    total, scopes = prod(counts), context.scopes
    start = lin.floordiv(turn.number.scaled(total), turn.count, scopes.ranges)
    share = -(-total // turn.count)
    if share > STRAIGHT_SHARE:
        low, high = (scopes.index(form) for form in (start, start + lin.constant(share)))
        _loop(context, low, high, window, counts, step)
        return
    for number in range(share):
        _one(context, window, _places(context, scopes.index(start + lin.constant(number)), counts), step)


def _loop(context: Context, low: SSAValue, high: SSAValue, window: _Window, counts: Sequence[int], step: int) -> None:
    scopes = context.scopes
    with scopes.region() as body:
        line = body.insert_arg(IndexType(), 0)
        _one(context, window, _places(context, line, counts), step)
    body.add_op(scf.YieldOp())
    scopes.run(scf.ForOp(low, high, scopes.index_constant(1), [], Region(body)))


def _places(context: Context, line: SSAValue, counts: Sequence[int]) -> list[int | SSAValue]:
    """A line by its place in each merged dimension."""
    scopes, left = context.scopes, line
    places: list[int | SSAValue] = []
    for d in range(len(counts) - 1, -1, -1):
        if prod(counts[:d]) == 1:  # nothing is left for the dimensions around
            return [*[0] * d, left, *places]
        size = scopes.index_constant(counts[d])
        places.insert(0, scopes.add(arith.RemUIOp(left, size)))
        left = scopes.add(arith.DivUIOp(left, size))
    return places


def _one(context: Context, window: _Window, places: Sequence[int | SSAValue], step: int) -> None:
    """One line; the places are over the merged dimensions, the last in lines, counted from its first element."""
    scopes, indices = context.scopes, []
    rank = len(window.starts)
    at = {d: (place, 1) for d, place in enumerate(places[:-1])} | {rank - 1: (places[-1], step)}
    for d, start in enumerate(window.starts):
        place, scale = at.get(d, (0, 1))
        if isinstance(place, int):
            indices.append(scopes.index(start + lin.constant(place * scale)))
        else:
            scaled = scopes.add(arith.MuliOp(place, scopes.index_constant(scale))) if scale > 1 else place
            indices.append(scopes.add(arith.AddiOp(scopes.index(start), scaled)))
    scopes.run(builders.prefetch(window.buffer, indices, window.written, window.locality))


def _split(number: int, counts: Sequence[int]) -> list[int]:
    places: list[int] = []
    for count in reversed(counts[1:]):
        places.insert(0, number % count)
        number //= count
    return [number, *places]


def _windows(context: Context, outer: Loop, name: str, ahead: int) -> list[_Window]:
    """The windows of a buffer that a later iteration of a loop touches, if the buffer outlives it: one box a block,
    without duplicates."""
    windows: dict[tuple[Linear, ...], _Window] = {}
    if (name,) in context.program.places and outer in context.program.enclosing((name,)):
        return []
    for block in blocks_in(outer):
        accesses = [] if block.table is not None else [*block.reads, *block.writes]
        for position, access in enumerate(accesses):
            written = position >= len(block.reads)
            window = _window(context, outer, block, access, ahead, written) if access.buffer == name else None
            if window is not None and (window.starts not in windows or written):
                windows[window.starts] = window
    return list(windows.values())


def _window(
    context: Context, outer: Loop, block: Computed, access: Access, ahead: int, written: bool
) -> _Window | None:
    """The box of one access, where each index is a sum of loops; None where it is not.

    Loops inside the outer one run through the box, and so do the lanes of a vectorized loop around it.
    """
    ranges, turn = context.scopes.ranges, outer.number
    axes = context.axes(block, {number: form for number, form in context.values.items() if number != turn})
    inner = {loop.number for loop in loops_in(*outer.body)}
    if context.lane is not None:
        inner.add(context.lane)
    later = {turn: context.form_of(outer) + lin.constant(ahead)}
    starts, sizes = [], []
    for form in context.over(axes, access.index):
        span = _span(form, inner, later, ranges)
        if span is None:
            return None
        starts.append(span[0])
        sizes.append(span[1])
    if access.buffer in context.private:  # each lane has its own, side by side
        starts.append(lin.constant(0))
        sizes.append(context.lanes)
    return _Window(context.buffers[access.buffer], tuple(starts), tuple(sizes), written)


def _span(form: Linear, inner: set[int], later: Mapping[int, Linear], ranges: lin.Ranges) -> tuple[Linear, int] | None:
    """Where an index starts and how many values it takes while inner loops run; None where these mix with others."""
    outside: list[tuple[Atom, int]] = []
    low = high = 0
    for atom, factor in form.terms:
        term = Linear(((atom, factor),))
        if not term.variables() & inner:
            outside.append((atom, factor))
        elif term.variables() <= inner:
            smallest, largest = lin.bounds(term, ranges)
            low, high = low + smallest, high + largest
        else:
            return None
    start = lin.substitute(Linear(tuple(outside), form.constant + low), later, ranges)
    return start, high - low + 1
