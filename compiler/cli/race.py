"""Models of ONNX timed beside onnxruntime: interleaved, on the same number of threads, and checked."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from compiler.cli.model import expected
from compiler.cli.run import random_inputs
from compiler.frontends.model import Imported
from compiler.support.errors import InputError
from compiler.targets.cpu import Kernel

TOLERANCE = 1e-3
"""The largest error of a right result, relative to the largest magnitude of the expected elements."""
SAMPLE = 0.02
"""The approximate duration in seconds of one round of a contender, of as many calls as fit, at least one."""


@dataclass(frozen=True)
class RaceResult:
    """The result of a contender: the mean seconds of a call in each round, and its largest error against ONNX's
    reference evaluator, relative to the largest magnitude of the output."""

    name: str
    seconds: tuple[float, ...]
    error: float

    @property
    def is_right(self) -> bool:
        """Whether the error is within the tolerance."""
        return self.error <= TOLERANCE


def race(file: str, model: Imported, kernel: Kernel, threads: int, rounds: int, seed: int) -> list[RaceResult]:
    """Time the kernel of a model and, if it is installed, onnxruntime on the ONNX file with `threads` threads,
    alternately in `rounds` rounds on the same random inputs; return the results in this order. Raises InputError if
    onnxruntime refuses the model."""
    inputs = random_inputs(kernel, seed)
    steps: dict[str, Callable[[], Any]] = {"strata": lambda: kernel(*inputs)}
    if find_spec("onnxruntime") is not None:
        steps["onnxruntime"] = _session(file, inputs, threads)
    expected_results = expected(file, inputs)
    errors = {name: _error(step(), expected_results) for name, step in steps.items()}
    calls = {name: max(1, int(SAMPLE / max(_seconds(step, 1), 1e-9))) for name, step in steps.items()}
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, step in steps.items():
            seconds[name].append(_seconds(step, calls[name]))
    return [RaceResult(name, tuple(seconds[name]), errors[name]) for name in steps]


def _seconds(step: Callable[[], Any], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        step()
    return (time.perf_counter() - start) / calls


def _error(outputs: Any, expected: Sequence[Any]) -> float:
    arrays = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
    errors = [0.0]
    for array, reference in zip(arrays, expected, strict=True):
        difference = np.abs(np.asarray(array, np.float64) - np.asarray(reference, np.float64)).max(initial=0.0)
        errors.append(float(difference) / max(float(np.abs(np.asarray(reference, np.float64)).max(initial=0.0)), 1e-30))
    return max(errors)


def _session(file: str, inputs: Sequence[Any], threads: int) -> Callable[[], Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    try:
        session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime raises any type for an unsupported model
        raise InputError(f"onnxruntime does not take {file}: {str(error).splitlines()[0][:200]}") from error
    feeds = dict(zip((value.name for value in session.get_inputs()), inputs, strict=True))
    return lambda: session.run(None, feeds)
