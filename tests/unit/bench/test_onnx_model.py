"""Workloads as ONNX models: ONNX's own evaluator computes them right, and onnxruntime is bound as it is said."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from compiler.bench import contenders, onnx_model, workloads
from compiler.bench.contenders import Settings
from compiler.bench.harness import Plan, fault, measure
from compiler.support.errors import TargetError

onnx = pytest.importorskip("onnx")
pytestmark = pytest.mark.doors
WITHOUT = {"conv_grad_weight", "conv_grad_weight_steps"}
SHORT = Plan(rounds=3, seconds=float("inf"))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", [name for name in workloads.PRESETS if name not in WITHOUT])
def test_models_agree_with_the_references(name: str, packed: bool) -> None:
    from onnx.reference import ReferenceEvaluator

    workload = workloads.find(name, Fraction(1, 16))
    inputs = dict(zip((i.name for i in workload.inputs), drawn := workload.draw(3), strict=True))
    held = {n: inputs.pop(n) for n in workload.constants} if packed else {}
    (output,) = ReferenceEvaluator(onnx_model.model(onnx, workload, held)).run(None, inputs)
    assert fault(output, workload.expected(drawn)) is None


@pytest.mark.parametrize("name", sorted(WITHOUT))
def test_what_has_no_form_in_onnx_is_refused(name: str) -> None:
    with pytest.raises(TargetError, match=f"{name}.* has no form in ONNX"):
        onnx_model.model(onnx, workloads.find(name), {})


def test_constants_beyond_what_a_model_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_model, "LARGEST", 100)
    with pytest.raises(TargetError, match="larger than an ONNX model can be"):
        onnx_model.model(onnx, workloads.find("mlp"), {"V": np.zeros(25, np.float32)})


@pytest.mark.parametrize("name", ["onnxruntime", "onnxruntime.inputs"])
def test_onnxruntime_is_measured(name: str) -> None:
    pytest.importorskip("onnxruntime")
    measurement = measure(workloads.find("conv:16x7x5x20"), contenders.find([name]), plan=SHORT, seed=0)
    assert [run.contender.name for run in measurement.runs] == ["strata", name]
    assert all(run.seconds is not None for run in measurement.runs)


def test_without_constants_there_is_one_row() -> None:
    measurement = measure(
        workloads.find("matmul:7x11x13"), contenders.find(["onnxruntime", "onnxruntime.inputs"]), plan=SHORT, seed=0
    )
    said = "matmul_7x11x13 has no constant inputs: it is the same as onnxruntime"
    assert measurement.left_out["onnxruntime.inputs"] == said


def test_constants_are_read_once_where_they_are_packed_before() -> None:
    pytest.importorskip("onnxruntime")
    workload = workloads.find("mlp:9x20x33x10")
    for name, later in (("onnxruntime", False), ("onnxruntime.inputs", True)):
        inputs, out = workload.draw(1), np.empty(workload.shape, np.float32)
        step = contenders.CONTENDERS[name].bind(workload, Settings(), inputs, out)
        before = step().copy()
        inputs[1][:] = 0
        assert (not np.array_equal(step(), before)) == later


def test_the_session_is_held_to_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = pytest.importorskip("onnxruntime")
    asked: list[Any] = []
    session = runtime.InferenceSession
    monkeypatch.setattr(
        runtime,
        "InferenceSession",
        lambda model, options, **remaining: asked.append(options) or session(model, options, **remaining),
    )
    workload = workloads.find("softmax:5x7")
    contenders.CONTENDERS["onnxruntime"].bind(
        workload, Settings(threads=2), workload.draw(0), np.empty(workload.shape, np.float32)
    )
    (options,) = asked
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (2, 1)
    assert options.execution_mode == runtime.ExecutionMode.ORT_SEQUENTIAL
    assert options.graph_optimization_level == runtime.GraphOptimizationLevel.ORT_ENABLE_ALL
