"""CUDA C++: the text, what NVRTC makes of it, and that the very text computes what it should on the host."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import compiler
from compiler import recipes, te
from compiler.dialects.functions import find_function
from compiler.pipeline.source import parse
from compiler.schedule import Schedule
from compiler.support.errors import LoweringError, TargetError
from compiler.targets.arguments import Argument
from compiler.targets.cuda import ARCHITECTURES, CudaKernel, nvrtc
from compiler.targets.cuda.kernel import make_kernel as kernel_of
from tests.gpu_schedules import product, tiled
from tests.host_cuda import OnHost, needs_gxx, run_on_host
from tests.unit.targets.test_simt import LINE, one_kernel

RANDOM = np.random.default_rng(0)
needs_nvrtc = pytest.mark.skipif(not nvrtc.is_available(), reason="there is no NVRTC")

TEXT = """\
// grid (2, 2, 1), block (8, 8, 1)
extern "C" __global__ void __launch_bounds__(64)
product_C_local(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C) {
  __shared__ __align__(16) float B_shared[8][16];
  __shared__ __align__(16) float A_shared[16][8];
  float C_local[2][2];
  const int bx = blockIdx.x;
  const int by = blockIdx.y;
  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  #pragma unroll
  for (int m_2 = 0; m_2 < 2; ++m_2) {
    #pragma unroll
    for (int n_2 = 0; n_2 < 2; ++n_2) {
      C_local[m_2][n_2] = 0.0f;
    }
  }
"""


def kernel(m: int = 32, n: int = 32, k: int = 16, policy: str = "contract") -> CudaKernel:
    make_kernel = compiler.build(tiled(product(m, n, k)), "cuda", policy=policy)
    assert isinstance(make_kernel, CudaKernel)
    return make_kernel


def test_the_text_is_one_that_a_person_reads() -> None:
    text = kernel().text
    assert text.startswith(TEXT)
    assert "          C_local[m_2][n_2] += A_shared[ty * 2 + m_2][k_1] * B_shared[k_1][tx * 2 + n_2];\n" in text
    assert text.count("__syncthreads();") == 2


def test_launches_say_all_that_others_need() -> None:
    (launch,) = kernel(40, 20, 30).launches
    assert launch.grid == (2, 3, 1) and launch.block == (8, 8, 1)
    assert launch.arguments == (0, 1, 2) and launch.shared_bytes == 0


@needs_nvrtc
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_it_compiles_for_every_architecture_without_spills(arch: str) -> None:
    if arch not in nvrtc.architectures():
        pytest.skip(f"NVRTC {nvrtc.version()} has no {arch}")
    (actual,) = kernel(40, 20, 30).resources(arch).values()
    assert 0 < actual.registers <= 64 and actual.spill_bytes == actual.stack_bytes == 0 and actual.shared_bytes == 1024


@needs_nvrtc
def test_what_nvrtc_refuses_is_said() -> None:
    with pytest.raises(TargetError, match=r"NVRTC refuses the text for sm_80: strata\.cu"):
        nvrtc.compiled('extern "C" __global__ void f() { wrong; }', "sm_80")
    with pytest.raises(TargetError, match=r"NVRTC \d+\.\d+ has no architecture sm_1 \(it has sm_"):
        nvrtc.compiled("", "sm_1")


@needs_gxx
@pytest.mark.parametrize(("m", "n", "k"), [(32, 32, 16), (33, 17, 9), (17, 23, 5), (40, 20, 30)])
def test_the_text_computes_what_it_should(m: int, n: int, k: int, tmp_path: Path) -> None:
    a, b = RANDOM.standard_normal((m, k), np.float32), RANDOM.standard_normal((k, n), np.float32)
    (actual,) = run_on_host(kernel(m, n, k), [a, b], tmp_path)
    np.testing.assert_allclose(actual, a @ b, rtol=1e-4, atol=1e-4)


@needs_gxx
def test_what_is_not_bound_runs_on_one_thread(tmp_path: Path) -> None:
    x, w = te.placeholder((6, 9), name="X"), te.placeholder((9, 5), name="W")
    function = te.function("layer", [x, w], te.nn.softmax(te.nn.relu(te.nn.matmul(x, w))))
    make_kernel = compiler.build(function, "cuda")
    assert (
        all(launch.block == (1, 1, 1) for launch in make_kernel.launches) and len(make_kernel.source.temporaries) >= 3
    )
    a, b = RANDOM.standard_normal((6, 9), np.float32), RANDOM.standard_normal((9, 5), np.float32)
    (actual,) = run_on_host(make_kernel, [a, b], tmp_path)
    z = np.exp(np.maximum(a @ b, 0))
    np.testing.assert_allclose(actual, z / z.sum(axis=1, keepdims=True), rtol=1e-4)


@needs_gxx
def test_strict_sums_and_products_are_never_contracted(tmp_path: Path) -> None:
    make_kernel = kernel(policy="strict")
    assert "__fmul_rn(" in make_kernel.text and "__fadd_rn(" in make_kernel.text
    a, b = RANDOM.standard_normal((32, 16), np.float32), RANDOM.standard_normal((16, 32), np.float32)
    (actual,) = run_on_host(make_kernel, [a, b], tmp_path)
    want = np.zeros((32, 32), np.float32)
    for k in range(16):
        want += a[:, k, None] * b[None, k]
    np.testing.assert_array_equal(actual, want)


def test_without_a_gpu_a_call_is_refused_in_words() -> None:
    if find_spec("cupy") is not None:
        pytest.skip("there may be a GPU")
    with pytest.raises(TargetError, match=r"kernels run through CuPy|there is no GPU"):
        kernel()(np.zeros((32, 16), np.float32), np.zeros((16, 32), np.float32))


def test_loops_that_no_kernel_has_are_refused() -> None:
    s = Schedule(compiler.lower(product()))
    _, n, _ = s.get_loops(s.get_block("C"))
    s.bind(n, "block_x")
    with pytest.raises(LoweringError, match="loop 'n' is bound to block_x inside the loop 'm'"):
        compiler.build(s, "cuda")
    s = Schedule(compiler.lower(product()))
    s.parallel(s.get_loops(s.get_block("C"))[0])
    with pytest.raises(LoweringError, match="loop 'm' is parallel, which a kernel does not have"):
        compiler.build(s, "cuda")


@needs_gxx
def test_operators_keep_their_operands_together(tmp_path: Path) -> None:
    x, y = te.placeholder((8,), name="X"), te.placeholder((8,), name="Z")
    actual = te.compute((8,), lambda i: -(x[i] + y[i]) * (x[i] - (y[i] - 1.0)), name="Y")
    a, b = RANDOM.standard_normal(8, np.float32), RANDOM.standard_normal(8, np.float32)
    (got,) = run_on_host(compiler.build(te.function("f", [x, y], actual), "cuda"), [a, b], tmp_path)
    np.testing.assert_allclose(got, -(a + b) * (a - (b - 1)), rtol=1e-5, atol=1e-6)


def test_blocks_together_are_on_the_same_threads() -> None:
    a = te.placeholder((8, 8), name="A")
    t = te.compute((8, 8), lambda i, j: a[i, j] * 2.0, name="T")
    d = te.compute((8, 8), lambda i, j: a[i, j] + 1.0, name="D")
    s = Schedule(compiler.lower(te.function("f", [a], [t, d])))
    both = s.merge(s.get_loops(s.get_block("T"))[0], s.get_loops(s.get_block("D"))[0])
    s.bind(both, "thread_x")
    s.bind(s.get_loops(s.get_block("D"))[-1], "thread_y")
    with pytest.raises(LoweringError, match="has blocks 'T' and 'D' in it, and they are not on the same threads"):
        compiler.build(s, "cuda")


def test_what_is_the_cpus_is_refused() -> None:
    with pytest.raises(TargetError, match="threads are the CPU's"):
        compiler.build(tiled(product()), "cuda", threads=2)


@needs_nvrtc
@pytest.mark.parametrize(("dtype", "lanes"), [("i16", 4), ("i8", 4), ("f16", 2), ("bf16", 2)])
def test_short_vectors_whose_lanes_are_to_be_had(dtype: str, lanes: int) -> None:
    assert "Y[" in _broadcast(dtype, lanes).text
    assert _broadcast(dtype, lanes).resources("sm_80")


@pytest.mark.parametrize(("dtype", "lanes"), [("f16", 4), ("f16", 8), ("i16", 8), ("i8", 8), ("bf16", 4)])
def test_vectors_that_are_only_moved(dtype: str, lanes: int) -> None:
    with pytest.raises(LoweringError, match=r"kernels compute nothing of type vector<\dx.*>: its lanes"):
        _broadcast(dtype, lanes)


def _broadcast(dtype: str, lanes: int) -> CudaKernel:
    x = te.placeholder((32,), dtype, name="X")
    s = Schedule(compiler.lower(te.function("f", [x], [te.compute((32, 64), lambda i, j: x[i] + x[i], name="Y")])))
    recipes.spread(s, s.get_block("Y"), 32, lanes)
    make_kernel = compiler.build(s, "cuda")
    assert isinstance(make_kernel, CudaKernel)
    return make_kernel


NAMES = ("expf", "min", "maximum", "threadIdx", "pool", "int", "INFINITY", "quotient")


def _named(name: str) -> CudaKernel:
    x = te.placeholder((8,), name=name)
    actual = te.compute((8,), lambda i: te.maximum(te.exp(x[i]), te.minimum(x[i], 2.0)), name="Y")
    make_kernel = compiler.build(te.function("f", [x], te.nn.softmax(actual)), "cuda")
    assert isinstance(make_kernel, CudaKernel)
    return make_kernel


@needs_gxx
def test_names_that_the_text_keeps_to_itself(tmp_path: Path) -> None:
    on_host = OnHost([_named(name) for name in NAMES], tmp_path)
    x = RANDOM.standard_normal(8).astype(np.float32)
    z = np.exp(np.maximum(np.exp(x), np.minimum(x, 2)))
    for number in range(len(NAMES)):
        np.testing.assert_allclose(on_host(number, [x])[0], z / z.sum(), rtol=1e-5)


@needs_nvrtc
@pytest.mark.parametrize("name", NAMES)
def test_nvrtc_takes_such_names(name: str) -> None:
    assert _named(name).resources("sm_80")


@needs_gxx
def test_functions_of_any_name(tmp_path: Path) -> None:
    text = """
        func.func @"my.function"(%A: memref<4xf32>, %B: memref<4xf32>) attributes {outputs = 1 : i64} {
          loop.for "i" %i = 4 thread_x {
            loop.block "B" [i = 4 at %i] (%a = %A[i] : memref<4xf32>) -> (%B[i] : memref<4xf32>) {
              loop.yield %a : f32
            }
          }
          func.return
        }"""
    kernel = compiler.build(text, "cuda")
    assert [launch.name for launch in kernel.launches] == ["my_function_B"]
    np.testing.assert_array_equal(run_on_host(kernel, [np.arange(4, dtype=np.float32)], tmp_path)[0], range(4))


@needs_gxx
def test_kernels_of_blocks_whose_names_are_alike(tmp_path: Path) -> None:
    """What other languages do not have in names becomes the same letter."""
    nest = """
          loop.for "i" %i = 4 thread_x {
            loop.block "LABEL" [i = 4 at %i] (%a = %A[i] : memref<4xf32>) -> (%OUT[i] : memref<4xf32>) {
              %b = arith.addf %a, %a : f32
              loop.yield %b : f32
            }
          }"""
    nests = "".join(
        nest.replace("LABEL", f"B{sign}1").replace("OUT", out) for sign, out in zip("._-", "BCD", strict=True)
    )
    types = ", ".join(f"%{name}: memref<4xf32>" for name in "ABCD")
    kernel = compiler.build(
        f"func.func @f({types}) attributes {{outputs = 3 : i64}} {{{nests}\n  func.return\n}}", "cuda"
    )
    assert [launch.name for launch in kernel.launches] == ["f_B_1", "f_B_1_1", "f_B_1_2"]
    for actual in run_on_host(kernel, [np.arange(4, dtype=np.float32)], tmp_path):
        np.testing.assert_array_equal(actual, [0, 2, 4, 6])


CARRIED = """
      %c0 = arith.constant 0 : index  %c1 = arith.constant 1 : index  %one = arith.constant 1.0 : f32
      %x, %y = scf.for %i = %c0 to %t step %c1 iter_args(%p = %one, %q = %one) -> (f32, f32) {
        %s = arith.addf %p, %q : f32
        scf.yield %q, %s : f32, f32
      }
      memref.store %x, %B[%t] : memref<64xf32>
"""


@needs_gxx
def test_values_that_loops_hand_on_change_together(tmp_path: Path) -> None:
    """Each of Fibonacci's numbers is made of the two before."""
    module = parse(one_kernel(CARRIED))
    function = find_function(module, "f")
    line = np.dtype(np.float32)
    actual = kernel_of(module, function, [Argument(name, (64,), line) for name in "AB"])
    (got,) = run_on_host(actual, [LINE], tmp_path)
    want = [1.0, 1.0]
    while len(want) < 32:
        want.append(want[-1] + want[-2])
    np.testing.assert_array_equal(got[:32], want)
