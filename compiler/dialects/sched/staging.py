"""Staging: copies of buffers in other scopes, and where buffers live."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, prop_def, result_def

from compiler.dialects.sched.base import BlockType, LoopType, SchedOp, check_choice
from compiler.scopes import SCOPES


@irdl_op_definition
class CacheReadOp(SchedOp):
    """Copy a buffer that a block reads into another scope, and read the copy.

    Return modes: gives the copying block; refused for a buffer that the block does not read.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      %copy = sched.cache_read %c "A" in "shared"
      transform.yield
    }
    ```
    """

    name = "sched.cache_read"

    block = operand_def(BlockType())
    buffer = prop_def(StringAttr)
    scope = prop_def(StringAttr)
    copy = result_def(BlockType())

    assembly_format = "$block $buffer `in` $scope attr-dict"

    def verify_(self) -> None:
        check_choice("scope", self.scope, SCOPES)


@irdl_op_definition
class CacheWriteOp(SchedOp):
    """Compute a block's result in another scope and copy it out.

    Return modes: gives the copying block.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      %copy = sched.cache_write %c in "local"
      transform.yield
    }
    ```
    """

    name = "sched.cache_write"

    block = operand_def(BlockType())
    scope = prop_def(StringAttr)
    copy = result_def(BlockType())

    assembly_format = "$block `in` $scope attr-dict"

    def verify_(self) -> None:
        check_choice("scope", self.scope, SCOPES)


@irdl_op_definition
class StageOp(SchedOp):
    """Work on a copy of the window of a buffer that a loop's body touches: copy it in, work, copy it out.

    Return modes: gives the blocks that copy in and out; refused where the window cannot be stated.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      %m, %l, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
      %in, %out = sched.stage %m "C" in "local"
      transform.yield
    }
    ```
    """

    name = "sched.stage"

    loop = operand_def(LoopType())
    buffer = prop_def(StringAttr)
    scope = prop_def(StringAttr)
    copy_in = result_def(BlockType())
    copy_out = result_def(BlockType())

    assembly_format = "$loop $buffer `in` $scope attr-dict"

    def verify_(self) -> None:
        check_choice("scope", self.scope, SCOPES)


@irdl_op_definition
class LiftAllocOp(SchedOp):
    """Move the beginning of a buffer's lifetime out to a loop that encloses it, or without one to the function.

    Return modes: consumes nothing; refused for a loop that does not enclose the allocation.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      %m, %l, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
      sched.lift_alloc "T" to %m
      transform.yield
    }
    ```
    """

    name = "sched.lift_alloc"

    buffer = prop_def(StringAttr)
    loop = opt_operand_def(LoopType())

    assembly_format = "$buffer (`to` $loop^)? attr-dict"


@irdl_op_definition
class SetScopeOp(SchedOp):
    """Set the scope of the buffer that a block writes.

    Return modes: consumes nothing; refused for arguments of the function.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      sched.set_scope %c "shared"
      transform.yield
    }
    ```
    """

    name = "sched.set_scope"

    block = operand_def(BlockType())
    scope = prop_def(StringAttr)

    assembly_format = "$block $scope attr-dict"

    def verify_(self) -> None:
        check_choice("scope", self.scope, SCOPES)


OPS = (CacheReadOp, CacheWriteOp, StageOp, LiftAllocOp, SetScopeOp)
