"""`Outcome`: the result of a trial; `combine`: merge the outcomes of one candidate."""

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
"""The kind of a candidate that was checked but not run, without the machine: its seconds are estimates."""
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
"""Kinds of failure and their descriptions; a failed candidate is recorded with its reason and never the best."""
WARM = "warm"
"""The timing of back-to-back calls, with operands in the caches."""
NETWORK = "network"
"""The timing of calls as in a network: constants come from memory, other inputs were just written."""
TIMINGS = (WARM, NETWORK)
"""The kinds of timing; costs of different timings are not comparable."""
PASSING = ("timeout", "memory")
"""Failures that may be the machine's fault: they do not override a success. All others are final."""


@dataclass(frozen=True)
class Outcome:
    """The result of a trial.

    kind: MEASURED, ESTIMATED or a key of FAILURES. seconds: samples of the time of a call, each the mean of the calls
    of a sample. rates: the machine's rate beside each sample, in operations (or bytes) per second, from a probe of its
    ceiling or a candidate of known cost; a slow moment slows both. reason: the cause of a failure. build_seconds: the
    time to apply, prove and compile the script. disturbance: the load of other work meanwhile; None if not measured.
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
        """Whether the results are right and the time is measured or estimated."""
        return self.kind in (MEASURED, ESTIMATED)

    @cached_property
    def cost(self) -> float:
        """The median of seconds * rate over the samples: the operations (or bytes) that the machine could do in that
        time. Lower is better; comparable across slow and fast moments. Infinite for a failure and without samples."""
        if not self.ok or not self.seconds:
            return float("inf")
        return median(s * r for s, r in zip(self.seconds, self.rates, strict=True))

    @property
    def is_comparable(self) -> bool:
        """Whether the cost is finite and above 0; a cost of 0 means that a clock or a probe failed."""
        return 0 < self.cost < float("inf")

    @property
    def is_final(self) -> bool:
        """Whether this is a failure that rules out its candidate, whatever its other outcomes: one not in PASSING."""
        return not self.ok and self.kind not in PASSING


def combine(outcomes: Sequence[Outcome]) -> Outcome:
    """Merge one or more outcomes of one candidate: the result has all samples of the successes, their median as its
    cost, and the sum of their disturbances; its other fields are the first success's. A final failure takes precedence:
    one wrong result makes a candidate wrong. If none has samples, return the first."""
    fatal = next((o for o in outcomes if o.is_final), None)
    good = [o for o in outcomes if o.ok and o.seconds]
    if fatal is not None or not good:
        return fatal or outcomes[0]
    if len(good) == 1:
        return good[0]
    seconds = tuple(second for o in good for second in o.seconds)
    rates = tuple(rate for o in good for rate in o.rates)
    return replace(good[0], seconds=seconds, rates=rates, disturbance=total_disturbance(o.disturbance for o in good))


def total_disturbance(disturbances: Iterable[Disturbance | None]) -> Disturbance | None:
    """The sum of the disturbances that were measured; None if all are None."""
    measured = [disturbance for disturbance in disturbances if disturbance is not None]
    return sum(measured, QUIET) if measured else None
