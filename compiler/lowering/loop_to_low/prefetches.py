"""Prefetches of the cache lines that a later iteration accesses, all at once or in even shares.

A loop's attribute `prefetch` names buffers. `B = 2` prefetches, at the start of each iteration, the elements of B that
the iteration two further on accesses. `B = [1, "k.0"]` distributes the lines of the next iteration of the surrounding
loop `k.0` over the iterations within one of `k.0`, including those of loops between; they go to L2, since L1 would not
hold them for so long.

Speedup (`python -m benchmarks.price prefetches`): 1.09 for the second form, on a convolution of 7 x 7 images with 512
channels; the first form is within noise (0.985 to 0.998) on a core of Zen 5.
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
MAX_UNROLLED = 64
"""The most prefetches in a row; more are a loop."""
MAX_UNROLLED_SHARE = 8
"""The same limit for a share, whose first line is not constant."""


def emit_prefetches(context: Context, loop: Loop) -> None:
    """Emit the prefetches of a loop's attribute `prefetch`, at the start of its body; nothing without the attribute.
    Raises LoweringError for a malformed distance, and for a named loop that is vectorized or not around `loop`. A
    buffer that the loop does not access is skipped. The last iterations prefetch beyond the loop's end, which has no
    effect but its cost."""
    prefetch_attribute = dict(loop.attributes).get("prefetch")
    if not isinstance(prefetch_attribute, DictionaryAttr):
        return
    for name, distance in prefetch_attribute.data.items():
        _emit(context, loop, name, *_prefetch_distance(context, loop, distance))


def _prefetch_distance(context: Context, loop: Loop, distance: Attribute) -> tuple[Loop, int]:
    """Return the loop whose later iteration is prefetched, `loop` itself for a plain number, and the distance in its
    iterations. Raises LoweringError for a malformed distance, and for a named loop that is vectorized or not around
    `loop`."""
    match distance:
        case IntegerAttr():
            return loop, distance.value.data
        case ArrayAttr(data=(IntegerAttr() as ahead, StringAttr(data=label))):
            enclosing_loops = context.program.enclosing(loop.number)
            outer = next((loop_ for loop_ in enclosing_loops if loop_.label == label), None)
            fault = "is not around it" if outer is None else "runs at once" if outer.kind == "vectorized" else ""
            if outer is None or fault:
                raise LoweringError(f"loop '{loop.label}' prefetches for loop '{label}', which {fault}")
            return outer, ahead.value.data
    raise LoweringError(f"the attribute prefetch of loop '{loop.label}' is not a distance or [distance, loop]")


@dataclass(frozen=True)
class _Window:
    """A box of a buffer to prefetch, for writes if `written`: the start and the extent (`sizes`) of each dimension, in
    elements; `locality` 3 is L1, 2 is L2."""

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
        """The extents, with inner dimensions that are accessed completely merged into the next outer one; no dimensions
        give (1,). Example: the window (2, 16) of a buffer (8, 16) merges to (32,)."""
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
            _prefetch_window(context, window, counts, step)
        else:
            _prefetch_share(context, replace(window, locality=2), counts, step, _iteration_number(context, outer, loop))


def _aligned(window: _Window, step: int) -> bool:
    """Return whether all rows of a window start at cache lines of `step` elements: its buffer is a temporary or a
    constant, and its starts and row strides are multiples of `step`. False for an argument, whose alignment is unknown.
    """
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


def _prefetch_window(context: Context, window: _Window, counts: Sequence[int], step: int) -> None:
    total = prod(counts)
    if total <= MAX_UNROLLED:
        for number in range(total):
            _prefetch_line(context, window, _delinearized(number, counts), step)
        return
    scopes = context.scopes
    _prefetch_loop(context, scopes.index_constant(0), scopes.index_constant(total), window, counts, step)


@dataclass(frozen=True)
class _IterationNumber:
    """The number of a loop's current iteration within one iteration of an outer loop, and the count of iterations."""

    number: Linear
    count: int


def _iteration_number(context: Context, outer: Loop, loop: Loop) -> _IterationNumber:
    """Number the iterations of the loops inside `outer` down to `loop`, which is inside it too, in the order of
    execution; a vectorized loop counts as one iteration."""
    number, count = lin.constant(0), 1
    for inner in (loop, *reversed(context.program.enclosing(loop.number))):
        if inner is outer:
            break
        if inner.kind != "vectorized":
            number = number + context.form_of(inner).scaled(count)
            count *= inner.extent
    return _IterationNumber(number, count)


