"""`TuningOptions`: the options of a tuning run."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass, field
from functools import partial
from pathlib import Path
from reprlib import repr as short
from typing import Any

from compiler.autotune.display.progress import Progress
from compiler.autotune.search.options import MOST, Options
from compiler.autotune.tasks.allocation import ALLOCATIONS
from compiler.support.errors import InputError
from compiler.support.files import to_path
from compiler.support.validation import flag, instance, integer, line, positive, seconds, sequence
from compiler.targets.cpu.openmp import max_threads

Callback = Callable[[Progress], None]


@dataclass(frozen=True)
class TuningOptions:
    """The options of a tuning run.

    trials: the number of trials in the database at which the run ends, those of earlier and of concurrent runs
    included; of a whole program the sum over its groups. seconds: the time after which the run ends, in any phase; a
    whole program reserves a tenth of it to compare its groups in place. At least one of the two is required. began: the
    `time.perf_counter` reading from which the seconds count; None is the call of `tune`. database: the file of records,
    created if missing; None keeps them in memory only. seed: of the search and of the random inputs. batch: candidates
    proposed together. builders: the number of processes that build, by default one a core. log: the file to which the
    search writes its log as it runs; the log replays without hardware. search: the parameters of the search; `descent`
    0 disables the final descent. allocation: how the groups of a whole program share trials and seconds: `gain` prefers
    the group with the largest expected saving of the program's time, `turns` is round robin (see
    `compiler.autotune.tasks.allocation`). scheduler: the address of a dask scheduler whose workers measure instead of
    this machine. patience: the seconds after which a job of a worker that does not answer is given to another one (see
    docs/fleet.md). num_measure_trials: TVM's name of `trials`; replaces `trials` unless it is None. callbacks: called
    after each trial, once it is on disk, and at each change of phase. An exception ends the run. show: True draws a
    live table on a terminal and prints lines elsewhere, False shows nothing. None draws the table if stderr or stdout
    is a terminal and there are no callbacks, and shows nothing elsewhere, as in a notebook. Raises InputError for an
    option of a wrong type or out of range.

    >>> TuningOptions(trials=None, seconds=60, database="matmul.db").batch
    8
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
        """The file of records; None if they are in memory only."""
        return None if self.database is None else to_path(self.database)


def _file(what: str, value: str | os.PathLike[str]) -> Path:
    try:
        return to_path(value)
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
    "builders": (partial(integer, minimum=1, maximum=max_threads()), True),
    "log": (_file, True),
    "callbacks": (partial(sequence, kind="functions", is_member=callable), False),
    "search": (partial(instance, kind=Options), False),
    "allocation": (_allocation, False),
    "show": (flag, True),
    "scheduler": (line, True),
    "patience": (positive, False),
    "began": (seconds, True),
}
"""By option: the function that checks its value, and whether None is accepted."""
