"""`LinearValue`: an SSA value as a linear form of registers, and as numbers of the sampled threads."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Lanes: TypeAlias = NDArray[np.int64] | NDArray[np.bool_] | int | bool | None
"""The number of each sampled thread, or of all of them; None if it is unknown."""
Terms: TypeAlias = tuple[tuple[Hashable, int], ...]


@dataclass(frozen=True, slots=True)
class LinearValue:
    """A sum of registers times factors, and of a constant, which costs no instruction. terms: (register, factor),
    sorted. lanes: the integers of the sampled threads, None if unknown."""

    terms: Terms
    constant: int = 0
    lanes: Lanes = None

    @property
    def is_constant(self) -> bool:
        """Whether the sum has no register."""
        return not self.terms


def register(key: Hashable, lanes: Lanes = None) -> LinearValue:
    """Return the value of the register `key`; lanes: its integers in the sampled threads, None if unknown."""
    return LinearValue(((key, 1),), 0, lanes)


def number(value: int) -> LinearValue:
    """Return a constant integer."""
    return LinearValue((), value, value)


def added(a: LinearValue, b: LinearValue, sign: int = 1) -> LinearValue:
    """Return a + sign * b, with `sign` 1 or -1, of which the numbers of threads are unknown if those of a or b are."""
    factors = dict(a.terms)
    for key, factor in b.terms:
        factors[key] = factors.get(key, 0) + sign * factor
    terms = tuple(sorted(((k, f) for k, f in factors.items() if f), key=_order))
    lanes = None if a.lanes is None or b.lanes is None else a.lanes + sign * b.lanes
    return LinearValue(terms, a.constant + sign * b.constant, lanes)


def times(a: LinearValue, factor: int) -> LinearValue:
    """Return a * factor."""
    terms = tuple((key, f * factor) for key, f in a.terms) if factor else ()
    return LinearValue(terms, a.constant * factor, None if a.lanes is None else a.lanes * factor)


def _order(term: tuple[Hashable, int]) -> int:
    return hash(term[0])
