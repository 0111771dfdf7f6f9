"""The estimated time of kernels: its terms, and pairs of kernels that operations and bytes alone rank wrongly."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

import compiler
from compiler import recipes, te
from compiler.pipeline.loops import lower_to_kernels
from compiler.recipes import ThreadTiles
from compiler.schedule import Schedule
from compiler.targets.cuda import representative_gpu
from compiler.targets.timing import KernelTime, KernelWork, access, kernel_time, kernel_times, total_seconds
from compiler.targets.timing.code import BARRIER, FLOAT, GLOBAL, INTEGER, Code, Repeat, WarpInstruction
from compiler.targets.timing.pipeline import Pipeline
from tests.gpu_schedules import product, tiled
from tools import gpgpu_sim

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
    (single_warps,), (eight_warps,) = times_of(alone), times_of(together)
    assert single_warps.seconds > 1.05 * eight_warps.seconds


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
    (guarded,), (unrolled,) = times_of(_columns(1021, 8)), times_of(_columns(1024, 8))
    assert guarded.bytes_in_flight < unrolled.bytes_in_flight / 4
    assert guarded.bound == "latency" and guarded.seconds > 2 * unrolled.seconds


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


# --- terms ------------------------------------------------------------------------------------------------------------


def cycles(code: list[Code], warps: int = 1) -> float:
    """The cycles of warps on one multiprocessor of an A100."""
    pipeline = Pipeline(A100, warps, A100.l2_latency, 64.0)
    pipeline.run(code)
    return pipeline.end


def load(name: str, *sources: str, bytes: float = 128.0) -> WarpInstruction:
    return WarpInstruction(GLOBAL, name, sources, rounds=1.0, bytes=bytes, is_load=True)


def test_loads_that_depend_on_each_other_wait_and_others_do_not() -> None:
    together = [load("a"), load("b"), WarpInstruction(FLOAT, "c", ("a", "b"))]
    chained = [load("a"), load("b", "a"), WarpInstruction(FLOAT, "c", ("a", "b"))]
    assert A100.l2_latency < cycles(together) < 1.1 * A100.l2_latency
    assert 2 * A100.l2_latency < cycles(chained) < 2.1 * A100.l2_latency


def test_a_loop_takes_as_long_as_its_iterations() -> None:
    body: list[Code] = [load("a", "s"), WarpInstruction(FLOAT, "s", ("s", "a")), WarpInstruction(INTEGER, "i", ("i",))]
    assert cycles([Repeat(50, body)]) == pytest.approx(cycles(body * 50), rel=0.01)
    assert cycles([Repeat(50, body)]) > 50 * A100.l2_latency


def test_warps_share_schedulers_and_units() -> None:
    """An A100 has 64 lanes for float32: a scheduler takes a warp in two cycles, and four of them work side by side."""
    body: list[Code] = [WarpInstruction(FLOAT, n, ()) for n in range(1000)]
    assert cycles(body, 4) == pytest.approx(cycles(body, 1), rel=0.01) == pytest.approx(2000, rel=0.01)
    assert cycles(body, 16) == pytest.approx(8000, rel=0.01)


def test_bank_conflicts_are_rounds() -> None:
    row, column = np.arange(32).reshape(1, 32) * 4, np.arange(32).reshape(1, 32) * 128
    assert access.rounds(row, 4).tolist() == [1] and access.rounds(column, 4).tolist() == [32]
    assert access.rounds(np.where(row < 64, row, -1), 4).tolist() == [1]
    assert access.rounds(row * 4, 16).tolist() == [4], "128 bytes a cycle"
    assert [len(s) for s in access.sectors(column, 4)] == [32]


def work(code: list[Code], blocks: int = 432, threads: int = 256, registers: int = 32) -> KernelWork:
    return KernelWork("k", blocks, threads, registers, 0, 1 << 20, code)


def test_registers_limit_resident_warps() -> None:
    """65536 registers hold 2048 threads of 32, or 256 of 255."""
    code: list[Code] = [load("a"), WarpInstruction(FLOAT, "b", ("a",)), WarpInstruction(BARRIER)]
    few, many = kernel_time(work(code, registers=255), A100), kernel_time(work(code), A100)
    assert (few.resident_warps, many.resident_warps) == (8, 32) and few.waves == 4 and many.waves == 1
    assert few.cycles > 2 * many.cycles


def test_arrays_beyond_l2_come_from_memory() -> None:
    code: list[Code] = [load("a"), WarpInstruction(GLOBAL, None, ("a",), rounds=1.0, bytes=128.0)]
    near, far = (kernel_time(replace(work(code), argument_bytes=size), A100) for size in (1 << 20, 1 << 28))
    assert far.traffic > 2 * near.traffic and far.seconds > near.seconds


@dataclass(frozen=True)
class Used:
    """What a compiler says of a kernel."""

    registers: int
    spill_bytes: int


def test_spilled_registers_take_time() -> None:
    s = tiles(128, 128, 64, [(1, 8, 4), (1, 8, 4)], 16)
    module, host, _ = lower_to_kernels(s.module.clone())
    name = kernel_times(module, V100, host.sym_name.data)[0].name
    free, spilled = (
        kernel_times(module, V100, host.sym_name.data, {name: Used(64, size)})[0].load_store for size in (0, 256)
    )
    assert spilled > 1.15 * free


def test_data_decide_no_address_but_the_same_data_the_same_one() -> None:
    """Rows of a table at loaded indices: neighbouring threads read neighbouring elements of a row."""
    table, index = te.placeholder((1000, 128), name="W"), te.placeholder((512,), "i32", name="I")
    s = Schedule(compiler.lower(te.function("g", [table, index], te.nn.embedding(index, table, name="C"))))
    recipes.spread(s, s.get_block("C"), 128)
    (time,) = times_of(s)
    assert time.traffic < 512 * 4 * (3 * 128 + 64) / 108 / 10, "no sector for a single element"


@pytest.mark.skipif(gpgpu_sim.library() is None, reason="GPGPU-Sim is not built")
def test_a_simulator_takes_about_as_long() -> None:
    x = te.placeholder((2560,), name="X")
    s = Schedule(compiler.lower(te.function("copy", [x], te.compute((2560,), lambda i: x[i] * 2.0, name="C"))))
    recipes.spread(s, s.get_block("C"), 32)
    array = np.arange(2560, dtype=np.float32)
    (result,), (simulated,) = gpgpu_sim.simulate(compiler.build(s, "cuda", arch="sm_70"), [array])
    np.testing.assert_array_equal(result, 2 * array)
    (time,) = times_of(s, "sm_70")
    assert simulated.cycles / 1.5 < time.cycles < 1.5 * simulated.cycles
