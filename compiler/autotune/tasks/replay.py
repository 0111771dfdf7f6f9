"""Turns given out by a rule from a recorded log: what the program would take after so many trials or seconds.

A task's search does not depend on the others, once its records are its own: its turns come in the order in which they
were recorded, and a rule decides only when. So one log judges every rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from compiler.autotune.tasks.account import Account, Turn
from compiler.autotune.tasks.allocation import Allocation


@dataclass(frozen=True)
class Point:
    """After so many trials, which took so long, the program takes `seconds`; None while a task was not measured."""

    trials: int
    spent: float
    seconds: float | None


def replay(turns: Iterable[Turn], allocation: Allocation, timed: bool = False) -> Iterator[Point]:
    """What is reached after each turn, until the rule stops or no task has another; `timed` as rules are told."""
    left: dict[str, list[Turn]] = {}
    for turn in turns:
        left.setdefault(turn.task, []).append(turn)
    accounts = {name: Account(first[0].weight, estimate=_size(first)) for name, first in left.items()}
    trials, spent = 0, 0.0
    while True:
        ready = {name: account for name, account in accounts.items() if left[name]}
        for name, account in ready.items():
            account.promise = left[name][0].promise
        chosen = allocation(ready, accounts, timed)
        if chosen is None:
            return
        turn = left[chosen].pop(0)
        accounts[chosen].add(turn)
        trials, spent = trials + turn.count, spent + turn.took
        yield Point(trials, spent, _whole(accounts))


def _size(turns: list[Turn]) -> float:
    """The stand-in for a task's size before its first turn: the time of its calls at its first measurement."""
    return next((turn.weight * turn.after for turn in turns if turn.after is not None), 0.0)


def _whole(accounts: Mapping[str, Account]) -> float | None:
    if any(account.seconds is None for account in accounts.values()):
        return None
    return sum(account.together for account in accounts.values())
