"""Reduction of f32 angles of any size: their product with the significant bits of 2 / pi, modulo 4, in integers.

Source: Payne and Hanek 1983; N. Juffa's trig_red_slowpath_f.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import pi

from compiler.passes.expand_math.values import Bits, Real, select_bits

_TWO_OVER_PI = (0, 0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB)
"""The bits of 2 / pi in 32-bit words; the first word has the bits from 2^31 to 2^0."""


@dataclass(frozen=True)
class ReducedAngle:
    """An angle n pi / 2 + r; the two lowest bits of `quadrant` are n modulo 4."""

    r: Real
    quadrant: Bits

    def bits(self) -> list[Bits]:
        """Return the bits of r, and the quadrant."""
        return [self.r.as_bits(), self.quadrant]

    @staticmethod
    def of(bits: Sequence[Bits]) -> ReducedAngle:
        """Return the angle of the two elements that its method `bits` returned."""
        r, quadrant = bits
        return ReducedAngle(r.as_real(), quadrant)


def reduce_large_angle(x: Real) -> ReducedAngle:
    """Reduce x = n pi / 2 + r to r and n modulo 4. For x = m 2^s with a 24-bit m, n is m times the 96 bits of 2 / pi
    that matter: products of higher bits with x are multiples of 4, those of lower bits are negligible."""
    size = x.magnitude().as_bits()
    m = ((size & 0x7FFFFF) + 0x800000).widened()
    words = _window((size >> 23) - 120)
    product = ((m * words[0].widened()) << 32) + m * words[1].widened() + ((m * words[2].widened()) >> 32)
    quadrant = (product + (1 << 61)) >> 62
    r = ((product - (quadrant << 62)).converted() * (pi / 2 * 2.0**-62)).narrowed()
    negative = x < 0.0
    quarter_turns = quadrant.narrowed()
    sign = select_bits(negative, -(1 << 31), 0)
    return ReducedAngle((r.as_bits() ^ sign).as_real(), select_bits(negative, 0 - quarter_turns, quarter_turns))


def _window(start: Bits) -> list[Bits]:
    """Return the 96 bits of 2 / pi from bit `start` on (at most 159), in three 32-bit words."""
    word, bit = start >> 5, start & 31
    word_tests = [word.equals(number) for number in range(1, 5)]
    words = []
    for offset in range(4):
        value = start.site.bits(_signed(_TWO_OVER_PI[offset]))
        for number, is_word in enumerate(word_tests, 1):
            value = select_bits(is_word, _signed(_TWO_OVER_PI[offset + number]), value)
        words.append(value)
    return [(left << bit) + ((right >> 1) >> (31 - bit)) for left, right in pairwise(words)]


def _signed(word: int) -> int:
    return word - (1 << 32) if word >= 1 << 31 else word
