"""What warps run together: products on tensor cores, sums by shuffles; right on numpy and in the text on the host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects import gpu
from xdsl.dialects.builtin import ModuleOp, StringAttr

import compiler
from compiler import recipes, te
from compiler.dialects import loop
from compiler.dialects.functions import find_function
from compiler.recipes import WarpTiles
from compiler.schedule import Schedule
from compiler.support.errors import InputError, LoweringError, ScheduleError, TargetError
from compiler.targets import simt
from compiler.targets.cuda import ARCHITECTURES, CudaKernel, nvrtc
from compiler.targets.cuda.emit import emit
from strata.passes import lower_to_kernels, parse
from tests.host_cuda import needs_gxx, run_on_host
from tests.sample import pairs, some
from tests.unit.targets.test_simt import LINE, one_kernel
from tests.upstream import assert_accepted, needs_mlir_opt

DTYPES: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}
needs_nvrtc = pytest.mark.skipif(not nvrtc.is_available() or not nvrtc.has_headers(), reason="there is no NVRTC")


def matmul(
    m: int = 64, n: int = 32, k: int = 64, dtype: str = "f16", transposed: bool = False, epilogue: str = ""
) -> te.Function:
    """A B, or A B^T, in f32, with a bias and relu after it, to f16 if the epilogue says so."""
    a = te.placeholder((m, k), dtype, name="A")
    b = te.placeholder((n, k) if transposed else (k, n), dtype, name="B")
    inputs = [a, b]
    if transposed:
        r = te.reduce_axis(k, name="k")
        c = te.compute((m, n), lambda i, j: te.sum(te.cast(a[i, r], "f32") * te.cast(b[j, r], "f32"), axis=r), name="C")
    else:
        c = te.nn.matmul(a, b, dtype="f32", name="C")
    if epilogue:
        bias = te.placeholder((n,), name="bias")
        inputs.append(bias)
        c = te.nn.relu(te.nn.add(c, bias), name="D")
    if epilogue == "f16":
        c = te.nn.cast(c, "f16", name="E")
    return te.function("mm", inputs, [c])


def batched(transposed: bool) -> te.Function:
    a = te.placeholder((3, 32, 32), "f16", name="A")
    b = te.placeholder((3, 16, 32) if transposed else (3, 32, 16), "f16", name="B")
    r = te.reduce_axis(32, name="k")
    c = te.compute(
        (3, 32, 16),
        lambda n, i, j: te.sum(
            te.cast(a[n, i, r], "f32") * te.cast(b[n, j, r] if transposed else b[n, r, j], "f32"), axis=r
        ),
        name="C",
    )
    return te.function("batched", [a, b], [te.nn.relu(c, name="D")])


def scheduled(function: te.Function, tiles: WarpTiles) -> Schedule:
    s = Schedule(compiler.lower(function))
    first, *others = s.program.blocks
    for name in others[:-1]:
        s.inline(s.get_block(name))
    recipes.tile_on_warps(s, s.get_block(first), s.get_block(others[-1]) if others else None, tiles)
    return s


def kernels(s: Schedule, policy: str = "contract") -> ModuleOp:
    module, _, _ = lower_to_kernels(s.module.clone(), policy=policy)
    return module


def built(s: Schedule, policy: str = "contract") -> CudaKernel:
    made = compiler.build(s, "cuda", policy=policy)
    assert isinstance(made, CudaKernel)
    return made


def inputs(function: te.Function) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(a.shape).astype(DTYPES[a.dtype]) for a in function.inputs]


def product(given: list[np.ndarray[Any, Any]], transposed: bool) -> np.ndarray[Any, Any]:
    a, b, *bias = given
    actual = a.astype(np.float32) @ (b.T if transposed else b).astype(np.float32)
    return np.maximum(actual + bias[0], 0) if bias else actual


CASES = {
    "f16": ({}, WarpTiles((2, 2), (1, 2), 2)),
    "bf16": ({"dtype": "bf16"}, WarpTiles((2, 2), (2, 1), 2)),
    "tf32": ({"dtype": "f32", "transposed": True}, WarpTiles((2, 2), (1, 2), 4, vector=4)),
    "f16 transposed": ({"transposed": True}, WarpTiles((4, 1), (1, 2), 4)),
    "one warp": ({"m": 32, "n": 16}, WarpTiles((1, 1), (2, 2), 1)),
    "bias": ({"epilogue": "f32"}, WarpTiles((2, 1), (1, 4), 2)),
    "to f16": ({"epilogue": "f16"}, WarpTiles((1, 2), (2, 1), 2)),
    "a round ahead": ({"k": 96}, WarpTiles((2, 2), (1, 2), 2, twice=True)),
    "all of it": ({"dtype": "bf16", "transposed": True, "epilogue": "f16"}, WarpTiles((2, 1), (1, 2), 2, twice=True)),
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", CASES)
def test_products_are_proved_and_without_a_fault(name: str) -> None:
    facts, tiles = CASES[name]
    function = matmul(**facts)
    s = scheduled(function, tiles)
    assert str(s.verify()) == "proved"
    given, is_tf32 = inputs(function), name == "tf32"
    checked = simt.run(kernels(s, "fast" if is_tf32 else "contract"), given)
    assert checked.is_correct, [str(fault) for fault in checked.faults]
    want = product(given, facts.get("transposed", False))
    loose = 0.05 if is_tf32 else 0.02 if facts.get("epilogue") == "f16" else 1e-4
    np.testing.assert_allclose(checked.outputs[0].astype(np.float32), want, rtol=loose, atol=loose)
    if is_tf32:  # digits are dropped, as the tensor cores do
        assert np.abs(checked.outputs[0] - want).max() > 1e-3


@needs_gxx
@pytest.mark.parametrize("name", some(CASES, 2))
def test_the_text_computes_the_same_on_the_host(name: str, tmp_path: Path) -> None:
    """In the layouts that the test's own header writes down once more."""
    facts, tiles = CASES[name]
    function = matmul(**facts)
    s, policy = scheduled(function, tiles), "fast" if name == "tf32" else "contract"
    given = inputs(function)
    (actual,) = run_on_host(built(s, policy), given, tmp_path)
    want = simt.run(kernels(s, policy), given).outputs[0]
    np.testing.assert_allclose(actual.astype(np.float32), want.astype(np.float32), rtol=1e-3, atol=1e-4)


