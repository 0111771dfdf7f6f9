"""The te evaluator with an order of reductions that does not depend on the program's text, and comparison of bits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from compiler.dialects.numbers import stored
from compiler.dialects.te import ComputeOp
from compiler.interpret import te as evaluator
from compiler.interpret.scalar import combiner

Array = np.ndarray[Any, Any]


def results(module: ModuleOp, arrays: Sequence[Array]) -> list[Array]:
    """The results of a te function, each reduction in the order of its elements' bits."""
    with _ordered():
        return evaluator.evaluate(module, arrays)


def same_bits(a: Array, b: Array) -> bool:
    """Whether arrays have the same elements, -0.0 apart from 0.0; all NaNs are one."""
    return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(_bits(a), _bits(b))


def _bits(array: Array) -> Array:
    array = np.ascontiguousarray(array)
    unequal = np.asarray(array != array)
    bits = array.view(f"u{array.dtype.itemsize}") if array.dtype.kind not in "b" else array.view("u1")
    return np.where(unequal.reshape(bits.shape), bits.dtype.type(1), bits) if unequal.any() else bits


@contextmanager
def _ordered() -> Iterator[None]:
    before = evaluator._write, evaluator._is_contraction
    evaluator._write, evaluator._is_contraction = _write, lambda op: False  # type: ignore[assignment]
    try:
        yield
    finally:
        evaluator._write, evaluator._is_contraction = before  # type: ignore[assignment]


def _write(op: ComputeOp, output: Array, position: int, box: tuple[slice, ...], value: Any) -> None:
    spatial = len(op.spatial_axes)
    if not op.combiners.data:
        output[box] = stored(value, output.dtype)
        return
    combine = combiner(op.combiners.data[position].data, output.dtype)
    extents = [part.stop - part.start for part in box]
    full = np.array(np.broadcast_to(stored(value, output.dtype), extents)).reshape((*extents[:spatial], -1))
    order = np.argsort(_bits(full).reshape(full.shape), axis=-1, kind="stable")
    full = np.take_along_axis(full, order, -1)
    actual = output[box[:spatial]]
    for n in range(full.shape[-1]):
        actual = combine(actual, full[..., n])
    output[box[:spatial]] = actual
