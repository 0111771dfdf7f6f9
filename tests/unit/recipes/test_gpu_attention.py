"""Attention on GPUs: one kernel without an array of scores, right on numpy and in the text on the host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import compiler
from compiler import te
from compiler.alternatives import streamed_attention
from compiler.dialects.functions import find_function
from compiler.driver.devices.unit import STREAMED
from compiler.graph.canonical import canonical
from compiler.graph.read import read
from compiler.graph.write import write
from compiler.recipes.gpu.attention import StreamTiles, stream_on_warps
from compiler.schedule import Schedule
from compiler.targets import simt
from compiler.targets.cuda import CudaKernel
from strata.passes import lower_to_kernels
from tests.host_cuda import needs_gxx, run_on_host
from tests.sample import some

Array = np.ndarray[Any, Any]
DTYPES: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "i1": np.bool_}


def attention(
    heads: int = 2,
    groups: int = 2,
    queries: int = 64,
    keys: int = 128,
    depth: int = 32,
    columns: int = 32,
    dtype: str = "f16",
    mask: str = "",
    **options: Any,
) -> te.Function:
    """Attention of one batch; `mask` is its dtype, of one row of keys for i1."""
    q = te.placeholder((1, heads, queries, depth), dtype, name="Q")
    k = te.placeholder((1, groups, keys, depth), dtype, name="K")
    v = te.placeholder((1, groups, keys, columns), dtype, name="V")
    masks = [te.placeholder((1, 1, 1 if mask == "i1" else queries, keys), mask, name="mask")] if mask else []
    return te.function("f", [q, k, v, *masks], te.nn.attention(q, k, v, *masks, **options))


def written_out(dtype: str = "f16") -> te.Function:
    """Matmul, scale, softmax, matmul."""
    q, k, v = (te.placeholder((2, n, 32), dtype, name=name) for n, name in ((64, "Q"), (128, "K"), (128, "V")))
    scores = te.nn.mul(te.nn.batch_matmul(q, k, transpose_b=True), 0.2)
    return te.function("f", [q, k, v], te.nn.batch_matmul(te.nn.softmax(scores), v))


CASES: dict[str, tuple[te.Function, float]] = {
    "plain": (attention(), 1),
    "rows near 100": (attention(), 8),
    "bf16": (attention(dtype="bf16"), 1),
    "ragged": (attention(queries=50, keys=70, depth=24, columns=40), 1),
    "causal": (attention(queries=128, causal=True), 1),
    "causal at the end": (attention(queries=40, keys=100, causal=True, offset=60), 1),
    "causal, no key for the first queries": (attention(causal=True, offset=-3), 1),
    "grouped heads": (attention(heads=4, groups=2), 1),
    "added mask": (attention(queries=60, keys=72, mask="f16"), 1),
    "masked keys": (attention(mask="i1"), 1),
    "soft cap": (attention(softcap=5.0), 4),
    "one block of keys": (attention(keys=64), 1),
    "depth 128": (attention(depth=128, columns=128), 1),
    "written out": (written_out(), 1),
}


def arrays(function: te.Function, scale: float = 1, seed: int = 0) -> list[Array]:
    rng = np.random.default_rng(seed)
    drawn = [
        rng.standard_normal(a.shape) * scale if a.dtype != "i1" else rng.random(a.shape) < 0.3 for a in function.inputs
    ]
    return [array.astype(DTYPES[a.dtype]) for array, a in zip(drawn, function.inputs, strict=True)]


def form(function: te.Function) -> tuple[Schedule, list[int]]:
    """The streamed form of a program, unscheduled, and the positions of its inputs among the program's."""
    made = canonical(read(find_function(function.module)))
    graph = streamed_attention(made.graph, "contract")
    assert graph is not None
    names = [a.name for a in function.inputs]
    positions = [names.index(made.names.values.get(value.name, value.name)) for value in graph.inputs]
    return Schedule(compiler.lower(ModuleOp([write(graph)]))), positions


def close(actual: Array, wanted: Array) -> None:
    """Two results in which one dtype is rounded twice."""
    eps = 2.0**-7 if wanted.dtype == ml_dtypes.bfloat16 else 2.0**-10
    wanted = wanted.astype(np.float64)
    np.testing.assert_allclose(actual.astype(np.float64), wanted, rtol=eps, atol=eps * np.abs(wanted).max())


@pytest.mark.parametrize("name", some(CASES, 5))
def test_it_is_proved_and_without_a_fault(name: str) -> None:
    function, scale = CASES[name]
    given = arrays(function, scale)
    s, positions = form(function)
    stream_on_warps(s, StreamTiles(keys=32 if "one block" in name else 64))
    assert str(s.verify()) == "proved"
    module, _, _ = lower_to_kernels(s.module)
    checked = simt.run(module, [given[n] for n in positions])
    assert checked.is_correct, [str(fault) for fault in checked.faults]
    wanted = compiler.build(function)(*given)
    close(checked.outputs[0].reshape(wanted.shape), wanted)


@pytest.mark.parametrize("name", some(CASES, 3))
def test_it_is_the_default_in_one_kernel_without_scores(name: str) -> None:
    function, _ = CASES[name]
    kernel = compiler.build(function, "cuda", arch="sm_80", schedule="auto")
    assert isinstance(kernel, CudaKernel)
    assert len(kernel.launches) == 1 and kernel.workspace_bytes == 0
    assert [STREAMED in group.verdict and "proved" in group.verdict for group in kernel.groups] == [True]
    assert kernel.text.count("multiply_add(") >= 3  # both products, the first one twice, on the tensor cores


@needs_gxx
@pytest.mark.parametrize("name", some(["causal at the end", "masked keys", "rows near 100", "ragged"], 1))
def test_the_text_computes_the_same_on_the_host(name: str, tmp_path: Path) -> None:
    function, scale = CASES[name]
    given = arrays(function, scale)
    given[3:] = [array & False if array.dtype == np.bool_ and name == "masked keys" else array for array in given[3:]]
    kernel = compiler.build(function, "cuda", arch="sm_80", schedule="auto")
    assert isinstance(kernel, CudaKernel)
    (actual,) = run_on_host(kernel, given, tmp_path)
    close(actual, compiler.build(function)(*given))
