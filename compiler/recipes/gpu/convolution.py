"""Convolutions as implicit products on the threads of GPUs: register tiles of filters and pixels of a row.

Source: implicit GEMM of cuDNN (Chetlur et al. 2014) and of CUTLASS; direct convolutions, in which all taps reuse a row
of the image (Georganas et al., SC 2018).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import prod

from compiler.program.tree import Access, Block
from compiler.recipes.draft import Alternative, Draft, labels
from compiler.recipes.gpu.finish import Sums, ThreadTiles, finish_on_threads, loads_at_arrival
from compiler.recipes.gpu.spread import in_parts, spread_sums
from compiler.recipes.gpu.tiles import tile_bytes
from compiler.recipes.steps import axes_of, by_axis, fused, node_of, refusal, sums_pairs, target_of
from compiler.schedule import Handle, Schedule
from compiler.types.elements import element_bytes

FILTERS = (4, 8)
"""The filters of a register tile."""
PIXELS = (4, 7, 8)
"""The pixels of a register tile, if a row has as many."""
MOST_BYTES = 4
"""The most bytes of a result: registers hold tiles of these."""
FEWEST, MOST = 32, 256
"""The fewest and the most threads of a block."""
SEGMENT = 8
"""The neighbouring elements of a filter that neighbouring threads fetch: 32 bytes of f32, a sector of memory."""
UNROLLED, FETCHED, MOST_TAPS = 1024, 32, 64
"""The most multiply-adds in an unrolled loop over taps, fetches in an unrolled loop, and taps of a panel."""
GAIN = 1.1
"""A convolution is cut into parts, whose sums take another kernel, only if it is estimated as so many times faster."""
LATENCY, START, LAUNCH, CACHED = 700, 300, 4000, 2.5
"""Cycles of a round beyond its instructions, for fetches and barriers; instructions of a round beside those for each
element; cycles of another kernel; and the bandwidth of L2, in those of memory."""
ARRIVAL, LOAD, MOVED = 2500, 24, 4.0
"""Cycles of the arrival of blocks, and of a load in the sum of parts by the last one: 16 loads wait together; and the
bytes of L2's bandwidth that a part of a result takes."""


@dataclass(frozen=True)
class WindowRead:
    """The reads of a convolution, and its axes by number. filters: the axis in the weights only. pixels: the axes in
    the image only; the result is contiguous along the last. channels: reduce axes that index the image alone. taps:
    reduce axes that are added to a pixel."""

    image: Access
    weights: Access
    filters: int
    pixels: tuple[int, ...]
    channels: tuple[int, ...]
    taps: tuple[int, ...]


@dataclass(frozen=True)
class ConvolutionPlan:
    """A choice of tiles for a convolution.

    spatial: for each spatial axis the numbers of virtual threads, threads and elements of a thread. reduce: for each
    reduce axis the elements of a panel. parts: the number of parts of the channels, whose sums the last block to arrive
    or a second kernel adds. cycles: an estimate of the run time.
    """

    spatial: Sequence[tuple[int, int, int]]
    reduce: Sequence[int]
    parts: int
    cycles: float

    @property
    def results(self) -> int:
        """The number of results of a thread: the product of its elements along all spatial axes."""
        return prod(each for *_, each in self.spatial)


def window_read(block: Block, slides: bool = True) -> WindowRead | None:
    """Return the reads of a block that is a convolution C[.., o, .., q] += X[.., c, .., q*S + s] * W[o, c, .., s] with
    a result contiguous along a row of the image; None for other blocks, such as depthwise, grouped and transposed
    convolutions. With `slides` also None for a convolution without taps and strides."""
    if not sums_pairs(block) or block.guard or block.spatial < 2:
        return None
    spatial = range(block.spatial)
    for image, weights in (block.reads, block.reads[::-1]):
        over_image, over_weights = axes_of(image), axes_of(weights)
        filters = [n for n in spatial if n in over_weights and n not in over_image and block.axes[n].size > 1]
        pixels = [n for n in spatial if n not in over_weights]
        linear = all(form.coefficient(n) is not None for form in image.index for n in form.variables())
        if len(filters) != 1 or weights.where or not linear or not pixels:
            continue
        windows = [form for form in image.index if form.variables() & set(pixels)]
        taps = {n for form in windows for n in form.variables() if n >= block.spatial}
        moves = bool(taps) or any(form.coefficient(n) not in (None, 0, 1) for form in windows for n in pixels)
        own = all(len(form.variables() & set(pixels)) == 1 for form in windows)
        contiguous = {pixels[-1]} == block.writes[0].index[-1].variables()
        if (moves or not slides) and own and contiguous and pixels[-1] in image.index[-1].variables():
            channels = tuple(n for n in range(block.spatial, len(block.axes)) if n not in taps)
            return WindowRead(image, weights, filters[0], tuple(pixels), channels, tuple(sorted(taps)))
    return None


