"""ONNX's backend node tests, counted by what becomes of them: python -m tests.onnx_nodes [--all] [NAME...].

Each case is a model with inputs and expected outputs. It is imported and evaluated by the reference evaluator of te, or
(--native) built as it is written. Where data decide a shape or an axis, the case is tried again with all inputs but the
first as initialisers: that is how models have them. Without --all a share of the cases runs.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from compiler.errors import StrataError
from compiler.imported import Imported

STEP = 12
"""A share of the cases: one of so many."""
RIGHT, WRONG, AHEAD = "right", "WRONG", "right, where all inputs are known ahead"
DECIDED = ("computed by the model", "data decide", "does not take its inputs", "has extent 0")
"""Words of reasons that do not hold where inputs are known."""


@dataclass(frozen=True)
class Outcome:
    """What became of a case: right, wrong, or the reason why it was refused."""

    name: str
    kind: str
    detail: str = ""


@cache
def cases() -> list[Any]:
    """The node tests of the package onnx."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return [case for case in collect_testcases(None) if case.model is not None]


def outcome(case: Any, native: bool = False) -> Outcome:
    """What becomes of a case."""
    names = [value.name for value in case.model.graph.input]
    for fixed in ([], names[1:], names):
        actual = _tried(case, fixed, native)
        if actual.kind in (RIGHT, WRONG) or not any(words in actual.detail for words in DECIDED):
            return replace(actual, kind=AHEAD) if names and fixed == names and actual.kind == RIGHT else actual
    return actual


def _tried(case: Any, fixed: Sequence[str], native: bool) -> Outcome:
    from onnx import ModelProto, numpy_helper

    from compiler.frontends.onnx import from_onnx

    for stored, expected in case.data_sets:
        inputs, outputs = ([_array(value) for value in values] for values in (stored, expected))
        model = ModelProto()
        model.CopyFrom(case.model)
        feeds: list[Any] = []
        for left, value in zip(case.model.graph.input, inputs, strict=False):
            if left.name in fixed and isinstance(value, np.ndarray):
                model.graph.initializer.append(numpy_helper.from_array(value, left.name))
            else:
                feeds.append(value)
        try:
            computed = _run(from_onnx(model, _shapes(model, feeds)), feeds, native)
        except StrataError as error:
            return Outcome(case.name, "refused", str(error))
        fault = _fault(computed, outputs, case)
        if fault:
            return Outcome(case.name, WRONG, fault)
    return Outcome(case.name, RIGHT)


def _array(value: Any) -> Any:
    """A value of a case as an array; some are messages."""
    from onnx import TensorProto, numpy_helper

    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, np.generic | float | int) else value


def _shapes(model: Any, feeds: Sequence[Any]) -> dict[str, Any]:
    """The shapes of the inputs that have open dimensions."""
    stored = {value.name for value in model.graph.initializer}
    opened = {}
    for left, value in zip((i for i in model.graph.input if i.name not in stored), feeds, strict=False):
        dims = left.type.tensor_type.shape.dim
        if any(not dim.HasField("dim_value") for dim in dims) and isinstance(value, np.ndarray) and value.size:
            opened[left.name] = tuple(value.shape)
    return opened


def _run(imported: Imported, feeds: Sequence[Any], native: bool) -> list[Any]:
    """The results of a model, of arrays for its inputs."""
    given = [np.ascontiguousarray(np.asarray(value)) for value in feeds]
    given = [array.reshape(np.shape(value)) for array, value in zip(given, feeds, strict=True)]
    if native:
        import compiler

        actual = compiler.build(imported, schedule="written", threads=1)(*given)
        return [actual] if len(imported.function.outputs) == 1 else list(actual)
    from compiler.interpret.te import evaluate

    return evaluate(imported.function.module, [*given, *imported.constants.values()])


def _fault(computed: Sequence[Any], outputs: Sequence[Any], case: Any) -> str:
    """What is wrong with results; empty where they are right."""
    for position, (actual, expected) in enumerate(zip(computed, outputs, strict=False)):
        wanted = np.asarray(expected)
        if actual.shape != wanted.shape or actual.dtype != wanted.dtype:
            return f"output {position} is {actual.dtype}{actual.shape}, expected {wanted.dtype}{wanted.shape}"
        narrow = wanted.dtype.name in ("float16", "bfloat16")
        rtol, atol = (1e-2, 2e-3) if narrow else (max(case.rtol, 1e-3), max(case.atol, 1e-6))
        left, right = (np.asarray(a, np.float64 if a.dtype.name == "bfloat16" else None) for a in (actual, wanted))
        with np.errstate(all="ignore"):
            if not np.allclose(left, right, rtol, atol, equal_nan=True):
                return f"output {position} differs by {np.nanmax(np.abs(left * 1.0 - right * 1.0)):.3g}"
    return ""


def report(outcomes: Sequence[Outcome], detailed: bool) -> None:
    """Print the counts, by reason, and the cases that are wrong."""
    kinds = Counter(outcome.kind for outcome in outcomes)
    print(", ".join(f"{count} {kind}" for kind, count in kinds.items()), f"of {len(outcomes)}")
    reasons: dict[str, list[str]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.kind == "refused":
            reasons[reason(outcome.detail)].append(outcome.name)
        elif outcome.kind == WRONG:
            print(f"WRONG {outcome.name}: {outcome.detail}")
    for said, names in sorted(reasons.items(), key=lambda pair: -len(pair[1])):
        print(f"{len(names):5} {said} ({', '.join(names if detailed else names[:3])})")


def reason(detail: str) -> str:
    """The reason of a refusal without names."""
    return detail.split("): ", 1)[-1].split("; ")[0][:140]


def main() -> int:
    """Run the cases that are named, all of them, or a share; 1 where one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names of cases")
    parser.add_argument("--all", action="store_true", help="all cases")
    parser.add_argument("--native", action="store_true", help="build each as it is written")
    parser.add_argument("--details", action="store_true", help="name all cases of a reason")
    options = parser.parse_args()
    chosen = [case for case in cases() if not options.names or any(name in case.name for name in options.names)]
    if not options.all and not options.names:
        chosen = chosen[::STEP]
    outcomes = [outcome(case, options.native) for case in chosen]
    report(outcomes, options.details)
    return int(any(outcome.kind == WRONG for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
