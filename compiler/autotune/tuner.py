"""The tuning loop: propose candidates, measure them, record the outcomes, until the budget is spent.

Half-way and at the end the leaders are measured again, in turns with each other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from math import exp
from time import perf_counter
from typing import TYPE_CHECKING
from uuid import uuid4

from compiler.autotune.budget import DESCENT, HALF, Budget
from compiler.autotune.deadline import TimeIsUp, until
from compiler.autotune.display.facts import WRITTEN
from compiler.autotune.display.progress import Progress
from compiler.autotune.leaders import Leaders
from compiler.autotune.measure.measurer import Measurer
from compiler.autotune.options import TuningOptions
from compiler.autotune.search import Proposal, Search
from compiler.autotune.search.log import LogFile
from compiler.autotune.search.trials import Trials
from compiler.autotune.search.warm_start import SECONDS, warm_starts
from compiler.autotune.workers import Workers, checked, outcomes_of
from compiler.database import Database, Key, Record
from compiler.database.outcome import Outcome, total_disturbance
from compiler.database.schema import MEMORY
from compiler.driver.reference.subject import Subject
from compiler.space.candidates import Candidate, candidate_count, is_in_space
from compiler.space.sketch import Sketch
from compiler.space.space import SketchSpace
from compiler.types.machines import Gpu, Machine

if TYPE_CHECKING:
    from compiler.autotune.fleet.measurer import Fleet

TELLS = 8
"""The minimum number of tried scripts for turns half-way: the ranking of fewer is too uncertain to refine."""


@dataclass(frozen=True)
class TuningProblem:
    """The input of a tuning run: the subject that workers build and time, and its sketches on a machine.

    name, key, program: the task's name, key and program text in its records. machine: for which sketches are derived.
    estimated: whether costs are estimates, because the machine is not present. written: returns the script of the
    program as written. sketches: derives the sketches, the program as written last. notes: returns sentences about
    plugin rules that added no sketch.
    """

    name: str
    key: Key
    program: str
    machine: Machine | Gpu
    estimated: bool
    subject: Subject
    sketches: Callable[[], Sequence[Sketch]]
    written: Callable[[], str] = str
    notes: Callable[[], Sequence[str]] = tuple


def tune(task: TuningProblem, options: TuningOptions) -> Record | None:
    """Search until the budget is spent or all feasible candidates are tried, and return the task's best record, that of
    earlier runs included; None without one. An interruption ends the search. Records are in memory only if
    `options.path` is None."""
    with Database(options.path or MEMORY) as database:
        search(task, options, database)
        return database.best(task.key)


def search(task: TuningProblem, options: TuningOptions, database: Database) -> bool:
    """Search until the budget is spent or all feasible candidates are tried; record each outcome in the database.
    Return False if interrupted, else True."""
    budget = Budget(options)
    with Workers(options, task.machine) as workers, TuningRun(task, options, database, budget, workers) as run:
        try:
            with until(lambda: budget.is_over):
                run.run()
        except KeyboardInterrupt:
            run.report("interrupted")
            return False
        except TimeIsUp:
            run.report("done" if run.progress.measured else run.failure_reason())
    return True


@dataclass(frozen=True)
class _Flight:
    """A batch in flight: its proposals, their scripts, the outcomes as they arrive, and its start (`perf_counter`)."""

    proposals: Sequence[Proposal]
    scripts: Sequence[str]
    outcomes: Generator[tuple[int, Outcome]]
    begun: float


class TuningRun:
    """The tuning of one task, batch by batch.

    Several runs may share a budget and workers, their turns interleaved. Each calls `prepare` first, then `begin_turn`
    and `end_turn` while `choose` returns proposals, and `conclude` last.
    """

    def __init__(
        self, task: TuningProblem, options: TuningOptions, database: Database, budget: Budget, workers: Workers
    ) -> None:
        self.task, self.options, self.database = task, options, database
        self.budget, self.workers = budget, workers
        self.id = str(uuid4())
        self.progress = Progress(task.name, options.trials, options.seconds)
        self.trials: Trials[str] = Trials()
        self.proposals: list[Proposal] = []
        self.flights: deque[_Flight] = deque()
        self.log = LogFile(options.log)
        self.compared: str | None = None
        self.candidates: dict[str, Candidate] = {}
        self.leaders = Leaders(self)

    def __enter__(self) -> TuningRun:
        self.log.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.log.__exit__(*error)

    def report(self, phase: str | None = None) -> None:
        """Update the seconds and notes of the progress, and call the callbacks with it. A `phase` replaces the current
        phase and clears its step."""
        if phase is not None:
            self.progress.phase, self.progress.step = phase, ""
        self.progress.seconds = self.budget.seconds
        self.progress.notes = self.workers.notes
        for callback in self.options.callbacks:
            callback(self.progress)

    def run(self) -> None:
        """Tune this task alone: read the database, measure batches, with the leaders' turns at the end, and half-way if
        at least TELLS scripts were tried and less than HALF of the budget was spent before."""
        self.prepare()
        halfway = self.budget.spent_share < HALF
        while self.begin_batches():
            self.end_turn()
            if halfway and self.budget.spent_share >= HALF and len(self.trials) >= TELLS:
                halfway = False
                self.leaders.measure_again()
        self.conclude()

    def conclude(self, share: float = 1.0) -> None:
        """Measure the leaders, then the best and the program as written, a last time in a share of the remaining
        seconds; if this run measured nothing, only report why."""
        if not self.progress.measured:
            self.report(self.failure_reason())
            return
        self.leaders.measure_again(share)
        self.leaders.compare_as_written(share)
        self.report("done")

    @property
    def promise(self) -> float | None:
        """The largest expected decrease of the best log cost among the chosen proposals; None without a prediction."""
        improvements = [proposal.improvement for proposal in self.proposals if proposal.improvement is not None]
        return max(improvements, default=None)

    # --- what is known ----------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Derive the space, and learn the records of the task and of similar tasks. If the budget is spent already and
        no search log is requested, only read the task's records.

        Each run derives a separate space: a space evaluates candidates lazily, so that its answers depend on the order
        of requests, and a shared one would make the log depend on other runs.
        """
        self.budget.record_trials(
            self.task.name, len({record.script for record in self.database.records(self.task.key)})
        )
        if not self.budget.next_batch_size and self.options.log is None:
            self.learn_records()
            return
        self.report("deriving sketches")
        task = self.task
        self.space = SketchSpace(task.sketches(), task.machine, task.estimated, threads=task.key.threads)
        self.progress.rules = list(task.notes())
        self.written: Candidate = (len(self.space.sketches) - 1, ())
        self.progress.sketches = len(self.space.sketches)
        self.progress.candidates = candidate_count(self.space.sizes)
        self.candidates[self.space.script(self.written)] = self.written
        self.seen, self.descending = 0, not self.options.search.descent
        self.report("learning from earlier tasks")
        seconds = SECONDS if self.options.seconds is None else min(SECONDS, self.options.seconds / 20)
        past_tasks = warm_starts(self.database, task.key, task.program, task.machine, seconds)
        self.search = Search(self.space, self.options.seed, self.options.search, past_tasks)
        self.learn_new_records()
        self.progress.earlier = len(self.trials)

    def learn_records(self) -> None:
        """Learn the records of the task, and show its best, without deriving its space."""
        self.report("reading the database")
        records = self.database.records(self.task.key)
        written = self.task.written() if records else ""
        for record in records:
            self.learn(None, record.script, record.outcome)
        if written in self.trials and self.trials.ranks(written):
            self.progress.baseline = self.trials.outcome(written)
        self.update_best()
        if self.trials.best(1) == [written]:
            self.progress.sketch = WRITTEN
        self.progress.earlier = len(self.trials)

    def learn_new_records(self) -> None:
        """Learn the records that other runs have added to the database since the previous call, at first all records;
        update the progress."""
        for record in self.database.records(self.task.key, after=self.seen):
            self.seen = record.id
            if record.run != self.id:
                candidate = self.candidate_of(record)
                script = record.script if candidate is None else self.space.script(candidate)
                self.learn(candidate, script, record.outcome)
        self.update_progress()

    def candidate_of(self, record: Record) -> Candidate | None:
        """The candidate of this space with a record's script: the one that was tried with this script, else the
        record's own candidate. None if the record has none, or if its script is another in this space because rules
        have changed."""
        candidate = self.candidates.get(record.script)
        if candidate is not None or record.candidate is None or not is_in_space(self.space.sizes, record.candidate):
            return candidate
        scripts = self.space.script_with_includes(record.candidate), self.space.script(record.candidate)
        return record.candidate if record.script in scripts else None

    def learn(self, candidate: Candidate | None, script: str, outcome: Outcome) -> None:
        """Count an outcome of a script as a trial, and update the search with it, preceded by the script's earlier
        outcomes if the search lacks them. candidate: None for a script outside the space, which only counts as a trial.
        A measured outcome of the program as written becomes the baseline."""
        before = self.trials.outcome(script) if script in self.trials else None
        after = self.trials.add(script, outcome)
        self.budget.record_trials(self.task.name, len(self.trials))
        self.progress.record(before, after)
        if candidate is not None:
            if before is not None and script not in self.candidates:
                self.search.update(candidate, before)
            self.candidates[script] = candidate
            self.search.update(candidate, outcome)
            if candidate == self.written and after.is_comparable:
                self.progress.baseline = after

    def update_progress(self) -> None:
        """Copy the state of the search into the progress, and append the new lines of its log to the log file."""
        progress, search = self.progress, self.search
        self.update_best()
        progress.infeasible = search.infeasible
        progress.prior_tasks = search.prior_tasks
        progress.quality = search.quality.line()
        progress.accuracy = search.quality.pairs.accuracy
        self.log.write(search.log_lines(self.log.written))

    def update_best(self) -> None:
        """Copy the best script's outcome and the name of its sketch (empty for a script not of the space) into the
        progress; a lower cost adds a point to its curve. Does nothing without a measured script."""
        progress = self.progress
        for script in self.trials.best(1):
            outcome = self.trials.outcome(script)
            if progress.best is None or outcome.cost < progress.best.cost:
                progress.curve.append((progress.trials, outcome.cost))
            progress.best = outcome
            if script != self.compared:
                progress.compared = None
            candidate = self.candidates.get(script)
            progress.sketch = "" if candidate is None else self.space.sketches[candidate[0]].name

    def failure_reason(self) -> str:
        """A sentence that states why this run measured nothing."""
        if self.options.trials is not None and self.budget.trials >= self.options.trials:
            return f"nothing to measure: the database has {self.budget.trials} of {self.options.trials} trials"
        if not self.budget.has_search_time:
            return "nothing was measured: the time was spent before"
        return f"nothing to measure: all that is feasible has been tried, {len(self.trials)} trials"

    # --- trials -----------------------------------------------------------------------------------------------------

    def choose(self, most: int | None = None) -> list[Proposal]:
        """Choose the next proposals, at most `most` (None: a batch), as `proposals`, and return them; none when the
        budget or the space is exhausted. Proposals whose scripts another run has tried are left out. From DESCENT of
        the budget on, the search descends."""
        self.proposals = []
        while not self.proposals and (count := min(self.budget.next_batch_size, most or self.options.batch)):
            self.report("choosing candidates")
            if not self.descending and self.budget.spent_share >= DESCENT:
                self.descending = True
                self.search.descend()
            proposals = self.search.propose(count)
            self.learn_new_records()
            self.proposals = [proposal for proposal in proposals if not self.is_known(proposal)]
            if not proposals:
                break
        return self.proposals

    def is_known(self, proposal: Proposal) -> bool:
        """Whether another run has tried a proposal since it was chosen; if so, the search learns its outcome."""
        script, short = self.space.script(proposal.candidate), self.space.script_with_includes(proposal.candidate)
        tried = next((text for text in (script, short) if text in self.trials), None)
        if tried is None:
            return False
        if proposal.candidate in self.search.pending:
            self.search.update(proposal.candidate, self.trials.outcome(tried))
            self.candidates[script] = proposal.candidate
        return True

    def begin_batches(self) -> bool:
        """Begin batches up to the limit of those in flight; return whether one is in flight."""
        while len(self.flights) < self.workers.batches and self.choose():
            self.begin_turn()
        return bool(self.flights)

    def measurer(self) -> Measurer | Fleet:
        """The measurer of this task; its workers start with the first task. Raises TargetError if they cannot start."""
        return self.workers.measurer_for(self.task.subject, self.calibrate)

    def calibrate(self, measurer: Measurer | Fleet) -> None:
        """Make the best candidate of earlier runs, if there is one, the yardstick of the next measurements."""
        best, outcome = self.search.best, self.search.best_outcome
        if best is not None and outcome is not None:
            measurer.calibrate(self.space.script(best), outcome.cost)

    def begin_turn(self) -> None:
        """Pass the chosen proposals to the workers, as many as the budget still has. A cluster begins at once, local
        workers begin in `end_turn`."""
        self.report("starting workers")
        measurer, proposals = self.measurer(), self.proposals[: self.budget.next_batch_size]
        self.report("building and measuring")
        scripts = [self.space.script(proposal.candidate) for proposal in proposals]
        outcomes = checked(partial(measurer.measure, scripts, self.step))
        self.flights.append(_Flight(proposals, scripts, outcomes, perf_counter()))
        self.budget.in_flight += len(proposals)
        self.proposals = []

    def step(self, words: str) -> None:
        """Report the progress within a batch, such as `building 3 of 8`."""
        self.progress.step = words
        self.report()

    def end_turn(self) -> None:
        """Record the outcomes of the earliest batch in flight, each on disk before it is reported. Drop the remaining
        ones when the seconds for trials are spent."""
        flight, count = self.flights.popleft(), 0
        with closing(flight.outcomes), closing(outcomes_of(flight.outcomes)) as arriving:
            for position, outcome in arriving:
                proposal, script = flight.proposals[position], flight.scripts[position]
                self.budget.in_flight -= 1
                self.record_outcome(
                    proposal.candidate, script, outcome, None if proposal.cost is None else exp(proposal.cost)
                )
                self.progress.measured += 1
                self.report()
                count += 1
                if not self.budget.has_search_time:
                    break
        self.budget.in_flight -= len(flight.proposals) - count
        self.budget.add_trials(count, perf_counter() - flight.begun)
        if not self.flights:
            self.search.release()
        self.learn_new_records()

    def record_outcome(self, candidate: Candidate, script: str, outcome: Outcome, predicted: float | None) -> None:
        """Add an outcome to the database, then teach it to the search. predicted: the cost by the model, if any."""
        task, seed, short = self.task, self.options.seed, self.space.script_with_includes(candidate)
        record = Record(task.key, task.name, task.program, short, outcome, candidate, predicted, seed, self.id)
        self.database.add(record)
        self.progress.disturbance = total_disturbance((self.progress.disturbance, outcome.disturbance))
        self.learn(candidate, script, outcome)
        self.update_progress()
