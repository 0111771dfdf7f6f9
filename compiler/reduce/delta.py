"""Delta debugging: the smallest subset of a list that is found by removing ever smaller runs of it.

Source: A. Zeller, R. Hildebrandt, Simplifying and isolating failure-inducing input, TSE 2002; removal alone, as in
llvm-reduce.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def shortened(items: Sequence[Item], holds: Callable[[list[Item]], bool]) -> list[Item]:
    """Return a subset of `items`, in their order, for which `holds` is true and from which no single item can be
    removed. `holds` must be true for `items`; it is called for subsets only."""
    kept, size = list(items), len(items)
    while size and kept:
        start, removed = 0, False
        while start < len(kept):
            candidate = kept[:start] + kept[start + size :]
            if holds(candidate):
                kept, removed = candidate, True
            else:
                start += size
        if size == 1 and not removed:
            return kept
        size = min(max(1, size // 2) if not removed or size > 1 else 1, len(kept))
    return kept
