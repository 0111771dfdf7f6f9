"""sin x and cos x: x = n pi / 2 + r, a polynomial of r for each, and one of them selected by n."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from compiler.passes.expand_math.large_angles import ReducedAngle, reduce_large_angle
from compiler.passes.expand_math.values import F32, Real, Site, Truth, fma, horner, select, select_if_any

Library = Callable[[Site], Real]

_TWO_OVER_PI = 0.6366197723675814
_HALF_PI = {
    "f32": (1.570796251296997, 7.549789415861596e-08, 5.390302529957765e-15),
    "f64": (1.5707963267948966, 6.123233995736765e-17, 1.0828566739219139e-32),
}
"""pi / 2 as a sum of three positive floats: for n = 0 subtracting their products keeps the sign of -0."""

_LARGE = {"f32": 2.0**16, "f64": 2.0**30}
"""From here on three floats of pi / 2 are too few: f32 has a slower reduction, f64 calls the C library."""

_SIN = {
    "f32": (-0.16666655242443085, 0.008332189172506332, -0.00019518285989761353),
    "f64": (
        *(-0.1666666666666663, 0.00833333333332192, -0.00019841269829460562, 2.755731358311113e-06),
        *(-2.5050742467399597e-08, 1.5895952752399119e-10),
    ),
}
"""(sin r - r) / r^3."""

_COS = {
    "f32": (0.04166664555668831, -0.0013887310633435845, 2.4432563805021346e-05),
    "f64": (
        *(0.041666666666666595, -0.0013888888888873346, 2.4801587289005627e-05, -2.755731421807398e-07),
        *(2.0875705523765137e-09, -1.1358754840328495e-11),
    ),
}
"""(cos r - 1 + r^2 / 2) / r^4."""


def sin(x: Real, library: Library) -> Real:
    """The sine; `library` builds a call of the C library's sine, for large f64 angles."""
    return _sine_of_quadrant(x, 0, library)


def cos(x: Real, library: Library) -> Real:
    """The cosine: the sine of the next quadrant; `library` builds a call of the C library's cosine, for large f64
    angles."""
    return _sine_of_quadrant(x, 1, library)


def _sine_of_quadrant(x: Real, quadrant_offset: int, library: Library) -> Real:
    turn = _reduce_angle(x)
    if x.site.format is F32:
        large = select_if_any(_is_large(x), turn.bits(), lambda inside: reduce_large_angle(Real(inside, x.ssa)).bits())
        return _sine(ReducedAngle.of(large), quadrant_offset)
    (bits,) = select_if_any(
        _is_large(x), [_sine(turn, quadrant_offset).as_bits()], lambda inside: [library(inside).as_bits()]
    )
    return bits.as_real()


def _reduce_angle(x: Real) -> ReducedAngle:
    """Reduce x by multiples of pi / 2; exact if n has at most 22 bits, for f64 51. Source: Cody and Waite 1980."""
    format = x.site.format
    first, second, third = _HALF_PI[format.name]
    shifted = fma(x, _TWO_OVER_PI, format.shift)
    n = shifted - format.shift
    r = fma(n, -third, fma(n, -second, fma(n, -first, x)))
    return ReducedAngle(r, shifted.as_bits() - format.pattern(format.shift))


def _is_large(x: Real) -> Truth:
    """Whether |x| is finite and at least the limit from which on pi / 2 as three floats is too inexact: 2^16 for f32,
    2^30 for f64."""
    format = x.site.format
    low, high = format.pattern(_LARGE[format.name]), format.pattern(inf)
    return (x.magnitude().as_bits() - low).below(high - low)


def _sine(turn: ReducedAngle, quadrant_offset: int) -> Real:
    quadrant = turn.quadrant + quadrant_offset if quadrant_offset else turn.quadrant
    value = select((quadrant & 1).equals(0), _sin(turn.r), _cos(turn.r))
    return (value.as_bits() ^ ((quadrant & 2) << (value.site.format.width - 2))).as_real()


def _sin(r: Real) -> Real:
    """sin r; adding zero to r^3 makes it +0 for r = -0, so that the sum stays -0."""
    square = r * r
    return fma(horner(square, _SIN[r.site.format.name]), fma(square, r, 0.0), r)


def _cos(r: Real) -> Real:
    square = r * r
    return fma(square * square, horner(square, _COS[r.site.format.name]), fma(square, -0.5, 1.0))
