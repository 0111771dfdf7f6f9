"""The CUDA text of every operator of te.nn, compiled by g++ and run on adversarial inputs, beside the evaluator; and
its C, compiled by gcc.

Two schedules of CUDA: every block's results spread over threads, and what the tuner's search begins with; of C the one
that the rules prefer.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compiler
from compiler import te
from compiler.interpret import te as evaluator
from compiler.pipeline.loops import lower
from compiler.pipeline.source import parse
from compiler.recipes.rules import GPU_RULES
from compiler.schedule import Schedule, replay
from compiler.space.derivation import derive
from compiler.space.space import SketchSpace
from compiler.targets import compilers
from compiler.targets.cuda import CudaKernel, representative_gpu
from tests.adversarial import KINDS, arrays
from tests.agreement import bound, error, widened
from tests.gpu_schedules import spread_all
from tests.host_cuda import OnHost, needs_gxx
from tests.operators import FAMILIES, OPERATORS
from tests.operators.catalogue import Operator
from tests.sample import ALL, some

Array = np.ndarray[Any, Any]
NAMES = list(OPERATORS)
LOOSER = 10
"""How many times the bound of random inputs a result may be off: numbers near overflow cancel."""
ALONE: dict[str, str] = {}
"""Operators whose blocks are not all spread over threads, and why; those of one element are not meant."""


@dataclass(frozen=True)
class Case:
    """An operator on a dtype, as a function of te."""

    operator: Operator
    dtype: str
    function: te.Function

    def __str__(self) -> str:
        return f"{self.operator.name} of {self.dtype}"


def case(operator: Operator, dtype: str) -> Case:
    parameters = operator.sample(random.Random(f"{operator.name} {dtype}"))
    return Case(operator, dtype, operator.build(dtype, parameters))


def dtypes(operator: Operator) -> Sequence[str]:
    """All of an operator; without all tests one, in turns."""
    if os.environ.get(ALL) == "1":
        return operator.dtypes
    return [operator.dtypes[NAMES.index(operator.name) % len(operator.dtypes)]]


def faults(cases: Sequence[Case], kernels: Sequence[CudaKernel], folder: Path) -> Iterator[str]:
    """What the kernels of some cases compute otherwise than the evaluator."""
    yield from wrong_results(cases, OnHost(kernels, folder))


def wrong_results(cases: Sequence[Case], on_host: Callable[[int, Sequence[Array]], Sequence[Array]]) -> Iterator[str]:
    """What is computed otherwise than by the evaluator, a case by its number."""
    for number, each in enumerate(cases):
        for kind in KINDS:
            inputs = arrays(each.operator, each.function, kind)
            with np.errstate(all="ignore"):
                expected = evaluator.evaluate(each.function.module, inputs)
            for actual, want in zip(on_host(number, inputs), expected, strict=True):
                off = error(actual, widened(want))
                if not off <= LOOSER * bound(each.dtype, actual):
                    yield f"{each}, {kind}: off by {off}"


@pytest.mark.sampled
@needs_gxx
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__.rpartition(".")[2])
def test_each_spread_over_threads(family: Any, tmp_path: Path) -> None:
    cases = [case(operator, dtype) for operator in some(family.FAMILY, 2) for dtype in dtypes(operator)]
    kernels = [compiler.build(spread_all(each.function), "cuda") for each in cases]
    assert not (wrong := list(faults(cases, kernels, tmp_path))), "\n".join(wrong)


@pytest.mark.sampled
@needs_gxx
@pytest.mark.parametrize("name", some(OPERATORS, 13))
def test_what_a_search_begins_with(name: str, tmp_path: Path) -> None:
    """The first candidate of the tuner's space, in single precision or the operator's own dtype."""
    operator = OPERATORS[name]
    each = case(operator, "f32" if "f32" in operator.dtypes else operator.dtypes[0])
    kernel = compiler.build(first_candidate(each.function), "cuda")
    assert not (wrong := list(faults([each], [kernel], tmp_path))), "\n".join(wrong)


@pytest.mark.skipif(compilers.compiler_command() is None, reason="there is no C compiler")
@pytest.mark.parametrize("name", some(OPERATORS, 13))
def test_the_text_of_c(name: str) -> None:
    operator = OPERATORS[name]
    cases = [case(operator, dtype) for dtype in dtypes(operator)]
    kernels = [compiler.build(each.function, "c", schedule="auto") for each in cases]

    def run(number: int, inputs: Sequence[Array]) -> Sequence[Array]:
        results = kernels[number](*inputs)
        return results if isinstance(results, tuple) else (results,)

    assert not (wrong := list(wrong_results(cases, run))), "\n".join(wrong)


def first_candidate(function: te.Function) -> Schedule:
    original = Schedule(lower(function))
    gpu = representative_gpu("sm_80")
    space = SketchSpace(derive(original, GPU_RULES, gpu).sketches, gpu)
    return replay(parse(space.script(space.defaults[0])), original.original)


@pytest.mark.parametrize("name", OPERATORS)
def test_every_block_is_spread_over_threads(name: str) -> None:
    """What is not is listed with its reason."""
    operator = OPERATORS[name]
    each = case(operator, operator.dtypes[0])
    assert alone(spread_all(each.function)) == ([name] if name in ALONE else [])


def alone(s: Schedule) -> list[str]:
    """The blocks of several results that one thread computes."""
    collected = []
    for label, block in s.program.blocks.items():
        kinds = {loop.kind for loop in s.program.enclosing(label)}
        if any(axis.size > 1 for axis in block.axes if not axis.is_reduce) and "thread_x" not in kinds:
            collected.append(label)
    return collected
