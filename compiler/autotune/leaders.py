"""`Leaders`: the candidates of the lowest costs, measured again in turns with each other."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

from compiler.autotune.budget import Budget
from compiler.autotune.display.progress import Progress
from compiler.autotune.measure.measurer import Measurer
from compiler.autotune.options import TuningOptions
from compiler.autotune.search import Search
from compiler.autotune.search.trials import Trials
from compiler.autotune.workers import checked
from compiler.database.outcome import Outcome
from compiler.space.candidates import Candidate
from compiler.space.space import SketchSpace
from compiler.types.processors import processors

if TYPE_CHECKING:
    from compiler.autotune.fleet.measurer import Fleet

LEADERS = 4
"""The number of leaders that are measured again in turns."""
ROUNDS = 7
"""The maximum number of rounds of a comparison; twice as many on a busy machine."""
NEAR = 1.5
"""Candidates slower than NEAR times the best are not measured again: noise cannot explain the gap."""


class RankedRun(Protocol):
    """The tuning run, a `TuningRun`, whose leaders are measured again: its options, search, trials and measurer."""

    options: TuningOptions
    budget: Budget
    progress: Progress
    trials: Trials[str]
    search: Search
    space: SketchSpace
    written: Candidate
    compared: str | None

    def report(self, phase: str | None = None) -> None:
        """Report the progress, at a new `phase` unless None."""

    def measurer(self) -> Measurer | Fleet:
        """The measurer of the task."""

    def record_outcome(self, candidate: Candidate, script: str, outcome: Outcome, predicted: float | None) -> None:
        """Record an outcome of a candidate's script. predicted: the cost that the model predicted; None without a
        prediction."""


class Leaders:
    """The leaders of a run, ranked by measuring them in turns: each round measures every one of them."""

    def __init__(self, run: RankedRun) -> None:
        self.run = run

    def measure_again(self, share: float | None = None) -> None:
        """Measure the leaders again, in turns with each other, and with the program as written if its cost is near.

        Without a `share` (half-way): once, in a third of the reserved seconds. With one (at the end): in that share of
        the remaining seconds, until each leader has enough measurements or the time is too short for two rounds.
        """
        while contenders := self.contenders():
            begun = perf_counter()
            budget = self.run.budget
            seconds = budget.halfway_turn_seconds if share is None else budget.final_turn_seconds(share)
            rounds = self.rounds(contenders, seconds)
            if rounds < 2:
                return
            self.run.report("measuring the leaders again")
            self.compare(contenders, rounds)
            budget.turn_seconds += perf_counter() - begun
            if share is None:
                return

    def compare_as_written(self, share: float) -> None:
        """Measure the best in turns with the program as written, for a share of the remaining seconds: only turns give
        an exact gain. Does nothing if the gain is exact already, if one of the two was not measured, or without time.
        """
        best, best_times = self.run.search.best, self.run.progress.best_times
        if best is None or best_times is None or best_times.is_exact or self.costs(self.run.written) == float("inf"):
            return
        pair = list(dict.fromkeys([best, self.run.written]))
        rounds = self.rounds(pair, self.run.budget.final_turn_seconds(share))
        if rounds:
            self.run.report("measuring the program as written again")
            self.compare(pair, rounds)

    def contenders(self) -> list[Candidate]:
        """The candidates of the next turns: leaders that need more measurements and cost at most NEAR times the best,
        the best, and the program as written if it costs as little; empty without such a leader."""
        best, outcome = self.run.search.best, self.run.search.best_outcome
        if best is None or outcome is None or len(self.run.search) < 2:
            return []
        leaders = [c for c in self.run.search.leaders(LEADERS) if self.costs(c) <= NEAR * outcome.cost]
        if not leaders:
            return []
        rivals = [best, self.run.written] if self.costs(self.run.written) <= NEAR * outcome.cost else [best]
        return list(dict.fromkeys([*leaders, *rivals]))

    def costs(self, candidate: Candidate) -> float:
        """The measured cost of a candidate; infinite without a comparable measurement."""
        script = self.run.space.script(candidate)
        outcome = self.run.trials.outcome(script) if script in self.run.trials else None
        return outcome.cost if outcome is not None and outcome.is_comparable else float("inf")

    def rounds(self, contenders: Sequence[Candidate], seconds: float) -> int:
        """The number of rounds that fit into some seconds, after all contenders are built and checked; at most ROUNDS,
        or twice as many on a busy machine; 0 if none fits. All contenders must have been measured.

        Two contenders that took 1 s to build, one builder, calls of 0.1 s, 4.5 s: 2 * (1 + 3 * 0.1) = 2.6 s pass before
        the first round, a round takes 2 * 2 * 0.1 = 0.4 s, so int((4.5 - 2.6) / 0.4) = 4 rounds.
        """
        outcomes = [self.run.trials.outcome(self.run.space.script(candidate)) for candidate in contenders]
        builders = self.run.options.builders or processors()
        before = sum(outcome.build_seconds / builders + 3 * median(outcome.seconds) for outcome in outcomes)
        a_round = sum(2 * max(median(outcome.seconds), 0.01) for outcome in outcomes)  # a sample, then its probe
        disturbance = self.run.progress.disturbance
        limit = 2 * ROUNDS if disturbance is not None and disturbance.matters else ROUNDS
        return max(0, min(limit, int((seconds - before) / a_round)))

    def compare(self, contenders: Sequence[Candidate], rounds: int) -> None:
        """Measure candidates in turns, each once a round, and record the outcomes. If the best and the program as
        written took part and were measured, they become `compared` of the progress."""
        measurer = self.run.measurer()
        scripts = [self.run.space.script(candidate) for candidate in contenders]
        outcomes = checked(lambda: measurer.compare(scripts, rounds))
        for candidate, script, outcome in zip(contenders, scripts, outcomes, strict=True):
            self.run.record_outcome(candidate, script, outcome, None)
        turns = dict(zip(scripts, outcomes, strict=True))
        (leader,) = self.run.trials.best(1) or [""]
        baseline, best = turns.get(self.run.space.script(self.run.written)), turns.get(leader)
        if baseline is not None and best is not None and baseline.is_comparable and best.is_comparable:
            self.run.compared = leader
            self.run.progress.compared = baseline, best
        self.run.report()
