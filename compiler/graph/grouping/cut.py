"""Split groups that are too large at the positions with the fewest live bytes."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.graph.grouping.facts import scalar_operations, size
from compiler.graph.grouping.view import View

MOST_COMPUTES = 64
"""The most computes of a group."""
MOST_OPERATIONS = 512
"""The most scalar operations of a group; a single compute with more is a group of its own."""


def cut(view: View, group: Sequence[str]) -> list[list[str]]:
    """Split a group, in graph order, into parts within MOST_COMPUTES and MOST_OPERATIONS, with the fewest bytes live at
    the cuts; a compute above MOST_OPERATIONS is a part by itself. A group within the bounds is the only part."""
    operations = [scalar_operations(view.block(name)) for name in group]
    if len(group) <= MOST_COMPUTES and sum(operations) <= MOST_OPERATIONS:
        return [list(group)]
    live = _live(view, group)
    total, begin = [0], [0]
    for end in range(1, len(group) + 1):
        count = 0
        starts: list[int] = []
        for start in range(end - 1, max(-1, end - 1 - MOST_COMPUTES), -1):
            count += operations[start]
            if starts and count > MOST_OPERATIONS:
                break
            starts.append(start)
        best = min(starts, key=lambda start: (total[start], start))
        total.append(total[best] + live[end])
        begin.append(best)
    parts: list[list[str]] = []
    end = len(group)
    while end:
        parts.append(list(group[begin[end] : end]))
        end = begin[end]
    return parts[::-1]


def _live(view: View, group: Sequence[str]) -> list[int]:
    """For each position 0 ... len(group), the bytes of values computed in the group before it and read in the group at
    or after it."""
    positions = {name: n for n, name in enumerate(group)}
    change = [0] * (len(group) + 2)
    for n, name in enumerate(group):
        last = max((positions[r] for r in view.readers(name) if r in positions), default=n)
        bytes = sum(map(size, view.nodes[name].results))
        change[n + 1] += bytes
        change[last + 1] -= bytes
    live, live_bytes = [], 0
    for delta in change[: len(group) + 1]:
        live_bytes += delta
        live.append(live_bytes)
    return live
