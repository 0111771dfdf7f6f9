"""`tune_together`: tune several tasks that share the trials and seconds of one run."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from pathlib import Path
from statistics import mean, median
from time import perf_counter

from compiler.autotune.budget import Budget
from compiler.autotune.deadline import TimeIsUp, until
from compiler.autotune.options import TuningOptions
from compiler.autotune.search.log import LogFile
from compiler.autotune.tasks.allocation import ALLOCATIONS, expected_saving
from compiler.autotune.tasks.in_place import ComparisonSetup, InPlaceComparison, comparison_seconds
from compiler.autotune.tasks.task_state import TaskState, Turn
from compiler.autotune.tuner import TuningProblem, TuningRun
from compiler.autotune.workers import Workers
from compiler.database import Database, Record
from compiler.database.schema import MEMORY
from compiler.driver.reference.subject import cycles

SHORT = 4
"""The maximum trials of a task's first turn, which measures its share of the program's time."""


@dataclass(frozen=True)
class WeightedTask:
    """A task, and the number of calls of its group in a run of the program."""

    problem: TuningProblem
    weight: int

    @cached_property
    def estimate(self) -> float:
        """The cycles of one core that a perfect implementation takes for all its calls."""
        return self.weight * cycles(self.problem.subject.program, self.problem.machine)


def tune_together(
    tasks: Sequence[WeightedTask], options: TuningOptions, finals: ComparisonSetup | None = None
) -> dict[str, Record]:
    """Tune tasks that share one budget, and return their best records by task name; tasks without one are left out.

    Each task has a short turn first, the largest tasks first; then `options.allocation` picks the tasks of turns, until
    the budget is spent or no task promises a gain. At the end the groups of `finals` are compared inside the program;
    None compares nothing. An interruption ends the run; its records stay.
    """
    if not tasks:
        return {}
    with Database(options.path or MEMORY) as database, ExitStack() as stack:
        _Tasks(tasks, options, database, stack, finals).go()
        records = {task.problem.name: database.best(task.problem.key) for task in tasks}
    return {name: record for name, record in records.items() if record is not None}


@dataclass(frozen=True)
class _Begun:
    """A turn in flight: its task, its start (`at`, by `perf_counter`), and the task's trials, seconds of a call and
    promise at that time."""

    name: str
    at: float
    trials: int
    seconds: float | None
    promise: float | None


class _Tasks:
    """The runs and the accounts (TaskState) of the tasks, by name, the largest estimate first."""

    def __init__(
        self,
        tasks: Sequence[WeightedTask],
        options: TuningOptions,
        database: Database,
        stack: ExitStack,
        finals: ComparisonSetup | None,
    ) -> None:
        self.finals, self.database, self.whole_budget = finals, database, Budget(options)
        self.options, self.budget = options, Budget(options, self.whole_budget.began)
        self.allocation = ALLOCATIONS[options.allocation]
        self.log = stack.enter_context(LogFile(log_of(options.log, "turns")))
        self.workers = workers = stack.enter_context(Workers(options, tasks[0].problem.machine))
        self.flying: deque[_Begun] = deque()
        self.runs: dict[str, TuningRun] = {}
        self.accounts: dict[str, TaskState] = {}
        for task in sorted(tasks, key=lambda task: task.estimate, reverse=True):
            name = task.problem.name
            options_of_task = replace(options, log=log_of(options.log, name))
            run = TuningRun(task.problem, options_of_task, database, self.budget, workers)
            self.runs[name] = stack.enter_context(run)
            self.accounts[name] = TaskState(task.weight, task.estimate)
            self.budget.record_trials(name, len({record.script for record in database.records(task.problem.key)}))
        self.scales: dict[str, float] = {}
        self.current = next(iter(self.runs.values()))

    def go(self) -> None:
        """Tune all tasks: a short turn of each, turns until the budget is spent, the last measurements of leaders, and
        the comparison inside the program. An interruption or the time limit ends this early."""
        try:
            with until(lambda: self.whole_budget.is_over):
                self.reserve_comparison()
                for name in self.runs:
                    self.begin(name)
                while self.fly(self.options.seconds is not None):
                    self.end_turn()
                self.conclude()
                self.compare()
        except KeyboardInterrupt:
            self.current.report("interrupted")
        except TimeIsUp:
            self.current.report("done" if self.current.progress.measured else self.current.failure_reason())

    @property
    def ready(self) -> dict[str, TaskState]:
        """The accounts, by name, of the tasks that have proposals, while the budget lasts."""
        return {
            name: self.accounts[name]
            for name, run in self.runs.items()
            if run.proposals and self.budget.next_batch_size
        }

    def begin(self, name: str) -> None:
        """Prepare a task and select it; begin a short turn of it if it has no measurement. While too many turns are in
        flight, end the earliest."""
        self.current = run = self.runs[name]
        run.prepare()
        is_new = self.seconds(name) is None
        self.choose(name, self.short if is_new else None)
        if is_new and run.proposals:
            self.begin_turn(name)
            while len(self.flying) >= self.workers.batches:
                self.end_turn()

    @property
    def short(self) -> int:
        """The trials of a task's first turn: all first turns together take half of the trials at most."""
        trials = self.options.trials
        return SHORT if trials is None else max(1, min(SHORT, trials // (2 * len(self.runs))))

    def choose(self, name: str, most: int | None = None) -> None:
        """Choose the next batch of a task, at most `most` candidates (None: `options.batch`); update its account, and
        report."""
        run, account = self.runs[name], self.accounts[name]
        account.seconds = self.seconds(name)
        run.choose(most)
        account.promise = run.promise
        run.progress.promise = expected_saving(account, self.accounts) if run.proposals else 0.0
        run.report("waiting for its turn" if run.proposals else run.failure_reason())

    def seconds(self, name: str) -> float | None:
        """The seconds of a call of the best, at the machine's rate of the task's first measurement; None before."""
        best = self.runs[name].progress.best
        if best is None or not best.is_comparable:
            return None
        return best.cost * self.scales.setdefault(name, median(best.seconds) / best.cost)

    def fly(self, timed: bool) -> bool:
        """Begin turns up to the limit of batches in flight; return whether one is in flight. timed: whether seconds are
        limited, for the allocation rule."""
        while len(self.flying) < self.workers.batches:
            chosen = self.allocation(self.ready, self.accounts, timed)
            if chosen is None:
                break
            self.begin_turn(chosen)
        return bool(self.flying)

    def begin_turn(self, name: str) -> None:
        """Submit the chosen batch of a task to the workers, and record the state of its account in `flying`."""
        self.current, account = self.runs[name], self.accounts[name]
        run = self.current
        self.flying.append(_Begun(name, perf_counter(), len(run.trials), account.seconds, account.promise))
        run.begin_turn()

    def end_turn(self) -> None:
        """Record the earliest turn, update its task's account, and choose the task's next batch."""
        begun = self.flying.popleft()
        name, account = begun.name, self.accounts[begun.name]
        self.current = run = self.runs[name]
        run.end_turn()
        turn = Turn(
            task=name,
            weight=account.weight,
            promise=begun.promise,
            before=begun.seconds,
            after=self.seconds(name),
            count=len(run.trials) - begun.trials,
            took=perf_counter() - begun.at,
        )
        account.add(turn)
        self.log.write([turn.line()])
        self.reserve_comparison()
        self.choose(name)

    def conclude(self) -> None:
        """Measure the leaders of each task a last time; its share of the remaining seconds is proportional to its time
        in the program."""
        remaining = sum(account.total_seconds for account in self.accounts.values())
        for name, run in self.runs.items():
            self.current, together = run, self.accounts[name].total_seconds
            run.conclude(together / remaining if remaining else 0.0)
            remaining -= together

    def reserve_comparison(self) -> None:
        """Reserve seconds for the comparison at the end, by the mean build time of the best candidates so far; none
        without a limit of seconds or a comparison."""
        limit = self.options.seconds
        if self.finals is None or limit is None:
            return
        bests = [run.progress.best for run in self.runs.values()]
        build_times = [best.build_seconds for best in bests if best is not None] or [0.0]
        reserved = comparison_seconds(limit, len(bests) * mean(build_times))
        self.budget.options = replace(self.options, seconds=limit - reserved)

    def compare(self) -> None:
        """Compare default and record of each group inside the program, if this run measured, or if a best record was
        not compared yet. Does nothing without `finals`."""
        groups, current = {name: run.task for name, run in self.runs.items()}, self.current
        if self.finals is None:
            return
        if any(run.progress.measured for run in self.runs.values()) or self.finals.is_undecided(groups, self.database):
            contest = InPlaceComparison(
                self.finals, groups, self.database, current.id, self.seconds_left, current.report
            )
            for current.progress.in_place in contest.measure():
                current.report()
            current.report("done")

    def seconds_left(self) -> float:
        """The remaining seconds of the whole run; infinite without a limit."""
        return inf if self.options.seconds is None else self.whole_budget.final_turn_seconds()


def log_of(log: object, name: str) -> Path | None:
    """The log file of one of several tasks: `LOG.group_3` for `layer.group_3`; None without a log."""
    return None if log is None else Path(f"{log}.{name.rpartition('.')[2]}")
