"""Asynchronous copies from global to shared memory: ops of upstream's nvgpu dialect, which xDSL leaves out.

The names, operands and properties are upstream's; the syntax is the generic one.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, i32
from xdsl.ir import Dialect, ParametrizedAttribute, SSAValue, TypeAttribute
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
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException


@irdl_attr_definition
class TokenType(ParametrizedAttribute, TypeAttribute):
    """A copy, or a group of copies, that is under way.

    ```mlir
    !nvgpu.device.async.token
    ```
    """

    name = "nvgpu.device.async.token"


@irdl_op_definition
class CopyOp(IRDLOperation):
    """Begin to copy `dstElements` neighbouring elements, aligned to their size; threads go on meanwhile.

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
        self, dst: SSAValue, to: Sequence[SSAValue], src: SSAValue, at: Sequence[SSAValue], count: int
    ) -> None:
        super().__init__(
            operands=[dst, to, src, at, None],
            properties={"dstElements": IntegerAttr(count, IndexType())},
            result_types=[TokenType()],
        )

    def verify_(self) -> None:
        if self.count.value.data < 1:
            raise VerifyException("there is nothing to copy")
        for buffer, indices in ((self.dst, self.dst_indices), (self.src, self.src_indices)):
            assert isinstance(buffer.type, MemRefType)
            if len(indices) != buffer.type.get_num_dims():
                raise VerifyException("there is not one index for each dimension of a buffer")


@irdl_op_definition
class GroupOp(IRDLOperation):
    """A group of all copies that the thread has begun since its last group.

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
    """Wait until the copies of the thread's groups are done, or of all but the last `numGroups`.

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

    def __init__(self, token: SSAValue) -> None:
        super().__init__(operands=[token])


NVGPU = Dialect("nvgpu", [CopyOp, GroupOp, WaitOp], [TokenType])