def _prefetch_share(
    context: Context, window: _Window, counts: Sequence[int], step: int, turn: _IterationNumber
) -> None:
    """Prefetch this iteration's share of the lines of a window, `counts` along its dimensions, of `step` elements each:
    ceil(total / turn.count) lines from floor(turn.number * total / turn.count) on. Shares may overlap by a line: 10
    lines over 4 iterations are 0-2, 2-4, 5-7, 7-9."""
    total, scopes = prod(counts), context.scopes
    start = lin.floordiv(turn.number.scaled(total), turn.count, scopes.ranges)
    share = -(-total // turn.count)
    if share > MAX_UNROLLED_SHARE:
        low, high = (scopes.index(form) for form in (start, start + lin.constant(share)))
        _prefetch_loop(context, low, high, window, counts, step)
        return
    for number in range(share):
        _prefetch_line(context, window, _delinearize(context, scopes.index(start + lin.constant(number)), counts), step)


def _prefetch_loop(
    context: Context, low: SSAValue, high: SSAValue, window: _Window, counts: Sequence[int], step: int
) -> None:
    scopes = context.scopes
    with scopes.region() as body:
        line = body.insert_arg(IndexType(), 0)
        _prefetch_line(context, window, _delinearize(context, line, counts), step)
    body.add_op(scf.YieldOp())
    scopes.run(scf.ForOp(low, high, scopes.index_constant(1), [], Region(body)))


def _delinearize(context: Context, line: SSAValue, counts: Sequence[int]) -> list[int | SSAValue]:
    """Emit the indices of a line in the merged dimensions, of extents `counts`, from its row-major number."""
    scopes, quotient = context.scopes, line
    indices: list[int | SSAValue] = []
    for d in range(len(counts) - 1, -1, -1):
        if prod(counts[:d]) == 1:  # nothing is left for the dimensions around
            return [*[0] * d, quotient, *indices]
        size = scopes.index_constant(counts[d])
        indices.insert(0, scopes.add(arith.RemUIOp(quotient, size)))
        quotient = scopes.add(arith.DivUIOp(quotient, size))
    return indices


def _prefetch_line(context: Context, window: _Window, line_indices: Sequence[int | SSAValue], step: int) -> None:
    """Prefetch one line of `step` elements; the indices are in the merged dimensions, the last one in lines."""
    scopes, indices = context.scopes, []
    rank = len(window.starts)
    offsets_by_dimension = {d: (offset, 1) for d, offset in enumerate(line_indices[:-1])} | {
        rank - 1: (line_indices[-1], step)
    }
    for d, start in enumerate(window.starts):
        offset, scale = offsets_by_dimension.get(d, (0, 1))
        if isinstance(offset, int):
            indices.append(scopes.index(start + lin.constant(offset * scale)))
        else:
            scaled = scopes.add(arith.MuliOp(offset, scopes.index_constant(scale))) if scale > 1 else offset
            indices.append(scopes.add(arith.AddiOp(scopes.index(start), scaled)))
    scopes.run(builders.prefetch(window.buffer, indices, window.written, window.locality))


def _delinearized(number: int, counts: Sequence[int]) -> list[int]:
    indices: list[int] = []
    for count in reversed(counts[1:]):
        indices.insert(0, number % count)
        number //= count
    return [number, *indices]


def _windows(context: Context, outer: Loop, name: str, ahead: int) -> list[_Window]:
    """Return the windows of a buffer that the iteration of `outer` further on by `ahead` accesses, without duplicates;
    of windows with the same starts the last written one stays, else the first. Gathers and accesses without a window
    are skipped; none for a buffer that is allocated inside the loop."""
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
    """Return the window of one access in the iteration `ahead` later, for writes if `written`; None if a term of an
    index mixes loops that run through the window with others. Loops inside `outer`, and the lanes of a vectorized loop
    around it, run through the window."""
    ranges, outer_number = context.scopes.ranges, outer.number
    axes = context.axes(block, {number: form for number, form in context.values.items() if number != outer_number})
    inner = {loop.number for loop in loops_in(*outer.body)}
    if context.lane is not None:
        inner.add(context.lane)
    later_value = {outer_number: context.form_of(outer) + lin.constant(ahead)}
    starts, sizes = [], []
    for form in context.substitute_axes(axes, access.index):
        span = _span(form, inner, later_value, ranges)
        if span is None:
            return None
        starts.append(span[0])
        sizes.append(span[1])
    if access.buffer in context.private:  # with a copy for each lane
        starts.append(lin.constant(0))
        sizes.append(context.lanes)
    return _Window(context.buffers[access.buffer], tuple(starts), tuple(sizes), written)


def _span(
    form: Linear, inner: set[int], outer_values: Mapping[int, Linear], ranges: lin.Ranges
) -> tuple[Linear, int] | None:
    """Return the start of an index, with `outer_values` substituted, and the extent of its values over inner loops;
    None if a term mixes inner and outer loops; `outer_values` maps numbers of outer loops to forms. Example: 4*i + j
    with j inner and j < 3 starts at 4*i, with extent 3."""
    outer_terms: list[tuple[Atom, int]] = []
    low = high = 0
    for atom, factor in form.terms:
        term = Linear(((atom, factor),))
        if not term.variables() & inner:
            outer_terms.append((atom, factor))
        elif term.variables() <= inner:
            smallest, largest = lin.bounds(term, ranges)
            low, high = low + smallest, high + largest
        else:
            return None
    start = lin.substitute(Linear(tuple(outer_terms), form.constant + low), outer_values, ranges)
    return start, high - low + 1
