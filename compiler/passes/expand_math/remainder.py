"""fmod x, y = x - n y, where n is x / y truncated: one fma, exact if n has no more digits than x."""

from __future__ import annotations

from xdsl.dialects import math

from compiler.passes.expand_math.trigonometric import Library
from compiler.passes.expand_math.values import Real, fma, select, select_if_any, with_sign_of


def fmod(x: Real, y: Real, library: Library) -> Real:
    """The remainder with x's sign; `library` builds a call of the C library, for large or undefined quotients. The
    rounded quotient is n or n + 1; for n + 1 the remainder is negative, and y is added, which is exact: both are
    multiples of one power of two and below y."""
    magnitude_x, magnitude_y = x.magnitude(), y.magnitude()
    quotient = magnitude_x / magnitude_y
    n = Real(x.site, x.site.add(math.TruncOp(quotient.ssa)))
    remainder = fma(-n, magnitude_y, magnitude_x)
    remainder = select(remainder < 0.0, remainder + magnitude_y, remainder)
    remainder = with_sign_of(select(magnitude_x < magnitude_y, magnitude_x, remainder), x)
    is_large = quotient.not_below(2.0**x.site.format.digits)
    (bits,) = select_if_any(is_large, [remainder.as_bits()], lambda inside: [library(inside).as_bits()])
    return bits.as_real()
