"""The display of a tuning run in progress: a table on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import Self, TextIO

from rich.console import Console
from rich.live import Live
from rich.table import Table

from compiler.autotune.display.facts import INTERRUPTED, RunFacts
from compiler.autotune.display.forms import sentences
from compiler.autotune.display.progress import Progress
from compiler.autotune.display.subject import RunSubject
from compiler.autotune.display.task_table import TaskTable
from compiler.autotune.options import TuningOptions
from compiler.support.text import counted, printable

PER_SECOND = 1
"""Redraws of the table a second; few, since drawing disturbs measurements."""
NOTES = 2
"""The maximum number of notes on a cluster's workers below the table, the last ones."""
AROUND = 4
"""The lines of a terminal reserved for headings and the current phase around a table of tasks."""
ENDS = ("waiting for its turn", "nothing", "done", INTERRUPTED)
"""The prefixes of the phases that end a turn of one of several tasks."""


class RunView:
    """A callback of `TuningOptions` that stores progress and shows nothing; a context manager around the run. last: a
    copy of the last progress. runs: the last progress of each group of a whole program, by name."""

    def __init__(self, task: RunSubject) -> None:
        self.task = task
        self.last: Progress | None = None
        self.runs: dict[str, Progress] = {}
        self.board = TaskTable(task, self.runs)

    def __call__(self, progress: Progress) -> None:
        """Store a copy of the progress, and show it."""
        before, self.last = self.runs.get(progress.name), deepcopy(progress)
        if not self.is_of_all(progress):
            self.runs[progress.name] = self.last
        self.show(before, self.last)

    def is_of_all(self, progress: Progress) -> bool:
        """Whether a progress belongs to a whole program, not to one of its groups."""
        return bool(self.task.groups) and progress.name == self.task.name

    def facts(self, progress: Progress) -> RunFacts:
        """The RunFacts of the progress of a group, or of a program that is one task."""
        return RunFacts(self.task.group(progress.name) if self.task.groups else self.task, progress)

    def show(self, before: Progress | None, now: Progress) -> None:
        """Show the progress `now`, whose predecessor was `before` (None at first). Shows nothing here."""

    def conclusion(self) -> list[str]:
        """The conclusion of the run, a sentence a line: times, gains, chosen forms and schedules; empty without a
        run."""
        if self.last is None:
            return []
        forms = sentences(self.task.forms)
        if not self.task.groups:
            return [*self.facts(self.last).sentences(), *forms]
        inside = self.last.in_place
        return [self.board.heading(), *forms, *(() if inside is None else inside.sentences())]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        return


class Lines(RunView):
    """Prints a line at each change of phase and for each new best; for several tasks, a line after each turn."""

    def __init__(self, task: RunSubject, stream: TextIO) -> None:
        super().__init__(task)
        self._stream = stream
        self._noted = 0

    def show(self, before: Progress | None, now: Progress) -> None:
        """Print new notes and rules, and a line if the best or the phase has changed from `before` to `now`."""
        for note in now.notes[self._noted :]:
            self._say(now, note)
        self._noted = len(now.notes)
        for rule in now.rules if before is None or not before.rules else ():
            self._say(now, f"{now.name}: {rule}")
        if self.is_of_all(now):
            self._say(now, f"{now.name}: {now.doing}")
        elif self.task.groups:
            if (before is None or before.best is None) and now.best is not None and now.measured:
                self._say(now, f"{now.name}: {self.facts(now).best}")
            if now.trials and now.phase.startswith(ENDS) and before is not None and before.phase != now.phase:
                self._say(now, self._turn(now))
        else:
            self._show_one(before, now)

    def _show_one(self, before: Progress | None, now: Progress) -> None:
        """Print the changes from `before` to `now` of a program that is one task."""
        facts = self.facts(now)
        if before is not None and len(now.curve) > len(before.curve) and now.best_times is not None:
            self._say(now, f"trial {now.trials}: {facts.best} ({now.sketch})")
        if before is None or now.phase != before.phase:
            details = ", ".join(detail for detail in (facts.trials, now.quality) if detail) if now.trials else ""
            self._say(now, f"{now.phase}: {details}" if details else now.phase)

    def _turn(self, now: Progress) -> str:
        """The state of a task after a turn, and of the whole program, in one line."""
        facts = self.facts(now)
        best = f"{now.name}, {counted(facts.task.occurrences, 'call')}: {facts.best or 'nothing measured'}"
        return f"{best}, {facts.trials}, {now.phase} | {self.board.heading()}"

    def _say(self, progress: Progress, text: str) -> None:
        print(f"[{progress.seconds:6.1f} s] {printable(text)}", file=self._stream, flush=True)


