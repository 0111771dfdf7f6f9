"""Reductions on GPUs: rows, columns and scalars by the threads of blocks, a few results by several blocks each.

Source: Harris, "Optimizing Parallel Reduction in CUDA" (2007); CUB's DeviceReduce and DeviceSegmentedReduce; TVM's
rules of cross-thread reductions and of rfactor (Shao et al., NeurIPS 2022).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

from compiler.program.tree import Access, Block
from compiler.recipes.draft import Alternative, Draft
from compiler.schedule import library
from compiler.schedule.schedule import Handle, Size

WARP, THREADS = 32, 256
"""The threads of a warp, and of a block where a search begins."""
MOST_THREADS = 1024
"""The most threads of a block."""
LEAST = 2 * WARP
"""Iterations of a reduction from which on several threads share it."""
EACH = 4
"""Iterations of a thread below which a reduction is cut into no more parts."""
FEW, LONG = 1024, 1024
"""Results of a product, and the length of its reduction, below and above which threads share a result."""


@dataclass(frozen=True)
class Extents:
    """What there is of a reduction: results, iterations for each, and the longest of its axes; `column` is the axis of
    results that lie side by side in what is read, None where a reduction runs along rows, by the axis `row`."""

    results: int
    rounds: int
    longest: int
    column: int | None
    row: int

    @classmethod
    def of(cls, block: Block) -> Extents:
        """Those of a block with a reduction."""
        sizes = [axis.size for axis in block.axes]
        spatial_extents, along = sizes[: block.spatial], sizes[block.spatial :]
        last = _neighbours(block)
        column = next((n for n in sorted(last) if n < block.spatial), None)
        row = next((n for n in sorted(last) if n >= block.spatial), len(sizes) - 1)
        return cls(prod(spatial_extents), prod(along), max(along), column, row)


def _neighbours(block: Block) -> set[int]:
    """The axes that move the last index of the operand that most axes move."""
    moving = {n for n, axis in enumerate(block.axes) if axis.size > 1}
    reads = [access for access in block.reads if access.index]
    if not reads:
        return set()
    widest = max(reads, key=lambda access: len(_axes(access) & moving))
    return widest.index[-1].variables() & moving


def _axes(access: Access) -> set[int]:
    return set().union(*(form.variables() for form in access.index))


def reuses(block: Block) -> bool:
    """Whether several results need one element of an operand."""
    spatial = {n for n, axis in enumerate(block.axes) if not axis.is_reduce and axis.size > 1}
    return any(spatial - _axes(access) for access in block.reads)


def _streams(block: Block) -> bool:
    """Whether no element of some operand is used twice: it takes as long to read as there are iterations."""
    moving = {n for n, axis in enumerate(block.axes) if axis.size > 1}
    return any(not moving - _axes(access) for access in block.reads)


def products_of_few(draft: Draft, label: str) -> Iterator[Alternative]:
    """A product that takes as long as reading its larger operand, as of a matrix and a vector; or of few results."""
    block = draft.block(label)
    if not block.has_init or not block.spatial or not reuses(block):
        return
    extents = Extents.of(block)
    if _streams(block) or (extents.results <= FEW and extents.rounds >= LONG):
        yield from reduced_together(draft, label)


def reduced_together(draft: Draft, label: str) -> Iterator[Alternative]:
    """A reduction whose results are computed by several threads: of one block, or of several blocks, whose partial
    results another kernel adds up; with an elementwise epilogue."""
    block = draft.block(label)
    if not block.has_init or block.table is not None:
        return
    extents = Extents.of(block)
    if extents.rounds < (LEAST if extents.results > 1 else WARP + 1):
        return
    if extents.column is not None and extents.results >= draft.gpu.multiprocessors * THREADS:
        return  # a thread each is enough, and neighbours read neighbours
    after = draft.consumer(label) if len(block.writes) == 1 else None
    part = _part(draft, block, extents)
    for length in [part, extents.longest] if part < extents.longest else [part]:
        for epilogue in [after.label, None] if after is not None else [None]:
            name = "columns on threads" if extents.column is not None else "rows on threads"
            name += f", in parts of {length}" if length < extents.longest else ""
            name += f", with '{epilogue}'" if epilogue is not None else ""
            yield Alternative(name, partial(_apply, label=label, extents=extents, length=length, after=epilogue))


def _part(draft: Draft, block: Block, extents: Extents) -> int:
    """The part of the longest axis of a reduction that a block takes, so that all multiprocessors have blocks."""
    if extents.column is None:
        blocks, together = extents.results, THREADS
    else:
        size = block.axes[extents.column].size
        blocks, together = extents.results // size * -(-size // WARP), THREADS // WARP
    parts = min(2 * draft.gpu.multiprocessors // blocks, extents.rounds // (EACH * together), extents.longest)
    return _even(-(-extents.longest // parts)) if parts > 1 else extents.longest


def _even(length: int) -> int:
    """A length that is hardly greater, which threads share evenly: a part of such a length has a guard of its own, and
    two, one in the other, are hard sets."""
    grain = 1
    while 8 * grain <= length and grain < MOST_THREADS:
        grain *= 2
    return -(-length // grain) * grain


def _apply(draft: Draft, label: str, extents: Extents, length: int, after: str | None) -> Sequence[str]:
    s = draft.schedule
    handle = s.get_block(label)
    epilogue = s.get_block(after) if after is not None else None
    done = [label, *([after] if after is not None else [])]
    loops = s.get_loops(handle)
    count = draft.block(label).spatial
    moved = [n for n in (extents.column, extents.row) if n is not None]
    order = [n for n in range(count) if n not in moved] + [n for n in moved if n < count]
    order += [n for n in range(count, len(loops)) if n not in moved] + [n for n in moved if n >= count]
    if order != list(range(len(loops))):
        s.reorder(*(loops[n] for n in order))
    if length < extents.longest:
        _reduced(draft, library.in_parts(s, handle, length), None, extents.column is not None)
        if extents.results > 1 and extents.longest < LEAST * length:
            library.spread(s, handle)
            return [label]
        _reduced(draft, handle, epilogue, extents.results > 1)
    else:
        _reduced(draft, handle, epilogue, extents.column is not None)
    return done


def _reduced(draft: Draft, handle: Handle, epilogue: Handle | None, by_columns: bool) -> None:
    """Reduce by the threads of blocks, as many as have work."""
    s = draft.schedule
    loops = s.get_loops(handle)
    count = _results(draft, handle)
    longest = max(s.extent(loop) for loop in loops[count:])
    if by_columns:
        across = min(WARP, s.extent(loops[count - 1]))
        down: Size = draft.choose([n for n in (2, 4, 8, 16, 32) if 2 * n <= longest] or [1], THREADS // across, "down")
        library.reduce_columns(s, handle, epilogue, (down, across))
        return
    extent = s.extent(loops[-1])
    warps = draft.choose([n for n in (1, 2, 4, 8, 16, 32) if LEAST * n <= extent] or [1], THREADS // WARP, "warps")
    library.reduce_rows(s, handle, epilogue, warps)


def _results(draft: Draft, handle: Handle) -> int:
    """How many of the loops around a block are not of its reduction."""
    label = draft.schedule.label(handle)
    along = draft.block(label).loops_of(reduce=True)
    return sum(loop.number not in along for loop in draft.schedule.program.enclosing(label))