@needs_nvrtc
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", CASES)
def test_it_compiles_without_spills(name: str, arch: str) -> None:
    facts, tiles = CASES[name]
    made = built(scheduled(matmul(**facts), tiles), "fast" if name == "tf32" else "contract")
    if arch not in nvrtc.architectures():
        pytest.skip(f"NVRTC {nvrtc.version()} has no {arch}")
    if arch == "sm_70" or (arch == "sm_75" and facts.get("dtype", "f16") != "f16"):
        with pytest.raises(TargetError, match=rf"{arch} has no products of small matrices( of bf16| of tf32)?: that"):
            made.resources(arch)
        return
    (resources,) = made.resources(arch).values()
    assert resources.spill_bytes == resources.stack_bytes == 0


@needs_nvrtc
def test_large_tiles_stay_in_registers() -> None:
    s = scheduled(matmul(256, 256, 256), WarpTiles((2, 4), (4, 4), 2, twice=True))
    (resources,) = built(s).resources("sm_80").values()
    assert 80 < resources.registers <= 255 and resources.spill_bytes == resources.stack_bytes == 0


def test_the_text_is_one_that_a_person_reads() -> None:
    text = built(scheduled(matmul(), WarpTiles((2, 2), (1, 2), 2))).text
    line = "C_fragment[0][n_2] = multiply_add(A_shared_fragment[0], B_shared_fragment[n_2], C_fragment[0][n_2]);"
    assert line in text and text.count("__syncthreads();") == 2
    assert "  Fragment<float2, 2> C_fragment[1][2];\n" in text
    assert text.count("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32") == 1


@pytest.mark.parametrize("number", [0, 1])
def test_a_missing_barrier_is_a_race(number: int) -> None:
    function = matmul()
    module = kernels(scheduled(function, WarpTiles((2, 2), (1, 2), 2)))
    barriers = [op for op in module.walk() if isinstance(op, gpu.BarrierOp)]
    assert len(barriers) == 2
    barriers[number].detach()
    assert any("race" in fault.kind for fault in simt.run(module, inputs(function)).faults)


