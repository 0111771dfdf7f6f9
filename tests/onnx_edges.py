"""Single nodes at the edges of their inputs, against onnxruntime and ONNX's reference evaluator.

python -m tests.onnx_edges [--all] [NAME...] runs operators at all opsets where their meaning changed and in all dtypes
of te, on NaN, infinities, both zeros, extremes, ties, and tensors without dimensions. A result is wrong where it agrees
with neither oracle. Without --all a share of the probes runs.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from compiler.support.errors import StrataError
from tests.onnx_probes import FLOATS, INTEGERS, Probe, probes, words

STEP = 24
"""A share of the probes: one of so many."""
RIGHT, WRONG, CRASHED, REFUSED, UNJUDGED = "passed", "wrong", "crashed", "refused", "no oracle takes it"
KINDS = (RIGHT, WRONG, CRASHED, REFUSED, UNJUDGED)


def model_of(probe: Probe) -> Any:
    """A model of one node."""
    import onnx
    from onnx import helper, numpy_helper

    def typed(array: Any) -> Any:
        return helper.np_dtype_to_tensor_dtype(array.dtype)

    names = [f"x{n}" if array is not None else "" for n, array in enumerate(probe.inputs)]
    results = [f"y{n}" for n in range(probe.outputs)]
    node = helper.make_node(probe.operator, names, results, **probe.attributes)
    graph = helper.make_graph(
        [node],
        "g",
        [
            helper.make_tensor_value_info(n, typed(a), a.shape)
            for k, (n, a) in enumerate(zip(names, probe.inputs, strict=True))
            if n and k not in probe.known
        ],
        [],
        [numpy_helper.from_array(probe.inputs[k], names[k]) for k in probe.known],
    )
    made = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", probe.opset)], ir_version=10 if probe.opset < 23 else 12
    )
    made.graph.value_info.extend(helper.make_empty_tensor_value_info(name) for name in results)
    inferred = onnx.shape_inference.infer_shapes(made)
    types = {value.name: value for value in inferred.graph.value_info}
    del made.graph.value_info[:]
    for name in results:
        value = types.get(name)
        if value is None or not value.type.tensor_type.elem_type:
            value = helper.make_tensor_value_info(name, typed(probe.inputs[0]), [None] * probe.inputs[0].ndim)
        made.graph.output.append(value)
    return made


def feeds_of(probe: Probe) -> dict[str, Any]:
    """The inputs that a call takes."""
    return {f"x{n}": a for n, a in enumerate(probe.inputs) if a is not None and n not in probe.known}


def by_runtime(probe: Probe, model: Any) -> list[Any] | None:
    """The results of onnxruntime; None where it does not take the model, or has no array of its dtype."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return [np.asarray(value) for value in session.run(None, feeds_of(probe))]
    except Exception:  # whatever it says of models that it does not take
        return None


def by_reference(probe: Probe, model: Any) -> list[Any] | None:
    """The results of ONNX's reference evaluator; None where it does not take the model."""
    from onnx.reference import ReferenceEvaluator

    if probe.operator == "Hardmax" and probe.opset < 13:
        return None  # it does not flatten
    try:
        return [np.asarray(value) for value in ReferenceEvaluator(model).run(None, feeds_of(probe))]
    except Exception:  # whatever it says of models that it does not take
        return None


UNTRUSTED: tuple[tuple[str, tuple[str, ...], tuple[str, ...], str], ...] = (
    ("reference", ("Softmax", "LogSoftmax"), FLOATS, "does not flatten as opsets below 13; the logarithm of 0 is -inf"),
    ("reference", ("ReduceLogSumExp",), FLOATS, "NaN for rows of -inf"),
    ("reference", ("RNN", "GRU", "LSTM"), FLOATS, "does not look at the lengths of sequences"),
    ("reference", ("Erf", "Gelu", "Softplus"), ("f64", "bf16"), "computes in f32, or rounds at each step"),
    ("reference", ("PRelu",), FLOATS, "NaN for 0 and an infinite slope"),
    ("reference", ("Mean", "ReduceMean"), ("f16",), "overflows"),
    ("reference", ("ReduceSumSquare",), INTEGERS, "gives another dtype"),
    ("onnxruntime", ("ReduceLogSumExp",), ("f16",), "overflows"),
    ("reference", ("TopK",), ("bf16",), "sorts NaN first or last, as numpy does"),
    ("reference", ("Shrink",), ("i64", "u64"), "wraps where a bound is not exact"),
    ("onnxruntime", ("Hardmax",), FLOATS, "passes over NaN"),
    ("onnxruntime", ("LogSoftmax",), ("f64",), "a number for a row with NaN"),
    ("onnxruntime", ("Shrink",), ("i64", "u64"), "wraps where a bound is not exact"),
)
"""Oracles that are wrong themselves: for which operators, of which dtypes, and what they do."""
SIGNED_ZEROS = words(
    "Abs Add Asin Asinh Atan Atanh Cast Ceil Div Floor Identity Mul Neg Reciprocal Round Sin Sinh Sqrt Sub Tan Tanh"
)
"""Operators of which a standard says what sign a zero has."""
SUMS = words("AveragePool DFT GRU Gemm LSTM RNN Resize Upsample")
"""Operators of sums that cancel: what agrees is judged beside the greatest result."""


