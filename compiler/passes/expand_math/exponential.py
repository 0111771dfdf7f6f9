"""e^x, 2^x, e^x - 1: x = n log 2 + r, a polynomial of r, times 2^n."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.passes.expand_math.values import Bits, Real, at_least, at_most, fma, horner, ldexp, select, with_sign_of

LOG2E = 1.4426950408889634
LN2 = {"f32": (0.6931471824645996, -1.9046542121259336e-09), "f64": (0.6931471805599453, 2.3190468138462996e-17)}
"""log 2 as a sum of two floats."""

_EXP_LIMITS = {"f32": (-104.0, 89.0), "f64": (-746.0, 710.0)}
"""Below the first limit the result is 0, above the second infinity."""

_EXP = {
    "f32": (
        *(1.0, 1.0, 0.49999991059303284, 0.1666652113199234, 0.04166896268725395, 0.00836867094039917),
        0.001378247863613069,
    ),
    "f64": (
        *(1.0, 1.0, 0.5000000000000011, 0.16666666666666424, 0.04166666666652703, 0.008333333333487042),
        *(0.0013888888944319463, 0.00019841269522508957, 2.4801492475252786e-05, 2.755757223452517e-06),
        *(2.7630447587888026e-07, 2.5004514005356436e-08),
    ),
}

_EXP2_LIMITS = {"f32": (-151.0, 129.0), "f64": (-1076.0, 1025.0)}

_EXP2 = {
    "f32": (
        *(1.0, 0.6931471824645996, 0.24022644758224487, 0.055503588169813156, 0.009618833661079407),
        *(0.001339130220003426, 0.00015241284563671798),
    ),
    "f64": (
        *(1.0, 0.6931471805599453, 0.24022650695910136, 0.05550410866482233, 0.009618129107592587),
        *(0.0013333558146358634, 0.00015403530458754546, 1.5252733828893387e-05, 1.321543456316358e-06),
        *(1.0178076598316852e-07, 7.073894181148886e-09, 4.451517988095656e-10),
    ),
}

_EXPM1_LIMITS = {"f32": (-20.0, 89.0), "f64": (-40.0, 710.0)}

_EXPM1 = {
    "f32": (
        *(0.5, 0.1666666567325592, 0.04166664779186249, 0.008333566598594189, 0.0013933690497651696),
        0.00019743292068596929,
    ),
    "f64": (
        *(0.5, 0.16666666666666677, 0.04166666666666661, 0.008333333333321468, 0.0013888888888923799),
        *(0.00019841269886462863, 2.480158723749569e-05, 2.755724392278254e-06, 2.75573530027275e-07),
        *(2.5109123454203693e-08, 2.0889432662307707e-09),
    ),
}


@dataclass(frozen=True)
class _ReducedExponent:
    """x = n log 2 + r with |r| <= log 2 / 2. n_float: n as a float; n_bits: an integer with n in its lowest bits."""

    n_float: Real
    n_bits: Bits
    r: Real


def exp(x: Real) -> Real:
    """e^x; 0 or infinity for x beyond the range of exponents, NaN for NaN. A subnormal result is rounded twice."""
    low, high = _EXP_LIMITS[x.site.format.name]
    return exp_in_range(at_least(at_most(x, high), low))


def exp_in_range(x: Real, normal: bool = False) -> Real:
    """e^x for an x without overflow or complete underflow; `normal` asserts that the result is not subnormal."""
    reduced = _reduce(x)
    return ldexp(horner(reduced.r, _EXP[x.site.format.name]), reduced.n_bits, normal)


def exp_times(factor: Real, x: Real, correction: Real) -> Real:
    """factor * e^(x + correction), rounded once if it is subnormal; e^x may not overflow, nor underflow to zero."""
    reduced = _reduce(x)
    return ldexp(horner(reduced.r + correction, _EXP[x.site.format.name]) * factor, reduced.n_bits)


def exp2(x: Real) -> Real:
    """2^x; 0 or infinity for x beyond the range of exponents, NaN for NaN."""
    low, high = _EXP2_LIMITS[x.site.format.name]
    x = at_least(at_most(x, high), low)
    shift = x.site.format.shift
    shifted = x + shift
    n = shifted.as_bits() - x.site.format.pattern(shift)
    return ldexp(horner(x - (shifted - shift), _EXP2[x.site.format.name]), n)


def expm1(x: Real) -> Real:
    """e^x - 1 = 2 ((e^r - 1) 2^n / 2 + (2^n / 2 - 1 / 2)); halved, since 2^n may overflow if the result does not."""
    low, high = _EXPM1_LIMITS[x.site.format.name]
    reduced = _reduce(at_least(at_most(x, high), low))
    small = _expm1_polynomial(reduced.r)
    half = ldexp(x.site.real(0.5), reduced.n_bits)
    half_result = fma(small, half, half - 0.5)
    return with_sign_of(select(reduced.n_float.equals(0.0), small, half_result + half_result), x)


def expm1_in_range(x: Real) -> Real:
    """e^x - 1 for an x whose e^x is normal; the result for zero is +0."""
    reduced = _reduce(x)
    power = ldexp(x.site.real(1.0), reduced.n_bits, normal=True)
    return fma(_expm1_polynomial(reduced.r), power, power - 1.0)


def _expm1_polynomial(r: Real) -> Real:
    return fma(r * r, horner(r, _EXPM1[r.site.format.name]), r)


def _reduce(x: Real) -> _ReducedExponent:
    """Reduce x by multiples of log 2. The inner fma is exact: both summands are multiples of r's last digit. Source:
    Cody and Waite 1980."""
    format = x.site.format
    high, low = LN2[format.name]
    shifted = fma(x, LOG2E, format.shift)
    power = shifted - format.shift
    r = fma(power, -low, fma(power, -high, x))
    return _ReducedExponent(power, shifted.as_bits() - format.pattern(format.shift), r)
