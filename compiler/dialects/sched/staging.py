"""Staging: copies in other scopes and layouts, and what overlaps them with work."""

from __future__ import annotations

from xdsl.dialects.builtin import AffineMapAttr, DenseArrayBase, IntegerAttr, StringAttr, i64
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def
from xdsl.utils.exceptions import VerifyException

from compiler.dialects.loop import SCOPES
from compiler.dialects.sched.handle import BlockType, LoopType, SchedOp, check_choice


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
        super().verify_()
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
        super().verify_()
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
        super().verify_()
        check_choice("scope", self.scope, SCOPES)


@irdl_op_definition
class LiftAllocOp(SchedOp):
    """Move the beginning of a buffer's lifetime out to a loop that encloses it.

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
    loop = operand_def(LoopType())

    assembly_format = "$buffer `to` $loop attr-dict"


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
        super().verify_()
        check_choice("scope", self.scope, SCOPES)


@irdl_op_definition
class TransformLayoutOp(SchedOp):
    """Index a temporary buffer through a map: its elements are stored where the map says.

    Return modes: consumes nothing; refused for a map that is not injective on the buffer.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      sched.transform_layout %c "T" by affine_map<(i, j) -> (j, i)>
      transform.yield
    }
    ```
    """

    name = "sched.transform_layout"

    block = operand_def(BlockType())
    buffer = prop_def(StringAttr)
    layout = prop_def(AffineMapAttr)

    assembly_format = "$block $buffer `by` $layout attr-dict"


@irdl_op_definition
class PackOp(SchedOp):
    """Read a buffer through a blocked, padded copy with one tile size a dimension (1 for none).

    Return modes: gives the packing block; refused for a buffer that the block does not read.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      %p = sched.pack %c "B" tiles [1, 48]
      transform.yield
    }
    ```
    """

    name = "sched.pack"

    block = operand_def(BlockType())
    buffer = prop_def(StringAttr)
    tiles = prop_def(DenseArrayBase.constr(i64))
    packing = result_def(BlockType())

    assembly_format = "$block $buffer `tiles` $tiles attr-dict"

    def verify_(self) -> None:
        super().verify_()
        if any(tile < 1 for tile in self.tiles.get_values()):
            raise VerifyException(f"the tiles {list(self.tiles.get_values())} are not all positive")


@irdl_op_definition
class StorageAlignOp(SchedOp):
    """Pad a dimension of a block's buffer so that its stride is `offset` beyond a multiple of `factor`.

    Return modes: consumes nothing; refused for arguments of the function.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      sched.storage_align %c dim 0 factor 32 offset 8
      transform.yield
    }
    ```
    """

    name = "sched.storage_align"

    block = operand_def(BlockType())
    dim = prop_def(IntegerAttr.constr(i64))
    factor = prop_def(IntegerAttr.constr(i64))
    offset = prop_def(IntegerAttr.constr(i64))

    assembly_format = "$block `dim` $dim `factor` $factor `offset` $offset attr-dict"

    def verify_(self) -> None:
        super().verify_()
        if self.factor.value.data < 1:
            raise VerifyException(f"the factor {self.factor.value.data} is not positive")


@irdl_op_definition
class SwizzleOp(SchedOp):
    """Permute the columns of a block's buffer by an exclusive or with its row, against bank conflicts.

    Return modes: consumes nothing; refused for sizes that are not powers of two.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      sched.swizzle %c width 8
      transform.yield
    }
    ```
    """

    name = "sched.swizzle"

    block = operand_def(BlockType())
    width = prop_def(IntegerAttr.constr(i64))

    assembly_format = "$block `width` $width attr-dict"

    def verify_(self) -> None:
        super().verify_()
        width = self.width.value.data
        if width < 1 or width & (width - 1):
            raise VerifyException(f"the width {width} is not a power of two")


@irdl_op_definition
class PrefetchOp(SchedOp):
    """Ask for the elements of a buffer that a loop touches some iterations later.

    Return modes: consumes nothing; refused for a buffer that the loop does not read.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      %m, %l, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
      sched.prefetch %k "B" ahead 8
      transform.yield
    }
    ```
    """

    name = "sched.prefetch"

    loop = operand_def(LoopType())
    buffer = prop_def(StringAttr)
    distance = prop_def(IntegerAttr.constr(i64))

    assembly_format = "$loop $buffer `ahead` $distance attr-dict"

    def verify_(self) -> None:
        super().verify_()
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

    Return modes: consumes nothing; refused where a dependence would be reversed.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      %m, %l, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
      sched.software_pipeline %k stages [0, 1]
      transform.yield
    }
    ```
    """

    name = "sched.software_pipeline"

    loop = operand_def(LoopType())
    stages = prop_def(DenseArrayBase.constr(i64))

    assembly_format = "$loop `stages` $stages attr-dict"

    def verify_(self) -> None:
        super().verify_()
        stages = list(self.stages.get_values())
        if not stages or min(stages) < 0:
            raise VerifyException(f"the stages {stages} are not one number of at least 0 a block")


OPS = (
    CacheReadOp,
    CacheWriteOp,
    StageOp,
    LiftAllocOp,
    SetScopeOp,
    TransformLayoutOp,
    PackOp,
    StorageAlignOp,
    SwizzleOp,
    PrefetchOp,
    DoubleBufferOp,
    SoftwarePipelineOp,
)
