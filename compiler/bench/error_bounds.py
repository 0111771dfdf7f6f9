"""float64 values with bounds on the error of a float32 computation of them.

Running forward-error analysis (Higham, Accuracy and Stability of Numerical Algorithms, 3.3), first order: each
operation adds the rounding of its own result to the propagated errors of its operands. Sums use the probabilistic bound
of Higham and Mary (2019), which grows with the root of their length and holds for any order. An elementary function has
the error of the most common algorithm, so that no library's usual algorithm is refused; each function names it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]

UNIT = 2.0**-24  # half the distance from 1 to the next float32
SPREAD = 6.0  # a sum's rounding errors stay within this many standard deviations
ELEMENTARY = 4.0  # exp may be wrong by this many units: ours is a polynomial, others' are too
SAFETY = 2.0  # for second-order terms


@dataclass(frozen=True)
class Bounded:
    """Exact values, and for each the largest error of a float32 result."""

    value: Array
    error: Array

    def tolerance(self) -> Array:
        """The largest difference from `value` of a correct float32 result, elementwise."""
        return SAFETY * self.error + np.finfo(np.float32).tiny

    def map(self, view: Callable[[Array], Array]) -> Bounded:
        """Apply a rearrangement of elements, such as a reshape, to values and errors."""
        return Bounded(view(self.value), view(self.error))


def exact(array: Array) -> Bounded:
    """Convert a float32 input to float64 with errors of 0."""
    value = array.astype(np.float64)
    return Bounded(value, np.zeros_like(value))


def _rounded(value: Array, inherited: Array, units: float = 1.0) -> Bounded:
    return Bounded(value, inherited + units * UNIT * np.abs(value))


def add(a: Bounded, b: Bounded) -> Bounded:
    """a + b, broadcast, rounded once."""
    return _rounded(a.value + b.value, a.error + b.error)


def sub(a: Bounded, b: Bounded) -> Bounded:
    """a - b, broadcast, rounded once."""
    return _rounded(a.value - b.value, a.error + b.error)


def mul(a: Bounded, b: Bounded) -> Bounded:
    """a * b, broadcast, rounded once."""
    return _rounded(a.value * b.value, np.abs(a.value) * b.error + np.abs(b.value) * a.error)


def div(a: Bounded, b: Bounded) -> Bounded:
    """a / b, broadcast; b is well away from zero. The quotient may be a product with the reciprocal."""
    value = a.value / b.value
    return _rounded(value, (a.error + np.abs(value) * b.error) / np.abs(b.value), 2.0)


def exp(a: Bounded) -> Bounded:
    """e to the power a, with a relative error of ELEMENTARY * UNIT."""
    value = np.exp(a.value)
    return _rounded(value, value * np.expm1(a.error), ELEMENTARY)


def sigmoid(a: Bounded) -> Bounded:
    """1 / (1 + exp(-a)), also as 1/2 + tanh(a/2)/2 or as 1/2 and a rational function of a.

    The sum with 1/2 rounds in units of 1/2, also where the result is small: the error of onnxruntime (MLAS) is up to
    2.8 units of 1 where the result is near 1, and up to 2.3 where it is near 0.
    """
    value = 1.0 / (1.0 + np.exp(-a.value))
    rounding = ELEMENTARY * UNIT * np.maximum(value, 0.5)
    return Bounded(value, value * (1.0 - value) * a.error + rounding)


def rsqrt(a: Bounded) -> Bounded:
    """1 / sqrt(a), as a root and a quotient, or as an approximation of about the same accuracy."""
    value = 1.0 / np.sqrt(a.value)
    return _rounded(value, 0.5 * value * a.error / a.value, ELEMENTARY)


def relu(a: Bounded) -> Bounded:
    """max(a, 0), which adds no error."""
    return Bounded(np.maximum(a.value, 0.0), a.error)


def largest(a: Bounded) -> Bounded:
    """The maximum along the last axis, which remains with extent 1."""
    return Bounded(a.value.max(-1, keepdims=True), a.error.max(-1, keepdims=True))


def total(a: Bounded) -> Bounded:
    """The sum in any order along the last axis, which remains with extent 1."""
    grown = SPREAD * np.sqrt(a.value.shape[-1]) * UNIT * np.abs(a.value).sum(-1, keepdims=True)
    return Bounded(a.value.sum(-1, keepdims=True), a.error.sum(-1, keepdims=True) + grown)


def matmul(a: Bounded, b: Bounded) -> Bounded:
    """a @ b over the last two axes, summed in any order."""
    left, right = np.abs(a.value), np.abs(b.value)
    length = a.value.shape[-1]
    error = (SPREAD * np.sqrt(length) + 1.0) * UNIT * (left @ right)
    if a.error.any():
        error = error + a.error @ right
    if b.error.any():
        error = error + left @ b.error
    return Bounded(a.value @ b.value, error)
