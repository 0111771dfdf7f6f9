"""What a person sees of a tuning run while it is under way: a table on a terminal, lines elsewhere."""

from __future__ import annotations

import time
from copy import deepcopy
from dataclasses import replace
from typing import Self, TextIO

from rich.console import Console
from rich.live import Live
from rich.table import Table

from compiler.autotune.task import SearchTask
from compiler.autotune.tell.facts import Facts
from compiler.autotune.tell.progress import Progress
from compiler.printable import counted, printable

PER_SECOND = 1
"""How often the clock of the table moves by itself: what draws it runs beside what is measured."""


class Silent:
    """A callback of `TuningOptions` that shows nothing, and keeps what it was told `last` as it was then; a context
    manager around the run. `runs` is what it was told last of each group of a whole program, by its name."""

    def __init__(self, task: SearchTask) -> None:
        self.task = task
        self.last: Progress | None = None
        self.runs: dict[str, Progress] = {}

    def __call__(self, progress: Progress) -> None:
        """Take note of how far the run is, and show it."""
        before = None if self.last is None or self.last.name != progress.name else self.last
        self.last = self.runs[progress.name] = deepcopy(progress)
        self.show(before, self.last)

    def facts(self, progress: Progress) -> Facts:
        """What is known of the program, or of the group, that a run is about."""
        return Facts(self.task.group(progress.name) if self.task.groups else self.task, progress)

    def title(self, progress: Progress) -> str:
        """What a run is about: `layer.group_3, 2 calls (4 of 6)` of a whole program."""
        names = [group.name for group in self.task.groups]
        if not names:
            return self.task.name
        calls = counted(self.facts(progress).task.occurrences, "call")
        return f"{progress.name}, {calls} ({names.index(progress.name) + 1} of {len(names)})"

    def show(self, before: Progress | None, now: Progress) -> None:
        """Show it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        return


class Lines(Silent):
    """A line at each change of phase, and where something better was found."""

    def __init__(self, task: SearchTask, stream: TextIO) -> None:
        super().__init__(task)
        self._stream = stream

    def show(self, before: Progress | None, now: Progress) -> None:
        """Print what has changed."""
        facts = self.facts(now)
        if before is None and self.task.groups:
            self._say(now, self.title(now))
        if before is not None and len(now.curve) > len(before.curve) and now.standing is not None:
            self._say(now, f"trial {now.trials}: {facts.best} ({now.sketch})")
        if before is None or now.phase != before.phase:
            known = ", ".join(part for part in (facts.trials, now.quality) if part) if now.trials else ""
            self._say(now, f"{now.phase}: {known}" if known else now.phase)

    def _say(self, progress: Progress, text: str) -> None:
        print(f"[{progress.seconds:6.1f} s] {printable(text)}", file=self._stream, flush=True)


class Screen(Silent):
    """A table that is drawn anew after each trial, and whose clock moves meanwhile."""

    def __init__(self, task: SearchTask, console: Console) -> None:
        super().__init__(task)
        self._at = time.perf_counter()
        self._live = Live(get_renderable=self.table, console=console, refresh_per_second=PER_SECOND)

    def show(self, before: Progress | None, now: Progress) -> None:
        """Draw."""
        self._at = time.perf_counter()
        self._live.refresh()

    def table(self) -> Table:
        """What there is to see now."""
        title = self.task.name if self.last is None else self.title(self.last)
        table = Table(title=printable(title), title_justify="left", title_style="bold", box=None, show_header=False)
        table.add_column(style="dim", no_wrap=True)
        table.add_column()
        if self.last is not None:
            passed = time.perf_counter() - self._at
            for heading, text in self.facts(replace(self.last, seconds=self.last.seconds + passed)).rows():
                table.add_row(heading, printable(text))
        return table

    def __enter__(self) -> Self:
        self._at = time.perf_counter()
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()


def view(task: SearchTask, stream: TextIO) -> Silent:
    """The table where a stream is a terminal, lines where it is not."""
    if stream.isatty():
        return Screen(task, Console(file=stream, highlight=False, markup=False))
    return Lines(task, stream)
