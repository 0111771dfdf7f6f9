"""Which task has the next turn.

Source: the task scheduler of Ansor (Zheng et al., 2020), which estimates gains from the slope of each task's curve and
from similar tasks. Here the expected improvement of the candidates that a task's model has chosen is the estimate,
corrected by how far such promises were kept; and beside it stands what the task's turns have gained of late.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from compiler.autotune.tasks.account import Account

HABIT = 0.8
"""The weight of the task's usual gain in the expectation; the remainder is the weight of the model's promise."""
UNTOLD = 0.2
"""The expected gain of a batch (log of time) without a model."""
PRIOR = (0.3, 0.15)
"""Before any promise was due: so much was promised, and so much of it kept."""
OWN = 0.3
"""A task's own promises outweigh those of all tasks once they add up to this."""
FAILING = 3
"""The turns that a task gets while nothing of it could be measured."""
NOTHING = 1e-4
"""The share of the program's time that a batch must promise; less is not worth its trials."""

Accounts = Mapping[str, Account]
Allocation = Callable[[Accounts, Accounts, bool], str | None]
"""From the tasks that have a batch ready, all tasks, and whether seconds are limited, not only trials, to the name of
the task whose turn it is; None where nothing more is promised."""


def expected(account: Account, every: Accounts) -> float:
    """The seconds of the program that a batch of a task is expected to save: by the usual gain of its turns, and by the
    model's promise, scaled by how far earlier promises were kept."""
    promised, gained = PRIOR
    promised += sum(each.promised for each in every.values())
    gained += sum(each.gained for each in every.values())
    kept = (account.gained + OWN * gained / promised) / (account.promised + OWN)
    promise = UNTOLD if account.promise is None else account.promise * min(kept, 1.0)
    return account.together * (HABIT * account.habit + (1 - HABIT) * promise)


def by_gain(ready: Accounts, every: Accounts, timed: bool = False) -> str | None:
    """The task whose batch promises most seconds of the program, per second of measuring if seconds are limited; first
    the unknown tasks, the largest first."""
    unknown = [name for name, account in ready.items() if account.seconds is None and account.turns < FAILING]
    if unknown:
        return max(unknown, key=lambda name: (-ready[name].turns, ready[name].estimate))
    total = sum(account.together for account in every.values())
    worth = [name for name, account in ready.items() if expected(account, every) > NOTHING * total]
    return max(worth, key=lambda name: expected(ready[name], every) / _price(ready[name], timed), default=None)


def in_turns(ready: Accounts, every: Accounts, timed: bool = False) -> str | None:
    """Round robin: the first task among those with the fewest turns."""
    return min(ready, key=lambda name: ready[name].turns, default=None)


def _price(account: Account, timed: bool) -> float:
    """The cost of a trial in units of the limited budget."""
    return account.took / account.count if timed and account.count and account.took > 0 else 1.0


ALLOCATIONS: dict[str, Allocation] = {"gain": by_gain, "turns": in_turns}
"""The rules by which turns are given out, by name."""
