"""Reductions."""

from __future__ import annotations

from xdsl.irdl import irdl_op_definition, operand_def, result_def

from compiler.dialects.sched.base import BlockType, LoopType, SchedOp


@irdl_op_definition
class DecomposeReductionOp(SchedOp):
    """Make the init of a reduction a block of its own, before a loop.

    Return modes: gives the init block; refused for a loop inside the reduction.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      %m, %l, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
      %init = sched.decompose_reduction %c at %k
      transform.yield
    }
    ```
    """

    name = "sched.decompose_reduction"

    block = operand_def(BlockType())
    loop = operand_def(LoopType())
    init = result_def(BlockType())

    assembly_format = "$block `at` $loop attr-dict"


@irdl_op_definition
class RfactorOp(SchedOp):
    """Reduce along one loop into a buffer of partial results, and combine those afterwards.

    Return modes: gives the block of partial results; refused for a loop that binds no reduce iterator.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      %m, %l, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
      %partial = sched.rfactor %c along %k
      transform.yield
    }
    ```
    """

    name = "sched.rfactor"

    block = operand_def(BlockType())
    loop = operand_def(LoopType())
    partial = result_def(BlockType())

    assembly_format = "$block `along` $loop attr-dict"


OPS = (
    DecomposeReductionOp,
    RfactorOp,
)
