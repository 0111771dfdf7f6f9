"""Matrices of constraints: isl reads them as the sets and maps that its own syntax says."""

from __future__ import annotations

import islpy as isl
import pytest

from compiler.analysis.matrices import matrix
from compiler.analysis.sets import context, sample, union_map, union_set

SETS = [
    "[]",
    "[] : 0 < 0",
    "[x, y] : 0 <= x <= 7 and y = floor((x)/4)",
    "[x, y] : 0 <= x < 100 and y = -3*(2*x + 1) + ((x + -5*floor((x + 3)/7)) mod 4)",
    "[x] : floor(x/2) = 4",
    "[x] : 0 <= x <= 9 and 5 > x and x >= 2",
    "[x] : exists a, b : (0 <= a < 5 and 0 <= b < 3 and x = 3*a + b)",
    "[x] : 0 <= x and x <= 9223372036854775807 and x = 2*9223372036854775807",
    "S3[l1, l2] : 0 <= l1 <= 3 and true and 0 <= l2 + -1*l1 < 4",
]
MAPS = [
    "S0[l1, l2] -> [0, l1, 3, l2]",
    "S0[l1] -> K2[floor((l1)/6), ((l1) mod 6), 4] : 0 <= l1 < 40",
    "[a, b] -> [2*a + b] : 0 <= a < 5 and 0 <= b <= 1",
    "S1[] -> M2[] : true",
]
OTHERS = [
    "[x] : (x < 0 or x >= 8)",
    "[x] : x < 0 or x >= 8",
    "[x] : not (x = 3)",
    "[x] : x != 3",
    "[x] : 0 <= x - 3",
    "[x] : x",
    "[x] : 2x = 4",
    "[x] : (x mod y) = 4",
    "[x] -> [x] -> [x]",
]


@pytest.mark.parametrize("text", SETS)
def test_a_set_is_the_same(text: str) -> None:
    assert matrix(text) is not None
    assert union_set(text).is_equal(isl.UnionSet(f"{{ {text} }}", context()))


@pytest.mark.parametrize("text", MAPS)
def test_a_map_is_the_same(text: str) -> None:
    assert matrix(text) is not None
    assert union_map(text).is_equal(isl.UnionMap(f"{{ {text} }}", context()))


@pytest.mark.parametrize("text", OTHERS)
def test_other_forms_are_left_to_isl(text: str) -> None:
    assert matrix(text) is None


def test_the_example() -> None:
    translated = matrix("[x, y] : 0 <= x <= 7 and y = floor((x)/4)")
    assert translated is not None
    assert translated.text.splitlines() == [
        "5 5 2 0 1 0",
        "1 1 0 0 0",
        "1 -1 0 0 7",
        "1 1 0 -4 0",
        "1 -1 0 4 3",
        "0 0 -1 1 0",
    ]


def test_a_disjunction_is_sampled() -> None:
    assert sample("[x] : 0 <= x < 9 and (x < 0 or x >= 8)") == (8,)
    assert sample("[x] : 3 <= x < 5; [x] : x = 1") == (1,)
