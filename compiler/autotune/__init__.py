"""The autotuner: rules write scripts with open choices, a cost model and a search fill them, workers measure.

task.py       SearchTask: a program to be tuned, and what was found for it
program.py    TaskProgram: the program of a task: its parts, its keys, its search space
workloads.py  programs by name
options.py    what can be asked of a run
tuner.py      proposals to outcomes to records, until the budget is spent; the leaders again, in turns
budget.py     how much of a run's trials and seconds is spent
deadline.py   work that ends when its time is over, whatever it is doing
tasks/        several tasks that share one budget, such as the groups of a network
search/       proposes candidates by a cost model, learns from outcomes, replays from its log
measure/      builder and runner processes: scripts to outcomes
tell/         what a person reads: live table, conclusion, report, the space in words
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.support.deferral import lazy_names

if TYPE_CHECKING:
    from compiler.autotune.options import TuningOptions
    from compiler.autotune.task import SearchTask
    from compiler.autotune.workloads import workload

__all__ = ["SearchTask", "TuningOptions", "workload"]
__getattr__ = lazy_names(__name__, {"SearchTask": "task", "TuningOptions": "options", "workload": "workloads"})
