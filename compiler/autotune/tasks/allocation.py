"""The rules that pick the task of the next turn.

Source: the task scheduler of Ansor (Zheng et al., 2020), which estimates gains from the slope of each task's curve and
from similar tasks. Here the estimate is a weighted mean of two terms: the recent gain of the task's turns, and the
expected improvement of its next batch, scaled by the ratio of actual to expected improvement so far.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from compiler.autotune.tasks.task_state import TaskState

HABIT = 0.8
"""The weight of the task's usual gain in the expectation; the remainder is the weight of the model's promise."""
UNTOLD = 0.2
"""The promise of a batch (decrease of log time) without a model."""
PRIOR = (0.3, 0.15)
"""The pseudo-counts (promised, gained) added to the sums over all tasks: initially half of a promise comes true."""
OWN = 0.3
"""The pseudo-count with which the ratio over all tasks enters the ratio of one task, in units of its promises."""
FAILING = 3
"""The number of turns after which a task without a measured candidate gets no more turns."""
NOTHING = 1e-4
"""The minimum share of the program's time that a batch must be expected to save."""

Accounts = Mapping[str, TaskState]
Allocation = Callable[[Accounts, Accounts, bool], str | None]
"""A rule (ready, every, timed) -> name. ready: the accounts of the tasks with a batch ready. every: those of all tasks.
timed: whether seconds are limited too, not only trials. Returns the task of the next turn, None without a gain."""


def expected_saving(account: TaskState, every: Accounts) -> float:
    """The seconds of a run of the program that the next batch of a task is expected to save.

    The mean, by HABIT, of the usual gain of its turns and of the model's promise, scaled by how far earlier promises
    came true; a task without a promise counts as UNTOLD, unscaled. 0 for a task without a measurement. `every`: the
    accounts of all tasks. With total_seconds = 2, habit = 0.02, promise = 0.1 and sums of 0: kept_share = 0.15 / 0.3 =
    0.5, so 2 * (0.8 * 0.02 + 0.2 * 0.1 * 0.5) = 0.052 s.
    """
    promised, gained = PRIOR
    promised += sum(task.promised for task in every.values())
    gained += sum(task.gained for task in every.values())
    kept_share = (account.gained + OWN * gained / promised) / (account.promised + OWN)
    promise = UNTOLD if account.promise is None else account.promise * min(kept_share, 1.0)
    return account.total_seconds * (HABIT * account.habit + (1 - HABIT) * promise)


def by_gain(ready: Accounts, every: Accounts, timed: bool = False) -> str | None:
    """Return the name of the task in `ready` whose next batch is expected to save most, per second of measuring if
    seconds are limited (`timed`). Tasks without a measurement and with less than FAILING turns come first: of those
    with the fewest turns the largest estimate. None if no task saves more than NOTHING of the program's time, which is
    that of the tasks `every`."""
    unmeasured = [name for name, account in ready.items() if account.seconds is None and account.turns < FAILING]
    if unmeasured:
        return max(unmeasured, key=lambda name: (-ready[name].turns, ready[name].estimate))
    total = sum(account.total_seconds for account in every.values())
    worth = [name for name, account in ready.items() if expected_saving(account, every) > NOTHING * total]
    return max(worth, key=lambda name: expected_saving(ready[name], every) / _price(ready[name], timed), default=None)


def round_robin(ready: Accounts, every: Accounts, timed: bool = False) -> str | None:
    """Return the name of the first of the ready tasks with the fewest turns. None if no task is ready. `every` and
    `timed` are not used."""
    return min(ready, key=lambda name: ready[name].turns, default=None)


def _price(account: TaskState, timed: bool) -> float:
    """The mean seconds of a trial of a task if seconds are limited (`timed`); 1 if only trials are, or before the first
    trial."""
    return account.took / account.count if timed and account.count and account.took > 0 else 1.0


ALLOCATIONS: dict[str, Allocation] = {"gain": by_gain, "turns": round_robin}
"""The allocation rules by name."""
