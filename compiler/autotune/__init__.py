"""The autotuner: rules write scripts with open choices, a cost model and a search fill them, workers measure.

task.py       SearchTask: a program to be tuned, its records, its best kernel
program.py    TaskProgram: the parts, the keys and the search space of a task's program
workloads.py  programs by name
options.py    the options of a run
tuner.py      the tuning loop: propose, measure, record
leaders.py    the leaders, measured again in turns
workers.py    the processes of a run, here or on a cluster
budget.py     the trials and seconds of a run
deadline.py   interrupt a block of code at a deadline
fallback.py   the default schedule as the answer of a search that tried nothing
tasks/        several tasks that share one budget, such as the groups of a network
search/       the search: proposals by a cost model, learning from outcomes, replay from a log
measure/      builder and runner processes: scripts to outcomes
fleet/        measuring on the workers of a dask cluster
display/      text for people: live table, final report, listing of the search space
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
