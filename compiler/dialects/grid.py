"""grid: what blocks of a GPU's grid do together. MLIR has no such op."""

from __future__ import annotations

from xdsl.dialects.builtin import I64, IndexType, IntegerAttr, MemRefType, i1, i32, i64
from xdsl.ir import Dialect, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

ARRIVALS = "arrivals"
"""The attribute of the allocation of counters of arrivals, and of the kernel that sets them to zero."""


@irdl_op_definition
class ArriveOp(IRDLOperation):
    """Count the arrival of a block of threads, and return whether it is the last of `count` blocks.

    All threads of the block wait for each other, then one of them adds one to the element `index` of `counters`, or
    sets it to zero if it is the last. What the blocks that arrived earlier wrote before is visible to the last one
    behind it. Counters are zero at first, and again when all have arrived.

    ```mlir
    func.func @f(%counters: memref<16xi32>, %index: index) -> i1 {
      %last = "grid.arrive"(%counters, %index) <{count = 4 : i64}> : (memref<16xi32>, index) -> i1
      func.return %last : i1
    }
    ```
    """

    name = "grid.arrive"

    counters = operand_def(MemRefType)
    index = operand_def(IndexType)
    count = prop_def(IntegerAttr[I64])
    last = result_def(i1)

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, counters: SSAValue, index: SSAValue, count: int) -> None:
        super().__init__(operands=[counters, index], properties={"count": IntegerAttr(count, i64)}, result_types=[i1])

    def verify_(self) -> None:
        type_ = self.counters.type
        assert isinstance(type_, MemRefType)
        if type_.element_type != i32 or len(type_.get_shape()) != 1:
            raise VerifyException(f"counters are a memref of one dimension of i32, not {type_}")
        if self.count.value.data < 1:
            raise VerifyException(f"{self.count.value.data} blocks arrive, at least one does")


GRID = Dialect("grid", [ArriveOp])
