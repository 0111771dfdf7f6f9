"""The shape of a loop nest: split, partition, fuse, reorder, merge, distribute."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, StringAttr, i64
from xdsl.dialects.utils import DynamicIndexList
from xdsl.ir import SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
    var_result_def,
)
from xdsl.utils.exceptions import VerifyException

from compiler.dialects.sched.base import (
    BlockType,
    LoopType,
    ParamType,
    SchedOp,
    check_choice,
    check_distinct,
    sizes_of,
)


@irdl_op_definition
class SplitOp(SchedOp):
    """Split a loop into a nest, outermost factor first.

    Each factor is a constant or a parameter; one may be -1 and is inferred.

    Return modes: consumes the loop; refused where the product of the factors does not cover the extent.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      %m, %l, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
      %m0, %m1 = sched.split %m by [-1, 16] tail "guard" : !sched.loop, !sched.loop
      transform.yield
    }
    ```
    """

    name = "sched.split"
    CONSUMES: ClassVar = ("loop",)

    loop = operand_def(LoopType())
    params = var_operand_def(ParamType())
    factors = prop_def(DenseArrayBase.constr(i64))
    tail = opt_prop_def(StringAttr)
    loops = var_result_def(LoopType())

    assembly_format = (
        "$loop `by` custom<DynamicIndexList>($params, $factors) (`tail` $tail^)? attr-dict `:` type($loops)"
    )
    custom_directives = (DynamicIndexList,)

    @property
    def sizes(self) -> list[int | SSAValue]:
        """The factors, outermost first: constants, of which -1 is inferred, and parameters."""
        return sizes_of(self.factors, self.params)

    def verify_(self) -> None:
        factors = [size for size in self.sizes if isinstance(size, int)]
        if any(factor < 1 and factor != -1 for factor in factors) or factors.count(-1) > 1:
            raise VerifyException(f"the factors {factors} are not positive with at most one -1, which is inferred")
        if len(self.sizes) != len(self.loops):
            raise VerifyException(f"{len(self.sizes)} factors give as many loops, not {len(self.loops)}")
        check_choice("tail", self.tail, ("guard", "partition", "pad"))


@irdl_op_definition
class PartitionOp(SchedOp):
    """Cut a loop in two, one after the other: the iterations below a position, and the rest.

    Return modes: consumes the loop; refused for a position outside its extent.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      %m, %l, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
      %head, %rest = sched.partition %m at 48
      transform.yield
    }
    ```
    """

    name = "sched.partition"
    CONSUMES: ClassVar = ("loop",)

    loop = operand_def(LoopType())
    position = prop_def(IntegerAttr.constr(i64))
    head = result_def(LoopType())
    rest = result_def(LoopType())

    assembly_format = "$loop `at` $position attr-dict"


@irdl_op_definition
class FuseOp(SchedOp):
    """Fuse perfectly nested loops into one, whose variable runs over their product.

    Return modes: consumes the loops; refused where they are not perfectly nested.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      %m, %l, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
      %ml = sched.fuse %m, %l
      transform.yield
    }
    ```
    """

    name = "sched.fuse"
    CONSUMES: ClassVar = ("loops",)

    loops = var_operand_def(LoopType())
    fused = result_def(LoopType())

    assembly_format = "$loops attr-dict"

    def verify_(self) -> None:
        check_distinct(self.loops)


@irdl_op_definition
class ReorderOp(SchedOp):
    """Permute loops of one nest into the order given, outermost first.

    Return modes: consumes nothing; refused where a dependence would be reversed.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      %m, %l, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
      sched.reorder %m, %k, %l
      transform.yield
    }
    ```
    """

    name = "sched.reorder"

    loops = var_operand_def(LoopType())

    assembly_format = "$loops attr-dict"

    def verify_(self) -> None:
        check_distinct(self.loops)


@irdl_op_definition
class MergeOp(SchedOp):
    """Let two adjacent nests share their outer loop: bodies one after the other, the second some iterations late.

    Return modes: consumes both loops; refused where a dependence would be reversed.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      %m, %l, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
      %d = sched.get_block %f "D"
      %n = sched.get_loops %d : !sched.loop
      %both = sched.merge %m, %n
      transform.yield
    }
    ```
    """

    name = "sched.merge"
    CONSUMES: ClassVar = ("first", "second")

    first = operand_def(LoopType())
    second = operand_def(LoopType())
    shift = opt_prop_def(IntegerAttr.constr(i64))
    merged = result_def(LoopType())

    assembly_format = "$first `,` $second (`shift` $shift^)? attr-dict"


@irdl_op_definition
class DistributeOp(SchedOp):
    """Cut the body of a loop after a block and give each part a loop of its own; the inverse of merge.

    Return modes: consumes the loop; refused where a dependence would be reversed.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      %m, %l, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
      %a, %b = sched.distribute %m after %c
      transform.yield
    }
    ```
    """

    name = "sched.distribute"
    CONSUMES: ClassVar = ("loop",)

    loop = operand_def(LoopType())
    block = operand_def(BlockType())
    first = result_def(LoopType())
    second = result_def(LoopType())

    assembly_format = "$loop `after` $block attr-dict"


OPS = (SplitOp, PartitionOp, FuseOp, ReorderOp, MergeOp, DistributeOp)
