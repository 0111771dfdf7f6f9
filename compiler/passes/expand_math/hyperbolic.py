"""tanh x = t / (t + 2), where t = e^2x - 1."""

from __future__ import annotations

from compiler.passes.expand_math.exponential import expm1_in_range
from compiler.passes.expand_math.values import Real, at_most, with_sign_of

_ONE_FROM = {"f32": 10.0, "f64": 20.0}
"""From here on tanh rounds to 1."""


def tanh(x: Real) -> Real:
    """The hyperbolic tangent."""
    size = at_most(x.magnitude(), _ONE_FROM[x.site.format.name])
    t = expm1_in_range(size + size)
    return with_sign_of(t / (t + 2.0), x)
