"""The rule for thin products: when it applies, that its scripts are proved and right for any remainder."""

from __future__ import annotations

import numpy as np
import pytest

import compiler
from compiler import te
from compiler.analysis.verify.prove import verify_schedule
from compiler.recipes.rules import RULES
from compiler.schedule import Schedule
from compiler.space.derivation import Derivation, preferred
from compiler.types.machines import Machine, host
from tests.sample import pairs, some

AVX2 = Machine("avx2", "", "", 1, 256, 16, 32 << 10, 512 << 10, 32 << 20)
AVX512 = Machine("avx512", "", "", 1, 512, 32, 48 << 10, 2 << 20, 32 << 20)


def matmul(m: int, n: int, k: int, turned: bool = False, dtype: str = "f32", batch: int = 0) -> te.Function:
    """A [m, k] times B [k, n], or, turned, times the transpose of B [n, k]; a batch of them if asked for."""
    outer = (batch,) if batch else ()
    a = te.placeholder((*outer, m, k), dtype, "A")
    b = te.placeholder((*outer, n, k) if turned else (*outer, k, n), dtype, "B")
    if batch:
        made = te.nn.batch_matmul(a, b, transpose_b=turned)
    else:
        made = te.nn.dense(a, b) if turned else te.nn.matmul(a, b)
    return te.function("product", [a, b], made)


def across(m: int, n: int, k: int) -> te.Function:
    """The transpose of A [k, m] times B [k, n]: rows of A are added to columns of the result."""
    a, b = te.placeholder((k, m), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis(k, "r")
    return te.function("across", [a, b], [te.compute((m, n), lambda i, j: te.sum(a[r, i] * b[r, j], axis=r))])


def first(function: te.Function, machine: Machine | None = None) -> Derivation:
    return preferred(Schedule(compiler.lower(function)), RULES, machine or host(), 1)


def test_it_is_for_few_vectors_and_asks_how_the_matrix_lies() -> None:
    for machine in (AVX2, AVX512):
        assert "thin, by streams" in first(matmul(1, 1000, 512), machine).name
        assert "thin, in registers" in first(matmul(1, 48, 32), machine).name
        assert "thin, by dot products" in first(matmul(2, 1000, 512, turned=True), machine).name
        assert "thin, by dot products" in first(matmul(1000, 3, 512), machine).name
        assert "thin" not in first(matmul(64, 48, 32), machine).name
        assert "thin" not in first(matmul(1, 40, 9, turned=True), machine).name
        assert "thin" not in first(across(64, 3, 77), machine).name


CASES = [
    (1, 1000, 77, False, 0),
    (1, 100, 77, True, 0),
    (3, 37, 91, False, 0),
    (2, 35, 130, True, 0),
    (4, 50, 64, True, 0),
    (101, 1, 70, False, 0),
    (53, 3, 45, False, 0),
    (1, 61, 33, False, 3),
    (1, 129, 40, True, 3),
    (3, 5, 40, True, 2),
]


@pytest.mark.parametrize(("case", "dtype"), pairs(some(CASES, 2), ["f32", "f64"]))
def test_what_it_prefers_is_proved_and_right(case: tuple[int, int, int, bool, int], dtype: str) -> None:
    m, n, k, turned, batch = case
    function = matmul(m, n, k, turned, dtype, batch)
    derivation = first(function)
    schedule = derivation.draft.schedule
    assert "thin" in derivation.name
    assert str(verify_schedule(schedule.program, Schedule(compiler.lower(function)).program)) == "proved"
    kernel = compiler.build(schedule, threads=1)
    random = np.random.default_rng(m)
    a, b = (random.standard_normal(x.shape).astype(x.dtype) for x in kernel.arguments[:2])
    np.testing.assert_allclose(kernel(a, b), a @ (b.swapaxes(-1, -2) if turned else b), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("m", "n", "threads"), [(1, 1000, 2), (3, 777, 3), (1, 100, 2), (4, 129, 5)])
def test_threads_have_columns_of_their_own(m: int, n: int, threads: int) -> None:
    """A matrix that is streamed is cut by columns, whatever the remainder."""
    function = matmul(m, n, 300)
    original = Schedule(compiler.lower(function))
    derivation = preferred(original, RULES, AVX512, threads)
    schedule = derivation.draft.schedule
    parallel = [loop.extent for loop in schedule.program.loops.values() if loop.kind == "parallel"]
    assert "thin, by streams" in derivation.name and parallel[:1] == [-(-n // (-(-n // (16 * threads)) * 16))]
    assert str(verify_schedule(schedule.program, original.program)) == "proved"
    kernel = compiler.build(schedule, threads=threads)
    random = np.random.default_rng(m)
    a, b = (random.standard_normal(x.shape).astype(x.dtype) for x in kernel.arguments[:2])
    np.testing.assert_allclose(kernel(a, b), a @ b, rtol=1e-3, atol=1e-3)
