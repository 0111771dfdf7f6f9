"""`TuningOptions`: the options of a tuning run."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass, field
from functools import partial
from pathlib import Path
from reprlib import repr as short
from typing import Any

from compiler.autotune.search.options import MOST, Options
from compiler.autotune.tasks.allocation import ALLOCATIONS
from compiler.autotune.tell.progress import Progress
from compiler.support.errors import InputError
from compiler.support.files import named
from compiler.support.validation import flag, instance, integer, line, positive, seconds, several
from compiler.targets.cpu.openmp import most_threads

Callback = Callable[[Progress], None]


@dataclass(frozen=True)
class TuningOptions:
    """The options of a tuning run.

    trials: how many the database shall hold for the task at the end, of a whole program for all its groups together,
    those of earlier runs and of others that write to it included; seconds: after which the run ends, whatever it does,
    of which a whole program has a tenth for the comparison of its groups inside it.
    At least one of the two. began: a reading of `time.perf_counter` from which the seconds count; the call of `tune`,
    where not stated.
    database: the file of records, made where there is none; without one they are kept in memory only.
    seed: of the search and of the inputs. batch: candidates that are built together. builders: processes that build.
    log: a file that gets the search's log as it goes on, from which it replays without hardware.
    search: what can be set of the search itself; with `descent` 0 there is no final descent.
    allocation: how the groups of a whole program share trials and seconds: `gain`, where they promise most of the
    program's time, or `turns`, each in turn (see `compiler.autotune.tasks.allocation`).
    scheduler: the address of a dask scheduler, whose workers measure instead of this machine; patience: after so many
    seconds a job of theirs is asked of another one (see docs/fleet.md).
    num_measure_trials: `trials` by the name that TVM has for it.
    callbacks: called after each trial, when it is on disk, and at each change of phase. What they raise ends the run.
    show: whether a live table is drawn, or lines are printed where there is no terminal; None draws the table where
    stderr or stdout is a terminal and there are no callbacks, and prints nothing elsewhere, as in a notebook.
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
    allocation: str = "gain"
    show: bool | None = None
    scheduler: str | None = None
    patience: float = 120.0
    began: float | None = None
    num_measure_trials: InitVar[int | None] = None

    def __post_init__(self, num_measure_trials: int | None) -> None:
        if num_measure_trials is not None:
            object.__setattr__(self, "trials", num_measure_trials)
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


def _file(what: str, value: str | os.PathLike[str]) -> Path:
    try:
        return named(value)
    except InputError as error:
        raise InputError(f"{what}: {error}") from error


def _allocation(what: str, value: object) -> str:
    if not isinstance(value, str) or value not in ALLOCATIONS:
        raise InputError(f"{what} is {short(value)}, expected {' or '.join(ALLOCATIONS)}")
    return value


_CHECKS: dict[str, tuple[Callable[[str, Any], object], bool]] = {
    "trials": (partial(integer, minimum=1), True),
    "seconds": (positive, True),
    "database": (_file, True),
    "seed": (partial(integer, minimum=0), False),
    "batch": (partial(integer, minimum=1, maximum=MOST), False),
    "builders": (partial(integer, minimum=1, maximum=most_threads()), True),
    "log": (_file, True),
    "callbacks": (partial(several, kind="functions", is_one=callable), False),
    "search": (partial(instance, kind=Options), False),
    "allocation": (_allocation, False),
    "show": (flag, True),
    "scheduler": (line, True),
    "patience": (positive, False),
    "began": (seconds, True),
}
"""How each option is checked, and whether it may be None."""
