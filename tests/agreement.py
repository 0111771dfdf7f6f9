"""How far a result is from a reference in float64 or int64, and how far it may be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

BOUNDS = {"f64": 1e-13, "f32": 1e-5, "f16": 2e-3, "bf16": 1.6e-2}
"""The largest error of a float result, for each dtype of an operator; integers and bits are exact."""


def error(got: Array, reference: Array) -> float:
    """max |got - reference| / max(1, max |reference|) for floats, max |got - reference| for integers and bits.

    The reference wraps to an integer dtype. Where it is NaN, or not finite once it is rounded to the dtype of
    `got`, the result must be the same, else the error is infinite. Raises ValueError where the shapes differ.
    """
    if got.shape != reference.shape:
        raise ValueError(f"the result has shape {list(got.shape)}, the reference {list(reference.shape)}")
    if got.size == 0:
        return 0.0
    if is_exact(got):
        wrapped = reference.astype(got.dtype) if reference.dtype.kind in "biu" else reference
        return float(np.abs(got.astype(np.float64) - wrapped.astype(np.float64)).max())
    wide, exact = got.astype(np.float64), np.asarray(reference, np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = exact.astype(got.dtype).astype(np.float64)
    finite = np.isfinite(rounded)
    if not np.array_equal(wide[~finite], rounded[~finite], equal_nan=True):
        return float("inf")
    if not finite.any():
        return 0.0
    actual = np.abs(wide[finite] - exact[finite]).max() / max(1.0, np.abs(exact[finite]).max())
    return float("inf") if np.isnan(actual) else float(actual)


def is_exact(array: Array) -> bool:
    """Whether results of an array's dtype have no rounding; bfloat16 is of kind V to numpy."""
    return array.dtype.kind in "biu"


def bound(dtype: str, output: Array) -> float:
    """The largest error allowed in a result of an operator on `dtype`: that of the narrower of both."""
    if is_exact(output):
        return 0.0
    stored = "bf16" if output.dtype.name == "bfloat16" else {2: "f16", 4: "f32", 8: "f64"}[output.dtype.itemsize]
    return max(BOUNDS[stored], BOUNDS.get(dtype, 0.0))


def widened(array: Array) -> Array:
    """An array in float64 or int64, which hold its values exactly; bits stay."""
    if array.dtype.kind == "b":
        return array
    return array.astype(np.int64 if array.dtype.kind in "iu" else np.float64)


def poisoned(like: Sequence[Array]) -> list[Array]:
    """Arrays for results, full of NaN or of a number that no result is expected to hold throughout."""
    return [np.full_like(a, 77 if is_exact(a) else np.nan) for a in like]
