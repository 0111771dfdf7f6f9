"""`Limits`: what a candidate may cost; `Sampling`: how long it is timed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sampling:
    """How a candidate is timed.

    A sample is as many calls as last `min_seconds`, at least one. There are `least` samples; more are taken, at most
    `most`, until the standard error of the median is below `spread` of it. None begins after `seconds`.
    """

    min_seconds: float = 0.01
    least: int = 3
    most: int = 12
    spread: float = 0.01
    seconds: float = 0.3


@dataclass(frozen=True)
class Limits:
    """The limits of one candidate.

    build_seconds: to apply, prove and compile it. run_seconds: to load, check and time it, or to take one sample of a
    comparison. memory_bytes: memory that its process may map beyond its size at the start. start_seconds: to start a
    worker, and for the reference.
    """

    build_seconds: float = 30.0
    run_seconds: float = 15.0
    memory_bytes: int = 4 << 30
    start_seconds: float = 300.0
    sampling: Sampling = Sampling()