class Screen(RunView):
    """Draws a live table, anew after each trial and once a second for its clock."""

    def __init__(self, task: RunSubject, console: Console) -> None:
        super().__init__(task)
        self._at, self._console = time.perf_counter(), console  # before the Live, whose constructor draws
        self._live = Live(get_renderable=self.table, console=console, refresh_per_second=PER_SECOND)

    def show(self, before: Progress | None, now: Progress) -> None:
        """Redraw the table, of the last progress; the arguments are not read."""
        self._at = time.perf_counter()
        self._live.refresh()

    def table(self) -> Table:
        """The current table: of one task, or of the tasks of a whole program."""
        if self.task.groups:
            return self._of_tasks()
        title = printable(self.task.name)
        table = Table(title=title, title_justify="left", title_style="bold", box=None, show_header=False)
        table.add_column(style="dim", no_wrap=True)
        table.add_column()
        if self.last is not None:
            passed = time.perf_counter() - self._at
            for heading, text in self.facts(replace(self.last, seconds=self.last.seconds + passed)).rows():
                table.add_row(heading, printable(text))
            self._caption(table, *self.last.notes[-NOTES:])
        return table

    def _of_tasks(self) -> Table:
        """A table of the tasks, as many as fit on the terminal, with the current phase as its caption."""
        table = self.board.table(max(1, self._console.height - AROUND))
        if self.last is not None:
            self._caption(table, *self.last.notes[-NOTES:], f"{self.last.name}: {self.last.doing}")
        return table

    def _caption(self, table: Table, *lines: str) -> None:
        """Set the lines of text below a table."""
        table.caption = "\n".join(map(printable, lines)) or None
        table.caption_justify = "left"

    def __enter__(self) -> Self:
        self._at = time.perf_counter()
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()


def view(task: RunSubject, stream: TextIO) -> RunView:
    """Return the view for a stream: a table on a terminal, lines elsewhere.

    >>> import io
    >>> A = te.placeholder((64,), name="A")
    >>> task = SearchTask(te.function("f", [A], te.nn.exp(A)), threads=1, machine=strata.targets.MACHINES["avx2"])
    >>> with strata.autotune.view(task, io.StringIO()) as lines:
    ...     lines.conclusion()
    []
    """
    if stream.isatty():
        return Screen(task, Console(file=stream, highlight=False, markup=False))
    return Lines(task, stream)


@contextmanager
def with_view(task: RunSubject, options: TuningOptions) -> Iterator[TuningOptions]:
    """Yield the options of a run with a view among the callbacks; print the conclusion at the end, unless the block
    raises. Yields the options unchanged if nothing is to be shown: see `TuningOptions.show`."""
    stream = _stream(options)
    if stream is None:
        yield options
        return
    with view(task, stream) as shown:
        yield replace(options, callbacks=(*options.callbacks, shown))
    for line in shown.conclusion():
        print(printable(line), file=stream, flush=True)


def _stream(options: TuningOptions) -> TextIO | None:
    """The stream on which a run is shown: stderr or stdout, whichever is a terminal, else stdout if `show` is True;
    None to show nothing."""
    if options.show is False or (options.show is None and options.callbacks):
        return None
    terminals = (stream for stream in (sys.stderr, sys.stdout) if stream is not None and stream.isatty())
    return next(terminals, sys.stdout if options.show else None)
