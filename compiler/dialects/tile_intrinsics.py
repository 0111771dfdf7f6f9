"""The unit dialect: instructions of matrix and dot-product units on registers that upstream dialects have no op for.

Values of tiles are the bits of a register of 16 rows of 64 bytes, as 256 words.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import IndexType, MemRefType, StringAttr, VectorType, i32
from xdsl.ir import Dialect, Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from compiler.dialects.upstream.memref import check_indices

TILE = VectorType(i32, [256])
"""The type of a tile's value."""
ROWS, ROW_BYTES = 16, 64
"""The rows of a tile, and the bytes of a row."""


@irdl_op_definition
class LoadOp(IRDLOperation):
    """Load a vector of contiguous elements in row-major order; it may continue from the end of a row into the next.

    ```mlir
    func.func @f(%B: memref<8x16x4xi8>, %k: index) {
      %c0 = arith.constant 0 : index
      %b = unit.load %B[%k, %c0, %c0] : memref<8x16x4xi8>, vector<64xi8>
      func.return
    }
    ```
    """

    name = "unit.load"

    buffer = operand_def(MemRefType)
    indices = var_operand_def(IndexType())
    result = result_def(VectorType)

    traits = traits_def(MemoryReadEffect())
    assembly_format = "$buffer `[` $indices `]` attr-dict `:` type($buffer) `,` type($result)"

    def __init__(self, buffer: SSAValue, indices: list[SSAValue], type: VectorType) -> None:
        super().__init__(operands=[buffer, indices], result_types=[type])

    def verify_(self) -> None:
        check_indices(self.buffer, self.indices)
        _check_elements(self.buffer, self.result)


@irdl_op_definition
class StoreOp(IRDLOperation):
    """Store a vector to contiguous elements in row-major order; it may continue from the end of a row into the next.

    ```mlir
    func.func @f(%B: memref<8x16x4xi8>, %k: index, %b: vector<64xi8>) {
      %c0 = arith.constant 0 : index
      unit.store %b, %B[%k, %c0, %c0] : memref<8x16x4xi8>, vector<64xi8>
      func.return
    }
    ```
    """

    name = "unit.store"

    value = operand_def(VectorType)
    buffer = operand_def(MemRefType)
    indices = var_operand_def(IndexType())

    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$value `,` $buffer `[` $indices `]` attr-dict `:` type($buffer) `,` type($value)"

    def __init__(self, value: SSAValue, buffer: SSAValue, indices: list[SSAValue]) -> None:
        super().__init__(operands=[value, buffer, indices])

    def verify_(self) -> None:
        check_indices(self.buffer, self.indices)
        _check_elements(self.buffer, self.value)


@irdl_op_definition
class DotOp(IRDLOperation):
    """Add to each lane of C a dot product: of the group A, which all lanes share, and the lane's own group of B.

        C[j] + sum over k of A[k] * B[j, k]

    `kind` is the name of a declared intrinsic, which states the widening of its operands.

    ```mlir
    func.func @f(%c: vector<16xi32>, %a: vector<4xi8>, %b: vector<64xi8>) {
      %d = unit.dot "dot.i32.u8i8x4" %c, %a, %b : vector<16xi32>, vector<4xi8>, vector<64xi8> -> vector<16xi32>
      func.return
    }
    ```
    """

    name = "unit.dot"

    kind = prop_def(StringAttr)
    sums = operand_def(VectorType)
    group = operand_def(VectorType)
    groups = operand_def(VectorType)
    result = result_def(VectorType)

    traits = traits_def(Pure())
    assembly_format = (
        "$kind $sums `,` $group `,` $groups attr-dict `:` type($sums) `,` type($group) `,` type($groups) "
        "`->` type($result)"
    )

    def __init__(self, kind: str, sums: SSAValue, group: SSAValue, groups: SSAValue) -> None:
        super().__init__(
            operands=[sums, group, groups], properties={"kind": StringAttr(kind)}, result_types=[sums.type]
        )

    def verify_(self) -> None:
        lanes, group, groups = map(_length, (self.sums, self.group, self.groups))
        if self.result.type != self.sums.type or lanes * group != groups:
            raise VerifyException(
                f"{self.groups.type} is not a group of {self.group.type} for each of {self.sums.type}"
            )


