"""The sched dialect: schedule primitives and open choices, as ops inside a `transform.named_sequence`.

A script with open choices is a search space; the same script with decisions is a schedule.
"""

from xdsl.ir import Dialect, Operation

from compiler.dialects.sched import BlockType, LoopType, ParamType
from compiler.schedule.include import IncludeOp
from compiler.schedule.primitives import PRIMITIVES

_OPS: list[type[Operation]] = [*(primitive.op for primitive in PRIMITIVES.values()), IncludeOp]
SCHED = Dialect("sched", _OPS, [BlockType, LoopType, ParamType])
