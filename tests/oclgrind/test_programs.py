"""Random programs and workloads on oclgrind: whole grids of their text, of which simt runs a few blocks on numpy."""

from __future__ import annotations

import numpy as np
import pytest

import compiler
from compiler.bench import workloads
from compiler.bench.harness import fault
from compiler.driver import build_as_written
from compiler.fuzz.programs import arrays_for
from compiler.interpret import te as evaluator
from compiler.targets.cuda import CudaKernel
from tests.e2e.test_gpu_workloads import SMALLER
from tests.e2e.test_operator_texts import first_candidate
from tests.fuzz.gpu import drawn
from tests.fuzz.programs import agree
from tests.oclgrind import needs_oclgrind, run
from tests.sample import all_asked, some


@needs_oclgrind
@pytest.mark.parametrize("seed", some(range(40), 20))
def test_random_programs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STRATA_SCHEDULE", raising=False)
    function = drawn(seed)
    kernel = compiler.build(function, "cuda")
    assert isinstance(kernel, CudaKernel)
    arrays = arrays_for(function, seed)
    with np.errstate(all="ignore"):
        expected = evaluator.evaluate(function.module, arrays)
    checked = run(kernel, arrays)
    assert not checked.faults, "\n".join(map(str, checked.faults))
    assert all(agree(out, want) for out, want in zip(checked.outputs, expected, strict=True))


@needs_oclgrind
@pytest.mark.parametrize("name", SMALLER if all_asked() else ["layernorm"])
def test_workloads(name: str) -> None:
    """What a search begins with."""
    workload = workloads.find(f"{workloads.PRESETS[name].family}:{SMALLER[name]}")
    kernel = build_as_written(first_candidate(workload.function()), "cuda")
    assert isinstance(kernel, CudaKernel)
    inputs = workload.draw(0)
    checked = run(kernel, inputs)
    assert not checked.faults, "\n".join(map(str, checked.faults))
    assert fault(checked.outputs[0], workload.expected(inputs)) is None
