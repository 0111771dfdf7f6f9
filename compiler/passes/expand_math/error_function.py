"""erf x: x times a polynomial of x^2 for small x, else 1 - q(|x|)^4; erfc x: 1 - erf x, or a tail.

Both branches are computed, and one is selected. Source of erfc: Shepherd and Laframboise, "Chebyshev approximation of
(1 + 2x) exp(x^2) erfc x in 0 <= x < infinity", 1981.
"""

from __future__ import annotations

from compiler.passes.expand_math.exponential import exp_times
from compiler.passes.expand_math.values import Real, at_most, fma, horner, select, with_sign_of

_EDGE = 1.0
"""The limit of small x."""

_ONE_FROM = {"f32": 4.2, "f64": 6.0}
"""From here on erf rounds to 1."""

_SMALL = {
    "f32": (
        *(0.12837912142276764, -0.37612324953079224, 0.11280175298452377, -0.026711227372288704, 0.004917483776807785),
        -0.0005631216336041689,
    ),
    "f64": (
        *(0.1283791670955126, -0.3761263890318346, 0.11283791670942668, -0.026866170642933267),
        *(0.0052239776049508215, -0.000854832588244731, 0.000120552923664167, -1.4924691776601541e-05),
        *(1.6446904371860057e-06, -1.6204733000644746e-07, 1.370470581236866e-08, -7.768631603009701e-10),
    ),
}
"""erf x / x - 1, as a polynomial of x^2."""

_ROOT = {
    "f32": (
        *(1.0039770603179932, -0.3025718927383423, -0.07408573478460312, -0.04053031653165817),
        *(0.06066950410604477, -0.020459918305277824, 0.0029279275331646204, -0.00015709195577073842),
    ),
    "f64": (
        *(0.9999998485247591, -0.2820931800694793, -0.11937424439861784, 0.01548719287770532),
        *(0.018572333530768054, -0.001135053189332611, -0.00205359127377392, 0.00032083586870879874),
        *(4.1361668658230455e-05, 2.0300328996074272e-05, -2.429314351885633e-05, 1.1152436514906906e-05),
        *(-4.232987541093816e-06, 1.3688434978774508e-06, -3.389025956955928e-07, 6.093402796133798e-08),
        *(-7.801059436369898e-09, 6.95448643823185e-10, -4.119504717739444e-11, 1.4622306902869328e-12),
        -2.35885043577889e-14,
    ),
}
"""The fourth root of 1 - erf t, as a polynomial of t: of lower degree than log(1 - erf t), and no exponential."""

_ZERO_FROM = {"f32": 10.1, "f64": 27.3}
"""From here on erfc rounds to 0."""

_CENTRE = 2.0
"""The zero of p = (t - centre) / (t + centre), which maps all t of the tail to [-1, 1]."""

_TAIL = {
    "f32": (
        *(1.0215827226638794, -0.6871609091758728, 0.2794712781906128, -0.036436114460229874),
        *(-0.021501097828149796, 0.006436407566070557, 0.003038425464183092, -0.0007295661489479244),
        *(-0.0005251866532489657, -4.3632840970531106e-05),
    ),
    "f64": (
        *(1.021582705242023, -0.6871606844138106, 0.2794720925560488, -0.03644223150687152),
        *(-0.021510661889127595, 0.00647918506736995, 0.0030906120506416527, -0.0008372960550562196),
        *(-0.000663073399401462, 3.4371357617622215e-05, 0.00014446996495112108, 3.414938546411448e-05),
        *(-2.1692460805638776e-05, -1.6122796571079723e-05, -1.1378542480909175e-06, 3.648261213852077e-06),
        *(2.0299602386898067e-06, -4.136823660757531e-09, -6.157179908934972e-07, -3.207421016851628e-07),
        *(4.455472623558884e-08, 1.1236230095728313e-07, 2.477740648387665e-08, -1.500864061215465e-08),
        -6.010371251593733e-09,
    ),
}
"""(t + centre) e^(t^2) erfc t, as a polynomial of p."""


def erf(x: Real) -> Real:
    """The error function."""
    size = x.magnitude()
    root = horner(at_most(size, _ONE_FROM[x.site.format.name]), _ROOT[x.site.format.name])
    square = root * root
    return with_sign_of(select(size < _EDGE, _near_zero(x), fma(-square, square, 1.0)), x)


def erfc(x: Real) -> Real:
    """1 - erf x for small x; else the tail of t = |x|, or 2 - tail for negative x. The tail is e^(-t^2) q(p) / (t +
    centre). The rounding error of t^2 is added in the exponent, where one ulp would be t^2 ulps of the result; that of
    1 / (t + centre) is a correction term."""
    name = x.site.format.name
    size = x.magnitude()
    t = at_most(size, _ZERO_FROM[name])
    reciprocal = x.site.real(1.0) / (t + _CENTRE)
    reciprocal_error = reciprocal * fma(reciprocal, -t, fma(reciprocal, -_CENTRE, 1.0))
    q = horner(fma(reciprocal_error, -2.0 * _CENTRE, fma(reciprocal, -2.0 * _CENTRE, 1.0)), _TAIL[name])
    square = t * t
    tail = exp_times(fma(q, reciprocal, q * reciprocal_error), -square, fma(t, -t, square))
    return select(size < 0.5, 1.0 - _near_zero(x), select(x < 0.0, 2.0 - tail, tail))


def _near_zero(x: Real) -> Real:
    return fma(x, horner(x * x, _SMALL[x.site.format.name]), x)
