"""Random programs of many computes (tests/fuzz/programs.py): a fixed share."""

from __future__ import annotations

import pytest

from tests.fuzz.programs import DTYPES, check
from tests.sample import some

FOUND: list[int] = []
"""Seeds that once failed."""


@pytest.mark.sampled
@pytest.mark.parametrize("seed", some(range(4 * len(DTYPES)), 4))
def test_random_programs(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize("seed", FOUND)
def test_seeds_that_once_failed(seed: int) -> None:
    check(seed)
