"""The PTX of operators' kernels, as NVRTC makes it, run on numpy beside the evaluator; faults planted in CUDA text."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import compiler
from compiler.targets.cuda import CudaKernel, nvrtc
from compiler.targets.cuda.checked import check_text
from compiler.targets.gpus import TextCheck
from tests.e2e.test_operator_texts import case, dtypes, first_candidate, wrong_results
from tests.gpu_schedules import spread_all
from tests.operators import OPERATORS
from tests.sample import some
from tests.unit.targets import test_warps as warps

pytestmark = pytest.mark.skipif(not nvrtc.is_available() or not nvrtc.has_headers(), reason="there is no NVRTC")
Array = np.ndarray[Any, Any]


def assert_right(cases: list[Any], kernels: list[Any], arch: str) -> None:
    def run(number: int, inputs: Any) -> Any:
        checked = check_text(kernels[number], inputs, arch)
        assert not checked.faults, f"{cases[number]} on {arch}: {checked.faults[0]}"
        return checked.outputs

    assert not (wrong := list(wrong_results(cases, run))), "\n".join(wrong)


@pytest.mark.parametrize("name", some(OPERATORS, 57))
def test_each_spread_over_threads(name: str) -> None:
    cases = [case(OPERATORS[name], dtype) for dtype in dtypes(OPERATORS[name])]
    assert_right(cases, [compiler.build(spread_all(each.function), "cuda") for each in cases], "sm_80")


@pytest.mark.parametrize("name", some(OPERATORS, 57))
def test_what_a_search_begins_with(name: str) -> None:
    operator = OPERATORS[name]
    each = case(operator, "f32" if "f32" in operator.dtypes else operator.dtypes[0])
    kernel = compiler.build(first_candidate(each.function), "cuda")
    for arch in some(["sm_90", "sm_75", "sm_80"]):
        assert_right([each], [kernel], arch)


def product(name: str) -> tuple[CudaKernel, list[Array], Array]:
    facts, tiles = warps.CASES[name]
    function = warps.matmul(**facts)
    kernel = warps.built(warps.scheduled(function, tiles), "fast" if name == "tf32" else "contract")
    given = warps.inputs(function)
    return kernel, given, warps.product(given, facts.get("transposed", False))


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
@pytest.mark.parametrize("name", some(warps.CASES, 5))
def test_products_on_tensor_cores(name: str, arch: str) -> None:
    kernel, given, want = product(name)
    if not kernel.source.takes(arch):
        return
    checked = check_text(kernel, given, arch)
    assert not checked.faults, checked.faults
    loose = 0.05 if name == "tf32" else 0.02 if checked.outputs[0].dtype == np.float16 else 1e-4
    np.testing.assert_allclose(checked.outputs[0].astype(np.float32), want, rtol=loose, atol=loose)


PENDING = "read of an asynchronous copy that nobody has waited for"
COUNTED = "cp.async.commit_group; cp.async.wait_group 1;"
FAULTS = {
    "a barrier": (r"__syncthreads\(\);", "", 0, "race"),
    "a wait": (r"cp\.async\.wait_all;", "", 0, PENDING),
    "a count that is off by one": (r"cp\.async\.wait_all;", COUNTED, 0, PENDING),
    "an order of registers": (r'"r"\(x\[0\]\), "r"\(x\[1\]\)', '"r"(x[1]), "r"(x[0])', 0, "wrong"),
    "an order of sums": (
        r'"\+f"\(c\.at\[0\]\.x\), "\+f"\(c\.at\[0\]\.y\)',
        '"+f"(c.at[0].y), "+f"(c.at[0].x)',
        0,
        "wrong",
    ),
    "a row": (r"tx % 16\]", "tx % 8]", 0, "wrong"),
    "an address beyond": (r"tx / 16 \* 8", "tx / 8 * 8", 0, ""),
    "a transposition": (r"x2\{trans\}|\.x2\.trans", ".x2", 0, "wrong"),
    "sums that nobody sets": (r"= Fragment<float2, 2>\{\};", "= C_fragment[0][n_2];", 0, "use of a register"),
}


@pytest.mark.parametrize("fault", some(FAULTS, 4))
def test_a_fault_in_the_text_is_found(fault: str) -> None:
    """Of a product of f16 whose panels are fetched a round ahead."""
    pattern, new, number, kind = FAULTS[fault]
    kernel, given, want = product("a round ahead")
    match = list(re.finditer(pattern, kernel.text))[number]
    text = kernel.text[: match.start()] + new + kernel.text[match.end() :]
    kind_found = outcome(check_text(with_text(kernel, text), given), want)
    assert kind_found != "right" and kind_found.startswith(kind), kind_found


def with_text(kernel: CudaKernel, text: str) -> CudaKernel:
    """The kernel with another text."""
    source = replace(kernel.source)
    source.__dict__["text"] = text
    return replace(kernel, source=source)


def outcome(checked: TextCheck, want: Array) -> str:
    if checked.faults:
        return checked.faults[0]
    return "right" if np.allclose(checked.outputs[0], want, rtol=1e-3, atol=1e-3) else "wrong"