def test_what_one_thread_fetches_its_own_warp_waits_for() -> None:
    """A fetch by one warp, which alone uses it: the threads of a warp read what others of it have fetched."""
    function = matmul(16, 8, 16)
    module = kernels(scheduled(function, WarpTiles((1, 1), (1, 1), 1)))
    assert sum(isinstance(op, gpu.BarrierOp) for op in module.walk()) >= 1
    assert simt.run(module, inputs(function)).is_correct


SHUFFLE = """
      %most = arith.constant MOST : index
      %distance = arith.constant 2 : i32
      %width = arith.constant 32 : i32
      %few = arith.cmpi slt, %t, %most : index
      scf.if %few {
        %a = memref.load %A[%t] : memref<64xf32>
        %v, %there = "gpu.shuffle"(%a, %distance, %width) <{mode = #gpu<shuffle_mode MODE>}>
          : (f32, i32, i32) -> (f32, i1)
        memref.store %v, %B[%t] : memref<64xf32>
      }
"""


def shuffling(most: int, mode: str = "xor", threads: int = 64) -> str:
    return one_kernel(SHUFFLE.replace("MOST", str(most)).replace("MODE", mode), threads=threads)


def shuffled(most: int, mode: str = "xor", threads: int = 64) -> simt.CheckResult:
    return simt.run(parse(shuffling(most, mode, threads)), [LINE])


def test_a_torn_warp_is_reported() -> None:
    torn = shuffled(64)
    assert torn.is_correct
    np.testing.assert_array_equal(torn.outputs[0], np.arange(64) ^ 2)
    assert shuffled(32).is_correct  # the second warp takes no part
    (fault,) = shuffled(40).faults
    assert fault.kind == "divergent warp" and fault.threads == (32, 40)
    with pytest.raises(InputError, match="no meaning here but with xor"):
        shuffled(64, "down")
    for mode in ("xor", "down"):
        module = parse(shuffling(64, mode))
        if mode == "xor":
            assert "__shfl_xor_sync(0xffffffffu, A[t], 2)" in emit(module, find_function(module, None)).text
        else:
            with pytest.raises(LoweringError, match="kernels have no shuffle by down"):
                emit(module, find_function(module, None))
    with pytest.raises(InputError, match="for whole warps, and a block has 48 threads"):
        shuffled(64, threads=48)


@needs_gxx
@pytest.mark.parametrize(("transposed", "after"), pairs([False, True], [True, False]))
def test_many_products(transposed: bool, after: bool, tmp_path: Path) -> None:
    function = batched(transposed)
    s = Schedule(compiler.lower(function))
    epilogue = s.get_block("D") if after else None
    recipes.tile_on_warps(s, s.get_block("C"), epilogue, WarpTiles((1, 2), (2, 1), 1, twice=after))
    assert str(s.verify()) == "proved"
    a, b = inputs(function)
    want = np.maximum(a.astype(np.float32) @ (b.transpose(0, 2, 1) if transposed else b).astype(np.float32), 0)
    checked = simt.run(kernels(s), [a, b])
    assert checked.is_correct, [str(fault) for fault in checked.faults]
    np.testing.assert_allclose(checked.outputs[0], want, rtol=1e-4, atol=1e-4)
    (on_host,) = run_on_host(built(s), [a, b], tmp_path)
    np.testing.assert_allclose(on_host, want, rtol=1e-4, atol=1e-4)


