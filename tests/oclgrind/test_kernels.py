"""Kernels on oclgrind: right and without a report, and faults planted in their text named."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import compiler
from compiler import te
from compiler.targets.cuda import CudaKernel
from tests.gpu_schedules import spread_all
from tests.oclgrind import needs_oclgrind, run
from tests.oclgrind.kernels import KERNELS
from tests.oclgrind.warps import together
from tests.programs import applied
from tests.sample import some

Array = np.ndarray[Any, Any]
BARRIER = "__syncthreads();"


@cache
def kernel(name: str) -> CudaKernel:
    return KERNELS[name]()


def inputs(made: CudaKernel) -> list[Array]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(a.shape).astype(a.dtype) for a in made.arguments[: -made.outputs]]


def softmax(x: Array) -> Array:
    exponential = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(exponential / exponential.sum(-1, keepdims=True))


def convolution(x: Array, w: Array) -> Array:
    padded = np.pad(x[0], [(0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    return np.asarray(np.maximum(np.einsum("chwij,ocij->ohw", windows, w), 0)[None])


EXPECTED: dict[str, Any] = {
    "convolution": convolution,
    "transpose": np.transpose,
    "columns": lambda x: x.sum(0),
    "softmax": softmax,
}


@needs_oclgrind
@pytest.mark.parametrize("name", some(KERNELS, 2))
def test_kernels_are_right_and_nothing_is_reported(name: str) -> None:
    made = kernel(name)
    given = inputs(made)
    checked = run(made, given)
    assert not checked.faults, "\n".join(map(str, checked.faults))
    wide = [array.astype(np.float32) for array in given]
    np.testing.assert_allclose(checked.outputs[0], EXPECTED.get(name, np.matmul)(*wide), rtol=1e-4, atol=1e-4)


WAIT = "wait_for_copies();"
# The kernel; what is replaced in its text, by what, at which occurrence; the kind of fault reported, and a line of it.
FAULTS: dict[str, tuple[str, str, str, int, str, str]] = {
    "first barrier gone": ("product", BARRIER, "", 0, "race", "A_shared["),
    "second barrier gone": ("product", BARRIER, "", 1, "race", "C_local[0][0] += "),
    "guard of a fetch gone": ("product", "if (v_1 && v) {", "{", 0, "invalid read", "B_shared["),
    "sums not set": ("product", "C_local[0][0] = 0.0f;", "", 0, "uninitialised value", "C[tx / 7"),
    "barrier in a branch": ("product", BARRIER, f"if (tx < 9) {BARRIER}", 1, "divergent barrier", BARRIER),
    "index off by one": ("product", "B_shared[k_1]", "B_shared[k_1 + 1]", 0, "index beyond an array", "C_local[0][0]"),
    "padding read": ("convolution", "X[", "X[36 + ", 0, "invalid read", "x = X["),
    "store unguarded": ("transpose", "if (tx + i0_i1_0 * 256 < 273) {", "{", 0, "invalid write", "transpose["),
    "barrier of the second kernel gone": ("columns", BARRIER, "", 1, "race", "sum_shared[tx] +="),
    "barrier of a row gone": ("softmax", BARRIER, "", 1, "race", "softmax_sum[0][0] += "),
    "wait for copies gone": ("ahead", WAIT, "", 0, "uninitialised value", "C["),
    "wait after the barrier": ("ahead", f"{WAIT}\n    {BARRIER}", f"{BARRIER}\n    {WAIT}", 0, "race", "C_local["),
    "one buffer for two stages": ("ahead", "k_0 % 2", "0", 0, "race", "C_local["),
    "fetch of a vector misaligned": ("on_warps", "&A[", "&A[1 + ", 0, "misaligned access", "&A[1 + "),
    "barrier before MMA gone": ("on_warps", BARRIER, "", 1, "race", "*reinterpret_cast<uint4*>(&"),
    "barrier after MMA gone": ("on_warps", BARRIER, "", 0, "race", "*reinterpret_cast<uint4*>(&"),
}


def planted(text: str, old: str, new: str, number: int) -> str:
    """The text with an occurrence replaced."""
    assert text.count(old) > number, f"the text lacks {old}"
    *before, after = text.split(old, number + 1)
    return old.join(before) + new + after


@needs_oclgrind
@pytest.mark.parametrize("name", some(FAULTS, 2))
def test_planted_faults_are_named(name: str) -> None:
    of, old, new, number, kind, line = FAULTS[name]
    made = kernel(of)
    text = planted(made.text, old, new, number)
    checked = run(made, inputs(made), text)
    named = [fault for fault in checked.faults if fault.kind == kind]
    assert named, checked.faults
    assert any(line in code for fault in named for _, code in fault.lines), named
    lines = text.split("\n")
    assert all(lines[number - 1].strip() == code for fault in named for number, code in fault.lines)
    assert {fault.kernel for fault in named} <= {launch.name for launch in made.launches}


TORN = """// grid (1, 1, 1), block (64, 1, 1)
extern "C" __global__ void __launch_bounds__(64)
f_relu(const float* __restrict__ X, float* __restrict__ Y) {
  const int tx = threadIdx.x;
  if (tx < MOST) {
    const float v = X[tx];
    const float v_1 = __shfl_xor_sync(0xffffffffu, v, 16);
    if (v_1 > 0.0f) {
      Y[tx] = v + v_1;
    }
  }
}
"""


@needs_oclgrind
@pytest.mark.parametrize(("most", "kinds"), [(64, set()), (32, set()), (40, {"uninitialised value"})])
def test_one_warp_of_several_may_shuffle(most: int, kinds: set[str]) -> None:
    """A torn warp reads what nobody has written."""
    made = compiler.build(spread_all(applied(te.nn.relu, (64,), name="f"), 64), "cuda")
    assert isinstance(made, CudaKernel)
    x = np.arange(1, 65, dtype=np.float32)
    checked = run(made, [x], TORN.replace("MOST", str(most)))
    assert {fault.kind for fault in checked.faults} == kinds
    if not kinds:
        np.testing.assert_array_equal(checked.outputs[0][:most], (x + x[np.arange(64) ^ 16])[:most])


def test_branches_with_shuffles_are_conditions_of_statements() -> None:
    branch = """  if (ty == 0) {
    const float a = A[tx];
    const float b = __shfl_xor_sync(0xffffffffu, a, 1);
    B[tx] = b;
  }"""
    assert (
        together(branch)
        == """  {
    float a; if ((ty == 0)) a = A[tx];
    const float b = shuffled(scratch, (ty == 0), a, 1);
    if ((ty == 0)) B[tx] = b;
  }"""
    )
