"""The sched dialect: schedule primitives and open choices, as ops inside a `transform.named_sequence`.

A script with open choices is a search space; the same script with decisions is a schedule.
"""

from xdsl.ir import Dialect

from compiler.dialects.sched import BlockType, LoopType, ParamType
from compiler.schedule.primitives import PRIMITIVES

SCHED = Dialect("sched", [primitive.op for primitive in PRIMITIVES.values()], [BlockType, LoopType, ParamType])
