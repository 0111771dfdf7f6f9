"""`Progress`: what a tuning run shows while it is under way, and `TuningOptions`: what can be asked of it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from compiler.autotune.outcome import Outcome
from compiler.autotune.search.options import MOST, Options
from compiler.autotune.standing import Standing
from compiler.errors import InputError
from compiler.files import named
from compiler.stated import instance, integer, positive, several
from compiler.targets.cpu.openmp import most_threads
from compiler.targets.cpu.presence import Disturbance


@dataclass
class Progress:
    """How far a run is. `seconds` have passed since it began; times of candidates are seconds of one call.

    trials: scripts in the database for this task, each once however often it was measured; `earlier` of them were there
    before the run.
    best: all that was measured of the best so far, and `sketch` the name of its sketch; `baseline` the same of the
    program as it is written. compared: those two, baseline first, as they were last measured in turns with each other;
    None while the best of now has not taken such turns.
    disturbance: how far the machine was busy with other work while the run measured; None while nobody has looked.
    failed: trials that came to nothing, by kind, and in `reasons` why the first of each did. infeasible: candidates
    that were not worth building, by reason. heard: earlier tasks of the database whose ranking helps.
    quality: how well the model ranks, in one line; accuracy: the share of pairs in the right order.
    phase: what is being done.
    """

    name: str
    budget: int | None
    limit: float | None
    trials: int = 0
    earlier: int = 0
    seconds: float = 0.0
    best: Outcome | None = None
    sketch: str = ""
    baseline: Outcome | None = None
    compared: tuple[Outcome, Outcome] | None = None
    disturbance: Disturbance | None = None
    failed: Counter[str] = field(default_factory=Counter)
    infeasible: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, str] = field(default_factory=dict)
    heard: int = 0
    quality: str = ""
    accuracy: float | None = None
    phase: str = "deriving sketches"
    sketches: int = 0
    candidates: int = 0
    curve: list[tuple[int, float]] = field(default_factory=list)

    def record(self, before: Outcome | None, after: Outcome) -> None:
        """Count what is known of a script now, and was before if it had been tried."""
        if before is None:
            self.trials += 1
        elif not before.ok:
            self.failed -= Counter({before.kind: 1})
        if not after.ok:
            self.failed[after.kind] += 1
            self.reasons.setdefault(after.kind, after.reason)

    @property
    def standing(self) -> Standing | None:
        """The times and the gain of the best; None while nothing was measured."""
        return None if self.best is None else Standing(self.best, self.baseline, self.compared)

    @property
    def gain(self) -> float | None:
        """How many times as fast as the program as it is written the best is; None while either is unknown."""
        return None if self.standing is None else self.standing.gain


Callback = Callable[[Progress], None]


@dataclass(frozen=True)
class TuningOptions:
    """What can be asked of a tuning run.

    trials: how many the database shall hold for the task at the end, those of earlier runs and of others that write to
    it included; seconds: after which no trial begins. At least one of the two.
    database: the file of records, made where there is none; without one they are kept in memory only.
    seed: of the search and of the inputs. batch: candidates that are built together. builders: processes that build.
    log: a file that gets the search's log as it goes on, from which it replays without hardware.
    search: what can be set of the search itself; with `descent` 0 there is no final descent.
    callbacks: called after each trial, when it is on disk, and at each change of phase. What they raise ends the run.
    """

    trials: int | None = 64
    seconds: float | None = None
    database: str | os.PathLike[str] | None = None
    seed: int = 0
    batch: int = 8
    builders: int | None = None
    log: str | os.PathLike[str] | None = None
    callbacks: Sequence[Callback] = ()
    search: Options = field(default_factory=Options)

    def __post_init__(self) -> None:
        if self.trials is None and self.seconds is None:
            raise InputError("a tuning run needs a budget: trials or seconds")
        for name, (check, optional) in _CHECKS.items():
            value = getattr(self, name)
            if value is not None or not optional:
                object.__setattr__(self, name, check(f"the tuning option {name}", value))

    @property
    def path(self) -> Path | None:
        """The file of records."""
        return None if self.database is None else named(self.database)


def _file(what: str, value: Any) -> Path:
    try:
        return named(value)
    except InputError as error:
        raise InputError(f"{what}: {error}") from error


_CHECKS: dict[str, tuple[Callable[[str, Any], object], bool]] = {
    "trials": (partial(integer, least=1), True),
    "seconds": (positive, True),
    "database": (_file, True),
    "seed": (partial(integer, least=0), False),
    "batch": (partial(integer, least=1, most=MOST), False),
    "builders": (partial(integer, least=1, most=most_threads()), True),
    "log": (_file, True),
    "callbacks": (partial(several, kind="functions", is_one=callable), False),
    "search": (partial(instance, kind=Options), False),
}
"""How each option is checked, and whether it may be None."""