def test_kernels_of_one_program_may_have_different_shapes() -> None:
    """What each thread keeps in one kernel is no matter of the threads of another."""
    a, b = te.placeholder((32, 32), "f16", name="A"), te.placeholder((32, 32), "f16", name="B")
    v = te.placeholder((32, 16), name="V")
    h = te.nn.matmul(a, b, dtype="f32", name="H")
    function = te.function("two", [a, b, v], [te.nn.matmul(h, v, name="O")])
    s = Schedule(compiler.lower(function))
    recipes.tile_on_warps(s, s.get_block("H"), None, WarpTiles((2, 2), (1, 1), 2))
    recipes.tile_on_threads(s, s.get_block("O"), None, recipes.ThreadTiles([(1, 8, 2), (1, 4, 2)], [8]))
    assert [launch.block for launch in built(s).launches] == [(32, 4, 1), (32, 1, 1)]
    rng = np.random.default_rng(0)
    given = [*inputs(matmul(32, 32, 32)), rng.standard_normal((32, 16)).astype(np.float32)]
    checked = simt.run(kernels(s), given)
    assert checked.is_correct, [str(fault) for fault in checked.faults]
    np.testing.assert_allclose(checked.outputs[0], product(given[:2], False) @ given[2], rtol=1e-3, atol=1e-3)


def test_one_matrix_alone_has_no_spelling() -> None:
    text = shuffling(32, threads=32)
    load = """%S = memref.alloca() : memref<8x8xf16, 3>
      %m = "nvgpu.ldmatrix"(%S, %t, %t) <{numTiles = 1 : i32, transpose = false}>
        : (memref<8x8xf16, 3>, index, index) -> vector<1x2xf16>
      %most ="""
    module = parse(text.replace("%most =", load))
    with pytest.raises(LoweringError, match="kernels load two or four small matrices at once, not one"):
        emit(module, find_function(module, None))


def rows(combiner: str, n: int = 32) -> Schedule:
    """Sums of rows, each by a warp; two rows a block."""
    x, t = te.placeholder((6, n), name="X"), te.reduce_axis(n, name="t")
    reduced = {"add": te.sum, "max": te.max, "min": te.min}[combiner]
    function = te.function("f", [x], [te.compute((6,), lambda i: reduced(x[i, t], axis=t), name="S")])
    s = Schedule(compiler.lower(function))
    shared = s.cache_read(s.get_block("S"), "X", "shared")
    i, t = s.get_loops(s.get_block("S"))
    block, warp = s.split(i, [None, 2])
    s.compute_at(shared, block)
    s.bind(block, "block_x")
    y, x = s.get_loops(shared)[1:]
    s.bind(y, "thread_y")
    s.bind(x, "thread_x")
    s.bind(warp, "thread_y")
    s.tensorize(t, f"warp.{combiner}.f32")
    return s


@needs_gxx
@pytest.mark.parametrize("combiner", some(["add", "max", "min"]))
def test_a_warp_sums_up_by_exchanges(combiner: str, tmp_path: Path) -> None:
    s = rows(combiner)
    assert str(s.verify()) == "proved"
    given = np.random.default_rng(0).standard_normal((6, 32)).astype(np.float32)
    want = {"add": np.sum, "max": np.max, "min": np.min}[combiner](given, axis=1)
    checked = simt.run(kernels(s), [given])
    assert checked.is_correct, [str(fault) for fault in checked.faults]
    np.testing.assert_allclose(checked.outputs[0], want, rtol=1e-5, atol=1e-5)
    (on_host,) = run_on_host(built(s), [given], tmp_path)
    np.testing.assert_allclose(on_host, want, rtol=1e-5, atol=1e-5)
    text = built(s).text
    assert text.count("__shfl_xor_sync(") == 5 and "S[" in text.rsplit("if (tx == 0) {", 1)[1]


def test_a_loop_that_is_rows_and_columns_adds_to_what_is_there() -> None:
    """Two halves of a row, one after the other: the second must not overwrite the first."""
    x, t = te.placeholder((6, 64), name="X"), te.reduce_axis(64, name="t")
    s = Schedule(compiler.lower(te.function("f", [x], [te.compute((6,), lambda i: te.sum(x[i, t], axis=t), name="S")])))
    shared = s.cache_read(s.get_block("S"), "X", "shared")
    i, t = s.get_loops(s.get_block("S"))
    block, row = s.split(i, [None, 2])
    s.compute_at(shared, block)
    s.bind(block, "block_x")
    y, columns = s.get_loops(shared)[1:]
    s.bind(y, "thread_y")
    s.bind(s.split(columns, [None, 32])[1], "thread_x")
    half, lane = s.split(t, [None, 32])
    s.fuse(row, half)
    s.tensorize(lane, "warp.add.f32")
    given = np.arange(6 * 64, dtype=np.float32).reshape(6, 64)
    checked = simt.run(kernels(s), [given])
    assert checked.is_correct
    np.testing.assert_array_equal(checked.outputs[0], given.sum(axis=1))


