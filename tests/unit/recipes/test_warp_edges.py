"""Products on tensor cores whose tiles exceed an extent: zeros beyond the edges, by copies of fewer bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr

import compiler
from compiler import te
from compiler.dialects.upstream import nvgpu
from compiler.recipes import WarpTiles
from compiler.schedule import Schedule
from compiler.targets import simt
from compiler.targets.cuda import ARCHITECTURES, CudaKernel, nvrtc
from compiler.targets.registry import target_named
from tests.host_cuda import needs_gxx, run_on_host
from tests.sample import some
from tests.unit.targets.ptx.kept import parsed, text_of
from tests.unit.targets.test_warps import built, inputs, kernels, matmul, product, scheduled

Array = np.ndarray[Any, Any]
needs_nvrtc = pytest.mark.skipif(not nvrtc.is_available() or not nvrtc.has_headers(), reason="there is no NVRTC")

# m, n, k and more facts; the bytes of an asynchronous copy, None for loads of an element
CASES: dict[str, tuple[dict[str, Any], int, int | None]] = {
    "odd": ({"m": 39, "n": 45, "k": 43}, 8, None),
    "odd of bf16, with an epilogue": ({"m": 17, "n": 21, "k": 37, "dtype": "bf16", "epilogue": "f32"}, 8, None),
    "odd, B transposed": ({"m": 39, "n": 45, "k": 43, "transposed": True}, 8, None),
    "rows of 16 bytes": ({"m": 39, "n": 40, "k": 72}, 8, 16),
    "rows of 4 bytes, to f16": ({"m": 40, "n": 38, "k": 50, "epilogue": "f16"}, 8, 4),
    "rows of 16 bytes, B transposed": ({"m": 39, "n": 45, "k": 72, "transposed": True}, 8, 16),
}


def case(name: str, stages: int = 2) -> tuple[te.Function, Schedule, int | None]:
    facts, vector, size = CASES[name]
    function = matmul(**facts)
    return function, scheduled(function, WarpTiles((2, 2), (2, 2), 1, vector, twice=True, stages=stages)), size


def assert_right(actual: Array, name: str, given: list[Array]) -> None:
    facts = CASES[name][0]
    loose = 0.02 if facts.get("epilogue") == "f16" else 1e-3
    want = product(given, bool(facts.get("transposed", False)))
    np.testing.assert_allclose(actual.astype(np.float32), want, rtol=loose, atol=loose)


@pytest.mark.parametrize("name", CASES)
def test_products_are_proved_and_without_a_fault(name: str) -> None:
    function, s, size = case(name, 3)
    assert str(s.verify()) == "proved"
    given = inputs(function)
    checked = simt.run(kernels(s), given)
    assert checked.is_correct, [str(fault) for fault in checked.faults]
    assert_right(checked.outputs[0], name, given)
    text = built(s).text
    assert (f"copy_some_async<{size}>(&" in text) == (size is not None)


@needs_gxx
@pytest.mark.parametrize("name", some(CASES, 2))
def test_the_text_is_right_on_the_host(name: str, tmp_path: Path) -> None:
    function, s, _ = case(name)
    given = inputs(function)
    (on_host,) = run_on_host(built(s), given, tmp_path)
    assert_right(on_host, name, given)


@needs_nvrtc
@pytest.mark.parametrize("name", some(CASES, 2))
def test_the_ptx_is_right_and_spills_nothing(name: str) -> None:
    function, s, _ = case(name, 4)
    given = inputs(function)
    kernel = built(s)
    checked = target_named("cuda").check_text(kernel, given, "sm_80")
    assert not checked.faults, [str(fault) for fault in checked.faults]
    assert_right(checked.outputs[0], name, given)
    (resources,) = kernel.resources("sm_80").values()
    assert resources.spill_bytes == resources.stack_bytes == 0


def test_a_copy_of_all_elements_at_an_edge_is_named() -> None:
    """Reads beyond the arguments: rows beyond m, and columns beyond k."""
    function, s, _ = case("rows of 16 bytes")
    module = kernels(s)
    for copy in [op for op in module.walk() if isinstance(op, nvgpu.CopyOp) and op.src_elements is not None]:
        whole = arith.ConstantOp(IntegerAttr.from_index_int_value(8))
        assert copy.parent is not None
        copy.parent.insert_ops_before([whole], copy)
        copy.operands = [whole.result if value is copy.src_elements else value for value in copy.operands]
    kinds = {fault.kind for fault in simt.run(module, inputs(function)).faults}
    assert "out-of-bounds read" in kinds


@needs_nvrtc
@pytest.mark.parametrize(
    ("old", "new", "kind"), [("? 8 : 0", "? 8 : 8", "outside of memory"), ("? 8 : 0", "? 0 : 0", "")]
)
def test_wrong_sizes_of_copies_are_named_or_wrong(old: str, new: str, kind: str) -> None:
    function, s, _ = case("rows of 16 bytes")
    kernel, given = built(s), inputs(function)
    assert old in kernel.text
    ran = parsed(text_of(kernel, kernel.text.replace(old, new))).run(given)
    if kind:
        assert any(kind in fault.kind for fault in ran.faults), [fault.kind for fault in ran.faults]
    else:
        assert not np.allclose(ran.arrays[0], product(given, False), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("arch", some(ARCHITECTURES, 3))
def test_odd_products_are_on_tensor_cores_by_default(arch: str) -> None:
    kernel = compiler.build(matmul(127, 333, 511), "cuda", arch=arch, schedule="auto")
    assert isinstance(kernel, CudaKernel)
    assert ("multiply_add(" in kernel.text) == (arch != "sm_70")
