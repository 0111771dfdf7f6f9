"""ONNX's backend tests, counted by what becomes of them: python -m tests.onnx_nodes [--all] [NAME...].

Each case is a model with inputs and expected outputs: the generated ones of `node`, those that the package ships as
files (`simple`, `pytorch-operator`, `pytorch-converted`), and `light`, networks whose weights are constants. `real`
models have to be downloaded, so they are no part. A model is taken as it is: `strata.build(strata.from_onnx(model))`.

With --ahead a case where data decide a shape or an axis is tried again with all inputs but the first as initialisers:
that is how models have them. Without --all a share of the cases runs. NAME is a part of a case's name, or a runner.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from compiler.frontends.model import Imported
from compiler.support.errors import StrataError

STEP = 12
"""A share of the cases: one of so many."""
PASSED, WRONG, CRASHED, REFUSED, AHEAD = "passed", "wrong", "crashed", "refused", "passed ahead"
KINDS = (PASSED, AHEAD, WRONG, CRASHED, REFUSED)
DECIDED = ("computed by the model", "data decide", "does not take its inputs", "has extent 0", "data decides")
"""Words of reasons that do not hold where inputs are known."""
FILES = ("simple", "pytorch-operator", "pytorch-converted")
"""Runners whose cases are folders of the package onnx."""
RUNNERS = ("node", *FILES, "light")
Arrays = Sequence[Any]
How = Callable[[Imported, Arrays], list[Any]]


@dataclass(frozen=True)
class Case:
    """A model with inputs and the results expected of them."""

    runner: str
    name: str
    load: Callable[[], tuple[Any, Sequence[tuple[Arrays, Arrays]]]]
    rtol: float = 1e-3
    atol: float = 1e-7


@dataclass(frozen=True)
class Outcome:
    """What became of a case, and the reason where it was refused."""

    name: str
    kind: str
    detail: str = ""
    runner: str = ""


@cache
def cases() -> tuple[Case, ...]:
    from onnx.backend.test.loader import DATA_DIR

    data = Path(DATA_DIR)
    folders = [(kind, folder) for kind in FILES for folder in sorted((data / kind).iterdir()) if folder.is_dir()]
    shipped = [Case(kind, folder.name, lambda folder=folder: _folder(folder)) for kind, folder in folders]  # type: ignore[misc]
    light = [
        Case("light", path.stem, lambda path=path: _light(path), 2e-3)  # type: ignore[misc]
        for path in sorted((data / "light").glob("*.onnx"))
    ]
    return (*_nodes(), *shipped, *light)


def _nodes() -> list[Case]:
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = [case for case in collect_testcases(None) if case.model is not None]
    return [of_node(case) for case in found]


def of_node(case: Any) -> Case:
    """A node test of the package onnx."""
    return Case("node", case.name, lambda: (case.model, case.data_sets), case.rtol, case.atol)


def _folder(folder: Path) -> tuple[Any, list[tuple[Arrays, Arrays]]]:
    import onnx

    model = onnx.load(folder / "model.onnx")
    sets = []
    for stored in sorted(folder.glob("test_data_set_*")):
        inputs, outputs = (
            [_stored(stored / f"{side}_{n}.pb", value) for n, value in enumerate(values)]
            for side, values in (("input", _inputs(model)), ("output", model.graph.output))
        )
        sets.append((inputs, outputs))
    return model, sets


def _light(path: Path) -> tuple[Any, list[tuple[Arrays, Arrays]]]:
    import onnx

    model = onnx.load(path)
    shapes = [[size.dim_value or 1 for size in value.type.tensor_type.shape.dim] for value in _inputs(model)]
    inputs = [(np.arange(np.prod(shape)).reshape(shape) / np.prod(shape)).astype(np.float32) for shape in shapes]
    outputs = [_stored(path.with_name(f"{path.stem}_output_{n}.pb"), v) for n, v in enumerate(model.graph.output)]
    return model, [(inputs, outputs)]


def _inputs(model: Any) -> list[Any]:
    """The inputs of a model that are no initialisers."""
    stored = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in stored]


def _stored(path: Path, value: Any) -> Any:
    """The array of a file; a value of another type as the message that it is."""
    from onnx import SequenceProto, TensorProto, numpy_helper

    is_tensor = value.type.HasField("tensor_type")
    message = TensorProto() if is_tensor else SequenceProto()
    message.ParseFromString(path.read_bytes())
    return numpy_helper.to_array(message) if isinstance(message, TensorProto) else message


def built(imported: Imported, feeds: Arrays) -> list[Any]:
    """The results of a model as it is built without options."""
    import strata

    actual = strata.build(imported)(*feeds)
    return [actual] if len(imported.function.outputs) == 1 else list(actual)


def written(imported: Imported, feeds: Arrays) -> list[Any]:
    """The results of a model that is built as it is written."""
    import strata

    actual = strata.build(imported, schedule="written", threads=1)(*feeds)
    return [actual] if len(imported.function.outputs) == 1 else list(actual)


def interpreted(imported: Imported, feeds: Arrays) -> list[Any]:
    """The results of a model by the reference evaluator of te."""
    from compiler.interpret.te import evaluate

    return evaluate(imported.function.module, [*feeds, *imported.constants.values()])


def outcome(case: Case, how: How = built, ahead: bool = False) -> Outcome:
    """What becomes of a case; with `ahead`, tried again with known inputs where data decide."""
    model, sets = case.load()
    names = [value.name for value in _inputs(model)]
    for fixed in ([], names[1:], names) if ahead else ([],):
        actual = _tried(case, model, sets, fixed, how)
        if actual.kind != REFUSED or not any(words in actual.detail for words in DECIDED):
            return replace(actual, kind=AHEAD) if names and fixed == names and actual.kind == PASSED else actual
    return actual


def _tried(case: Case, model: Any, sets: Sequence[tuple[Arrays, Arrays]], fixed: Sequence[str], how: How) -> Outcome:
    from compiler.frontends.onnx import from_onnx

    for stored, expected in sets:
        inputs, outputs = ([_array(value) for value in values] for values in (stored, expected))
        taken, feeds = _with_known(model, inputs, fixed)
        try:
            computed = how(from_onnx(taken, _shapes(taken, feeds) if fixed else None), _contiguous(feeds))
        except StrataError as error:
            return Outcome(case.name, REFUSED, str(error), case.runner)
        except Exception as error:  # a fault of ours: it is counted, and the next case runs
            return Outcome(case.name, CRASHED, f"{type(error).__name__}: {error}", case.runner)
        fault = fault_of(computed, outputs, case.rtol, case.atol)
        if fault:
            return Outcome(case.name, WRONG, fault, case.runner)
    return Outcome(case.name, PASSED, "", case.runner)


def _array(value: Any) -> Any:
    """A value of a case as an array; some are messages."""
    from onnx import TensorProto, numpy_helper

    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, np.generic | float | int) else value


def _with_known(model: Any, inputs: Arrays, fixed: Sequence[str]) -> tuple[Any, list[Any]]:
    """The model with some inputs as initialisers, and the inputs that are left."""
    from onnx import ModelProto, numpy_helper

    if not fixed:
        return model, list(inputs)
    made, feeds = ModelProto(), list[Any]()
    made.CopyFrom(model)
    for left, value in zip(_inputs(model), inputs, strict=True):
        if left.name in fixed and isinstance(value, np.ndarray):
            made.graph.initializer.append(numpy_helper.from_array(value, left.name))
        else:
            feeds.append(value)
    return made, feeds


def _shapes(model: Any, feeds: Arrays) -> dict[str, Any]:
    """The shapes of the inputs that have open dimensions."""
    opened = {}
    for left, value in zip(_inputs(model), feeds, strict=True):
        dims = left.type.tensor_type.shape.dim
        if any(not dim.HasField("dim_value") for dim in dims) and isinstance(value, np.ndarray) and value.size:
            opened[left.name] = tuple(value.shape)
    return opened


def _contiguous(feeds: Arrays) -> list[Any]:
    return [np.ascontiguousarray(np.asarray(value)).reshape(np.shape(value)) for value in feeds]


def fault_of(computed: Arrays, outputs: Arrays, rtol: float, atol: float) -> str:
    """What is wrong with results; empty where they are right."""
    if len(computed) != len(outputs):
        return f"{len(computed)} outputs, expected {len(outputs)}"
    for position, (actual, expected) in enumerate(zip(computed, outputs, strict=True)):
        wanted = np.asarray(expected)
        if actual.shape != wanted.shape or actual.dtype != wanted.dtype:
            return f"output {position} is {actual.dtype}{actual.shape}, expected {wanted.dtype}{wanted.shape}"
        difference = _difference(actual, wanted, rtol, atol)
        if difference:
            return f"output {position} differs {difference}"
    return ""


def _difference(actual: Any, wanted: Any, rtol: float, atol: float) -> str:
    """Where arrays of one shape and dtype differ: integers must be equal, floats close, also beside the greatest."""
    narrow = {"float16": (2.0**-9, 1e-6), "bfloat16": (2.0**-6, 1e-6)}
    by, above = narrow.get(wanted.dtype.name, (rtol, atol))
    is_float = wanted.dtype.kind == "f" or wanted.dtype.name == "bfloat16"
    left, right = (array.astype(np.float64) if is_float else array for array in (actual, wanted))
    if is_float:
        above = max(above, 4 * 2.0**-23 * float(np.max(np.abs(right[np.isfinite(right)]), initial=0)))
    with np.errstate(all="ignore"):
        equal = np.isclose(left, right, by, above, equal_nan=True) if is_float else left == right
    if np.all(equal):
        return ""
    at = tuple(int(n) for n in np.argwhere(~equal)[0]) if np.ndim(equal) else ()
    return (
        f"in {np.size(equal) - np.count_nonzero(equal)} of {np.size(equal)}, first at {at}: {left[at]}, not {right[at]}"
    )


def report(outcomes: Sequence[Outcome], detailed: bool) -> None:
    """Print the counts by runner, the cases that are wrong or that crashed, and the refusals by reason."""
    print(f"{'runner':18}{'cases':>8}{''.join(f'{kind:>14}' for kind in KINDS)}")
    runners = list(dict.fromkeys(outcome.runner for outcome in outcomes))
    for runner in [*runners, "all"]:
        here = [outcome for outcome in outcomes if runner in (outcome.runner, "all")]
        counts = Counter(outcome.kind for outcome in here)
        print(f"{runner:18}{len(here):8}{''.join(f'{counts[kind]:14}' for kind in KINDS)}")
    for found in (outcome for outcome in outcomes if outcome.kind == WRONG):
        print(f"{WRONG} {found.name}: {found.detail[:300]}")
    reasons: dict[str, list[str]] = defaultdict(list)
    for found in (outcome for outcome in outcomes if outcome.kind in (CRASHED, REFUSED)):
        said = reason(found.detail) if found.kind == REFUSED else f"{CRASHED}: {found.detail[:200]}"
        reasons[said].append(found.name)
    for said, names in sorted(reasons.items(), key=lambda pair: -len(pair[1])):
        print(f"{len(names):5} {said} ({', '.join(names if detailed else names[:3])})")


KIND_OF_REASON: tuple[tuple[str, str], ...] = (
    ("a dtype that te lacks", "a dtype that te lacks (floats of 8 and 4 bits, integers below 8, complex, strings)"),
    (
        "which te has no elements of",
        "a dtype that te lacks (floats of 8 and 4 bits, integers below 8, complex, strings)",
    ),
    (
        "is no dtype of integers of te",
        "a dtype that te lacks (floats of 8 and 4 bits, integers below 8, complex, strings)",
    ),
    ("it works on strings", "strings"),
    ("is no tensor: sequences", "sequences, optional values"),
    ("it works on sequences", "sequences, optional values"),
    ("a sequence or an optional value", "sequences, optional values"),
    ("are not bound", "open dimensions that the test leaves unbound"),
    ("only data decide it", "data decide a shape, an axis or a count: the test has it as an input of the graph"),
    ("has extent 0", "tensors without elements"),
    ("no elements", "tensors without elements"),
)
"""Words of a refusal's sentence, and the reason they stand for."""