def _fetched(scope: str) -> Schedule:
    """A row that each warp fetches to a buffer of a scope, and sums up."""
    x, t = te.placeholder((4, 32), name="X"), te.reduce_axis(32, name="t")
    s = Schedule(compiler.lower(te.function("f", [x], [te.compute((4,), lambda i: te.sum(x[i, t], axis=t), name="S")])))
    own = s.cache_read(s.get_block("S"), "X", scope)
    i, t = s.get_loops(s.get_block("S"))
    s.compute_at(own, i)
    s.bind(s.get_loops(own)[-1], "thread_x")
    s.bind(i, "block_x")
    s.tensorize(t, "warp.add.f32")
    return s


STORED = """
func.func @f(%V: memref<32xf32>, %O: memref<32xf32>, %S: memref<16x8xf32>) attributes {outputs = 2 : i64} {
  loop.for "b" %b = 1 block_x {
    %F = loop.alloc "F" fragment : memref<16x8xf32>
    %P = loop.alloc "P" SCOPE : memref<16x8xf32>
    loop.for "m" %m = 16 tensorized "mma.zero.f32" {
      loop.for "j" %j = 8 tensorized {
        loop.block "Z" [m = 16 at %m, j = 8 at %j] () -> (%F[m, j] : memref<16x8xf32>) {
          %0 = arith.constant 0.000000e+00 : f32
          loop.yield %0 : f32
        }
      }
    }
    loop.for "m" %n = 16 tensorized "mma.store.f32" {
      loop.for "j" %k = 8 tensorized {
        loop.block "P" [m = 16 at %n, j = 8 at %k] (%g = %F[m, j] : memref<16x8xf32>) -> (%P[m, j] : memref<16x8xf32>) {
          loop.yield %g : f32
        }
      }
    }
    loop.for "o" %o = 32 thread_x {
      loop.block "O" [i = 32 at %o] (%v = %V[i] : memref<32xf32>) -> (%O[i] : memref<32xf32>) {
        loop.yield %v : f32
      }
    }
  }
  func.return
}
"""
LOADED = """
func.func @f(%A: memref<16x16xf16>, %V: memref<32xf32>, %O: memref<32xf32>) attributes {outputs = 1 : i64} {
  loop.for "b" %b = 1 block_x {
    %F = loop.alloc "F" fragment : memref<16x16xf16>
    loop.for "m" %m = 16 tensorized "mma.load.a.f16" {
      loop.for "k" %k = 16 tensorized {
        loop.block "F" [m = 16 at %m, k = 16 at %k] (%a = %A[m, k] : memref<16x16xf16>)
            -> (%F[m, k] : memref<16x16xf16>) {
          loop.yield %a : f16
        }
      }
    }
    loop.for "o" %o = 32 thread_x {
      loop.block "O" [i = 32 at %o] (%v = %V[i] : memref<32xf32>) -> (%O[i] : memref<32xf32>) {
        loop.yield %v : f32
      }
    }
  }
  func.return
}
"""


def test_a_warp_reads_what_its_threads_share() -> None:
    assert simt.run(kernels(_fetched("shared")), [np.ones((4, 32), np.float32)]).is_correct
    with pytest.raises(LoweringError, match=r"'P' is no shared or global memory, as 'mma.store.f32' wants it"):
        lower_to_kernels(parse(STORED.replace("SCOPE", "local")))
    assert lower_to_kernels(parse(STORED.replace("SCOPE", "shared")))
    with pytest.raises(LoweringError, match=r"'A' is no shared memory, as 'mma.load.a.f16' wants it"):
        lower_to_kernels(parse(LOADED))


