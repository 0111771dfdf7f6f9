"""`TaskTable`: a table of the tasks of a whole program: their shares of its time, and the expected gains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from compiler.autotune.display.facts import ceiling_share
from compiler.autotune.display.operator import operator
from compiler.autotune.display.progress import Progress
from compiler.autotune.display.subject import RunSubject
from compiler.support.text import duration, printable
from compiler.targets.cpu.ceilings import plausible_share

if TYPE_CHECKING:
    from rich.table import Table


HEADINGS = ("task", "operator", "calls", "share", "one call", "bound", "trials", "to gain")
"""The headings of the columns; all but the first two columns are numbers."""


@dataclass(frozen=True)
class TaskRow:
    """The state of a task.

    operator: in words. calls: in a run of the program. share: of the measured time of all tasks, 0 to 1. seconds: of
    one call of the best. Both are None while nothing was measured. bound: the share of the machine's ceiling that the
    best reaches; None if unknown or above 1. trials: so far. promise: the seconds of a run that the next batch is
    expected to save; None without a prediction.
    """

    name: str
    operator: str
    calls: int
    share: float | None
    seconds: float | None
    bound: float | None
    trials: int
    promise: float | None

    def cells(self) -> tuple[str, ...]:
        """The row as text, a cell for each of HEADINGS; empty for unknown values."""
        return (
            self.name,
            self.operator,
            str(self.calls),
            "" if self.share is None else f"{self.share:.1%}",
            "" if self.seconds is None else duration(self.seconds),
            "" if self.bound is None else f"{self.bound:.0%}",
            str(self.trials),
            duration(self.promise) if self.promise else "",
        )


class TaskTable:
    """A table of the groups of a whole program; `runs` maps their task names to the progress of each."""

    def __init__(self, task: RunSubject, runs: Mapping[str, Progress]) -> None:
        self._task, self._runs = task, runs
        self._operators: dict[str, str] = {}

    def rows(self) -> list[TaskRow]:
        """A row for each task, the longest total time first; tasks without a measurement last."""
        seconds = {name: run.best_times.seconds for name, run in self._runs.items() if run.best_times is not None}
        total = sum(group.occurrences * seconds.get(group.name, 0.0) for group in self._task.groups)
        rows = [self._row(group, seconds.get(group.name), total) for group in self._task.groups]
        return sorted(rows, key=lambda row: -1.0 if row.share is None else row.share, reverse=True)

    def _row(self, task: RunSubject, seconds: float | None, total: float) -> TaskRow:
        run = self._runs.get(task.name)
        bound = None if run is None or run.best is None else ceiling_share(task, run.best)
        return TaskRow(
            task.name,
            self._operator(task),
            task.occurrences,
            None if seconds is None else task.occurrences * seconds / total,
            seconds,
            None if bound is None else plausible_share(bound),
            0 if run is None else run.trials,
            None if run is None else run.promise,
        )

    def _operator(self, task: RunSubject) -> str:
        if task.name not in self._operators:
            self._operators[task.name] = operator(task.schedule.program)
        return self._operators[task.name]

    def heading(self) -> str:
        """A summary of all tasks: `net: 12 tasks, 3.41 ms, 96 trials, 40 of them from before, in 41 s`."""
        rows = self.rows()
        times = [row.calls * row.seconds for row in rows if row.seconds is not None]
        time = f"{duration(sum(times))}{'' if len(times) == len(rows) else ' so far'}, " if times else ""
        seconds = max((run.seconds for run in self._runs.values()), default=0.0)
        trials = sum(row.trials for row in rows)
        earlier = sum(run.earlier for run in self._runs.values())
        before = f", {earlier} of them from before," if earlier else ""
        return f"{self._task.name}: {len(rows)} tasks, {time}{trials} trials{before} in {seconds:.0f} s"

    def table(self, most: int | None = None) -> Table:
        """The rows as a table of at most `most` rows, 1 or more (None: all); if some are left out, the last row counts
        them."""
        from rich.table import Table

        table = Table(title=printable(self.heading()), title_justify="left", title_style="bold", box=None)
        for number, heading in enumerate(HEADINGS):
            width = None if number == 1 else len(heading)  # a narrow terminal cuts operators short, not numbers
            table.add_column(heading, justify="left" if number < 2 else "right", no_wrap=True, min_width=width)
        rows = self.rows()
        shown = rows if most is None or len(rows) <= most else rows[: most - 1]
        for row in shown:
            table.add_row(*map(printable, row.cells()))
        if len(shown) < len(rows):
            table.add_row(f"{len(rows) - len(shown)} more")
        return table

    def data(self) -> Iterator[Mapping[str, object]]:
        """The rows as JSON data."""
        return map(asdict, self.rows())
