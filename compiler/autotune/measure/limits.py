"""`Limits`: the time and memory limits of a candidate; `Sampling`: the number and length of its samples."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sampling:
    """The parameters of timing a candidate.

    A sample is the mean of as many calls as take `min_seconds`, at least one. `min_samples` to `max_samples` are
    taken, until the standard error of the median is below `spread` of it. No sample begins after `seconds`.
    """

    min_seconds: float = 0.01
    min_samples: int = 3
    max_samples: int = 12
    spread: float = 0.01
    seconds: float = 0.3


@dataclass(frozen=True)
class Limits:
    """The limits of one candidate.

    build_seconds: to apply, prove and compile it. run_seconds: to load, check and time it, or to take one sample of a
    comparison. memory_bytes: memory that its process may map beyond its size at the start. start_seconds: to start a
    worker, or to compute the reference. sampling: how its time is sampled.
    """

    build_seconds: float = 30.0
    run_seconds: float = 15.0
    memory_bytes: int = 4 << 30
    start_seconds: float = 300.0
    sampling: Sampling = Sampling()