@pytest.mark.parametrize("combiner", ["add", "max"])
def test_a_part_of_a_warp_is_refused(combiner: str) -> None:
    x, t = te.placeholder((6, 40), name="X"), te.reduce_axis(40, name="t")
    reduced = {"add": te.sum, "max": te.max}[combiner]
    function = te.function("f", [x], [te.compute((6,), lambda i: reduced(x[i, t], axis=t), name="S")])
    s = Schedule(compiler.lower(function))
    shared = s.cache_read(s.get_block("S"), "X", "shared")
    half, lane = s.split(s.get_loops(s.get_block("S"))[1], [None, 32])
    s.compute_at(shared, half)
    with pytest.raises(ScheduleError, match="beyond the guard of block 'S' its operands are not neutral"):
        s.tensorize(lane, f"warp.{combiner}.f32")


@pytest.mark.parametrize("sizes", [(48, 32, 64), (64, 24, 64), (64, 32, 48)])
def test_tiles_may_exceed_an_extent(sizes: tuple[int, int, int]) -> None:
    function = matmul(*sizes)
    s = scheduled(function, WarpTiles((2, 2), (2, 2), 2))
    assert str(s.verify()) == "proved"
    given = inputs(function)
    checked = simt.run(kernels(s), given)
    assert checked.is_correct, [str(fault) for fault in checked.faults]
    np.testing.assert_allclose(checked.outputs[0], product(given, False), rtol=1e-4, atol=1e-4)


def test_few_elements_at_once() -> None:
    function = matmul()
    s = scheduled(function, WarpTiles((2, 2), (1, 2), 2, vector=2))
    given = inputs(function)
    checked = simt.run(kernels(s), given)
    assert checked.is_correct, [str(fault) for fault in checked.faults]
    np.testing.assert_allclose(checked.outputs[0], product(given, False), rtol=1e-4, atol=1e-4)


def test_a_warp_is_what_there_is_along_x() -> None:
    with pytest.raises(ScheduleError, match="64 iterations are not the 32"):
        rows("add", 64)
    s = rows("add")
    for op in s.module.walk():
        if isinstance(op, loop.ForOp) and op.loop_kind == "thread_x":
            op.properties["kind"] = StringAttr("serial")
    with pytest.raises(LoweringError, match="loop 't' is run by a warp, and there are 1 threads along x"):
        kernels(s)
    s = rows("add")
    for op in s.module.walk():
        if isinstance(op, loop.ForOp) and op.loop_kind == "thread_y":
            op.properties["kind"] = StringAttr("thread_x")
    with pytest.raises(LoweringError, match=r"loop 't' is run by a warp, inside the loop 'i.1' over threads"):
        kernels(s)


@needs_mlir_opt
@pytest.mark.parametrize("name", CASES)
def test_upstream_takes_the_kernels(name: str) -> None:
    facts, tiles = CASES[name]
    assert_accepted(str(kernels(scheduled(matmul(**facts), tiles), "fast" if name == "tf32" else "contract")))


def test_what_does_not_fit_is_refused_in_words() -> None:
    tiles = WarpTiles((1, 1), (1, 1), 1)
    with pytest.raises(ScheduleError, match="in f16, bf16 or f32"):
        scheduled(matmul(dtype="f64"), tiles)
    with pytest.raises(ScheduleError, match="B in f32 has to lie along k"):
        scheduled(matmul(dtype="f32"), tiles)
    with pytest.raises(LoweringError, match="drops digits, and the policy is not fast"):
        kernels(scheduled(matmul(dtype="f32", transposed=True), WarpTiles((1, 1), (1, 1), 1, vector=4)))
    with pytest.raises(LoweringError, match="rounds otherwise, and the policy is strict"):
        kernels(scheduled(matmul(), tiles), "strict")
    x, t = te.placeholder((4, 32), name="X"), te.reduce_axis(32, name="t")
    s = Schedule(compiler.lower(te.function("f", [x], [te.compute((4,), lambda i: te.sum(x[i, t], axis=t), name="S")])))
    s.tensorize(s.get_loops(s.get_block("S"))[1], "warp.add.f32")
    with pytest.raises(LoweringError, match=r"loop 't' is tensorized by 'warp.add.f32', and a GPU's warps run it"):
        compiler.build(s)
