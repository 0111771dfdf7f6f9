"""The estimated time of kernels: its terms, and pairs of kernels that operations and bytes alone rank wrongly."""

from __future__ import annotations

import compiler
from compiler import recipes, te
from compiler.pipeline.loops import lower_to_kernels
from compiler.recipes import ThreadTiles
from compiler.schedule import Schedule
from compiler.targets.cuda import representative_gpu
from compiler.targets.timing import KernelTime, kernel_times, total_seconds
from tests.gpu_schedules import product, tiled

A100 = representative_gpu("sm_80")
V100 = representative_gpu("sm_70")


def times_of(s: Schedule, arch: str = "sm_80") -> list[KernelTime]:
    """The estimated times of a schedule's kernels."""
    module, host, _ = lower_to_kernels(s.module.clone())
    return kernel_times(module, representative_gpu(arch), host.sym_name.data)


def seconds(s: Schedule) -> float:
    return total_seconds(times_of(s))


def tiles(m: int, n: int, k: int, spatial: list[tuple[int, int, int]], panel: int, padded: bool = False) -> Schedule:
    s = Schedule(compiler.lower(product(m, n, k)))
    recipes.tile_on_threads(s, s.get_block("C"), None, ThreadTiles(spatial, [panel], padded=padded))
    return s


# --- inversions -------------------------------------------------------------------------------------------------------


def test_blocks_of_one_warp_are_slower() -> None:
    """The same threads and results, 32 or 256 threads a block: a multiprocessor holds at most 32 blocks, and each
    fetches for itself alone."""
    alone = tiles(2048, 2048, 512, [(1, 4, 4), (1, 8, 4)], 16)
    together = tiles(2048, 2048, 512, [(1, 16, 4), (1, 16, 4)], 16)
    (lonely,), (many,) = times_of(alone), times_of(together)
    assert lonely.seconds > 1.05 * many.seconds


def test_guards_of_a_ragged_product_are_slower() -> None:
    """Tiles with a condition for each step of the sum, 13% FFMA, beside tiles that are filled with zeros."""
    guarded = tiled(product(127, 333, 511), (8, 8), (2, 2), 16)
    filled = tiles(127, 333, 511, [(1, 8, 2), (1, 8, 2)], 16)
    (slow,), (fast,) = times_of(guarded), times_of(filled)
    assert slow.issue > 1.5 * fast.issue and slow.seconds > 1.3 * fast.seconds


def _columns(rows: int, part: int) -> Schedule:
    """Sums of columns in registers, `part` rows unrolled, a column a thread."""
    x, r = te.placeholder((rows, 4096), name="X"), te.reduce_axis(rows, "r")
    s = Schedule(
        compiler.lower(te.function("f", [x], te.compute((4096,), lambda j: te.sum(x[r, j], axis=r), name="C")))
    )
    block = s.get_block("C")
    out = s.cache_write(block, "local")
    j, row = s.get_loops(block)
    _, inner = s.split(row, [None, part])
    blocks, thread = s.split(j, [None, 128])
    s.reverse_compute_at(out, thread)
    s.bind(blocks, "block_x")
    s.bind(thread, "thread_x")
    s.unroll(inner)
    return s


def test_one_load_in_flight_is_slower() -> None:
    """Rows that the parts divide are loaded together; else a condition lies between any two loads."""
    (one,), (eight,) = times_of(_columns(1021, 8)), times_of(_columns(1024, 8))
    assert one.bytes_in_flight < eight.bytes_in_flight / 4
    assert one.bound == "latency" and one.seconds > 2 * eight.seconds


def test_split_sums_are_faster_where_blocks_are_few() -> None:
    whole = tiles(128, 128, 16384, [(1, 8, 2), (1, 8, 2)], 16)
    s = Schedule(compiler.lower(product(128, 128, 16384)))
    sums = s.get_block("C")
    part = recipes.in_parts(s, sums, 2048)
    loops = s.get_loops(part)
    s.reorder(*loops[1:3], loops[0], loops[3])
    recipes.tile_on_threads(s, part, None, ThreadTiles([(1, 8, 2), (1, 8, 2), (1, 1, 1)], [16]))
    recipes.spread(s, sums, 128)
    assert seconds(whole) > 3 * seconds(s), "64 blocks on 108 multiprocessors, or 512"


def test_bank_conflicts_are_slower() -> None:
    def transposed(pad: bool) -> Schedule:
        x = te.placeholder((2048, 2048), name="X")
        s = Schedule(compiler.lower(te.function("t", [x], te.compute((2048, 2048), lambda i, j: x[j, i], name="C"))))
        c = s.get_block("C")
        (i0, i1), (j0, j1) = (s.split(loop, [None, 32]) for loop in s.get_loops(c))
        s.reorder(i0, j0, i1, j1)
        fetch = s.cache_read(c, "X", "shared")
        s.compute_at(fetch, j0)
        if pad:
            s.storage_align(fetch, 0, 2, 1)
        for block in (c, fetch):
            y, x_ = s.get_loops(block)[2:]
            _, y1 = s.split(y, [None, 8])
            s.bind(y1, "thread_y")
            s.bind(x_, "thread_x")
        s.bind(i0, "block_y")
        s.bind(j0, "block_x")
        return s

    (bad,), (good,) = times_of(transposed(False)), times_of(transposed(True))
    assert bad.load_store > 3 * good.load_store and bad.seconds > good.seconds
