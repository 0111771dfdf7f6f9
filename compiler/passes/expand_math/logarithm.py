"""log x to the bases e, 2 and 10, and log(1 + x): x = (1 + f) 2^e, log(1 + f) = f + tail."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan, sqrt

from compiler.passes.expand_math.exponential import LN2
from compiler.passes.expand_math.values import F32, Bits, Real, fma, horner, select, with_sign_of


@dataclass(frozen=True)
class _Base:
    """The logarithms of 2 (`of_2`) and of e (`of_e`) to a base, each as a sum of two floats, the larger one first."""

    of_2: tuple[float, float]
    of_e: tuple[float, float]


_BINARY = {
    "f32": _Base((1.0, 0.0), (1.4426950216293335, 1.925963033500011e-08)),
    "f64": _Base((1.0, 0.0), (1.4426950408889634, 2.0355273740931033e-17)),
}
_DECIMAL = {
    "f32": _Base((0.3010300099849701, -1.432098883924482e-08), (0.4342944920063019, -1.0103049952192578e-08)),
    "f64": _Base((0.3010299956639812, -2.8037281277851704e-18), (0.4342944819032518, 1.098319650216765e-17)),
}

_MIN_MANTISSA = {"f32": 0.6666666865348816, "f64": sqrt(0.5)}
"""The least 1 + f; the largest is less than twice that."""

_TAIL = {
    "f32": (
        *(-0.5, 0.3333320915699005, -0.24999824166297913, 0.2001071274280548, -0.1667938381433487),
        *(0.14001654088497162, -0.1219862848520279, 0.14002586901187897, -0.12832234799861908),
    ),
    "f64": (
        *(0.6666666666666734, 0.39999999999416863, 0.2857142874196331, 0.22222198611870206, 0.18183562524587746),
        *(0.15314092015820444, 0.14795576041872677),
    ),
}


@dataclass(frozen=True)
class _ExponentAndFraction:
    """x = (1 + f) 2^e."""

    e: Real
    f: Real


def log(x: Real) -> Real:
    """The natural logarithm; -inf for 0, NaN for a negative x."""
    return _with_special_cases(_natural(_decompose(x)), x)


def log2(x: Real) -> Real:
    """The logarithm to the base 2; -inf for 0, NaN for a negative x."""
    return _with_special_cases(_to_base(_decompose(x), _BINARY[x.site.format.name]), x)


def log10(x: Real) -> Real:
    """The logarithm to the base 10; -inf for 0, NaN for a negative x."""
    return _with_special_cases(_to_base(_decompose(x), _DECIMAL[x.site.format.name]), x)


def log1p(x: Real) -> Real:
    """log(1 + x), with the sign of x; -inf for -1, NaN below. With e, the exponent of 1 + x, f is x 2^-e + (2^-e - 1),
    without cancellation of x's digits. 2^-e, which may be subnormal, is formed as 4 2^-e. Source: N. Juffa's log1pf."""
    format = x.site.format
    one_plus_x = x + 1.0
    exponent = _exponent(one_plus_x)
    power = (format.pattern(4.0) - exponent).as_real()
    f = (x.as_bits() - exponent).as_real() + fma(power, 0.25, -1.0)
    logarithm = _natural(_ExponentAndFraction(exponent.converted() * 2.0**-format.digits, f))
    return with_sign_of(_with_special_cases(logarithm, one_plus_x), x)


def _decompose(x: Real) -> _ExponentAndFraction:
    format = x.site.format
    subnormal = x < format.least_normal
    normal = select(subnormal, x * 2.0**format.digits, x)
    exponent = _exponent(normal)
    e = fma(exponent.converted(), 2.0**-format.digits, select(subnormal, -float(format.digits), 0.0))
    return _ExponentAndFraction(e, (normal.as_bits() - exponent).as_real() - 1.0)


def _exponent(x: Real) -> Bits:
    """Return e at the exponent bits of the format, such that x 2^-e is at least the least 1 + f and less than twice
    that."""
    format = x.site.format
    return (x.as_bits() - format.pattern(_MIN_MANTISSA[format.name])) & -(1 << format.digits)


def _natural(x: _ExponentAndFraction) -> Real:
    """e log 2 + (f + tail), smallest summands first."""
    high, low = LN2[x.f.site.format.name]
    return fma(x.e, high, x.f + fma(x.e, low, _tail(x.f)))


def _to_base(x: _ExponentAndFraction, base: _Base) -> Real:
    """e log 2 + (f + tail) log e, smallest summands first."""
    (high_2, low_2), (high_e, low_e) = base.of_2, base.of_e
    low = fma(x.f, low_e, x.e * low_2) if low_2 else x.f * low_e
    return fma(x.e, high_2, fma(x.f, high_e, fma(_tail(x.f), high_e, low)))


def _tail(f: Real) -> Real:
    """Approximate log(1 + f) - f for the f of `_decompose`. f32: a polynomial of f. f64: s (f^2 / 2 + R(s^2)) - f^2 / 2
    with s = f / (2 + f), as in fdlibm; a polynomial of f would have twice the degree."""
    coefficients = _TAIL[f.site.format.name]
    if f.site.format is F32:
        return f * f * horner(f, coefficients)
    s = f / (f + 2.0)
    square = s * s
    half = f * f * 0.5
    return fma(s, fma(square, horner(square, coefficients), half), -half)


def _with_special_cases(logarithm: Real, x: Real) -> Real:
    """The logarithm, but -inf for x = 0, NaN for a negative x, and x itself for an x of inf or NaN."""
    return select(x.equals(0.0), -inf, select(x < 0.0, nan, select(x < inf, logarithm, x)))
