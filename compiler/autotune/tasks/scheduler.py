"""`tune_together`: tasks that share the trials and the seconds of one run."""

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
from compiler.autotune.tasks.account import Account, Turn
from compiler.autotune.tasks.allocation import ALLOCATIONS, expected
from compiler.autotune.tasks.in_place import Contest, Finals, kept_seconds
from compiler.autotune.tuner import Run, TuningProblem, Workers
from compiler.database import Database, Record
from compiler.database.schema import MEMORY
from compiler.driver.reference.subject import cycles

SHORT = 4
"""The trials of a task's first turn, which shows where time goes."""


@dataclass(frozen=True)
class Weighted:
    """A task, and how often a run of the program calls what it tunes."""

    problem: TuningProblem
    weight: int

    @cached_property
    def estimate(self) -> float:
        """What a perfect implementation of all its calls takes, in cycles of one core."""
        return self.weight * cycles(self.problem.subject.program, self.problem.machine)


def tune_together(tasks: Sequence[Weighted], options: TuningOptions, finals: Finals | None = None) -> dict[str, Record]:
    """Tune tasks that share one budget, and give the best records by the names of their tasks.

    Each task has a short turn first, the largest tasks first; then turns go where `options.allocation` says, until the
    budget is spent or nothing more is promised. At the end `finals` are compared. An interruption ends the run and
    keeps all.
    """
    if not tasks:
        return {}
    with Database(options.path or MEMORY) as database, ExitStack() as stack:
        _Tasks(tasks, options, database, stack, finals).go()
        records = {task.problem.name: database.best(task.problem.key) for task in tasks}
    return {name: record for name, record in records.items() if record is not None}


@dataclass(frozen=True)
class _Begun:
    """A turn under way: its task, its start, and the state of the task then."""

    name: str
    at: float
    trials: int
    seconds: float | None
    promise: float | None


class _Tasks:
    """The runs of the tasks and their accounts, by name, the largest first."""

    def __init__(
        self,
        tasks: Sequence[Weighted],
        options: TuningOptions,
        database: Database,
        stack: ExitStack,
        finals: Finals | None,
    ) -> None:
        self.finals, self.database, self.whole_budget = finals, database, Budget(options)
        self.options, self.budget = options, Budget(options, self.whole_budget.began)
        self.allocation = ALLOCATIONS[options.allocation]
        self.log = stack.enter_context(LogFile(log_of(options.log, "turns")))
        self.workers = workers = stack.enter_context(Workers(options, tasks[0].problem.machine))
        self.flying: deque[_Begun] = deque()
        self.runs: dict[str, Run] = {}
        self.accounts: dict[str, Account] = {}
        for task in sorted(tasks, key=lambda task: task.estimate, reverse=True):
            name = task.problem.name
            options_of_task = replace(options, log=log_of(options.log, name))
            run = Run(task.problem, options_of_task, database, self.budget, workers)
            self.runs[name] = stack.enter_context(run)
            self.accounts[name] = Account(task.weight, task.estimate)
            self.budget.has(name, len({record.script for record in database.records(task.problem.key)}))
        self.scales: dict[str, float] = {}
        self.current = next(iter(self.runs.values()))

    def go(self) -> None:
        """A short turn of each task, further turns, then the conclusions; an interruption ends them."""
        try:
            with until(lambda: self.whole_budget.is_over):
                self.keep_seconds()
                for name in self.runs:
                    self.begin(name)
                while self.fly(self.options.seconds is not None):
                    self.end_turn()
                self.conclude()
                self.compare()
        except KeyboardInterrupt:
            self.current.say("interrupted")
        except TimeIsUp:
            self.current.say("done" if self.current.progress.measured else self.current.why_nothing())

    @property
    def ready(self) -> dict[str, Account]:
        """The tasks that may have a turn now."""
        return {name: self.accounts[name] for name, run in self.runs.items() if run.proposals and self.budget.wanted}

    def begin(self, name: str) -> None:
        """Prepare a task; an unmeasured one has a short turn."""
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
        """Let a task choose its next batch, of at most so many, and note what that promises."""
        run, account = self.runs[name], self.accounts[name]
        account.seconds = self.seconds(name)
        run.choose(most)
        account.promise = run.promise
        run.progress.promise = expected(account, self.accounts) if run.proposals else 0.0
        run.say("waiting for its turn" if run.proposals else run.why_nothing())

    def seconds(self, name: str) -> float | None:
        """The time of a call under the best, on a machine as fast as it was when the task was first measured."""
        best = self.runs[name].progress.best
        if best is None or not best.ranks:
            return None
        return best.cost * self.scales.setdefault(name, median(best.seconds) / best.cost)

    def fly(self, timed: bool) -> bool:
        """Begin turns of tasks until as many are under way as may be; whether there is one."""
        while len(self.flying) < self.workers.batches:
            chosen = self.allocation(self.ready, self.accounts, timed)
            if chosen is None:
                break
            self.begin_turn(chosen)
        return bool(self.flying)

    def begin_turn(self, name: str) -> None:
        """Let the workers measure what a task has chosen."""
        self.current, account = self.runs[name], self.accounts[name]
        run = self.current
        self.flying.append(_Begun(name, perf_counter(), len(run.trials), account.seconds, account.promise))
        run.begin_turn()

    def end_turn(self) -> None:
        """Take what the turn that was begun first has come to, and let its task choose again."""
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
        self.keep_seconds()
        self.choose(name)

    def conclude(self) -> None:
        """The leaders' turns of each task, in the time that is left in proportion to its part of the program's."""
        left = sum(account.together for account in self.accounts.values())
        for name, run in self.runs.items():
            self.current, together = run, self.accounts[name].together
            run.conclude(together / left if left else 0.0)
            left -= together

    def keep_seconds(self) -> None:
        """Keep seconds for the comparison at the end, by what trials took to build so far."""
        limit = self.options.seconds
        if self.finals is None or limit is None:
            return
        bests = [run.progress.best for run in self.runs.values()]
        known = [best.build_seconds for best in bests if best is not None] or [0.0]
        kept = kept_seconds(limit, len(bests) * mean(known))
        self.budget.options = replace(self.options, seconds=limit - kept)

    def compare(self) -> None:
        """Compare the finalists, if something was measured or nothing was chosen yet."""
        groups, current = {name: run.task for name, run in self.runs.items()}, self.current
        if self.finals is None:
            return
        if any(run.progress.measured for run in self.runs.values()) or self.finals.is_undecided(groups, self.database):
            contest = Contest(self.finals, groups, self.database, current.id, self.seconds_left, current.say)
            for current.progress.in_place in contest.hold():
                current.say()
            current.say("done")

    def seconds_left(self) -> float:
        """The seconds that are left of all."""
        return inf if self.options.seconds is None else self.whole_budget.last_turns()


def log_of(log: object, name: str) -> Path | None:
    """The file of a task's log, where one is stated for several: `LOG.group_3` of `layer.group_3`."""
    return None if log is None else Path(f"{log}.{name.rpartition('.')[2]}")
