"""Measuring candidates in worker processes: scripts in, outcomes out.

limits.py          what a candidate may cost, and how long it is timed
measurer.py        Measurer: batches and comparisons; the executor that does the work
local.py           the executors of this machine: builders, then one runner or estimates
timer.py           the runner and its reference: candidates are checked and timed, one at a time
builder.py         a script to an artefact
runner.py          an artefact to times
gpu_builder.py     a script to kernels that were simulated, and an estimate of their time
gpu_runner.py      kernels to times
shrink.py          the program with shorter reductions, for the simulation
network.py         operands where a network has them
timing.py          samples until their median is known
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.support.lazy import lazy_names

if TYPE_CHECKING:
    from compiler.autotune.measure.builder import Built
    from compiler.autotune.measure.limits import Limits, Sampling
    from compiler.autotune.measure.measurer import Executor, Measurer

__all__ = ["Built", "Executor", "Limits", "Measurer", "Sampling"]
__getattr__ = lazy_names(
    __name__,
    {
        "Built": "builder",
        "Executor": "measurer",
        "Limits": "limits",
        "Measurer": "measurer",
        "Sampling": "limits",
    },
)