def trusted(oracle: str, probe: Probe) -> bool:
    """Whether an oracle is right about an operator."""
    from compiler.frontends.onnx.types import dtype_of

    dtype = dtype_of(probe.inputs[0])
    return not any(oracle == name and probe.operator in ops and dtype in dtypes for name, ops, dtypes, _ in UNTRUSTED)


@dataclass(frozen=True)
class Judged:
    """What became of a probe."""

    probe: Probe
    kind: str
    detail: str = ""


def judged(probe: Probe) -> Judged:
    """Compare the results of a probe with the oracles."""
    from compiler.frontends.onnx import from_onnx
    from compiler.interpret.te import evaluate

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        model = model_of(probe)
        asked = probe.today or probe
        asked_model = model_of(asked)
        oracles = {
            name: wanted
            for name, run in (("onnxruntime", by_runtime), ("reference", by_reference))
            if trusted(name, asked) and (wanted := run(asked, asked_model)) is not None
        }
        try:
            imported = from_onnx(model)
            actual = evaluate(imported.function.module, [*feeds_of(probe).values(), *imported.constants.values()])
        except StrataError as error:
            return Judged(probe, REFUSED if oracles else UNJUDGED, str(error))
        except Exception as error:  # a fault of ours: it is counted, and the next probe runs
            return Judged(probe, CRASHED, f"{type(error).__name__}: {error}")
    if not oracles:
        return Judged(probe, UNJUDGED)
    faults = {name: _fault(probe, actual, wanted) for name, wanted in oracles.items()}
    if not all(faults.values()):
        return Judged(probe, RIGHT)
    return Judged(probe, WRONG, "; ".join(f"{name}: {fault}" for name, fault in faults.items()))


def _fault(probe: Probe, actual: Sequence[Any], wanted: Sequence[Any]) -> str:
    for position, (ours, theirs) in enumerate(zip(actual, wanted, strict=True)):
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            return f"output {position} is {ours.dtype}{ours.shape}, not {theirs.dtype}{theirs.shape}"
        with np.errstate(all="ignore"):
            equal = _equal(ours, theirs, probe.operator in SIGNED_ZEROS, probe.operator in SUMS)
        if not equal.all():
            at = tuple(int(n) for n in np.argwhere(~equal)[0])
            count = int(np.size(equal) - np.count_nonzero(equal))
            return f"output {position} at {at} is {ours[at]}, not {theirs[at]} ({count} of {equal.size})"
    return ""


def _equal(ours: Any, theirs: Any, signed: bool, sums: bool) -> Any:
    """Which elements agree: floats in a few units of the last place, zeros also in their sign where it is stated."""
    if ours.dtype.kind not in "f" and ours.dtype.name != "bfloat16":
        return np.asarray(ours == theirs)
    import ml_dtypes

    facts = ml_dtypes.finfo(ours.dtype)
    steps = 4 if facts.bits == 16 else 64
    left, right = ours.astype(np.float64), theirs.astype(np.float64)
    scale = np.nanmax(np.abs(right[np.isfinite(right)]), initial=0) if sums else 0.0
    above = 4 * float(facts.smallest_normal) + 4 * float(facts.eps) * float(scale)
    close = np.isclose(left, right, steps * float(facts.eps), above, equal_nan=True)
    zeros = signed & (left == 0) & (right == 0)
    return np.asarray(close & (~zeros | (np.signbit(left) == np.signbit(right))))


def report(found: Sequence[Judged], detailed: bool) -> None:
    """Print the counts, and by operator the first probe of what is wrong or refused."""
    counts = Counter(judgement.kind for judgement in found)
    print(", ".join(f"{counts[kind]} {kind}" for kind in KINDS), f"of {len(found)}")
    groups: dict[tuple[str, str, str], list[Judged]] = defaultdict(list)
    for judgement in found:
        if judgement.kind in (WRONG, CRASHED, REFUSED):
            said = judgement.detail.split("): ", 1)[-1][:90] if judgement.kind == REFUSED else ""
            groups[judgement.kind, judgement.probe.operator, said].append(judgement)
    for (kind, operator, _), group in sorted(groups.items()):
        for judgement in group if detailed else group[:1]:
            print(f"{kind} {operator} ({len(group)}): {judgement.probe}: {judgement.detail[:300]}")


def main() -> int:
    """Run the probes of the operators that are named, all of them, or a share; 1 where one is wrong or crashed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="operators")
    parser.add_argument("--all", action="store_true", help="all probes")
    parser.add_argument("--details", action="store_true", help="show all probes that are wrong or refused")
    options = parser.parse_args()
    chosen = [probe for probe in probes() if not options.names or probe.operator in options.names]
    found = [judged(probe) for probe in (chosen if options.all or options.names else chosen[::STEP])]
    report(found, options.details)
    return int(any(judgement.kind in (WRONG, CRASHED) for judgement in found))


if __name__ == "__main__":
    sys.exit(main())
