"""The primitive product."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from compiler.program.tree import Program
from compiler.schedule.parameters import PARAMS
from compiler.schedule.plan import Plan
from compiler.schedule.primitive import primitive


@primitive(
    "$params",
    "%rows = sched.sample_categorical [1, 2, 4] decision 1\n"
    "%columns = sched.sample_categorical [8, 16, 32] decision 2\n"
    "%threads = sched.product %rows, %columns",
    gives={"value": "param"},
    params=PARAMS,
)
def product(program: Program, params: Sequence[int]) -> Plan:
    """Multiply parameters, such as the rows and the columns of a block of threads.

        %rows = sample_categorical [1, 2, 4] decision 1
        %columns = sample_categorical [8, 16, 32] decision 2
        %threads = product %rows, %columns          // 64

    Elsewhere: MLIR's affine maps of transform parameters, TVM's PrimExpr of sampled values.
    """
    return Plan(program, params=(prod(params),))