@irdl_op_definition
class TileLoadOp(IRDLOperation):
    """Load a tile of 16 rows of 64 bytes, which begin `stride` bytes apart.

    ```mlir
    func.func @f(%A: memref<16x32xbf16>) {
      %c0 = arith.constant 0 : index
      %c64 = arith.constant 64 : index
      %a = unit.tile_load %A[%c0, %c0] by %c64 : memref<16x32xbf16>
      func.return
    }
    ```
    """

    name = "unit.tile_load"

    buffer = operand_def(MemRefType)
    indices = var_operand_def(IndexType())
    stride = operand_def(IndexType())
    result = result_def(TILE)

    traits = traits_def(MemoryReadEffect())
    assembly_format = "$buffer `[` $indices `]` `by` $stride attr-dict `:` type($buffer)"

    def __init__(self, buffer: SSAValue, indices: list[SSAValue], stride: SSAValue) -> None:
        super().__init__(operands=[buffer, indices, stride], result_types=[TILE])

    def verify_(self) -> None:
        check_indices(self.buffer, self.indices)


@irdl_op_definition
class TileStoreOp(IRDLOperation):
    """Store a tile of 16 rows of 64 bytes, which begin `stride` bytes apart.

    ```mlir
    func.func @f(%C: memref<16x32xf32>, %c: vector<256xi32>) {
      %c0 = arith.constant 0 : index
      %c128 = arith.constant 128 : index
      unit.tile_store %c, %C[%c0, %c0] by %c128 : memref<16x32xf32>
      func.return
    }
    ```
    """

    name = "unit.tile_store"

    value = operand_def(TILE)
    buffer = operand_def(MemRefType)
    indices = var_operand_def(IndexType())
    stride = operand_def(IndexType())

    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$value `,` $buffer `[` $indices `]` `by` $stride attr-dict `:` type($buffer)"

    def __init__(self, value: SSAValue, buffer: SSAValue, indices: list[SSAValue], stride: SSAValue) -> None:
        super().__init__(operands=[value, buffer, indices, stride])

    def verify_(self) -> None:
        check_indices(self.buffer, self.indices)


@irdl_op_definition
class TileDotOp(IRDLOperation):
    """Add the product of the tiles A and B to the tile C; B interleaves groups of rows, such as the pair 2k and 2k + 1.

        C[i, j] + sum over k and p of A[i, 2*k + p] * B[k, 2*j + p]

    `kind` is the name of a declared intrinsic, which states the widening of its operands.

    ```mlir
    func.func @f(%c: vector<256xi32>, %a: vector<256xi32>, %b: vector<256xi32>) {
      %d = unit.tile_dot "tile.f32.bf16" %c, %a, %b
      func.return
    }
    ```
    """

    name = "unit.tile_dot"

    kind = prop_def(StringAttr)
    sums = operand_def(TILE)
    rows = operand_def(TILE)
    groups = operand_def(TILE)
    result = result_def(TILE)

    traits = traits_def(Pure())
    assembly_format = "$kind $sums `,` $rows `,` $groups attr-dict"

    def __init__(self, kind: str, sums: SSAValue, rows: SSAValue, groups: SSAValue) -> None:
        super().__init__(operands=[sums, rows, groups], properties={"kind": StringAttr(kind)}, result_types=[TILE])


def _length(value: SSAValue) -> int:
    assert isinstance(value.type, VectorType)
    return prod(value.type.get_shape())


def _check_elements(buffer: SSAValue, value: SSAValue) -> None:
    assert isinstance(buffer.type, MemRefType) and isinstance(value.type, VectorType)
    if value.type.element_type != buffer.type.element_type:
        raise VerifyException(f"{buffer.type} holds no elements of {value.type}")
    if prod(value.type.get_shape()) > prod(buffer.type.get_shape()):
        raise VerifyException(f"{buffer.type} holds fewer elements than {value.type}")


OPS: tuple[type[Operation], ...] = (LoadOp, StoreOp, DotOp, TileLoadOp, TileStoreOp, TileDotOp)
UNIT = Dialect("unit", list(OPS))
