"""`Outcome`: the result of one candidate's trial, measured or not; `combine`: several outcomes of one candidate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median

from compiler.support import display
from compiler.support.text import duration
from compiler.targets.cpu.presence import QUIET, Disturbance

MEASURED = "measured"
ESTIMATED = "estimated"
"""A candidate that was checked and not run, for want of the machine: its seconds are an estimate."""
FAILURES = {
    "refused": "a step of its script does not apply",
    "unproved": "its schedule is not proved to compute the original",
    "build": "it could not be compiled",
    "wrong": "its results differ from the reference",
    "crash": "it ended the process that ran it",
    "timeout": "it ran for too long",
    "memory": "it asked for too much memory",
    "fault": "its kernels race, wait in vain, or leave their buffers",
    "spills": "its threads need more registers than there are",
}
"""How a candidate can fail, and what that says; whatever fails is recorded with its reason and never the best."""
WARM = "warm"
"""A timing: calls follow each other, and find their operands in the caches."""
NETWORK = "network"
"""A timing: constants come from memory, and other inputs were just written."""
TIMINGS = (WARM, NETWORK)
"""Where calls that are timed find their operands; costs of one timing say nothing about another's."""
PASSING = ("timeout", "memory")
"""Failures that may be the machine's: after a success they do not undo it. Any other ends a candidate for good."""


@dataclass(frozen=True)
class Outcome:
    """The result of one candidate's trial.

    `kind` is MEASURED or a key of FAILURES. `seconds` are times of single calls, each sample the mean of as many calls
    as one sample took. `rates` are what the machine could do beside each sample, in operations (or bytes) per second:
    a slow moment slows both. A probe of its ceiling says that, or another candidate of which the cost is known.
    `reason` says what failed. `build_seconds` is what applying, proving and compiling took. `disturbance` says how far
    the machine was busy with other work meanwhile; None where nobody has looked.
    """

    kind: str
    seconds: tuple[float, ...] = ()
    rates: tuple[float, ...] = ()
    reason: str = ""
    build_seconds: float = 0.0
    disturbance: Disturbance | None = None

    def __repr__(self) -> str:
        time = duration(median(self.seconds)) if self.ok and self.seconds else ""
        return display.line(": ".join(part for part in (self.kind, time or self.reason) if part))

    @property
    def ok(self) -> bool:
        """Whether its results are right, and its time is known, or estimated."""
        return self.kind in (MEASURED, ESTIMATED)

    @cached_property
    def cost(self) -> float:
        """The median of seconds times the rate beside them: the work that the ceiling would have done meanwhile, in
        operations (or bytes). Lower is better; comparable between moments of one machine. Infinite for a failure."""
        if not self.ok or not self.seconds:
            return float("inf")
        return median(s * r for s, r in zip(self.seconds, self.rates, strict=True))

    @property
    def ranks(self) -> bool:
        """Whether it has a cost that can be compared; one of zero says that a clock or a probe failed, not that it is
        fast."""
        return 0 < self.cost < float("inf")

    @property
    def stands(self) -> bool:
        """Whether it is a failure that ends its candidate, whatever else was measured of it."""
        return not self.ok and self.kind not in PASSING


def combine(outcomes: Sequence[Outcome]) -> Outcome:
    """One outcome of several of one candidate, at least one: all samples together, so that its cost is their median.

    A failure stands whatever else was measured, except a failure of PASSING: one wrong result makes a candidate wrong.
    """
    fatal = next((o for o in outcomes if o.stands), None)
    good = [o for o in outcomes if o.ok and o.seconds]
    if fatal is not None or not good:
        return fatal or outcomes[0]
    if len(good) == 1:
        return good[0]
    seconds = tuple(second for o in good for second in o.seconds)
    rates = tuple(rate for o in good for rate in o.rates)
    return replace(good[0], seconds=seconds, rates=rates, disturbance=together(o.disturbance for o in good))


def together(disturbances: Iterable[Disturbance | None]) -> Disturbance | None:
    """How far several measurements were disturbed; None where nothing is known of any."""
    measured = [disturbance for disturbance in disturbances if disturbance is not None]
    return sum(measured, QUIET) if measured else None
