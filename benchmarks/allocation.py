"""`python -m benchmarks.allocation LOG.turns ...`: rules that give out turns, judged on recorded logs.

A log is what `strata tune ... --allocation turns --log LOG` leaves. For shares of the time after each task's first turn
it prints what the program takes under each rule, the mean over that time, and where each rule ends. Those in
`benchmarks/turns` were recorded on AMD EPYC processors (Zen 3 and Zen 4), one thread, beside other work; times are by
costs, as `Standing` has them. The constants of `gain` were chosen by the logs of Zen 3.

A task's search does not depend on the others, once its records are its own: its turns come in the order in which they
were recorded, and a rule decides only when. So one log judges every rule.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from compiler.autotune.tasks.allocation import ALLOCATIONS, Allocation
from compiler.autotune.tasks.task_state import TaskState, Turn
from compiler.support.errors import InputError
from compiler.support.files import read
from compiler.support.text import duration

SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)
"""Of the time between the last first turn and the end of the log."""


def read_turns(lines: Iterable[str], name: str = "the log") -> Iterator[Turn]:
    """Yield the turns of a log called `name`. Raises InputError, with the line, for a malformed log."""
    for number, line in enumerate(lines, 1):
        try:
            turn = Turn(**json.loads(line))
            turn.gained + turn.count + turn.took
        except (TypeError, ValueError, ZeroDivisionError) as error:
            raise InputError(f"{name}:{number}: this is no turn of a task") from error
        yield turn


@dataclass(frozen=True)
class Point:
    """The state of a recorded run after some trials and the seconds `spent` on them: `seconds` is the time of the
    program, None while a task has no measurement."""

    trials: int
    spent: float
    seconds: float | None


def replay(turns: Iterable[Turn], allocation: Allocation, timed: bool = False) -> Iterator[Point]:
    """Yield the state after each turn that a rule gives, until it stops or no task has a further recorded turn; `timed`
    is passed to the rule."""
    left: dict[str, list[Turn]] = {}
    for turn in turns:
        left.setdefault(turn.task, []).append(turn)
    accounts = {name: TaskState(first[0].weight, estimate=_size(first)) for name, first in left.items()}
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
    """Return the time of all calls of a task at its first measurement, as its size before its first turn; 0 without
    one."""
    return next((turn.weight * turn.after for turn in turns if turn.after is not None), 0.0)


def _whole(accounts: Mapping[str, TaskState]) -> float | None:
    if any(account.seconds is None for account in accounts.values()):
        return None
    return sum(account.total_seconds for account in accounts.values())


def judged(name: str, turns: Sequence[Turn]) -> Table:
    """Tabulate the time of the program after SHARES of the recorded time under each rule, its mean, and the end of each
    run."""
    points = {rule: list(replay(turns, allocation, timed=True)) for rule, allocation in ALLOCATIONS.items()}
    begin = max(next((p.spent for p in each if p.seconds is not None), 0.0) for each in points.values())
    end = max(point.spent for each in points.values() for point in each)
    table = Table(title=f"{name}: {len(turns)} turns", title_justify="left", box=None)
    for heading in ("seconds", *points):
        table.add_column(heading, justify="right")
    for share in SHARES:
        spent = begin + share * (end - begin)
        table.add_row(f"{spent:.0f}", *(_reached(each, spent) for each in points.values()))
    final = min(point.seconds for each in points.values() for point in each if point.seconds is not None)
    table.add_row("mean, of the best", *(f"{_mean(each, begin, end) / final:.4f}" for each in points.values()))
    table.add_row("ends after", *(f"{each[-1].spent:.0f} s, {each[-1].trials} trials" for each in points.values()))
    return table


def _mean(points: Sequence[Point], begin: float, end: float) -> float:
    """The mean time of the program between the seconds `begin` and `end` of the run."""
    times = [(point.spent, point.seconds) for point in points if point.seconds is not None]
    steps = [(max(begin, spent), taken) for spent, taken in times]
    ends = [min(end, spent) for spent, _ in times[1:]] + [end]
    return sum(max(0.0, after - at) * taken for (at, taken), after in zip(steps, ends, strict=True)) / (end - begin)


def _reached(points: Sequence[Point], spent: float) -> str:
    times = [point.seconds for point in points if point.spent <= spent and point.seconds is not None]
    return duration(times[-1]) if times else "unknown"


def main() -> None:
    """Judge the rules on each log."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", nargs="+", metavar="LOG")
    console = Console(highlight=False)
    for log in parser.parse_args().logs:
        console.print(judged(Path(log).name, list(read_turns(read(log).splitlines(), log))))


if __name__ == "__main__":
    main()
