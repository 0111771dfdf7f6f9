"""fmod x, y = x - n y, where n is x / y truncated: one fused multiply-add, exact while n has no more digits than x."""

from __future__ import annotations

from xdsl.dialects import math

from compiler.passes.expand_math.trigonometric import Library
from compiler.passes.expand_math.values import Real, fma, select, select_if_any, with_sign_of


def fmod(x: Real, y: Real, library: Library) -> Real:
    """The remainder with x's sign; `library` builds the call of the C library's, for large or no quotients.

    The rounded quotient is never below n, and above it by one at most: then the rest is negative, and y is added, which
    is exact as both are multiples of one unit and below y.
    """
    a, b = x.magnitude(), y.magnitude()
    quotient = a / b
    n = Real(x.site, x.site.add(math.TruncOp(quotient.ssa)))
    rest = fma(-n, b, a)
    rest = select(rest < 0.0, rest + b, rest)
    rest = with_sign_of(select(a < b, a, rest), x)
    is_large = quotient.not_below(2.0**x.site.format.digits)
    (bits,) = select_if_any(is_large, [rest.as_bits()], lambda inside: [library(inside).as_bits()])
    return bits.as_real()
