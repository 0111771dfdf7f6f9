"""Integers without a sign through every way of running them: limits, the sign bit, powers of two and neighbours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compiler
from compiler import recipes, te
from compiler.interpret.te import evaluate
from compiler.pipeline.loops import lower_to_kernels
from compiler.schedule import Schedule
from compiler.support.errors import TeError
from compiler.targets import simt
from compiler.types.dtypes import DTYPES
from compiler.types.policies import POLICIES
from tests.host_cuda import needs_gxx, run_on_host
from tests.sample import some

Array = np.ndarray[Any, Any]
UNSIGNED = ("u8", "u16", "u32", "u64")
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "quotient": lambda a, b: a // b,
    "rest": lambda a, b: a % b,
    "maximum": te.maximum,
    "minimum": te.minimum,
    "less": lambda a, b: te.select(a < b, a, b),
    "least": lambda a, b: te.select(a <= b, b, a),
    "negative": lambda a, b: -a - b,
}
NUMPY = BINARY | {
    "maximum": np.maximum,
    "minimum": np.minimum,
    "less": lambda a, b: np.where(a < b, a, b),
    "least": lambda a, b: np.where(a <= b, b, a),
}


def numbers(dtype: str) -> Array:
    """0, 1, the limits, powers of two and their neighbours; none is 0 at an odd place, where they divide."""
    kind = np.dtype(DTYPES[dtype].numpy)
    most = int(np.iinfo(kind).max)
    values = {0, 1, 2, 3, 7, 100, most, most - 1, most // 2, most // 2 + 1, *(1 << n for n in range(kind.itemsize * 8))}
    return np.resize(np.array(sorted(values), kind), 60)


def operations(dtype: str, places: bool = True) -> te.Function:
    """All operations on two inputs, all reductions of the first, and where its greatest and least elements are."""
    a, b = (te.placeholder((6, 10), dtype, name=name) for name in "AB")
    k = te.reduce_axis(10, "k")
    outputs = [te.compute((6, 10), lambda i, j, f=f: f(a[i, j], b[i, j]), name) for name, f in BINARY.items()]
    most = DTYPES[dtype].limits[1]
    outputs += [te.compute((8, 10), lambda i, j: te.maximum(a.padded(most - 1)[i - 1, j], most // 2), "padded")]
    outputs += [te.compute((6,), lambda i, f=f: f(a[i, k], axis=k), n) for n, f in REDUCTIONS.items()]
    outputs += [te.nn.argmax(a, name="place"), te.nn.argmin(a, name="last")] if places else []
    return te.function("operations", [a, b], outputs)


REDUCTIONS: dict[str, Any] = {"sum": te.sum, "prod": te.prod, "max": te.max, "min": te.min}


def wanted(x: Array, y: Array) -> list[Array]:
    most = np.iinfo(x.dtype).max
    padded = np.pad(x, ((1, 1), (0, 0)), constant_values=most - 1)
    actual = [np.asarray(f(x, y)) for f in NUMPY.values()] + [np.maximum(padded, x.dtype.type(most // 2))]
    actual += [x.sum(1, dtype=x.dtype), x.prod(1, dtype=x.dtype), x.max(1), x.min(1)]
    return [*actual, x.argmax(1), x.argmin(1)]


def given(dtype: str) -> tuple[Array, Array]:
    """Two inputs, of which the second one divides."""
    x = numbers(dtype)
    y = np.roll(x, 7)
    return x.reshape(6, 10), np.where(y == 0, y.dtype.type(3), y).reshape(6, 10)


def spread(function: te.Function) -> Schedule:
    """Every block over threads."""
    s = Schedule(compiler.lower(function))
    for label in list(s.program.blocks):
        recipes.spread(s, s.get_block(label), 32, 1)
    return s


def same(found: Any, want: list[Array]) -> None:
    for left, right in zip(found, want, strict=True):
        assert left.dtype == right.dtype
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("dtype", some(UNSIGNED, 2))
def test_operations(dtype: str) -> None:
    function, (x, y) = operations(dtype), given(dtype)
    want = wanted(x, y)
    same(evaluate(function.module, [x, y]), want)
    for policy in POLICIES:
        same(compiler.build(function, policy=policy)(x, y), want)


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_vectors(dtype: str) -> None:
    function, (x, y) = operations(dtype), given(dtype)
    s = Schedule(compiler.lower(function))
    for label in (*BINARY, "padded"):
        s.vectorize(s.split(s.get_loops(s.get_block(label))[-1], [None, 4])[-1])
    same(compiler.build(s)(x, y), wanted(x, y))


@needs_gxx
@pytest.mark.parametrize("dtype", some(UNSIGNED, 2))
def test_on_gpus(dtype: str, tmp_path: Path) -> None:
    function, (x, y) = operations(dtype, places=False), given(dtype)
    kernel = compiler.build(spread(function), "cuda")
    same(run_on_host(kernel, [x, y], tmp_path), wanted(x, y)[:-2])


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_checked_kernels(dtype: str) -> None:
    function, (x, y) = operations(dtype, places=False), given(dtype)
    module, _, _ = lower_to_kernels(spread(function).module)
    checked = simt.run(module, [x, y])
    assert checked.is_correct, [str(fault) for fault in checked.faults]
    same([out.view(want.dtype) for out, want in zip(checked.outputs, wanted(x, y), strict=False)], wanted(x, y)[:-2])


def test_numbers_above_the_greatest_signed_one() -> None:
    a = te.placeholder((4,), "u64", name="A")
    big = te.compute((4,), lambda i: te.select(a[i] >= 2**63 + 1, te.const(2**64 - 1, "u64"), a[i] + (2**63 + 5)), "B")
    x = np.array([0, 2**63, 2**63 + 1, 2**64 - 1], np.uint64)
    want = np.array([2**63 + 5, 5, 2**64 - 1, 2**64 - 1], np.uint64)
    function = te.function("big", [a], [big])
    same([*evaluate(function.module, [x]), compiler.build(function)(x)], [want, want])
    for value in (-1, 2**64):
        with pytest.raises(TeError, match="is not a value of u64"):
            te.const(value, "u64")


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_matmul_wraps_in_its_accumulator(dtype: str) -> None:
    a, b = (te.placeholder((5, 5), dtype, name=name) for name in "AB")
    function = te.function("product", [a, b], [te.nn.matmul(a, b)])
    x, y = (part.ravel()[:25].reshape(5, 5) for part in given(dtype))
    wide = {"u8": np.int32, "u16": np.uint32}.get(dtype, x.dtype)
    want = x.astype(wide) @ y.astype(wide)
    same([*evaluate(function.module, [x, y]), compiler.build(function)(x, y)], [want, want])
