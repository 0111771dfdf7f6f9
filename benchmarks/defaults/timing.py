"""CPU time of one thread, which a neighbour on the machine changes little."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

BURST = 4e-3
"""Seconds of CPU time that the calls of a sample last, at least."""


def least(calls: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """The least CPU seconds of each call, of `rounds` samples taken in turns."""
    by_call: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for samples, call in zip(by_call, calls, strict=True):
            samples.append(taken(call))
    return [min(samples) for samples in by_call]


def taken(call: Callable[[], object]) -> float:
    """CPU seconds of a call: the mean of enough calls in succession to last BURST seconds, after one that is not timed
    and fills the caches."""
    call()
    count = 1
    while True:
        start = time.process_time()
        for _ in range(count):
            call()
        spent = time.process_time() - start
        if spent >= BURST:
            return spent / count
        count = max(2 * count, int(1.2 * count * BURST / max(spent, 1e-6)))
