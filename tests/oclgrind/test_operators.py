"""The CUDA text of every operator of te.nn, and of products on tensor cores, on oclgrind: right, nothing reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import compiler
from compiler import te
from compiler.interpret import te as evaluator
from compiler.schedule import Schedule
from compiler.targets import simt
from compiler.targets.cuda import CudaKernel
from tests.adversarial import KINDS, arrays
from tests.agreement import bound, error, widened
from tests.e2e.test_operator_texts import LOOSER, Case, case, dtypes
from tests.gpu_schedules import default, spread_all
from tests.oclgrind import needs_oclgrind, run
from tests.operators import OPERATORS
from tests.sample import all_asked, some
from tests.unit.targets.test_warps import CASES, built, inputs, kernels, matmul, scheduled

SCHEDULES: dict[str, Callable[[te.Function], Schedule]] = {"default": default, "spread": spread_all}
MMA: Mapping[str, Any] = CASES


def wrong(each: Case, kernel: CudaKernel) -> list[str]:
    """What oclgrind reports of a kernel, and how far its results are off where that is too far."""
    given = arrays(each.operator, each.function, next(iter(KINDS)))
    with np.errstate(all="ignore"):
        expected = evaluator.evaluate(each.function.module, given)
    checked = run(kernel, given)
    off = [error(actual, widened(want)) for actual, want in zip(checked.outputs, expected, strict=True)]
    bounds = [LOOSER * bound(each.dtype, actual) for actual in checked.outputs]
    far = [f"off by {error}" for error, most in zip(off, bounds, strict=True) if not error <= most]
    return [f"{each}: {what}" for what in (*far, *map(str, checked.faults))]


@needs_oclgrind
@pytest.mark.parametrize("schedule", SCHEDULES if all_asked() else ["default"])
@pytest.mark.parametrize("name", some(OPERATORS, 60))
def test_operators(name: str, schedule: str) -> None:
    reported: list[str] = []
    for dtype in dtypes(OPERATORS[name]):
        each = case(OPERATORS[name], dtype)
        kernel = compiler.build(SCHEDULES[schedule](each.function), "cuda")
        assert isinstance(kernel, CudaKernel)
        reported += wrong(each, kernel)
    assert not reported, "\n".join(reported)


@needs_oclgrind
@pytest.mark.parametrize("name", MMA if all_asked() else [])
def test_products_on_tensor_cores(name: str) -> None:
    """Beside the same kernels on numpy."""
    facts, tiles = MMA[name]
    function = matmul(**facts)
    s, policy = scheduled(function, tiles), "fast" if name == "tf32" else "contract"
    given: Sequence[Any] = inputs(function)
    checked = run(built(s, policy), given)
    assert not checked.faults, "\n".join(map(str, checked.faults))
    (want,) = simt.run(kernels(s, policy), given).outputs
    np.testing.assert_allclose(checked.outputs[0].astype(np.float32), want.astype(np.float32), rtol=1e-3, atol=1e-4)
