"""Layouts: where the elements of a buffer lie in memory."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import AffineMapAttr, DenseArrayBase, IntegerAttr, StringAttr, i64
from xdsl.dialects.utils import DynamicIndexList
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def, var_operand_def
from xdsl.utils.exceptions import VerifyException

from compiler.dialects.sched.base import BlockType, ParamType, SchedOp, sizes_of


@irdl_op_definition
class TransformLayoutOp(SchedOp):
    """Index a temporary buffer through a map: its elements are stored where the map says. Instead of a map, tiles: one
    size a dimension (1 for none), a constant or a parameter, and the order of the dimensions, as in `pack`.

    Return modes: consumes nothing; refused where two elements that live at once would share a place.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      sched.transform_layout %c "T" by affine_map<(i, j) -> (j, i)>
      sched.transform_layout %c "T" tiles [1, 8] order [1, 0, 2]
      transform.yield
    }
    ```
    """

    name = "sched.transform_layout"

    block = operand_def(BlockType())
    buffer = prop_def(StringAttr)
    layout = opt_prop_def(AffineMapAttr)
    params = var_operand_def(ParamType())
    tiles = prop_def(DenseArrayBase.constr(i64))
    order = opt_prop_def(DenseArrayBase.constr(i64))

    assembly_format = (
        "$block $buffer (`by` $layout^)? (`tiles` custom<DynamicIndexList>($params, $tiles)^)? "
        "(`order` $order^)? attr-dict"
    )
    custom_directives = (DynamicIndexList,)

    @property
    def sizes(self) -> list[int | SSAValue]:
        """The tiles, none where there is a map: constants and parameters."""
        return sizes_of(self.tiles, self.params)

    def verify_(self) -> None:
        _check_tiles(self.sizes)
        if (self.layout is None) == (not self.sizes):
            raise VerifyException("a layout is either a map or tiles")
        if self.layout is not None and self.order is not None:
            raise VerifyException("an order belongs to tiles, not to a map")


@irdl_op_definition
class PackOp(SchedOp):
    """Read a buffer through a blocked, padded copy with one tile size a dimension (1 for none), a constant or a
    parameter; `order` permutes the dimensions of the copy: those of the blocks, then those inside a block.

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
    params = var_operand_def(ParamType())
    tiles = prop_def(DenseArrayBase.constr(i64))
    order = opt_prop_def(DenseArrayBase.constr(i64))
    packing = result_def(BlockType())

    assembly_format = "$block $buffer `tiles` custom<DynamicIndexList>($params, $tiles) (`order` $order^)? attr-dict"
    custom_directives = (DynamicIndexList,)

    @property
    def sizes(self) -> list[int | SSAValue]:
        """The tiles: constants and parameters."""
        return sizes_of(self.tiles, self.params)

    def verify_(self) -> None:
        _check_tiles(self.sizes)


def _check_tiles(sizes: Sequence[int | SSAValue]) -> None:
    tiles = [size for size in sizes if isinstance(size, int)]
    if any(tile < 1 for tile in tiles):
        raise VerifyException(f"the tiles {tiles} are not all positive")


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
