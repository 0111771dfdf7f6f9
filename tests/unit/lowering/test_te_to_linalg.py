"""te -> linalg: mlir-opt-22 accepts the text, and its own lowering computes what te's evaluator does."""

from __future__ import annotations

import random
import subprocess
from typing import Any

import numpy as np
import pytest

from compiler import te, universe
from compiler.fuzz import programs as random_programs
from compiler.interpret.te import evaluate
from compiler.pipeline.parser import parse_passes
from compiler.pipeline.passes import run
from compiler.pipeline.source import parse
from tests import upstream
from tests.agreement import bound, error
from tests.operator_runs import sample
from tests.operators import OPERATORS
from tests.sample import some
from tests.upstream import MLIR_OPT, Case, Failure

BUFFERS = "bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map"
PASSES = (
    f"builtin.module(one-shot-bufferize{{{BUFFERS}}},buffer-results-to-out-params{{modify-public-functions}},"
    "convert-linalg-to-loops,lower-affine)"
)
"""Upstream's passes from tensors to functions of buffers, the results last."""

pytestmark = pytest.mark.skipif(bool(upstream.missing()), reason="mlir-opt-22 and mlir-runner-22 are not installed")
Array = np.ndarray[Any, Any]


def linalg(function: te.Function) -> str:
    """The text of a function in linalg."""
    module = function.module.clone()
    run(universe.context(), module, parse_passes("convert-te-to-linalg"), verify=True)
    return str(module)


def case(function: te.Function, arrays: list[Array]) -> Case:
    """A function as buffers, by upstream's bufferisation of its text in linalg."""
    done = subprocess.run(
        [str(MLIR_OPT), f"--pass-pipeline={PASSES}"],
        input=linalg(function),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Case(done.stdout.replace("module {", "builtin.module {", 1), function.name, arrays, _results(function))


def _results(function: te.Function) -> list[tuple[tuple[int, ...], str]]:
    return [(tensor.shape, tensor.dtype.replace("u", "i")) for tensor in function.outputs]


def signless(array: Array) -> Array:
    """An array with its unsigned elements as signed ones."""
    return array.view(array.dtype.name.removeprefix("u")) if array.dtype.kind == "u" else array


def compared(functions: list[te.Function], seed: int) -> None:
    """Compare upstream's results with those of te's evaluator."""
    arrays = [random_programs.arrays_for(function, seed) for function in functions]
    cases = [case(f, [signless(a) for a in given]) for f, given in zip(functions, arrays, strict=True)]
    for function, given, actual in zip(functions, arrays, upstream.run(cases), strict=True):
        assert not isinstance(actual, Failure), f"{actual}\n{function}"
        for value, reference, tensor in zip(actual, evaluate(function.module, given), function.outputs, strict=True):
            tolerance = {"f64": 1e-12, "f32": 1e-4, "f16": 2e-2, "bf16": 1e-1}.get(tensor.dtype, 0)
            expected = signless(np.asarray(reference)).astype(np.float64)
            scale = np.abs(expected).max()
            np.testing.assert_allclose(
                value.astype(np.float64), expected, rtol=tolerance, atol=tolerance * scale, err_msg=str(function)
            )


PROGRAMS: dict[str, list[te.Function]] = {
    "programs": [random_programs.program(random.Random(seed)) for seed in range(40)],
    "views and constants": [
        random_programs.program(random.Random(seed), views=True, constants=0.3) for seed in range(20)
    ],
    "conditions": [random_programs.conditions(random.Random(seed)) for seed in range(10)],
    "dtypes": [
        random_programs.program(random.Random(seed), dtype=dtype)
        for dtype in random_programs.DTYPES
        for seed in range(2)
    ],
}


@pytest.mark.parametrize("kind", PROGRAMS)
def test_random_programs_compute_the_same_in_mlir(kind: str) -> None:
    compared(PROGRAMS[kind], 0)


@pytest.mark.parametrize("kind", PROGRAMS)
def test_random_programs_are_read_back(kind: str) -> None:
    for function in PROGRAMS[kind]:
        arrays = random_programs.arrays_for(function, 1)
        back = evaluate(parse(linalg(function)), [signless(array) for array in arrays])
        for value, expected in zip(back, evaluate(function.module, arrays), strict=True):
            np.testing.assert_array_equal(value, signless(np.asarray(expected)), err_msg=str(function))


@pytest.mark.sampled
@pytest.mark.parametrize("name", some(OPERATORS, 16))
def test_operators_compute_the_same_in_mlir(name: str) -> None:
    dtypes = OPERATORS[name].dtypes
    dtype = "f32" if "f32" in dtypes else dtypes[0]
    chosen = sample(OPERATORS[name], dtype, 100)
    (actual,) = upstream.run([case(chosen.function, [signless(array) for array in chosen.arrays])])
    assert not isinstance(actual, Failure), actual
    for value, reference in zip(actual, chosen.reference, strict=True):
        stated = value.view(reference.dtype) if reference.dtype.kind == "u" else value
        assert error(stated, reference) <= bound(dtype, stated)
