"""Every operator: compiled and interpreted, equal to the evaluator; its low level accepted upstream."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

import numpy as np
import pytest

import compiler
from compiler import te
from compiler.interpret import loop as loop_interpreter
from compiler.interpret import te as evaluator
from compiler.pipeline.source import parse
from tests.operators import CASES, OPERATORS, inputs
from tests.sample import all_asked, pairs, some

Array = np.ndarray[Any, Any]
SHARE = [*some([name for name in CASES if "dtype" not in name], 2), *(name for name in CASES if "dtype" in name)]
"""Every operator, on some of its shapes, and every dtype."""


def close(got: Array, expected: Array) -> None:
    """Equal up to the rounding of a few operations."""
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    if got.dtype.kind == "f":
        precise = got.dtype == np.float64
        np.testing.assert_allclose(got, expected, rtol=1e-12 if precise else 2e-5, atol=1e-12 if precise else 2e-5)
    else:
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("name", SHARE)
@pytest.mark.parametrize("policy", ["contract"])
def test_compiled_equals_evaluated(name: str, policy: str) -> None:
    function = CASES[name]()
    arrays = inputs(function)
    kernel = compiler.build(function, policy=policy)
    outputs = kernel(*arrays)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    for got, expected in zip(outputs, evaluator.evaluate(function.module, arrays), strict=True):
        close(got, expected)


@pytest.mark.parametrize(
    ("name", "policy"), pairs([n for n in CASES if n.endswith(("-1", "f32", "i32"))], ["strict", "fast"])
)
def test_policies(name: str, policy: str) -> None:
    test_compiled_equals_evaluated(name, policy)


@pytest.mark.parametrize("name", [n for n in CASES if n.endswith(("-0", "-1", "-2", "f32", "i64"))])
def test_interpreted_equals_evaluated(name: str) -> None:
    function = CASES[name]()
    arrays = inputs(function)
    expected = evaluator.evaluate(function.module, arrays)
    module = parse(str(compiler.lower(function)))
    outputs = [np.empty_like(e) for e in expected]
    loop_interpreter.run(module, [*arrays, *outputs])
    for got, want in zip(outputs, expected, strict=True):
        close(got, want)


MLIR_OPT = shutil.which("mlir-opt-22")


@pytest.mark.skipif(MLIR_OPT is None, reason="mlir-opt-22 is not installed")
def test_low_level_is_accepted_upstream() -> None:
    names = CASES if all_asked() else {name.rpartition("-")[0]: name for name in CASES}.values()
    texts = [compiler.build(CASES[name]()).text("low") for name in names]
    done = subprocess.run(
        [str(MLIR_OPT), "--split-input-file"], input="\n// -----\n".join(texts), text=True, capture_output=True
    )
    assert done.returncode == 0, done.stderr[:2000]


def test_every_operator_is_in_the_catalogue() -> None:
    named = {name for name, made in vars(te.nn).items() if callable(made) and not name.startswith("_")}
    assert set(OPERATORS) == named
    assert all(name == operator.name for name, operator in OPERATORS.items())


def test_text_enters_at_every_level() -> None:
    function = CASES["conv2d-1"]()
    arrays = inputs(function)
    kernel = compiler.build(function)
    for level in ("te", "loop", "low"):
        close(compiler.build(kernel.text(level))(*arrays), kernel(*arrays))
