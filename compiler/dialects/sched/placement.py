"""Placement: where a block is computed, or whether it is at all."""

from __future__ import annotations

from typing import ClassVar

from xdsl.irdl import irdl_op_definition, operand_def

from compiler.dialects.sched.base import BlockType, LoopType, SchedOp


@irdl_op_definition
class ComputeAtOp(SchedOp):
    """Move a producer into a loop of its consumer: there it computes just what one iteration reads.

    Return modes: consumes nothing; refused where the region cannot be stated or a dependence would be reversed.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      %m, %l, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
      %d = sched.get_block %f "D"
      sched.compute_at %d at %m
      transform.yield
    }
    ```
    """

    name = "sched.compute_at"

    block = operand_def(BlockType())
    loop = operand_def(LoopType())

    assembly_format = "$block `at` $loop attr-dict"


@irdl_op_definition
class ReverseComputeAtOp(SchedOp):
    """Move a consumer into a loop of its producer: there it consumes what one iteration has finished.

    Return modes: consumes nothing; refused where a dependence would be reversed.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      %m, %l, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
      %d = sched.get_block %f "D"
      sched.reverse_compute_at %d at %m
      transform.yield
    }
    ```
    """

    name = "sched.reverse_compute_at"

    block = operand_def(BlockType())
    loop = operand_def(LoopType())

    assembly_format = "$block `at` $loop attr-dict"


@irdl_op_definition
class InlineOp(SchedOp):
    """Replace every read of a block's result by the block's body, and drop the block.

    Return modes: consumes the block; refused for a reduction, or a result of the function.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      sched.inline %c
      transform.yield
    }
    ```
    """

    name = "sched.inline"
    CONSUMES: ClassVar = ("block",)

    block = operand_def(BlockType())

    assembly_format = "$block attr-dict"


@irdl_op_definition
class ReverseInlineOp(SchedOp):
    """Apply an elementwise consumer where its producer writes, and drop the consumer.

    Return modes: consumes the block; refused where it is not the only consumer, or reads more than one element.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      sched.reverse_inline %c
      transform.yield
    }
    ```
    """

    name = "sched.reverse_inline"
    CONSUMES: ClassVar = ("block",)

    block = operand_def(BlockType())

    assembly_format = "$block attr-dict"


OPS = (
    ComputeAtOp,
    ReverseComputeAtOp,
    InlineOp,
    ReverseInlineOp,
)
