"""Wrong programs for GPUs end in a sentence: each is lowered, emitted and run in part, or refused on the way."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
import pytest
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import IndexType
from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import ParseError, VerifyException

import compiler
from compiler.schedule import Schedule
from compiler.support.errors import StrataError
from compiler.targets import simt
from compiler.targets.cuda.kernel import make_kernel
from strata.passes import lower_to_kernels, parse
from tests.gpu_mutants import mutant
from tests.gpu_schedules import product, tiled
from tests.sample import some
from tests.unit.recipes.test_gpu import CASES

MOST_ELEMENTS, MOST_STEPS = 2_000, 2_000
"""Larger programs are not run, only lowered."""


def scheduled(name: str) -> str:
    make, schedule = CASES[name]
    s = Schedule(compiler.lower(make()))
    schedule(s)
    return str(s.module)


PROGRAMS: dict[str, Callable[[], str]] = {
    "a tiled product": lambda: str(tiled(product()).module),
    **{name: lambda name=name: scheduled(name) for name in CASES},
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_mutant_ends_in_a_sentence(name: str) -> None:
    text = PROGRAMS[name]()
    for seed in some(range(120), 20):
        with_fault = mutant(text, seed)
        try:
            lowered_and_run(with_fault)
        except (StrataError, ParseError, VerifyException) as refused:
            assert str(refused)
        except Exception as wrong:
            raise AssertionError(f"seed {seed} of {name}") from wrong


def lowered_and_run(text: str) -> None:
    """Lower a program to kernels, emit them, and run some of a small one."""
    module = parse(text)
    (function, *_) = [op for op in module.ops if isinstance(op, FuncOp)] or [None]
    module, host, arguments = lower_to_kernels(module, function.sym_name.data if function is not None else None)
    kernel = make_kernel(module, host, arguments)
    extents = [prod(a.shape) for a in arguments] + [prod(launch.grid) for launch in kernel.launches]
    extents += [op.value.value.data for op in module.walk() if isinstance(op, ConstantOp) and _is_index(op)]
    if max(extents, default=0) <= MOST_ELEMENTS:
        inputs = [np.zeros(a.shape, a.dtype) for a in arguments[: len(arguments) - kernel.outputs]]
        simt.run(module, inputs, host.sym_name.data, simt.BlockSample(1, MOST_STEPS), counts=False)


def _is_index(op: ConstantOp) -> bool:
    return isinstance(op.result.type, IndexType)
