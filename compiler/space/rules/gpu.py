"""What GPUs want: reductions by tiles on blocks and threads, rows on blocks, the rest spread over threads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod

from compiler.program.body import Read
from compiler.program.tree import Block
from compiler.recipes.draft import Alternative, Draft, inlined
from compiler.schedule import library
from compiler.schedule.library import ThreadTiles
from compiler.schedule.primitives.choices.sample_perfect_tile import perfect_tiles
from compiler.schedule.schedule import Handle, Size
from compiler.space.rules.reduction import THREADS, WARP, reuses
from compiler.support.errors import ScheduleError

MOST_ELEMENTS = 16
"""The most results of a thread along one axis."""
MOST_PANEL = 64
"""The most that is fetched at once along one reduce axis."""
WIDE = 4
"""The elements that a thread fetches at once."""
LONG = 1 << 16
"""The length of rows that are split over several blocks if there are few rows."""
TILE = 64
"""Results of a thread where a search begins, if there are enough for all multiprocessors."""


def tiled_on_threads(draft: Draft, label: str) -> Iterator[Alternative]:
    """A reduction whose operands are used by several results: multi-level tiles, S S S R R S R S, for blocks, virtual
    threads and threads; operands fetched together into shared memory; what comes after on finished tiles.

    Source: multi-level tiling on GPUs of Ansor (Zheng et al., OSDI 2020).
    """
    block = draft.block(label)
    if not block.combiners or not block.spatial or block.table is not None or not reuses(block):
        return
    after = draft.consumer(label)
    read = [draft.schedule.program.buffers[access.buffer] for access in block.reads if not access.where]
    even = draft.lanes(label) == WIDE and any(prod(buffer.shape[1:]) % WIDE == 0 for buffer in read)
    ways = [(after, 1, False), *([(after, WIDE, twice) for twice in (False, True)] if even else [(after, 1, True)])]
    if after is not None:
        ways.append((None, 1, False))
    for epilogue, vector, twice in ways:
        name = f"on threads{', four at a time' if vector > 1 else ''}{', a round ahead' if twice else ''}"
        applied = f", with '{epilogue.label}'" if epilogue is not None else ""
        after_label = epilogue.label if epilogue is not None else None
        apply = partial(_tiled, label=label, after=after_label, vector=vector, twice=twice)
        yield Alternative(name + applied, apply)


def _tiled(draft: Draft, label: str, after: str | None, vector: int, twice: bool) -> Sequence[str]:
    s, block = draft.schedule, draft.block(label)
    handle = s.get_block(label)
    loops = s.get_loops(handle)
    spatial, reduce = loops[: block.spatial], loops[block.spatial :]
    wanted = _wanted(draft, [s.extent(loop) for loop in spatial])
    cuts = [_cut(draft, loop, *sizes) for loop, sizes in zip(spatial, wanted, strict=True)]
    panels = [_panel(draft, s.extent(loop)) for loop in reduce]
    epilogue = s.get_block(after) if after is not None else None
    library.tile_on_threads(s, handle, epilogue, ThreadTiles(cuts, panels, vector, twice, padded=twice))
    return [label, *([after] if after is not None else [])]


def _wanted(draft: Draft, extents: Sequence[int]) -> list[tuple[int, int]]:
    """For each axis the threads, and the elements of a thread, with which a search begins: neighbouring threads along
    the last axes, as many elements as leave work for all multiprocessors."""
    machine = draft.gpu
    elements = min(TILE, max(1, prod(extents) // (machine.multiprocessors * THREADS)))
    threads = THREADS
    wanted: list[tuple[int, int]] = []
    for extent in reversed(extents):
        across = max(d for d in _divisors(extent) if d <= min(threads, 32))
        each = max(d for d in _divisors(extent // across) if d * d <= max(1, elements) or d <= min(elements, 8))
        threads, elements = max(1, threads // across), max(1, elements // each)
        wanted.insert(0, (across, each))
    return wanted


def _cut(draft: Draft, loop: Handle, threads: int, elements: int) -> tuple[Size, Size, Size]:
    """Virtual threads, threads and elements of a thread along an axis: all ways that cut it evenly; of one with large
    prime factors powers of two, which pad it."""
    s = draft.schedule
    extent = s.extent(loop)
    if extent == 1:
        return 1, 1, 1
    if _is_smooth(extent):
        ways = perfect_tiles(extent, 4, min(extent, MOST_ELEMENTS))
        wanted = (extent // (threads * elements), 1, threads, elements)
        assert wanted in ways, "what a search begins with is a way to cut it"
        _, virtual, across, each = s.sample_perfect_tile(loop, 4, min(extent, MOST_ELEMENTS), decision=wanted)
        return virtual, across, each
    padded = draft.choose([n for n in (1, 2, 4, 8, 16, 32) if n <= extent], 8, "threads")
    return 1, padded, draft.choose([n for n in (1, 2, 4, 8) if n <= extent], 2, "elements")


def _panel(draft: Draft, extent: int) -> Size:
    """How much of a reduction is fetched at once."""
    sizes = [d for d in _divisors(extent) if d <= MOST_PANEL]
    if not _is_smooth(extent):
        sizes = [n for n in (4, 8, 16, 32) if n <= extent] or [extent]
    return draft.choose(sizes, 8, "panel")


def _divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if number % d == 0]


def _is_smooth(number: int) -> bool:
    """Whether a number has no prime factor above 7: it then divides some power of 2 * 3 * 5 * 7."""
    return pow(210, number.bit_length(), number) == 0


def rows_on_blocks(draft: Draft, label: str) -> Iterator[Alternative]:
    """All that a block needs of a row, sums over it among that, in one kernel: a block of threads for each row."""
    block = draft.block(label)
    if block.combiners or len(block.axes) < 2 or block.axes[-1].size < 2 * draft.gpu.warp:
        return
    *rows, length = (axis.size for axis in block.axes)
    if length >= LONG and 2 * prod(rows) < draft.gpu.multiprocessors:
        return  # several blocks for a row
    if any(reader.label in draft.left and not _is_tiled(reader) for reader in draft.readers(label)):
        return  # a later block of the row is to come
    needed = _needed(draft, label)
    if any(draft.block(name).combiners for name in needed):
        yield Alternative("rows on blocks", partial(_rows, label=label, needed=needed))


def _is_tiled(block: Block) -> bool:
    return bool(block.combiners) and reuses(block)


def _needed(draft: Draft, label: str) -> list[str]:
    """The remaining blocks whose results only a block and such blocks need, in the order of the program."""
    needed = {label}
    for name in reversed(draft.left):
        readers = {reader.label for reader in draft.readers(name)}
        if name != label and readers and readers <= needed and not _is_tiled(draft.block(name)):
            needed.add(name)
    return [name for name in draft.left if name in needed - {label}]


def _rows(draft: Draft, label: str, needed: Sequence[str]) -> Sequence[str]:
    s = draft.schedule
    extent = draft.block(label).axes[-1].size
    warps = draft.choose([n for n in (1, 2, 4, 8, 16, 32) if 2 * WARP * n <= extent], THREADS // WARP, "warps")
    library.rows_on_threads(s, s.get_block(label), warps, needed)
    return [label, *needed]


def on_threads(draft: Draft, label: str) -> Iterator[Alternative]:
    """The results of a block spread over threads, a sum each; without a reduction also several at a time."""
    block = draft.block(label)
    if not block.spatial or prod(axis.size for axis in block.axes if not axis.is_reduce) < 2:
        yield Alternative("on one thread", lambda draft: [label], optional=False)
        return
    if not block.combiners and block.table is None and draft.readers(label):
        yield Alternative("inlined", partial(_inlined, label=label), optional=False)
    for vector in (1,) if block.combiners or block.table is not None else (1, 4):
        name = f"spread over threads{', four at a time' if vector > 1 else ''}"
        yield Alternative(name, partial(_spread, label=label, vector=vector), optional=False)


def _inlined(draft: Draft, label: str) -> Sequence[str]:
    """Inline a block, not into a copy that would then compute what no equation of the program is: one of several
    results, or an element under a condition. Such a schedule could not be proved."""
    readers = [reader.label for reader in draft.readers(label)]
    done = inlined(draft, label)
    for reader in map(draft.block, readers):
        if reader.origin is None and not reader.combiners and not all(isinstance(value, Read) for value in reader.body):
            raise ScheduleError(f"what '{reader.label}' would compute is no equation", "inline", f"block '{label}'")
    return done


def _spread(draft: Draft, label: str, vector: int) -> Sequence[str]:
    s = draft.schedule
    threads = draft.choose([64, 128, 256, 512, 1024], THREADS, "threads")
    library.spread(s, s.get_block(label), threads, vector)
    return [label]
