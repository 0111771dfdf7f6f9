"""nvgpu: MLIR has asynchronous copies to shared memory, ldmatrix and mma.sync; xDSL lacks the dialect.

The names, operands and properties are MLIR's; the syntax is the generic one. Of an MMA tile each thread of a warp holds
some elements, in pairs or singly, as registers of 32 bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    BFloat16Type,
    BoolAttr,
    Float16Type,
    IndexType,
    IntegerAttr,
    MemRefType,
    UnitAttr,
    VectorType,
    f32,
    i32,
    i64,
)
from xdsl.ir import Attribute, Dialect, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from compiler.dialects.upstream.memref import check_indices
from compiler.types.scopes import SCOPES, space_of


@irdl_attr_definition
class TokenType(ParametrizedAttribute, TypeAttribute):
    """The type of the token of an asynchronous copy, or of a group of copies.

    ```mlir
    !nvgpu.device.async.token
    ```
    """

    name = "nvgpu.device.async.token"


@irdl_op_definition
class CopyOp(IRDLOperation):
    """Begin an asynchronous copy of `dstElements` contiguous elements, aligned to their total size. Only the
    first `src_elements` are read, if given; the others become zero.

    ```mlir
    func.func @f(%A: memref<64xf32>, %S: memref<64xf32, 3>, %i: index) {
      %t = "nvgpu.device_async_copy"(%S, %i, %A, %i)
        <{dstElements = 4 : index, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>}>
        : (memref<64xf32, 3>, index, memref<64xf32>, index) -> !nvgpu.device.async.token
      func.return
    }
    ```
    """

    name = "nvgpu.device_async_copy"

    dst = operand_def(MemRefType)
    dst_indices = var_operand_def(IndexType())
    src = operand_def(MemRefType)
    src_indices = var_operand_def(IndexType())
    src_elements = opt_operand_def(IndexType())
    count = prop_def(IntegerAttr.constr(IndexType()), prop_name="dstElements")
    token = result_def(TokenType())

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        dst: SSAValue,
        to: Sequence[SSAValue],
        src: SSAValue,
        at: Sequence[SSAValue],
        count: int,
        src_elements: SSAValue | None = None,
    ) -> None:
        super().__init__(
            operands=[dst, to, src, at, src_elements],
            properties={"dstElements": IntegerAttr(count, IndexType())},
            result_types=[TokenType()],
        )

    def verify_(self) -> None:
        if self.count.value.data < 1:
            raise VerifyException("there is nothing to copy")
        for buffer, indices in ((self.dst, self.dst_indices), (self.src, self.src_indices)):
            check_indices(buffer, indices)


@irdl_op_definition
class GroupOp(IRDLOperation):
    """Group all copies that the thread has begun since its last group; the result is the group's token.

    ```mlir
    func.func @f() {
      %g = "nvgpu.device_async_create_group"() : () -> !nvgpu.device.async.token
      "nvgpu.device_async_wait"(%g) : (!nvgpu.device.async.token) -> ()
      func.return
    }
    ```
    """

    name = "nvgpu.device_async_create_group"

    tokens = var_operand_def(TokenType())
    token = result_def(TokenType())

    traits = traits_def(MemoryWriteEffect())

    def __init__(self) -> None:
        super().__init__(operands=[[]], result_types=[TokenType()])


@irdl_op_definition
class WaitOp(IRDLOperation):
    """Wait until the copies of all groups of the thread are done; with `numGroups`, of all but that many last
    groups.

    ```mlir
    func.func @f() {
      %g = "nvgpu.device_async_create_group"() : () -> !nvgpu.device.async.token
      "nvgpu.device_async_wait"(%g) : (!nvgpu.device.async.token) -> ()
      func.return
    }
    ```
    """

    name = "nvgpu.device_async_wait"

    token = operand_def(TokenType())
    groups = opt_prop_def(IntegerAttr.constr(i32), prop_name="numGroups")

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, token: SSAValue, groups: int | None = None) -> None:
        number = None if groups is None else IntegerAttr(groups, i32)
        super().__init__(operands=[token], properties={"numGroups": number})

    def verify_(self) -> None:
        if self.groups is not None and self.groups.value.data < 0:
            raise VerifyException("fewer than no groups cannot be left")


@irdl_op_definition
class LoadMatrixOp(IRDLOperation):
    """Load 1, 2 or 4 matrices of 8 rows of 16 bytes: each thread points to a row, and gets 4 bytes of every matrix.

    The threads 0 to 7 of a warp point to the rows of the first matrix, the next eight to the rows of the second, and so
    on. Thread t gets the 4 bytes from byte 4 (t mod 4) of row t / 4; with `transpose`, for 16-bit elements only, rows
    2 (t mod 4) and the next, column t / 4.

    ```mlir
    func.func @f(%S: memref<16x24xf16, 3>, %i: index, %k: index) {
      %a = "nvgpu.ldmatrix"(%S, %i, %k) <{numTiles = 4 : i32, transpose = false}>
        : (memref<16x24xf16, 3>, index, index) -> vector<4x2xf16>
      func.return
    }
    ```
    """

    name = "nvgpu.ldmatrix"

    source = operand_def(MemRefType)
    indices = var_operand_def(IndexType())
    transpose = prop_def(BoolAttr)
    tiles = prop_def(IntegerAttr.constr(i32), prop_name="numTiles")
    result = result_def(VectorType)

    traits = traits_def(MemoryReadEffect())

    def __init__(self, source: SSAValue, indices: Sequence[SSAValue], type: VectorType, transpose: bool) -> None:
        super().__init__(
            operands=[source, indices],
            properties={"transpose": BoolAttr.from_bool(transpose), "numTiles": IntegerAttr(type.get_shape()[0], i32)},
            result_types=[type],
        )

    def verify_(self) -> None:
        source, loaded = self.source.type, self.result.type
        assert isinstance(source, MemRefType) and isinstance(loaded, VectorType)
        check_indices(self.source, self.indices)
        if space_of(source) != SCOPES["shared"]:
            raise VerifyException(f"matrices are loaded from shared memory, which {source} is not")
        if _register(loaded) != source.element_type or loaded.get_shape()[0] != self.tiles.value.data:
            raise VerifyException(f"{self.tiles.value.data} matrices of {source.element_type} are no {loaded}")
        if self.tiles.value.data not in (1, 2, 4):
            raise VerifyException("1, 2 or 4 matrices are loaded at once")
        if self.transpose.value.data and loaded.get_shape()[1] != 2:
            raise VerifyException("elements of 16 bits alone can be transposed")


@irdl_op_definition
class MmaOp(IRDLOperation):
    """Add a product of MMA tiles, a[16, k] times b[k, 8], to the sums c[16, 8] that a warp holds.

    Thread t, with r = t / 4 and q = t mod 4, holds in order: c[r, 2q:2q+2] and c[r+8, 2q:2q+2]. With k = 16, the pairs
    a[r, 2q:2q+2], a[r+8, 2q:2q+2], a[r, 2q+8:2q+10] and a[r+8, 2q+8:2q+10]; b[2q:2q+2, r] and b[2q+8:2q+10, r]. With
    tf32, where k = 8, the elements a[r, q], a[r+8, q], a[r, q+4] and a[r+8, q+4]; b[q, r] and b[q+4, r].

    ```mlir
    func.func @f(%a: vector<4x2xf16>, %b: vector<2x2xf16>, %c: vector<2x2xf32>) {
      %d = "nvgpu.mma.sync"(%a, %b, %c) <{mmaShape = [16, 8, 16]}>
        : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
      func.return
    }
    ```
    """

    name = "nvgpu.mma.sync"

    a = operand_def(VectorType)
    b = operand_def(VectorType)
    c = operand_def(VectorType)
    shape = prop_def(ArrayAttr[IntegerAttr], prop_name="mmaShape")
    tf32 = opt_prop_def(UnitAttr, prop_name="tf32Enabled")
    result = result_def(VectorType)

    traits = traits_def(Pure())

    def __init__(self, a: SSAValue, b: SSAValue, c: SSAValue) -> None:
        assert isinstance(a.type, VectorType)
        is_single = a.type.get_shape()[1] == 1
        sides = [IntegerAttr(size, i64) for size in (16, 8, 8 if is_single else 16)]
        super().__init__(
            operands=[a, b, c],
            properties={"mmaShape": ArrayAttr(sides), "tf32Enabled": UnitAttr() if is_single else None},
            result_types=[c.type],
        )

    def verify_(self) -> None:
        a, b, c = (value.type for value in (self.a, self.b, self.c))
        assert isinstance(a, VectorType) and isinstance(b, VectorType)
        element, each = a.element_type, 2 if a.element_type in (Float16Type(), BFloat16Type()) else 1
        fitting = element in (Float16Type(), BFloat16Type(), f32) and (each == 1) == (self.tf32 is not None)
        shapes = a == VectorType(element, [4, each]) and b == VectorType(element, [2, each])
        sides = [side.value.data for side in self.shape]
        if not (fitting and shapes and c == self.result.type == VectorType(f32, [2, 2])):
            raise VerifyException(f"a warp does not add the product of {a} and {b} to {c}")
        if sides != [16, 8, 8 * each]:
            raise VerifyException(f"the shape of this product is 16, 8, {8 * each}")


def _register(type: VectorType) -> Attribute | None:
    """The element type of a vector [registers, elements of 32 bits together]; None for any other vector."""
    width = getattr(type.element_type, "bitwidth", 0)
    return type.element_type if len(type.get_shape()) == 2 and type.get_shape()[1] * width == 32 else None


NVGPU = Dialect("nvgpu", [CopyOp, GroupOp, WaitOp, LoadMatrixOp, MmaOp], [TokenType])
