"""Random programs of many computes through groups: what the evaluator gives, whoever compiles, shared or not."""

from __future__ import annotations

import random

import numpy as np
import pytest

import compiler
from compiler.dialects.functions import find_function
from compiler.dialects.numbers import Array
from compiler.driver import module_in_groups
from compiler.driver.main.assemble import build_program
from compiler.driver.units.unit import BuildSettings
from compiler.fuzz.programs import arrays_for, program
from compiler.interpret.te import evaluate
from compiler.targets.cpu import Kernel
from tests.sample import some


def listed(kernel: Kernel, inputs: list[Array]) -> list[Array]:
    outputs = kernel(*inputs)
    return list(outputs) if isinstance(outputs, tuple) else [outputs]


@pytest.mark.parametrize("seed", some(range(12)))
def test_random_programs(seed: int) -> None:
    rng = random.Random(seed)
    f = program(rng, rng.randrange(8, 40), rng.choice(("f32", "i32")))
    inputs = arrays_for(f, seed)
    module = module_in_groups(f)
    if not any(op.name == "func.call" for op in find_function(module, f.name).walk()):
        pytest.skip("one group")
    kernel = compiler.build(f)
    expected = evaluate(f.module, inputs, name=f.name)
    actual = listed(kernel, inputs)
    for array, exact in zip(actual, expected, strict=True):
        if array.dtype.kind == "f":
            np.testing.assert_allclose(array, exact, rtol=1e-3, atol=1e-4)
        else:
            np.testing.assert_array_equal(array, exact)
    apart = build_program(module, {}, BuildSettings("contract", 1, 0.0, in_place=False), name=f.name)
    for array, right in zip(actual, listed(apart, inputs), strict=True):
        np.testing.assert_array_equal(array, right)


@pytest.mark.parametrize("seed", range(4))
def test_inputs_that_are_constant(seed: int) -> None:
    rng = random.Random(100 + seed)
    f = program(rng, 20, "i32")
    inputs = arrays_for(f, seed)
    expected = evaluate(f.module, inputs, name=f.name)
    names = [tensor.name for tensor in f.inputs]
    constant = [n for n in range(len(names)) if n and rng.random() < 0.6]
    kernel = compiler.build(f, constants={names[n]: inputs[n] for n in constant})
    actual = listed(kernel, [array for n, array in enumerate(inputs) if n not in constant])
    assert all(np.array_equal(array, exact) for array, exact in zip(actual, expected, strict=True))
