"""What a person sees of a tuning run while it is under way: a table on a terminal, lines elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from types import TracebackType
from typing import Protocol, Self, TextIO

from rich.console import Console
from rich.live import Live
from rich.table import Table

from compiler.autotune.task import SearchTask
from compiler.autotune.tell.conclusion import busy, failures, gained, infeasible, timed, trials
from compiler.autotune.tell.progress import Progress
from compiler.printable import printable

PER_SECOND = 1
"""How often the clock of the table moves by itself: what draws it runs beside what is measured."""
ENOUGH = 3
"""How many trials of a run tell how long the others will take."""


class RunView(Protocol):
    """A callback of `TuningOptions` that shows; a context manager around the run. `last` is what it was told last."""

    last: Progress | None

    def __call__(self, progress: Progress) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def rows(task: SearchTask, progress: Progress) -> Iterator[tuple[str, str]]:
    """The rows of the table: a heading and what is known, nothing for what is not yet."""
    p, standing = progress, progress.standing
    found = [
        ("space", f"{p.sketches} sketches, {p.candidates} candidates" if p.sketches else ""),
        ("best", "" if standing is None else timed(task, standing)),
        ("gain", _gain(p)),
        ("sketch", p.sketch),
        ("trials", trials(p) + ("" if p.budget is None else f", {p.budget} in all")),
        ("time", f"{p.seconds:.0f} s" + _left(p)),
        ("phase", p.phase),
        *(("failed", line) for line in failures(p)),
        *(("busy", line) for line in busy(p)),
        ("infeasible", infeasible(p)),
        ("model", p.quality),
    ]
    return ((heading, text) for heading, text in found if text)


def _gain(progress: Progress) -> str:
    standing = progress.standing
    return "" if standing is None or standing.gain is None else f"{gained(standing)} the program as written"


def _left(progress: Progress) -> str:
    left = seconds_left(progress)
    return "" if left is None else f", about {left:.0f} s left"


def seconds_left(progress: Progress) -> float | None:
    """How many seconds a run still has or needs; None while nothing tells that."""
    p = progress
    guesses = [] if p.limit is None else [max(0.0, p.limit - p.seconds)]
    new = p.trials - p.earlier
    if p.budget is not None and new >= ENOUGH:
        guesses.append(max(0, p.budget - p.trials) * p.seconds / new)
    return min(guesses, default=None)


class _Last:
    """Keeps what was told last, as it was then."""

    def __init__(self, task: SearchTask) -> None:
        self.task = task
        self.last: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        """Take note of how far the run is."""
        before = self.last
        self.last = replace(
            progress,
            failed=Counter(progress.failed),
            infeasible=Counter(progress.infeasible),
            reasons=dict(progress.reasons),
            curve=list(progress.curve),
        )
        self.show(before, self.last)

    def show(self, before: Progress | None, now: Progress) -> None:
        """Show it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return


class Silent(_Last):
    """Shows nothing."""


class Lines(_Last):
    """A line at each change of phase, and where something better was found."""

    def __init__(self, task: SearchTask, stream: TextIO) -> None:
        super().__init__(task)
        self._stream = stream

    def show(self, before: Progress | None, now: Progress) -> None:
        """Print what has changed."""
        if before is not None and len(now.curve) > len(before.curve) and now.standing is not None:
            self._say(now, f"trial {now.trials}: {timed(self.task, now.standing)} ({now.sketch})")
        if before is None or now.phase != before.phase:
            known = ", ".join(part for part in (trials(now), now.quality) if part) if now.trials else ""
            self._say(now, f"{now.phase}: {known}" if known else now.phase)

    def _say(self, progress: Progress, text: str) -> None:
        print(f"[{progress.seconds:6.1f} s] {printable(text)}", file=self._stream, flush=True)


class Screen(_Last):
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
        table = Table(
            title=printable(self.task.name), title_justify="left", title_style="bold", box=None, show_header=False
        )
        table.add_column(style="dim", no_wrap=True)
        table.add_column()
        if self.last is not None:
            passed = time.perf_counter() - self._at
            for heading, text in rows(self.task, replace(self.last, seconds=self.last.seconds + passed)):
                table.add_row(heading, printable(text))
        return table

    def __enter__(self) -> Self:
        self._at = time.perf_counter()
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()


def view(task: SearchTask, stream: TextIO) -> RunView:
    """The table where a stream is a terminal, lines where it is not."""
    if stream.isatty():
        return Screen(task, Console(file=stream, highlight=False, markup=False))
    return Lines(task, stream)
