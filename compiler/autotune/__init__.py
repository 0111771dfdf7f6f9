"""The autotuner: rules write scripts with open choices, a cost model and a search fill them, workers measure.

task.py        SearchTask: a program to be tuned, and what was found for it
workloads.py   programs by name
tuner.py       proposals to outcomes to records, until the budget is spent; the leaders again, in turns
budget.py      how much of a run's trials and seconds is spent
past.py        what earlier tasks of a database say before the first trial
progress.py    what a run shows, and what can be asked of it
live.py        a run under way: a table on a terminal, lines elsewhere
conclusion.py  what a run has come to, in words and as data
describe.py    a program in words
show.py        a search space in words: sketches, candidates, scripts and their differences
rules/         from a program to sketches
sketch.py      a script with open choices, and the programs that its candidates make
trace.py       numbers that stand for those of all candidates at once
features.py    what a candidate's program shows: columns for the cost model, and why not to build it
space.py       the candidates of all sketches
candidates.py  what the search and the cost model know of a candidate
model.py       the cost model: a random forest, expected improvement, earlier tasks
quality.py     how well the model ranks
search/        proposes candidates, learns from outcomes, replays from its log
measure/       builder and runner processes: scripts to outcomes
database/      tuning records in SQLite
outcome.py     what came of one candidate
standing.py    the time of the best, its gain, and the times of others beside it
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compiler.autotune.progress import TuningOptions
    from compiler.autotune.task import SearchTask
    from compiler.autotune.workloads import workload

__all__ = ["SearchTask", "TuningOptions", "workload"]
_ROOMS = {"SearchTask": "task", "TuningOptions": "progress", "workload": "workloads"}


def __getattr__(name: str) -> Any:
    """What users of the tuner call, loaded when it is asked for."""
    if name in _ROOMS:
        from importlib import import_module

        return getattr(import_module(f"compiler.autotune.{_ROOMS[name]}"), name)
    raise AttributeError(f"module 'compiler.autotune' has no attribute '{name}'")
