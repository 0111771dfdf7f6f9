"""Large families of cases: a run of the tests takes a share of them, `make test-all` takes all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any, TypeVar
from zlib import crc32

Case = TypeVar("Case")
ALL = "STRATA_ALL_TESTS"
"""The environment variable that, set to 1, has all cases run."""


def all_asked() -> bool:
    """Whether the environment asks for all cases."""
    return os.environ.get(ALL) == "1"


LARGE = 24
"""The cases from which on a family is large."""


def some(cases: Iterable[Case], step: int | None = None) -> list[Case]:
    """One of each `step` cases, beginning with the first, by default 4, or 7 of a large family; all of them where the
    environment asks for it."""
    actual = list(cases)
    step = (4 if len(actual) <= LARGE else 7) if step is None else step
    return actual if all_asked() else actual[::step]


def sample_of(cases: Sequence[Case]) -> list[Case]:
    """A fourth of the cases, at least three, evenly spread from the first on; all where the environment asks for it."""
    count = len(cases) if all_asked() else min(len(cases), max(3, -(-len(cases) // 4)))
    return [cases[number * len(cases) // count] for number in range(count)]


def pairs(first: Sequence[Any], second: Sequence[Any]) -> list[tuple[Any, Any]]:
    """For each of the first one of the second, in turns; all pairs where the environment asks for it."""
    if all_asked():
        return list(product(first, second))
    return [(left, second[number % len(second)]) for number, left in enumerate(first)]


def is_drawn(name: str, step: int) -> bool:
    """Whether a name is among the one in `step` that its checksum draws; True where the environment asks for all."""
    return all_asked() or crc32(name.encode()) % step == 0
