"""What random groups were slower by than as written: by kind, what the rules decide on AVX2, and that it is right."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import compiler
from compiler import te
from compiler.analysis.verify.prove import verify_schedule
from compiler.autotune.task import SearchTask
from compiler.recipes.rules import RULES
from compiler.space.derivation import preferred
from compiler.te.tensor import Tensor
from compiler.types.machines import Machine

AVX2 = Machine("avx2", "", "", 1, 256, 16, 32 << 10, 512 << 10, 32 << 20)
nn = te.nn


def _centred(axis: int) -> Callable[[Tensor], Tensor]:
    return lambda x: nn.sub(x, nn.max(x, axis, keepdims=True))


def _padded(x: Tensor) -> Tensor:
    return nn.pad(nn.mul(x, nn.abs(nn.flip(x, 0))), ((1, 0), (1, 2)))


def _turned(x: Tensor) -> Tensor:
    return nn.transpose(x, (0, 2, 1))


KINDS: dict[str, tuple[tuple[int, ...], str, Callable[[Tensor], Tensor], str, str]] = {
    "whole lines of columns": ((3, 64, 128, 32), "i32", _centred(1), "by columns", ""),
    "parts of lines": ((3, 64, 128, 8), "i32", _centred(1), "", "by columns"),
    "columns of half words": ((64, 40), "bf16", _centred(0), "", "by columns"),
    "columns that L2 keeps": ((256, 384), "f32", _centred(0), "", "by columns"),
    "columns beyond L2": ((1024, 384), "f32", _centred(0), "by columns", ""),
    "short rows": ((32, 16), "f32", lambda x: nn.max(x, -1), "as written", "by rows"),
    "rows of bytes, whole vectors": ((64, 24), "i8", nn.relu, "by vectors", ""),
    "rows of bytes, ragged": ((64, 20), "i8", nn.relu, "as written", ""),
    "a function of a function": ((6, 40), "f32", lambda x: nn.exp(nn.tanh(x)), "for a row", "inlined"),
    "a pad of what reads twice": ((20, 64), "f32", _padded, "", "map1: inlined"),
    "whole transposes": ((200, 77, 8), "f64", _turned, "transposed", ""),
    "frayed transposes": ((200, 77, 5), "f64", _turned, "", "transposed"),
    "small frayed transposes": ((2, 77, 5), "f64", _turned, "transposed", ""),
}


def _task(name: str) -> SearchTask:
    shape, dtype, make, _, _ = KINDS[name]
    x = te.placeholder(shape, dtype, "X")
    return SearchTask(te.function("f", [x], make(x)), threads=1, machine=AVX2)


@pytest.mark.parametrize("name", KINDS)
def test_what_is_decided(name: str) -> None:
    *_, wanted, refused = KINDS[name]
    task = _task(name)
    derivation = preferred(task.schedule, RULES, AVX2, 1)
    assert wanted in derivation.name
    assert not refused or refused not in derivation.name
    assert str(verify_schedule(derivation.draft.schedule.program, task.schedule.program)) == "proved"


@pytest.mark.parametrize("name", ["a function of a function", "rows of bytes, whole vectors", "short rows"])
def test_it_is_right(name: str) -> None:
    task = _task(name)
    schedules = (preferred(task.schedule, RULES, AVX2, 1).draft.schedule, task.schedule)
    ours, written = (compiler.build(schedule, threads=1) for schedule in schedules)
    (argument,) = ours.arguments[:-1]
    x = np.random.default_rng(0).integers(-9, 9, argument.shape).astype(argument.dtype)
    np.testing.assert_allclose(ours(x), written(x), rtol=1e-5)
