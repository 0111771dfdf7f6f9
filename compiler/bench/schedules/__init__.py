"""Hand-written schedules of the workloads, by family: composites of `compiler.schedule.library`, and sizes.

matmul.py          matmul, batched, mm_exp_mm, mlp
convolution.py     conv
gradient.py        conv_grad_weight, in one reduction and in steps
attention.py       attention
rows.py            softmax, layernorm, swish
packed_weights.py  conv and mlp with their weights packed whole, for weights that are constant
sizes.py           sizes of tiles, from extents and the machine

Each takes the unscheduled program, the machine and the count of threads. Sizes follow from the extents and from the
machine's caches and registers; none is for a name.
"""

from __future__ import annotations

from collections.abc import Mapping

from compiler.bench.schedules import attention, convolution, gradient, matmul, rows
from compiler.bench.schedules.sizes import Script
from compiler.bench.workload import Workload
from compiler.pipeline import lower
from compiler.schedule import Schedule
from compiler.types.machines import host

SCRIPTS: dict[str, Script] = {
    "matmul": matmul.matmul,
    "batched": matmul.batched,
    "mm_exp_mm": matmul.mm_exp_mm,
    "mlp": matmul.mlp,
    "conv": convolution.conv,
    "conv_grad_weight": gradient.conv_grad_weight,
    "conv_grad_weight_steps": gradient.conv_grad_weight,
    "attention": attention.attention,
    "softmax": rows.by_rows,
    "layernorm": rows.by_rows,
    "swish": rows.swish,
}


def scheduled(workload: Workload, threads: int = 1, scripts: Mapping[str, Script] = SCRIPTS) -> Schedule | None:
    """The workload's program under its family's script, None where it has none; `prepared.SCRIPTS` pack weights."""
    script = scripts.get(workload.family)
    if script is None:
        return None
    schedule = Schedule(lower(workload.function()))
    script(schedule, host(), threads)
    return schedule
