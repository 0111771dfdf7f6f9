"""Rows on GPUs: values in registers, loads of 128 bits, two barriers; what is proved of alignment, and faults."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compiler
from compiler import recipes, te
from compiler.recipes.gpu.vectors import vector_along
from compiler.schedule import Schedule
from compiler.support.errors import LoweringError
from compiler.targets import simt
from compiler.targets.cuda import CudaKernel, nvrtc
from compiler.targets.cuda.checked import check_text, run_text
from strata.passes import lower_to_kernels
from tests.gpu_schedules import default
from tests.host_cuda import needs_gxx, run_on_host
from tests.sample import some
from tools import sass

needs_nvdisasm = pytest.mark.skipif(not sass.is_available(), reason="there is no NVRTC or no nvdisasm")
needs_nvrtc = pytest.mark.skipif(not nvrtc.is_available() or not nvrtc.has_headers(), reason="there is no NVRTC")
OPERATORS: dict[str, tuple[Callable[..., te.Tensor], int]] = {
    "softmax": (te.nn.softmax, 0),
    "log_softmax": (te.nn.log_softmax, 0),
    "layer_norm": (te.nn.layer_norm, 2),
    "rms_norm": (te.nn.rms_norm, 1),
}


def rows(name: str, count: int, length: int, dtype: str = "f32") -> te.Function:
    operator, weights = OPERATORS[name]
    x = te.placeholder((count, length), dtype, name="X")
    others = [te.placeholder((length,), dtype, name="VW"[n]) for n in range(weights)]
    return te.function(name, [x, *others], operator(x, *others))


def built(function: te.Function | Schedule, arch: str = "sm_80") -> CudaKernel:
    kernel = compiler.build(function, "cuda", arch=arch, schedule="auto" if isinstance(function, te.Function) else None)
    assert isinstance(kernel, CudaKernel)
    return kernel


def inputs_of(function: te.Function) -> list[np.ndarray[Any, Any]]:
    random = np.random.default_rng(0)
    reference = compiler.build(function)
    return [(4 * random.standard_normal(a.shape)).astype(a.dtype) for a in reference.arguments[:-1]]


CASES = [
    *((name, length, "f32") for name in OPERATORS for length in (130, 1000, 1023)),
    ("softmax", 768, "f16"),
    ("layer_norm", 72, "bf16"),
    ("softmax", 33_000, "f32"),
    ("layer_norm", 33_001, "f32"),
]


@pytest.mark.parametrize(("name", "length", "dtype"), some(CASES, 4))
def test_rows_are_right_and_wait_at_most_twice(name: str, length: int, dtype: str) -> None:
    function = rows(name, 2, length, dtype)
    s = default(function)
    assert str(s.verify()) == "proved"
    inputs = inputs_of(function)
    module, _, _ = lower_to_kernels(s.module.clone())
    checked = simt.run(module, inputs)
    assert checked.is_correct, [str(fault) for fault in checked.faults]
    want = compiler.build(function)(*inputs).astype(np.float32)
    tolerance = {"f32": 1e-4, "f16": 2e-3, "bf16": 2e-2}[dtype]
    np.testing.assert_allclose(checked.outputs[0].astype(np.float32), want, rtol=tolerance, atol=tolerance / 10)
    kernel = built(s)
    assert len(kernel.launches) == 1 and kernel.text.count("__syncthreads();") <= 2
    has_vectors = re.search(r"reinterpret_cast<const (float4|float2|uint4|uint2)\*>\(&X\[", kernel.text) is not None
    assert has_vectors == (length % 2 == 0)


@needs_gxx
@pytest.mark.parametrize("name", some(OPERATORS, 1))
def test_the_text_is_right_on_the_host(name: str, tmp_path: Path) -> None:
    function = rows(name, 2, 260)
    inputs = inputs_of(function)
    (actual,) = run_on_host(built(function), inputs, tmp_path)
    np.testing.assert_allclose(actual, compiler.build(function)(*inputs), rtol=1e-4, atol=1e-5)


@needs_nvrtc
@pytest.mark.parametrize("length", [96, 150, 640, 768])
def test_the_ptx_is_right(length: int) -> None:
    """Of 3 and 5 warps, too, whose sums NVVM loads together with what lies behind them unless it is told not to."""
    function = rows("softmax", 2, length)
    inputs = inputs_of(function)
    checked = check_text(built(function), inputs, "sm_80")
    assert not checked.faults
    np.testing.assert_allclose(checked.outputs[0], compiler.build(function)(*inputs), rtol=1e-4, atol=1e-6)


@needs_nvrtc
def test_rows_that_are_not_aligned_are_named() -> None:
    """In the text of a row of 256 the stride is made one of 255, as of a row whose alignment nobody has proved."""
    kernel = built(rows("softmax", 2, 256))
    assert "bx * 256" in kernel.text
    changed = nvrtc.ptx(kernel.text.replace("X[bx * 256", "X[bx * 255"), "sm_80")
    faults = run_text(kernel, changed, inputs_of(rows("softmax", 2, 256))).faults
    assert any("misaligned access" in fault for fault in faults), faults


@needs_nvrtc
def test_an_index_off_by_one_is_named_or_wrong() -> None:
    function = rows("softmax", 2, 256)
    kernel, inputs = built(function), inputs_of(function)
    line = re.search(r"softmax_sum\[0\]\[0\] \+= softmax_sum_rf_1\[(\w+)\]", kernel.text)
    assert line is not None
    changed = kernel.text.replace(line[0], line[0].replace(f"[{line[1]}]", f"[{line[1]} + 1]"))
    checked = run_text(kernel, nvrtc.ptx(changed, "sm_80"), inputs)
    want = compiler.build(function)(*inputs)
    assert checked.faults or not np.allclose(checked.outputs[0], want, rtol=1e-4)


@pytest.mark.parametrize("first", [0, 1, 4])
def test_vectors_of_rows_that_begin_anywhere_are_refused(first: int) -> None:
    """Rows that begin at an odd element, or in an array of odd rows, have no vectors by default, nor by hand."""
    x, k = te.placeholder((3, 132 if first else 131), name="X"), te.reduce_axis(128, "k")
    function = te.function("sums", [x], te.compute((3,), lambda i: te.sum(x[i, k + first], axis=k), name="Y"))
    s = Schedule(compiler.lower(function))
    assert (vector_along(s.program, [s.program.blocks["Y"]]) == 4) == (first == 4)
    recipes.reduce_rows(s, s.get_block("Y"), None, 1, vector=4)
    if first != 4:
        with pytest.raises(LoweringError, match="gather"):
            built(s)
        assert "float4" not in built(function).text
        return
    assert "float4" in built(s).text


@needs_nvdisasm
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_softmax_takes_at_most_200_instructions(arch: str) -> None:
    (found,) = sass.executed(built(rows("softmax", 4096, 1024), arch), arch)
    assert found.counts.total() <= 200 and found.counts["BAR"] == 2 and found.counts["LDG"] == 1


@needs_nvdisasm
@pytest.mark.parametrize(("name", "loads"), [("log_softmax", 1), ("layer_norm", 4), ("rms_norm", 2)])
def test_norms_load_each_vector_once(name: str, loads: int) -> None:
    """The first element of a row, by which a layer norm shifts, is a load of its own."""
    (found,) = sass.executed(built(rows(name, 4096, 1024)), "sm_80")
    assert found.counts.total() <= 200 and found.counts["LDG"] == loads and found.counts["STG"] == 1


@needs_nvdisasm
def test_sums_of_columns_are_in_registers() -> None:
    x = te.placeholder((65536, 256), name="X")
    partial = sass.executed(built(te.function("columns", [x], te.nn.sum(x, 0))), "sm_80")[-1]
    assert partial.counts["LDG"] == 320 and partial.counts["STS"] <= 2
