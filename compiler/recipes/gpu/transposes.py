"""Transposes on the threads of GPUs: tiles pass through shared memory, so that reads and writes are contiguous.

Source: Ruetsch and Micikevicius, "Optimizing Matrix Transpose in CUDA" (2009); cuTENSOR's permutations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import gcd, prod

from compiler.program.tree import Access, Block
from compiler.recipes.draft import Alternative, Draft
from compiler.recipes.gpu.spread import THREADS, spread_on_threads
from compiler.recipes.gpu.tiles import cooperative_fetch
from compiler.recipes.gpu.vectors import runs_along
from compiler.recipes.steps import by_axis, fused, inside, node_of, refusal
from compiler.schedule import Handle, Schedule
from compiler.types.elements import element_bytes

EDGE, WHOLE = 32, 64
"""The elements of a tile along an edge, and the longest axis that is an edge as a whole."""
SECTOR, WORD = 32, 4
"""The bytes of a sector of memory, of which reads and writes consist, and of a bank of shared memory."""


def transposes_on_threads(draft: Draft, label: str) -> Iterator[Alternative]:
    """Yield the schedule by `transpose_on_threads` of an elementwise block without readers that reads an operand along
    another axis than it writes; nothing for other blocks."""
    block = draft.block(label)
    if draft.readers(label) or edges(block, _bytes(draft.schedule, block)) is None:
        return

    def apply(draft: Draft) -> Sequence[str]:
        transpose_on_threads(draft.schedule, draft.schedule.get_block(label), THREADS)
        return [label]

    yield Alternative("transposed in tiles", apply)


def edges(block: Block, bytes_: int) -> Mapping[int, int] | None:
    """Return the edges of a tile: the number of each axis that it is cut along, with the tile's elements along it. They
    are the axes along which the block writes neighbours, and along which it reads neighbours of its first transposed
    operand.

    bytes_: the bytes of an element of the result. None for a block that is no elementwise transpose, and if either edge
    would be of one element.
    """
    last = len(block.axes) - 1
    if block.combiners or block.table is not None or block.guard or last < 1 or len(block.writes) != 1:
        return None
    turned = [access for access in block.reads if _turned_axis(access, last) is not None]
    if not turned or not runs_along(block.writes[0], last):
        return None
    read = _edge(block, turned[0], {last}, bytes_)
    written = _edge(block, block.writes[0], read.keys(), bytes_)
    return {**written, **read} if prod(written.values()) > 1 and prod(read.values()) > 1 else None


def _turned_axis(access: Access, last: int) -> int | None:
    """Return the axis along which an access is contiguous, if the axis `last` indexes another dimension; else None."""
    axes = access.index[-1].variables() if access.index else set()
    if len(axes) != 1 or last in axes or not any(last in form.variables() for form in access.index):
        return None
    (axis,) = axes
    return axis if runs_along(access, axis) else None


def _edge(block: Block, access: Access, taken: Collection[int], bytes_: int) -> dict[int, int]:
    """Return the elements of a tile by axis of an access, the innermost dimension first: about EDGE in all, each of
    `bytes_` bytes, the last axis in whole sectors if these divide it, short axes as a whole; none of the axes `taken`.
    """
    edge: dict[int, int] = {}
    for form in reversed(access.index):
        axes = form.variables()
        if not axes and not form.constant:
            continue
        axis = next(iter(axes), None)
        if axis is None or len(axes) > 1 or form.coefficient(axis) != 1 or axis in taken:
            break
        size, length = block.axes[axis].size, prod(edge.values())
        if length >= EDGE:
            each = SECTOR // gcd(SECTOR, length * bytes_)
            return edge | {axis: each} if each > 1 and size % each == 0 else edge
        edge[axis] = size if size * length <= WHOLE else -(-EDGE // length)
        if edge[axis] < size:
            break
    return edge


def transpose_on_threads(s: Schedule, block: Handle, threads: int = THREADS) -> Handle:
    """Schedule an elementwise transpose for a GPU by tiles in shared memory: threads read neighbours of the operand,
    and write neighbours of the result.

        i { j { Y[i, j] = X[j, i] } }
      ->
        i.0_j.0 block_x { fetch X.shared[j.1, i.1] by neighbours along i;  i.1_j.1 thread_x { Y = X.shared } }

    Returns the loop over tiles. Rows of a tile are padded, so that neighbours along the result are in different banks.
    Raises ScheduleError for a block that `edges` does not recognise. Requires a loop for each axis longer than one.
    """
    node = node_of(s, block)
    sizes = edges(node, _bytes(s, node))
    if sizes is None:
        raise refusal(s, block, "transpose_on_threads", "it is no elementwise transpose")
    last = len(node.axes) - 1
    turned = [access.buffer for access in node.reads if _turned_axis(access, last) is not None]
    loops = by_axis(s, block)
    outer: list[Handle] = []
    inner: dict[int, Handle] = {}
    for axis, (loop,) in ((axis, each) for axis, each in enumerate(loops) if each):
        if sizes.get(axis, 1) == s.extent(loop):
            inner[axis] = loop
        elif axis in sizes:
            first, inner[axis] = s.split(loop, [None, sizes[axis]])
            outer.append(first)
        else:
            outer.append(loop)
    tile = list(inner.values())
    outer = outer or [s.add_unit_loop(tile[0])]
    s.reorder(*outer, *tile)
    grid = fused(s, outer)
    for name in dict.fromkeys(turned):
        fetch = cooperative_fetch(s, block, name, grid, threads)
        _pad(s, fetch, node, name)
    spread_on_threads(s, fused(s, inside(s, block, grid)), threads, 1)
    s.bind(grid, "block_x")
    return grid


def _bytes(s: Schedule, block: Block) -> int:
    """Return the bytes of an element of a block's result."""
    return element_bytes(s.program.buffers[block.writes[0].buffer].element)


def _pad(s: Schedule, fetch: Handle, node: Block, name: str) -> None:
    """Pad the tile of operand `name` so that its elements along the last axis of the result are an odd number of words
    apart."""
    access = next(access for access in node.reads if access.buffer == name)
    last = len(node.axes) - 1
    dimension = next(d for d, form in enumerate(access.index) if last in form.variables())
    rank, unit = len(access.index), max(1, WORD // element_bytes(s.program.buffers[name].element))
    for outer in reversed(range(dimension, rank - 1)):
        s.storage_align(fetch, outer, 2 * unit, unit)
