"""The outcomes that a second worker must confirm, and the one that counts if workers disagree.

Failures and new bests are rare, since the rules are sound: both are confirmed by a second worker if there is one.
Results are checked on random inputs with poisoned outputs, so that a right one is no accident. A worker that reports
the same candidate wrong computes wrongly itself. Of two times that differ by more than AGREE the longer one counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite

from compiler.database.outcome import Outcome, combine
from compiler.driver.reference.subject import Subject, least_seconds
from compiler.types.machines import Machine

AGREE = 2.0
"""Costs of one candidate on two workers of one model differ by less than this factor."""


@dataclass(frozen=True)
class WorkerClaim:
    """A worker's claim about a candidate: the outcome, and the worker that built it."""

    worker: str
    builder: str
    outcome: Outcome

    @property
    def blamed(self) -> str:
        """The worker at fault if the failure is not the candidate's: the builder of a failed build, else the worker."""
        return self.builder if self.outcome.kind in ("refused", "unproved", "build") else self.worker


@dataclass(frozen=True)
class AgreedOutcome:
    """The valid outcome of a candidate, and the workers at fault, by address with a reason: accused ones disagree with
    the others, liars compute wrongly."""

    outcome: Outcome
    accused: dict[str, str] = field(default_factory=dict)
    liars: dict[str, str] = field(default_factory=dict)


@dataclass
class Judge:
    """The judgement of workers' outcomes: which need confirmation by a second worker, and which are valid. `best`: the
    best cost of each subject so far."""

    best: dict[Subject, float] = field(default_factory=dict)

    def record_cost(self, subject: Subject, cost: float) -> None:
        """Set the best cost of a subject to `cost` if it is lower."""
        self.best[subject] = min(cost, self.best.get(subject, cost))

    def verdict(self, subject: Subject, said: Sequence[WorkerClaim], can_ask: bool) -> AgreedOutcome | None:
        """Return the valid outcome by the claims `said` about one candidate; None if another worker must confirm it,
        which happens only if `can_ask`."""
        verdict = _between(said, can_ask) if len(said) > 1 else self._alone(subject, said[0], can_ask)
        if verdict is not None and verdict.outcome.is_comparable:
            self.record_cost(subject, verdict.outcome.cost)
        return verdict

    def _alone(self, subject: Subject, said: WorkerClaim, can_ask: bool) -> AgreedOutcome | None:
        best = self.best.get(subject)
        doubted = not said.outcome.is_comparable or best is None or said.outcome.cost < best
        return None if doubted and can_ask else AgreedOutcome(said.outcome)


def implausibility(outcome: Outcome, subject: Subject, machine: Machine) -> str | None:
    """Explain in a sentence why no machine of a model can have measured an outcome, such as a time below the bound;
    None if one can have, or for a failure."""
    if not outcome.ok:
        return None
    shortest = least_seconds(subject.program, machine, subject.threads)
    for seconds, rate in zip(outcome.seconds, outcome.rates, strict=False):
        if not (isfinite(seconds) and isfinite(rate) and seconds > 0 and rate > 0):
            return f"it says that a call took {seconds:g} s"
        if seconds < shortest:
            return f"it says that a call took {seconds:.3g} s, and no such machine does it in {shortest:.3g} s"
    return None if outcome.seconds and len(outcome.seconds) == len(outcome.rates) else "it says nothing of the time"


def _between(claims: Sequence[WorkerClaim], can_ask: bool) -> AgreedOutcome | None:
    """Return the valid outcome of several claims: the first failure if all failed, a single time, or two merged times
    that agree. If no times agree: None if `can_ask`, so that another worker decides, else the slowest. Workers of other
    claims are accused; those of wrong results are liars.

    Times cost 1.0, 1.1 and 5.0: the slowest neighbours within AGREE are 1.0 and 1.1, which are merged; the worker of
    5.0 is accused.
    """
    right = [claim for claim in claims if claim.outcome.is_comparable]
    failed = [claim for claim in claims if not claim.outcome.is_comparable]
    if not right:
        return AgreedOutcome(failed[0].outcome)
    liars = {claim.blamed: _wrongly(claim, right[0]) for claim in failed if claim.outcome.kind == "wrong"}
    accused = {claim.blamed: _wrongly(claim, right[0]) for claim in failed if claim.outcome.kind != "wrong"}
    if len(right) == 1:
        return AgreedOutcome(right[0].outcome, accused, liars)
    by_cost = sorted(right, key=lambda claim: claim.outcome.cost)
    pairs = list(zip(by_cost[1:], by_cost, strict=False))
    agreed = [pair for pair in pairs if pair[0].outcome.cost < AGREE * pair[1].outcome.cost]
    if not agreed:
        if can_ask:
            return None
        slowest = by_cost[-1]
        accused |= {claim.worker: _faster(claim, slowest) for claim in by_cost[:-1]}
        return AgreedOutcome(slowest.outcome, accused, liars)
    pair = agreed[-1]
    accused |= {claim.worker: _faster(claim, pair[1]) for claim in by_cost if claim not in pair}
    return AgreedOutcome(combine([claim.outcome for claim in pair]), accused, liars)


def _wrongly(claim: WorkerClaim, right: WorkerClaim) -> str:
    kind, reason = claim.outcome.kind, claim.outcome.reason
    return f"it said '{kind}' of a candidate that is right on {right.worker} ({reason})"


def _faster(claim: WorkerClaim, right: WorkerClaim) -> str:
    return f"it said {claim.outcome.cost / right.outcome.cost:.2g} times the cost that {right.worker} has measured"
