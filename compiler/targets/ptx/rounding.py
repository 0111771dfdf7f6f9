"""Sums, products and fused multiply-adds, rounded once: to nearest, down, up or to zero."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from compiler.targets.ptx.values import Array

ROUNDINGS = ("rn", "rz", "rm", "rp")
_MIDDLE = np.uint64(0x10000000)  # the dropped bits of a float64 that is halfway between two float32
_DROPPED = np.uint64(0x1FFFFFFF)
_LEAST_NORMAL = 2.0**-126


def added(a: Array, b: Array, rounding: str) -> Array:
    """Return a + b of floats, rounded once in a mode: rn (nearest), rm (down), rp (up) or rz (toward zero). `a` and `b`
    have one dtype."""
    if rounding == "rn":
        return a + b
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    total = wide_a + wide_b
    return _directed(total, _sum_error(wide_a, wide_b, total), a.dtype, rounding)


def multiplied(a: Array, b: Array, rounding: str) -> Array:
    """Return a * b of floats, rounded once in a mode: rn (nearest), rm (down), rp (up) or rz (toward zero); float64
    always to nearest."""
    if rounding == "rn":
        return a * b
    product = a.astype(np.float64) * b.astype(np.float64)
    return _directed(product, np.zeros_like(product), a.dtype, rounding)


def fused(a: Array, b: Array, c: Array, rounding: str) -> Array:
    """Return a * b + c of floats, rounded once in a mode: rn (nearest), rm (down), rp (up) or rz (toward zero); float64
    always to nearest, by C's fma. The sum of bf16 is rounded to float64 first."""
    if a.dtype == np.float64:
        return _fma64()(a, b, c).astype(np.float64)
    product, addend = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
    total = product + addend
    if rounding != "rn":
        return _directed(total, _sum_error(product, addend, total), a.dtype, rounding)
    if a.dtype == np.float32:
        small = (np.abs(total) < _LEAST_NORMAL) & (total != 0)
        doubtful = ((total.view(np.uint64) & _DROPPED) == _MIDDLE) | small
        if doubtful.any():
            total = np.where(doubtful, _to_odd(total, _sum_error(product, addend, total)), total)
    return total.astype(a.dtype)


def _sum_error(a: Array, b: Array, total: Array) -> Array:
    """Return the exact a + b - total, for total = a + b to nearest (Knuth's TwoSum); 0 where not finite."""
    part = total - a
    error = (a - (total - part)) + (b - part)
    return np.where(np.isfinite(error), error, 0.0)


def _to_odd(total: Array, error: Array) -> Array:
    """Round total + error to odd: return total where error is 0 or the last bit of total is odd, else the neighbour of
    total toward the error. Rounding that to float32 is then right (Boldo and Melquiond, 2008)."""
    is_even = (total.view(np.uint64) & np.uint64(1)) == 0
    towards = np.where(error > 0, np.inf, -np.inf)
    return np.where((error != 0) & is_even, np.nextafter(total, towards), total)


def _directed(total: Array, error: Array, dtype: np.dtype[Any], rounding: str) -> Array:
    """Round the exact total + error, of float64, to a dtype down (rm), up (rp), or toward zero (rz); infinities and NaN
    stay. |error| is less than the spacing of total."""
    nearest = total.astype(dtype)
    wide = nearest.astype(np.float64)
    above = (wide > total) | ((wide == total) & (error < 0))
    below = (wide < total) | ((wide == total) & (error > 0))
    down, up = np.nextafter(nearest, dtype.type(-np.inf)), np.nextafter(nearest, dtype.type(np.inf))
    lower, upper = np.where(above, down, nearest), np.where(below, up, nearest)
    exact = np.isinf(total) | np.isnan(total)
    chosen = {"rm": lower, "rp": upper, "rz": np.where(total > 0, lower, upper)}[rounding]
    return np.where(exact, nearest, chosen).astype(dtype)


@cache
def _fma64() -> Callable[..., Array]:
    """Return C's `fma` as a function of float64 arrays, which returns an array of objects."""
    function = ctypes.CDLL(None).fma
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double] * 3
    return np.frompyfunc(function, 3, 1)
