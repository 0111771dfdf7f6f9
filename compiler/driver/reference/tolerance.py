"""A result beside the expected one: poison before it is computed, and a sentence about wrong elements."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compiler.dialects.numbers import BF16, DType, is_float
from compiler.targets.arguments import Array

FACTOR = 16.0
"""How many times the error of the strict program a result may have: other orders of a sum, fused operations and
polynomials are worse than it by less, a missing term of a sum of a thousand is worse by more."""


@dataclass(frozen=True)
class Expected:
    """The expected result of one output.

    own: the result of the unscheduled program under the policy `strict`, in its own dtype.
    exact: floats in float64; others as the program in float64 has them.
    worst: the largest error of such results, over all inputs.
    """

    own: Array
    exact: Array
    worst: float


def poison(out: Array, expected: Expected) -> None:
    """Set each element to a wrong value: NaN, or the complement of the expected one."""
    if not is_float(out.dtype):
        np.invert(expected.own, out=out)
        return
    out.fill(np.nan)
    if np.isnan(expected.own).any():
        out[np.isnan(expected.own)] = 0


def fault(output: Array, expected: Expected) -> str | None:
    """A sentence about a wrong result; None for a right one.

    A float is within `FACTOR * (worst + eps * |exact|)` of the exact one; where either result is not finite it may be
    that of the strict program as well. Others equal the strict program's, or the exact ones: a comparison of floats
    may fall either way where these two differ.
    """
    with np.errstate(all="ignore"):
        close = _close(output, expected)
    if close.all():
        return None
    place = tuple(int(i) for i in np.argwhere(~close)[0])
    count = close.size - int(np.count_nonzero(close))
    right = expected.exact[place]
    return f"{count} of {close.size} elements, at {list(place)} {_shown(output[place])} for {_shown(right)}"


def _close(output: Array, expected: Expected) -> Array:
    strict, exact = expected.own, expected.exact
    if not is_float(output.dtype):
        return np.asarray((output == strict) | (output == exact))
    wide = output.astype(np.float64)
    tolerance = np.abs(exact)
    tolerance *= epsilon(output.dtype)
    tolerance += expected.worst
    tolerance *= FACTOR
    wide -= exact
    np.abs(wide, out=wide)
    close = np.asarray(wide <= tolerance) & np.isfinite(exact)
    if close.all():
        return np.asarray(close)
    special = ~(np.isfinite(exact) & np.isfinite(strict))
    same = (output == strict) | (output == exact) | (np.isnan(output) & (np.isnan(strict) | np.isnan(exact)))
    return np.asarray(close | (special & same))


def epsilon(dtype: DType) -> float:
    """The distance from 1 to the next float."""
    return 2.0**-7 if dtype.name == BF16 else float(np.finfo(dtype).eps)


def _shown(value: object) -> str:
    return f"{float(value):.6g}" if is_float(np.asarray(value).dtype) else str(value)  # type: ignore[arg-type]