def convolution_by_windows(draft: Draft, label: str) -> Iterator[Alternative]:
    """Yield schedules of a convolution by `convolve_on_threads`, one for each number of results of a thread, the
    fastest by an estimate first; channels are cut into parts if that is estimated faster. Yields nothing for other
    blocks, for fewer filters than the smallest register tile has, and for results of more than MOST_BYTES."""
    block = draft.block(label)
    read = window_read(block)
    element = draft.schedule.program.buffers[block.writes[0].buffer].element
    if read is None or block.axes[read.filters].size < min(FILTERS) or element_bytes(element) > MOST_BYTES:
        return
    after = draft.consumer(label)
    plans: dict[int, ConvolutionPlan] = {}
    for plan in sorted(_plans(draft, block, read), key=lambda plan: plan.cycles):
        plans.setdefault(plan.results, plan)
    for plan in plans.values():
        for epilogue in [after, None] if after is not None else [None]:
            name = f"windows on threads, {plan.results} results each"
            name += f", in {plan.parts} parts" if plan.parts > 1 else ""
            name += f", with '{epilogue.label}'" if epilogue is not None else ""
            yield Alternative(name, partial(_apply, label=label, plan=plan, after=epilogue))


def _apply(draft: Draft, label: str, plan: ConvolutionPlan, after: Block | None) -> Sequence[str]:
    s = draft.schedule
    block, epilogue = s.get_block(label), draft.handle(after)
    if plan.parts == 1:
        convolve_on_threads(s, block, epilogue, ThreadTiles(plan.spatial, plan.reduce))
        return [label, *labels(after)]
    read = window_read(draft.block(label))
    assert read is not None
    part = in_parts(s, block, draft.block(label).axes[read.channels[0]].size // plan.parts)
    tiles = ThreadTiles([*plan.spatial, (1, 1, 1)], plan.reduce)  # the parts are the last spatial axis
    extents = [axis.size for axis in draft.block(label).axes[: draft.block(label).spatial]]
    at_arrival = loads_at_arrival(extents, tiles, plan.parts) is not None
    convolve_on_threads(s, part, None, tiles, Sums(block, epilogue) if at_arrival else None)
    if not at_arrival:
        spread_sums(s, block, epilogue)
    return [label, *labels(after)]


def convolve_on_threads(
    s: Schedule, block: Handle, epilogue: Handle | None, tiles: ThreadTiles, sums: Sums | None = None
) -> None:
    """Schedule a convolution as an implicit product: filters times pixels, over panels of channels and taps.

        n { o { h { w { c { r { q { C } } } } } } }  n { o { h { w { D } } } }
      ->
        n.0_o.0_h.0_w.0 block_x { alloc C local
          c.0 { fetch X.shared[c.1, window]; fetch W.shared[c.1, r, q, o]
            o.1_h.1_w.1 thread_x { c.1 { r { q unrolled { o.2 { w.2 unrolled { C += X.shared * W.shared } } } } } } }
          o.1_h.1_w.1 thread_x { o.2 { w.2 unrolled { D = f(C) } } } }

    A tile of results that exceeds an extent is computed whole: fetches put zeros where a window leaves the image and
    where a filter does not exist, and only stores are guarded. A thread fetches an element of a plane of the image in
    all channels of a panel, so that its address and conditions are computed once; weights are fetched by segments of a
    filter and stored with filters side by side. `tiles`: the threads and elements along each spatial axis, and the
    panels of the reduce axes; vector, twice and padded have no effect. sums: for parts of a convolution, their last
    axis, the sum that the last block to arrive computes (see `add_at_arrival`); None leaves it where it is. Requires a
    block that `window_read` recognises, with a loop for each axis, and an epilogue that reads only its result,
    elementwise. Raises ScheduleError for other blocks. Source: implicit GEMM as in cuDNN.
    """
    loops_of_axes, read = by_axis(s, block), window_read(node_of(s, block))
    count = len(tiles.spatial)
    if read is None or len(loops_of_axes) != count + len(tiles.reduce) or any(len(each) != 1 for each in loops_of_axes):
        raise refusal(s, block, "convolve_on_threads", "it is no convolution with a tile and a loop for each axis")
    loops = [loop for each in loops_of_axes for loop in each]
    s.reorder(*loops)
    reads = node_of(s, block).reads
    image, weights = reads.index(read.image), reads.index(read.weights)
    channel_dims = [d for d, form in enumerate(read.image.index) if not form.variables() & {*read.pixels, *read.taps}]
    filter_dim = next(d for d, form in enumerate(read.weights.index) if read.filters in form.variables())
    pads = [s.pad(block, read.image.buffer)] if read.image.where else []
    out = epilogue if epilogue is not None else s.cache_write(block, "local")
    if epilogue is not None:
        s.set_scope(block, "local")
    cuts = [s.split(loop, [None, *sizes], tail="pad") for loop, sizes in zip(loops, tiles.spatial, strict=False)]
    panels = [s.split(loop, [None, size]) for loop, size in zip(loops[count:], tiles.reduce, strict=True)]
    blocks, virtual, threads, elements = ([cut[level] for cut in cuts] for level in range(4))
    outer, inner = ([pair[level] for pair in panels] for level in range(2))
    s.reorder(*blocks, *outer, *threads, *inner, *virtual, *elements)
    pads += [s.pad(block, access.buffer) for access in node_of(s, block).reads if access.where]
    s.reverse_compute_at(out, blocks[-1])
    thread_count = prod(s.value(across) for _, across, _ in tiles.spatial)
    names = [access.buffer for access in node_of(s, block).reads]
    _fetch_image(s, block, names[image], outer[-1], channel_dims, thread_count)
    _fetch_weights(s, block, names[weights], outer[-1], filter_dim, thread_count)
    for pad in reversed(pads):
        s.inline(pad)
    results = prod(s.value(each) * s.value(apart) for apart, _, each in tiles.spatial)
    _unroll_taps(s, inner, results)
    finish_on_threads(s, block, out, tiles, (blocks, virtual, threads, elements), sums)


def _unroll_taps(s: Schedule, inner: Sequence[Handle], results: int) -> None:
    """Unroll the loops over taps, innermost first, up to UNROLLED multiply-adds for the `results` of a thread; a
    panel's outermost loop stays."""
    size = results
    for loop in reversed(inner[1:]):
        size *= s.extent(loop)
        if size > UNROLLED:
            return
        s.unroll(loop)


def _fetch_image(s: Schedule, block: Handle, name: str, at: Handle, channel_dims: Sequence[int], threads: int) -> None:
    """Copy the elements of the image `name` that an iteration of `at` reads to shared memory: each thread copies an
    element of a plane in all channels, the dimensions `channel_dims`. A part of one element is copied without a loop
    over threads."""
    fetch = s.cache_read(block, name, "shared")
    s.compute_at(fetch, at)
    dims = by_axis(s, fetch, at)
    channels = [loop for d in channel_dims for loop in dims[d]]
    plane = [loop for d, loops in enumerate(dims) if d not in channel_dims for loop in loops]
    if not plane:
        plane, channels = channels, []
    if not plane:  # an element
        return
    s.reorder(*plane, *channels)
    rounds, thread = s.split(fused(s, plane), [None, threads])
    s.bind(thread, "thread_x")
    each = prod(map(s.extent, channels))
    for loop in channels if each <= FETCHED else channels[-1:]:
        s.unroll(loop)
    if each * s.extent(rounds) <= FETCHED:
        s.unroll(rounds)


def _fetch_weights(s: Schedule, block: Handle, name: str, at: Handle, filter_dim: int, threads: int) -> None:
    """Copy the weights `name` that an iteration of `at` reads to shared memory, transposed so that filters, the
    dimension `filter_dim`, are contiguous. SEGMENT neighbouring threads fetch a segment of one filter, the next ones of
    the next filter."""
    fetch = s.cache_read(block, name, "shared")
    s.compute_at(fetch, at)
    target = target_of(s, fetch)
    s.transform_layout(block, target, lambda *d: (*d[:filter_dim], *d[filter_dim + 1 :], d[filter_dim]))
    dims = by_axis(s, fetch, at)
    filters, along = dims[filter_dim], [loop for d, loops in enumerate(dims) if d != filter_dim for loop in loops]
    if not filters or not along:
        if filters or along:
            s.bind(s.split(fused(s, filters or along), [None, threads])[1], "thread_x")
        return
    s.reorder(*filters, *along)
    (filters_loop,) = filters
    count = s.extent(filters_loop)
    k = fused(s, along)
    segment = min(SEGMENT, s.extent(k))
    across = max(d for d in range(1, count + 1) if count % d == 0 and d * segment <= threads)
    rounds, near = s.split(filters_loop, [None, across])
    segments, element = s.split(k, [None, segment])
    s.reorder(rounds, segments, near, element)
    s.bind(s.fuse(near, element), "thread_x")
    if s.extent(segments) <= FETCHED:
        s.unroll(segments)
        if s.extent(rounds) * s.extent(segments) <= FETCHED:
            s.unroll(rounds)
    if count > 1:
        s.storage_align(fetch, len(dims) - 2, SEGMENT, SEGMENT // 2)


def _plans(draft: Draft, block: Block, read: WindowRead) -> Iterator[ConvolutionPlan]:
    """Yield plans of a convolution whose tiles of operands fit in half the shared memory of a multiprocessor."""
    sizes = [axis.size for axis in block.axes]
    o, w = sizes[read.filters], sizes[read.pixels[-1]]
    h = sizes[read.pixels[-2]] if len(read.pixels) > 1 else 1
    row_pixels = sorted(
        {min(w, min(PIXELS)), *(n for n in (*PIXELS, w) if n <= max(PIXELS) and -(-w // n) * n <= w * 9 // 8)}
    )
    heights = [n for n in (1, 2, 4, 7, 8, 14) if n <= h]
    for filters, pixels, down in product((n for n in FILTERS if n <= o), row_pixels, heights):
        full = -(-w // pixels)
        widths = sorted({n for n in (full, -(-full // 2), -(-full // 4), 8, 16) if n <= min(full, 32)})
        across = [n for n in (1, 2, 4, 8, 16, 32) if n < 2 * -(-o // filters)]
        for wide, many in product(widths, across):
            if FEWEST <= wide * down * many <= MOST:
                yield from _with_panels(draft, block, read, (filters, pixels, many, down, wide))


def _with_panels(
    draft: Draft, block: Block, read: WindowRead, tile: tuple[int, int, int, int, int]
) -> Iterator[ConvolutionPlan]:
    """Yield a plan for each number of parts of a tile: (filters of a thread, pixels of a thread, threads over filters,
    over rows, over pixels of a row). Yields none if no panel fits."""
    filters, pixels, across, down, along = tile
    spatial = dict.fromkeys(range(block.spatial), (1, 1, 1)) | {read.filters: (1, across, filters)}
    spatial |= {read.pixels[-2]: (1, down, 1)} if len(read.pixels) > 1 else {}
    spatial |= {read.pixels[-1]: (1, along, pixels)}
    most = min(draft.gpu.shared_bytes // 2, draft.gpu.block_shared_bytes)
    cut = [t * e for _, t, e in (spatial[n] for n in range(block.spatial))]
    reduce = _panels(draft, block, read, cut, most)
    if reduce is None:
        return
    channels = block.axes[read.channels[0]].size if read.channels else 1
    longest = max(axis.size for axis in block.axes[block.spatial :])
    panel = reduce[read.channels[0] - block.spatial] if read.channels else 1
    tiles = [spatial[n] for n in range(block.spatial)]
    parts = [n for n in range(1, 33) if n == 1 or (channels == longest and channels % (n * panel) == 0)]
    for part in parts:
        yield ConvolutionPlan(tiles, reduce, part, _cycles(draft, block, read, tiles, reduce, part))


def _panels(draft: Draft, block: Block, read: WindowRead, cut: Sequence[int], most: int) -> list[int] | None:
    """Return the panel of each reduce axis, so that the operands of the tile `cut` take at most `most` bytes: as many
    taps as possible, at most 16 along an axis, and equal bounds for channels; None if no panel fits."""
    sizes = [axis.size for axis in block.axes[block.spatial :]]
    whole = {n: _divisor(block.axes[n].size, 16) for n in read.taps}
    small = prod(whole.values()) <= MOST_TAPS
    for most_each in (16, 8, 4, 2, 1):
        fitting = {n: whole[n] if small or n == read.taps[-1] else _divisor(whole[n], most_each) for n in read.taps}
        panels = [fitting.get(n) or _divisor(size, most_each) for n, size in enumerate(sizes, block.spatial)]
        if tile_bytes(draft.schedule.program, block, [*cut, *panels]) <= most:
            return panels
    return None


def _divisor(extent: int, most: int) -> int:
    """Return the largest divisor of an extent that is at most `most`. If that is below half of both, as for a prime,
    return `most`: the last panel is then partial."""
    divisor = max(d for d in range(1, min(extent, most) + 1) if extent % d == 0)
    return divisor if 2 * divisor >= min(extent, most) else most


def _cycles(
    draft: Draft,
    block: Block,
    read: WindowRead,
    spatial: Sequence[tuple[int, int, int]],
    reduce: Sequence[int],
    parts: int,
) -> float:
    """Estimate the clock cycles of a convolution by the tiles `spatial` and `reduce` of a ConvolutionPlan: the greater
    of the busiest multiprocessor's instructions with its exposed fetch latency, and the traffic of L2; plus the
    addition of parts."""
    gpu, sizes = draft.gpu, [axis.size for axis in block.axes]
    cut = [t * e for _, t, e in spatial]
    blocks = parts * prod(-(-size // tile) for size, tile in zip(sizes, cut, strict=False))
    threads, results = prod(t for _, t, _ in spatial), prod(e for *_, e in spatial)
    steps = prod(reduce)
    rounds = prod(-(-size // panel) for size, panel in zip(sizes[block.spatial :], reduce, strict=True)) / parts
    fetched = tile_bytes(draft.schedule.program, block, [*cut, *reduce]) / 4 / threads
    filters, pixels = spatial[read.filters][2], spatial[read.pixels[-1]][2]
    taps = reduce[read.taps[-1] - block.spatial] if read.taps else 1
    loads = steps * (filters / 4 + (pixels + taps - 1) / taps / 2)
    warps = -(-threads // gpu.warp)
    issued = steps * results * 4 * gpu.warp / gpu.fmas + loads + 5 * fetched + START
    resident = max(1, min(gpu.threads // (warps * gpu.warp), gpu.registers // (warps * gpu.warp * (results + 48))))
    on_one = -(-blocks // gpu.multiprocessors)
    busy = -(-on_one * warps // 4) * issued
    idle = LATENCY * -(-on_one // resident) / min(resident, on_one)
    moved = 4.0 * blocks * rounds * fetched * threads
    total = max(rounds * (busy + idle), moved / (CACHED * gpu.bandwidth) * gpu.clock)
    if parts > 1:
        last_loads = loads_at_arrival(sizes[: block.spatial], ThreadTiles(spatial, reduce), parts)
        if last_loads is None:
            total += LAUNCH + 4 * (parts + 1) * prod(sizes[: block.spatial]) / gpu.bandwidth * gpu.clock
        else:
            moved = MOVED * parts * prod(sizes[: block.spatial])
            total += ARRIVAL + last_loads * LOAD + moved / (CACHED * gpu.bandwidth) * gpu.clock
        total *= GAIN
    return total
