"""Loops that are cut into whole iterations and a masked end are right for every length of what they run over."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import compiler
import compiler.targets.cpu.kernel as kernels
from compiler import recipes, te
from compiler.interpret import te as evaluator
from compiler.schedule import Schedule
from tests.guard_pages import Array, workspace

LENGTHS = (1, 15, 16, 17, 33, 63, 64, 65, 100, 128)
ROWS = 3
MARGIN = 40


@pytest.fixture(autouse=True)
def poisoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Temporaries hold NaN at first."""
    monkeypatch.setattr(kernels, "arena", workspace)


def agree(function: te.Function, apply: Callable[[Schedule], object], threads: int = 1) -> None:
    """A compiled schedule and the evaluator; all that stands before and behind the arrays is NaN, and stays so."""
    s = Schedule(compiler.lower(function))
    apply(s)
    rng = np.random.default_rng(7)
    inputs = [_framed(rng.uniform(-2, 2, tensor.shape)) for tensor in function.inputs]
    (want,) = evaluator.evaluate(function.module, inputs)
    out = _framed(np.full(want.shape, np.nan))
    compiler.build(s)(*inputs, out=out, threads=threads)
    np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-6)
    assert isinstance(out.base, np.ndarray)
    assert np.count_nonzero(np.isnan(out.base.ravel())) == 2 * MARGIN


def _framed(array: Array) -> Array:
    frame = np.full(array.size + 2 * MARGIN, np.nan, np.float32)
    inside = frame[MARGIN:-MARGIN]
    inside[:] = array.ravel()
    return inside.reshape(array.shape)


def last(s: Schedule) -> str:
    return list(s.program.blocks)[-1]


@pytest.mark.parametrize("vectors", [1, 4])
@pytest.mark.parametrize("length", LENGTHS)
def test_row_sums(length: int, vectors: int) -> None:
    """Partial sums in registers through the whole iterations and the end."""
    x, r = te.placeholder((ROWS, length), name="X"), te.reduce_axis(length, "k")
    f = te.function("sums", [x], [te.compute((ROWS,), lambda i: te.sum(x[i, r], axis=r), name="S")])

    def apply(s: Schedule) -> None:
        if length > 16:
            recipes.row_reduction(s, s.get_block(last(s)), 16, vectors)

    agree(f, apply)


@pytest.mark.sampled
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", ["softmax", "layer_norm"])
def test_rows(name: str, length: int) -> None:
    """Reductions and elementwise stages of rows, on threads."""
    x = te.placeholder((ROWS, length), name="X")
    scales = [te.placeholder((length,), name=label) for label in ("G", "B")] if name == "layer_norm" else []
    f = te.function("rows", [x, *scales], [getattr(te.nn, name)(x, *scales)])
    agree(f, lambda s: s.parallel(recipes.by_rows(s, s.get_block(last(s)), 16)), threads=2)


@pytest.mark.parametrize("length", LENGTHS)
def test_packed_panels(length: int) -> None:
    """A matmul along that length, packed in panels that do not divide it."""
    a, b = te.placeholder((7, length), name="A"), te.placeholder((length, 19), name="B")
    f = te.function("mm", [a, b], [te.nn.matmul(a, b)])
    agree(f, lambda s: recipes.gebp(s, s.get_block(last(s)), mc=4, kc=48, nc=32, mr=4, nr=16, lanes=16))
