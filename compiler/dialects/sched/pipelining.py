"""Pipelining: what overlaps the movement of data with work."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, StringAttr, i64
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, prop_def, result_def
from xdsl.utils.exceptions import VerifyException

from compiler.dialects.sched.base import BlockType, LoopType, SchedOp


@irdl_op_definition
class PrefetchOp(SchedOp):
    """Ask for the elements of a buffer that a loop touches some iterations later, over a loop inside a share at a time.

    Return modes: consumes nothing; refused for a buffer that the loop does not touch or that lives in one iteration of
    it, and over a loop that is not inside.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      %m, %l, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
      sched.prefetch %k "B" ahead 8
      sched.prefetch %m "A" ahead 1 over %l
      transform.yield
    }
    ```
    """

    name = "sched.prefetch"

    loop = operand_def(LoopType())
    buffer = prop_def(StringAttr)
    distance = prop_def(IntegerAttr.constr(i64))
    over = opt_operand_def(LoopType())

    assembly_format = "$loop $buffer `ahead` $distance (`over` $over^)? attr-dict"

    def verify_(self) -> None:
        if self.distance.value.data < 1:
            raise VerifyException(f"the distance {self.distance.value.data} is not positive")


@irdl_op_definition
class DoubleBufferOp(SchedOp):
    """Give a block's buffer two halves, so that one is filled while the other is read.

    Return modes: consumes nothing; refused where the buffer lives across iterations.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      sched.double_buffer %c
      transform.yield
    }
    ```
    """

    name = "sched.double_buffer"

    block = operand_def(BlockType())

    assembly_format = "$block attr-dict"


@irdl_op_definition
class SoftwarePipelineOp(SchedOp):
    """Overlap the iterations of a loop: block number i of its body runs in stage stages[i].

    Return modes: consumes the loop, gives the longer one; refused where a dependence would be reversed.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      %m, %l, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
      %late = sched.software_pipeline %k stages [0, 1]
      transform.yield
    }
    ```
    """

    name = "sched.software_pipeline"
    CONSUMES: ClassVar = ("loop",)

    loop = operand_def(LoopType())
    stages = prop_def(DenseArrayBase.constr(i64))
    pipelined = result_def(LoopType())

    assembly_format = "$loop `stages` $stages attr-dict"

    def verify_(self) -> None:
        stages = list(self.stages.get_values())
        if not stages or min(stages) < 0:
            raise VerifyException(f"the stages {stages} are not one number of at least 0 a block")


OPS = (PrefetchOp, DoubleBufferOp, SoftwarePipelineOp)
