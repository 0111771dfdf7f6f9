"""erf x: x times a polynomial of x^2 where x is small, else 1 - e^p(|x|).

Both are computed, and one is chosen. Source: N. Juffa's erff.
"""

from __future__ import annotations

from compiler.passes.expand_math.exponential import exp_inside
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


def erf(x: Real) -> Real:
    """The error function."""
    name = x.site.format.name
    small = fma(x, horner(x * x, _SMALL[name]), x)
    size = x.magnitude()
    t = at_most(size, _ONE_FROM[name])
    large = 1.0 - exp_inside(fma(t, horner(t, _EXPONENT[name]), -t), normal=True)
    return with_sign_of(select(size < _EDGE[name], small, large), x)
