"""The comparison of results: `poison` an output before it is computed, `fault` describes wrong elements."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compiler.dialects.numbers import BF16, DType, is_float
from compiler.targets.arguments import Array

FACTOR = 16.0
"""The factor of the tolerance on the error of the strict program. Other orders of a sum, fused operations and
polynomials stay below it; a missing term of a sum of a thousand exceeds it."""


@dataclass(frozen=True)
class Expected:
    """The expected result of one output.

    strict: the result of the unscheduled program under the policy `strict`, in its own dtype.
    exact: the result of the program in float64; floats are float64.
    worst: the largest difference between the two, over all sets of inputs.
    """

    strict: Array
    exact: Array
    worst: float


def poison(out: Array, expected: Expected) -> None:
    """Fill an output with wrong values: NaN (0 if the expected element is NaN), or the complement of the expected
    integers."""
    if not is_float(out.dtype):
        np.invert(expected.strict, out=out)
        return
    out.fill(np.nan)
    if np.isnan(expected.strict).any():
        out[np.isnan(expected.strict)] = 0


def fault(output: Array, expected: Expected) -> str | None:
    """Compare an output with the expected result: a sentence about the first wrong element, None if all are right.

    A float is right within `FACTOR * (worst + eps * |exact|)` of the exact one, e.g. 16 * (1e-6 + 1.2e-7 * 1) = 1.8e-5
    for 1 in f32; if the exact or the strict one is not finite, it may also equal either. Other elements must equal the
    strict or the exact one: a comparison of floats may fall either way where these differ.
    """
    with np.errstate(all="ignore"):
        close = _close(output, expected)
    if close.all():
        return None
    index = tuple(int(i) for i in np.argwhere(~close)[0])
    count = close.size - int(np.count_nonzero(close))
    right = expected.exact[index]
    return f"{count} of {close.size} elements, at {list(index)} {_shown(output[index])} for {_shown(right)}"


def _close(output: Array, expected: Expected) -> Array:
    strict, exact = expected.strict, expected.exact
    if not is_float(output.dtype):
        return np.asarray((output == strict) | (output == exact))
    difference = output.astype(np.float64)
    tolerance = np.abs(exact)
    tolerance *= epsilon(output.dtype)
    tolerance += expected.worst
    tolerance *= FACTOR
    difference -= exact
    np.abs(difference, out=difference)
    close = np.asarray(difference <= tolerance) & np.isfinite(exact)
    if close.all():
        return np.asarray(close)
    special = ~(np.isfinite(exact) & np.isfinite(strict))
    same = (output == strict) | (output == exact) | (np.isnan(output) & (np.isnan(strict) | np.isnan(exact)))
    return np.asarray(close | (special & same))


def epsilon(dtype: DType) -> float:
    """The distance from 1 to the next number of a float dtype."""
    return 2.0**-7 if dtype.name == BF16 else float(np.finfo(dtype).eps)


def _shown(value: object) -> str:
    return f"{float(value):.6g}" if is_float(np.asarray(value).dtype) else str(value)  # type: ignore[arg-type]
