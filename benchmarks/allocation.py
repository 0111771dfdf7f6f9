"""`python -m benchmarks.allocation LOG.turns ...`: rules that give out turns, judged on recorded logs.

A log is what `strata tune ... --allocation turns --log LOG` leaves. For shares of the time after each task's first turn
it prints what the program takes under each rule, the mean over that time, and where each rule ends. Those in
`benchmarks/turns` were recorded on AMD EPYC processors (Zen 3 and Zen 4), one thread, beside other work; times are by
costs, as `Standing` has them. The constants of `gain` were chosen by the logs of Zen 3.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from compiler.autotune.tasks.account import Turn, read_turns
from compiler.autotune.tasks.allocation import ALLOCATIONS
from compiler.autotune.tasks.replay import Point, replay
from compiler.support.files import read
from compiler.support.text import duration

SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)
"""Of the time between the last first turn and the end of the log."""


def judged(name: str, turns: Sequence[Turn]) -> Table:
    """What the program takes after shares of the recorded time, a row each, under each rule."""
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
    """The mean time of the program between two moments."""
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
