"""One operator run in every way: evaluator, interpreter, compiled, upstream, torch; each with its errors."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import compiler
from compiler import te
from compiler.interpret import loop as loop_interpreter
from compiler.interpret import te as evaluator
from compiler.targets.cpu import Kernel
from tests import upstream
from tests.agreement import bound, error, poisoned, widened
from tests.operators.catalogue import Operator, numpy_dtype

Array = np.ndarray[Any, Any]
WAYS = ("evaluator", "interpreter", "compiled", "mlir-22", "torch")


@dataclass(frozen=True)
class Cell:
    """The largest error of one way over all samples; or why it could not run, or what went wrong."""

    error: float | None = None
    absent: str = ""
    failed: str = ""


@dataclass(frozen=True)
class Row:
    """An operator on a dtype: a cell for each way, or why there are none."""

    operator: str
    dtype: str
    cells: dict[str, Cell]
    failed: str = ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(value: dict[str, Any]) -> Row:
        return Row(**{**value, "cells": {way: Cell(**cell) for way, cell in value["cells"].items()}})


@dataclass(frozen=True)
class Sample:
    """One function, its inputs, its results by the reference, and its kernel."""

    parameters: dict[str, Any]
    function: te.Function
    arrays: list[Array]
    reference: list[Array]
    kernel: Kernel

    @property
    def outputs(self) -> list[tuple[tuple[int, ...], str]]:
        """The shape and dtype of each result."""
        return [(tensor.shape, tensor.dtype) for tensor in self.function.outputs]

    def empty(self) -> list[Array]:
        """Poisoned arrays for the results."""
        return poisoned([np.empty(shape, numpy_dtype(dtype)) for shape, dtype in self.outputs])


def sample(operator: Operator, dtype: str, number: int) -> Sample:
    """The sample of that number: the same parameters for every dtype, and on every machine."""
    parameters = operator.sample(random.Random(f"{operator.name} {number}"))
    function = operator.build(dtype, parameters)
    arrays = operator.inputs(function, number)
    return Sample(parameters, function, arrays, references(operator, parameters, arrays), compiler.build(function))


def references(operator: Operator, parameters: dict[str, Any], arrays: Sequence[Array]) -> list[Array]:
    """The results by the operator's reference, of inputs in float64 or int64."""
    with np.errstate(all="ignore"):
        return [np.asarray(r) for r in _tuple(operator.reference(parameters, *map(widened, arrays)))]


def rows(operator: Operator, count: int) -> list[Row]:
    """A row for each dtype of an operator; upstream runs all samples of all dtypes at once."""
    collected: dict[str, list[Sample]] = {}
    failed: dict[str, str] = {}
    for dtype in operator.dtypes:
        try:
            collected[dtype] = [sample(operator, dtype, number) for number in range(count)]
        except Exception as wrong:  # one dtype that fails is reported, and the others go on
            failed[dtype] = said(wrong)
    upstreams = _upstream([s for samples in collected.values() for s in samples])
    return [
        Row(operator.name, d, {}, failed[d]) if d in failed else _row(operator, d, collected[d], upstreams)
        for d in operator.dtypes
    ]


def _row(operator: Operator, dtype: str, samples: list[Sample], upstreams: Iterator[Any]) -> Row:
    theirs = [next(upstreams) for _ in samples]
    cells = {
        "evaluator": _ours(dtype, samples, lambda s: evaluator.evaluate(s.function.module, s.arrays)),
        "interpreter": _ours(dtype, samples, interpreted),
        "compiled": _ours(dtype, samples, compiled),
        "mlir-22": _cell(dtype, samples, theirs),
        "torch": _torch(operator, dtype, samples),
    }
    return Row(operator.name, dtype, cells)


def interpreted(s: Sample) -> list[Array]:
    """The results of the loop interpreter, on outputs poisoned before."""
    outputs = s.empty()
    loop_interpreter.run(compiler.lower(s.function), [*s.arrays, *outputs])
    return outputs


def compiled(s: Sample) -> list[Array]:
    """The results of native code, on outputs poisoned before."""
    outputs = s.empty()
    s.kernel(*s.arrays, out=tuple(outputs))
    return outputs


def upstream_case(s: Sample) -> upstream.Case:
    """A sample as upstream runs it."""
    return upstream.Case(s.kernel.text("low"), s.function.name, s.arrays, s.outputs)


def _upstream(samples: list[Sample]) -> Iterator[list[Array] | upstream.Failure]:
    absent = upstream.missing()
    if absent:
        return iter([upstream.Failure("mlir-22", absent)] * len(samples))
    return iter(upstream.run([upstream_case(s) for s in samples]))


def _ours(dtype: str, samples: list[Sample], way: Callable[[Sample], Sequence[Array]]) -> Cell:
    try:
        return _cell(dtype, samples, [list(way(s)) for s in samples])
    except Exception as wrong:  # a way that fails is reported, and the others go on
        return Cell(failed=said(wrong))


def _cell(dtype: str, samples: list[Sample], results: Sequence[list[Array] | upstream.Failure]) -> Cell:
    largest, absent, failed = 0.0, [], ""
    for s, output in zip(samples, results, strict=True):
        if isinstance(output, upstream.Failure):
            absent.append(str(output))
            continue
        for got, reference in zip(output, s.reference, strict=True):
            actual = error(got, reference)
            largest = max(largest, actual)
            if actual > bound(dtype, got) and not failed:
                failed = f"an error of {actual:.2g} with {s.parameters}"
    if not absent:
        return Cell(largest, failed=failed)
    reason = absent[0] if len(absent) == len(samples) else f"{len(absent)} of {len(samples)} samples: {absent[0]}"
    return Cell(None if len(absent) == len(samples) else largest, reason, failed)


def _torch(operator: Operator, dtype: str, samples: list[Sample]) -> Cell:
    """torch's results. What torch refuses is absent; the code that calls it is not ours to judge."""
    if operator.torch is None:
        return Cell(absent="torch has no such operator")
    try:
        outputs = [with_torch(operator, s) for s in samples]
    except Exception as refused:
        return Cell(absent=f"torch: {said(refused)}")
    largest = 0.0
    for s, output in zip(samples, outputs, strict=True):
        for got, reference in zip(output, s.reference, strict=True):
            largest = max(largest, error(got, reference))
    return Cell(largest)


def with_torch(operator: Operator, s: Sample) -> list[Array]:
    """The results of torch, in the dtypes of ours."""
    assert operator.torch is not None
    outputs = _tuple(operator.torch(s.parameters, *map(_to_torch, s.arrays)))
    dtypes = [numpy_dtype(dtype) for _, dtype in s.outputs]
    return [_from_torch(r).astype(d) for r, d in zip(outputs, dtypes, strict=True)]


def _to_torch(array: Array) -> Any:
    import torch

    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _from_torch(tensor: Any) -> Array:
    import torch

    plain = tensor.detach().contiguous()
    if plain.dtype == torch.bfloat16:
        bits: Array = plain.view(torch.int16).numpy()
        return bits.view(numpy_dtype("bf16"))
    actual: Array = plain.numpy()
    return actual


def _tuple(outputs: Any) -> tuple[Any, ...]:
    return tuple(outputs) if isinstance(outputs, tuple | list) else (outputs,)


def said(error: BaseException) -> str:
    """The first line of what an exception says, with its type."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:200]}"
