"""erf x: x times a polynomial of x^2 where x is small, else 1 - e^q(|x|); erfc x: 1 - erf x, or a tail.

Both are computed, and one is chosen. Source of erf: N. Juffa's erff. Source of erfc: Shepherd and Laframboise,
"Chebyshev approximation of (1 + 2x) exp(x^2) erfc x in 0 <= x < infinity", 1981.
"""

from __future__ import annotations

from compiler.passes.expand_math.exponential import exp_inside, exp_times
from compiler.passes.expand_math.values import Real, at_most, fma, horner, select, with_sign_of

_EDGE = {"f32": 0.927734375, "f64": 1.0}
"""Up to where x is small."""

_ONE_FROM = {"f32": 4.0, "f64": 6.0}
"""Where erf rounds to 1."""

_SMALL = {
    "f32": (
        *(0.12837915122509, -0.37612491846084595, 0.1128176674246788, -0.026764318346977234, 0.004989371635019779),
        -0.0005969955236651003,
    ),
    "f64": (
        *(0.1283791670955126, -0.3761263890318346, 0.11283791670942668, -0.026866170642933267),
        *(0.0052239776049508215, -0.000854832588244731, 0.000120552923664167, -1.4924691776601541e-05),
        *(1.6446904371860057e-06, -1.6204733000644746e-07, 1.370470581236866e-08, -7.768631603009701e-10),
    ),
}
"""erf x / x - 1."""

_EXPONENT = {
    "f32": (
        *(-0.1286565065383911, -0.6351183652877808, -0.10629195719957352, 0.02381001226603985),
        *(-0.003665356431156397, 0.00032848745468072593, -1.1803967936430126e-05),
    ),
    "f64": (
        *(-0.1283792073895857, -0.6366193065854004, -0.10277514343253584, 0.01913713802909486),
        *(0.00018826933452360432, -0.0016585246957265538, 0.0005374949989526202, 3.2428423768275884e-05),
        *(-0.00011638298939206042, 6.697494343162617e-05, -2.4840810607572635e-05, 6.80903879018431e-06),
        *(-1.4148780542141035e-06, 2.1731093444508678e-07, -2.2214331569126022e-08, 8.576192186336616e-10),
        *(1.559015141477143e-10, -3.3661880291868924e-11, 3.190720741204495e-12, -1.6298733853110933e-13),
        3.644522319967613e-15,
    ),
}
"""log(1 - erf t) / t + 1."""

_ZERO_FROM = {"f32": 10.1, "f64": 27.3}
"""Where erfc rounds to 0."""

_CENTRE = 2.0
"""Where p = (t - centre) / (t + centre) is 0: it maps all t of the tail to [-1, 1]."""

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
"""(t + centre) e^(t^2) erfc t, of p."""


def erf(x: Real) -> Real:
    """The error function."""
    name = x.site.format.name
    size = x.magnitude()
    t = at_most(size, _ONE_FROM[name])
    large = 1.0 - exp_inside(fma(t, horner(t, _EXPONENT[name]), -t), normal=True)
    return with_sign_of(select(size < _EDGE[name], _near_zero(x), large), x)


def erfc(x: Real) -> Real:
    """1 - erf x: as it stands where x is small, else of t = |x| the tail, or 2 less that of a negative x.

    The tail is e^(-t^2) q(p) / (t + centre). What t^2 loses by rounding goes into the exponential, where a unit would
    be t^2 units of the result; what 1 / (t + centre) loses is kept beside it.
    """
    name = x.site.format.name
    size = x.magnitude()
    t = at_most(size, _ZERO_FROM[name])
    share = x.site.real(1.0) / (t + _CENTRE)
    lost = share * fma(share, -t, fma(share, -_CENTRE, 1.0))
    q = horner(fma(lost, -2.0 * _CENTRE, fma(share, -2.0 * _CENTRE, 1.0)), _TAIL[name])
    square = t * t
    tail = exp_times(fma(q, share, q * lost), -square, fma(t, -t, square))
    return select(size < 0.5, 1.0 - _near_zero(x), select(x < 0.0, 2.0 - tail, tail))


def _near_zero(x: Real) -> Real:
    return fma(x, horner(x * x, _SMALL[x.site.format.name]), x)
