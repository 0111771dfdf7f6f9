"""Handles: the ops that find blocks and loops."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.transform import AnyOpType
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, var_result_def

from compiler.dialects.sched.base import BlockType, LoopType, SchedOp


@irdl_op_definition
class GetBlockOp(SchedOp):
    """The block of that name.

    Return modes: refused where the function has none.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      transform.yield
    }
    ```
    """

    name = "sched.get_block"

    function = operand_def(AnyOpType())
    label = prop_def(StringAttr)
    block = result_def(BlockType())

    assembly_format = "$function $label attr-dict"


@irdl_op_definition
class GetLoopsOp(SchedOp):
    """The loops around a block, outermost first.

    Return modes: refused where their number differs from the results'.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      %m, %l, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
      transform.yield
    }
    ```
    """

    name = "sched.get_loops"

    block = operand_def(BlockType())
    loops = var_result_def(LoopType())

    assembly_format = "$block attr-dict `:` type($loops)"


@irdl_op_definition
class GetProducersOp(SchedOp):
    """The blocks whose results a block reads.

    Return modes: refused where their number differs from the results'.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      %p = sched.get_producers %c : !sched.block
      transform.yield
    }
    ```
    """

    name = "sched.get_producers"

    block = operand_def(BlockType())
    producers = var_result_def(BlockType())

    assembly_format = "$block attr-dict `:` type($producers)"


@irdl_op_definition
class GetConsumersOp(SchedOp):
    """The blocks that read a block's result.

    Return modes: refused where their number differs from the results'.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      %d = sched.get_consumers %c : !sched.block
      transform.yield
    }
    ```
    """

    name = "sched.get_consumers"

    block = operand_def(BlockType())
    consumers = var_result_def(BlockType())

    assembly_format = "$block attr-dict `:` type($consumers)"


OPS = (GetBlockOp, GetLoopsOp, GetProducersOp, GetConsumersOp)
