"""Forms and conditions over small ranges: what simplification gives equals what was meant, at every point."""

from __future__ import annotations

import random
from itertools import product

import pytest

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from tests.sample import some

FACTORS = (-8, -4, -3, -1, 0, 1, 1, 2, 3, 4, 6, 8, 12)


def _form(rng: random.Random, variables: int) -> Linear:
    terms = tuple((n, f) for n in range(variables) if (f := rng.choice(FACTORS)))
    return Linear(terms, rng.randrange(-9, 10))


def _points(ranges: dict[int, lin.Range]) -> list[dict[int, int]]:
    spans = [range(low, high + 1) for low, high in ranges.values()]
    return [dict(enumerate(point)) for point in product(*spans)]


@pytest.mark.parametrize("seed", some(range(40)))
def test_quotients_remainders_and_conditions_are_what_they_were(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(20):
        ranges = {n: (0, rng.choice((1, 2, 3, 7, 11))) for n in range(3)}
        form, divisor = _form(rng, 3), rng.choice((2, 3, 4, 6, 8, 9, 12))
        quotient, remaining = lin.floordiv(form, divisor, ranges), lin.mod(form, divisor, ranges)
        inner = lin.mod(lin.floordiv(form, 2, ranges).scaled(3), divisor, ranges)
        fused = quotient.scaled(divisor * 5) + remaining.scaled(5)
        joined, tight = lin.joined(fused), Condition(form).tightened(ranges)
        for point in _points(ranges):
            value = lin.evaluate(form, point)
            assert lin.evaluate(quotient, point) == value // divisor
            assert lin.evaluate(remaining, point) == value % divisor
            assert lin.evaluate(inner, point) == value // 2 * 3 % divisor
            assert lin.evaluate(joined, point) == 5 * value
            assert (lin.evaluate(tight.form, point) >= 0) == (value >= 0)


def test_lanes_leave_the_remainder_of_a_vector() -> None:
    """(4 t + lane) mod 32 is 4 (t mod 8) + lane, whose lanes lie side by side."""
    ranges = {0: (0, 99), 1: (0, 3)}
    form = Linear(((0, 4), (1, 1)))
    assert lin.mod(form, 32, ranges) == lin.mod(lin.variable(0), 8, ranges).scaled(4) + lin.variable(1)
    assert lin.floordiv(form, 32, ranges) == lin.floordiv(lin.variable(0), 8, ranges)
    assert lin.mod(form, 32, {0: (0, 99), 1: (0, 4)}).coefficient(1) is None, "the lanes reach into the next"


def test_a_condition_loses_the_lanes_that_cannot_decide_it() -> None:
    ranges = {0: (0, 99), 1: (0, 3)}
    even = Condition(Linear(((0, -4), (1, -1)), 287))
    assert even.tightened(ranges) == Condition(Linear(((0, -1),), 71))
    ragged = Condition(Linear(((0, -4), (1, -1)), 285))
    assert ragged.tightened(ranges) == ragged
    equal = Condition(Linear(((0, -4), (1, -1)), 287), equal=True)
    assert equal.tightened(ranges) == equal


@pytest.mark.parametrize("modulus", [5, 9, 18, 27])
def test_parts_of_one_offset_are_joined_only_where_they_are_its_parts(modulus: int) -> None:
    """9 (f floordiv 9) + (4 t + lane) mod 9, f being lane + 4 (t mod m), is f where 9 divides 4 m."""
    ranges = {0: (0, 99), 1: (0, 3)}
    cut = lin.mod(lin.variable(0), modulus, ranges).scaled(4) + lin.variable(1)
    offset = lin.floordiv(cut, 9, ranges).scaled(9) + lin.mod(Linear(((0, 4), (1, 1))), 9, ranges)
    joined = lin.joined(offset)
    assert (joined == cut) == (4 * modulus % 9 == 0)
    for point in _points(ranges):
        assert lin.evaluate(joined, point) == lin.evaluate(offset, point)