def reason(detail: str) -> str:
    """The reason of a refusal without names."""
    for words, kind in KIND_OF_REASON:
        if words in detail:
            return kind
    return detail.split("): ", 1)[-1].split("; ")[0][:140]


def chosen_of(names: Sequence[str], everything: bool) -> Iterable[Case]:
    """The cases that are named, by a part of their name or their runner; a share of them without `everything`."""
    if names:
        return [case for case in cases() if any(name == case.runner or name in case.name for name in names)]
    return cases() if everything else cases()[::STEP]


def main() -> int:
    """Run the cases that are named, all of them, or a share; 1 where one is wrong or crashed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names of cases, or runners")
    parser.add_argument("--all", action="store_true", help="all cases")
    parser.add_argument("--how", choices=("built", "written", "interpreted"), default="built", help="how a model runs")
    parser.add_argument("--ahead", action="store_true", help="where data decide, try again with known inputs")
    parser.add_argument("--details", action="store_true", help="name all cases of a reason")
    options = parser.parse_args()
    how = {"built": built, "written": written, "interpreted": interpreted}[options.how]
    outcomes = [outcome(case, how, options.ahead) for case in chosen_of(options.names, options.all)]
    report(outcomes, options.details)
    return int(any(outcome.kind in (WRONG, CRASHED) for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
