"""Functions that call others: interpreted at the te and the loop level, lowered, accepted by mlir-opt."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import compiler
from compiler import universe
from compiler.dialects.numbers import Array
from compiler.interpret import loop, te
from compiler.passes.split_constants import SplitConstantsPass
from compiler.support.errors import InputError, StrataError
from strata.passes import parse, parse_passes, run
from tests.upstream import assert_accepted, needs_mlir_opt

LAYER = Path(__file__).parents[2] / "filecheck" / "lowering" / "calls.mlir"


def layer(x: Array) -> Array:
    twice = 2 * x
    shares = twice / twice.sum(1, keepdims=True)
    shares = shares / shares.sum(1, keepdims=True)
    return 2 * shares


@pytest.fixture
def x() -> Array:
    return np.random.default_rng(0).random((4, 8), np.float32)


def test_te_calls_are_evaluated(x: Array) -> None:
    module = parse(LAYER.read_text())
    (output,) = te.evaluate(module, [x], name="layer")
    np.testing.assert_allclose(output, layer(x), rtol=1e-5)
    assert te.evaluate(module, [x.astype(np.float64)], np.float64, name="layer")[0].dtype == np.float64


def test_loop_calls_are_interpreted(x: Array) -> None:
    module = compiler.lower(LAYER.read_text())
    output = np.full((4, 8), np.nan, np.float32)
    loop.run(module, [x, output], name="layer")
    np.testing.assert_allclose(output, layer(x), rtol=1e-5)
    a = np.arange(4, dtype=np.uint8)
    outputs = [np.zeros(4, np.uint8) for _ in range(3)]
    loop.run(module, [a, *outputs], name="copies")
    assert all(np.array_equal(a, output) for output in outputs)


def test_a_kernel_that_calls_functions_of_its_module(x: Array) -> None:
    kernel = compiler.build(LAYER, name="layer")
    np.testing.assert_allclose(kernel(x), layer(x), rtol=1e-5)
    assert 'call void @"normalise"' in kernel.text("llvm")
    a = np.arange(4, dtype=np.uint8)
    copies = compiler.build(LAYER, name="copies")
    assert all(np.array_equal(a, copy) for copy in copies(a))
    assert copies.arguments[0].dtype == np.uint8


@needs_mlir_opt
@pytest.mark.parametrize("passes", ["te-to-low", "cpu"])
def test_mlir_opt_accepts_calls(passes: str) -> None:
    module = parse(LAYER.read_text())
    run(universe.context(), module, parse_passes(passes))
    assert_accepted(str(module))


def test_refusals() -> None:
    with pytest.raises(InputError, match="calls others"):
        run(universe.context(), compiler.lower(LAYER), [SplitConstantsPass(("X",), "layer")])
    with pytest.raises(StrataError, match="calls others"):
        compiler.build(LAYER, name="layer", target="cuda")
