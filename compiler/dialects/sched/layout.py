"""Layouts: where the elements of a buffer lie in memory."""

from __future__ import annotations

from xdsl.dialects.builtin import AffineMapAttr, DenseArrayBase, IntegerAttr, StringAttr, i64
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def
from xdsl.utils.exceptions import VerifyException

from compiler.dialects.sched.base import BlockType, SchedOp


@irdl_op_definition
class TransformLayoutOp(SchedOp):
    """Index a temporary buffer through a map: its elements are stored where the map says.

    Return modes: consumes nothing; refused where two elements that live at once would share a place.

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
    """Read a buffer through a blocked, padded copy with one tile size a dimension (1 for none); `order` permutes the
    dimensions of the copy: those of the blocks, then those inside a block.

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
    order = opt_prop_def(DenseArrayBase.constr(i64))
    packing = result_def(BlockType())

    assembly_format = "$block $buffer `tiles` $tiles (`order` $order^)? attr-dict"

    def verify_(self) -> None:
        if any(tile < 1 for tile in self.tiles.get_values()):
            raise VerifyException(f"the tiles {list(self.tiles.get_values())} are not all positive")


@irdl_op_definition
class PadOp(SchedOp):
    """Read a buffer through a copy with a border, which holds what a condition reads beyond its edge.

    Return modes: consumes nothing; refused where the condition fails inside the buffer as well.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      %p = sched.pad %c "A"
      transform.yield
    }
    ```
    """

    name = "sched.pad"

    block = operand_def(BlockType())
    buffer = prop_def(StringAttr)
    copy = result_def(BlockType())

    assembly_format = "$block $buffer attr-dict"


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
        if self.factor.value.data < 1:
            raise VerifyException(f"the factor {self.factor.value.data} is not positive")


@irdl_op_definition
class SwizzleOp(SchedOp):
    """Rotate the columns of a block's buffer by its row, within groups of `width`, against bank conflicts.

    Return modes: consumes nothing; refused for a last dimension that is no multiple of the width.

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
        width = self.width.value.data
        if width < 1 or width & (width - 1):
            raise VerifyException(f"the width {width} is not a power of two")


OPS = (TransformLayoutOp, PackOp, PadOp, StorageAlignOp, SwizzleOp)
