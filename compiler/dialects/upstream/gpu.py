"""gpu: MLIR has gpu.shuffle, by which the threads of a warp exchange values, xDSL has not."""

from __future__ import annotations

from enum import auto

from xdsl.dialects.builtin import AnyFloatConstr, IntegerType, i1, i32
from xdsl.dialects.gpu import GPU as XDSL
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Dialect, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import (
    BaseAttr,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum


class ShuffleMode(StrEnum):
    """The source lane of a shuffle in lane l of a warp: l xor offset (XOR), l + offset (DOWN), l - offset (UP), or
    offset (IDX)."""

    XOR = auto()
    DOWN = auto()
    UP = auto()
    IDX = auto()


@irdl_attr_definition
class ShuffleModeAttr(EnumAttribute[ShuffleMode], SpacedOpaqueSyntaxAttribute):
    """The mode of a shuffle, as an attribute of gpu.shuffle.

    ```mlir
    #gpu<shuffle_mode xor>
    ```
    """

    name = "gpu.shuffle_mode"


@irdl_op_definition
class ShuffleOp(IRDLOperation):
    """Get the value of the thread of the warp that `mode` and `offset` select, and whether that thread exists among
    `width` threads, else the value is undefined; all threads of the warp take part.

    ```mlir
    func.func @f(%a: f32) -> f32 {
      %offset = arith.constant 16 : i32
      %width = arith.constant 32 : i32
      %b, %there = "gpu.shuffle"(%a, %offset, %width) <{mode = #gpu<shuffle_mode xor>}> : (f32, i32, i32) -> (f32, i1)
      func.return %b : f32
    }
    ```
    """

    name = "gpu.shuffle"

    value = operand_def(AnyFloatConstr | BaseAttr(IntegerType))
    offset = operand_def(i32)
    width = operand_def(i32)
    mode = prop_def(ShuffleModeAttr)
    result = result_def()
    there = result_def(i1)
    traits = traits_def(Pure())

    def __init__(self, value: SSAValue, offset: SSAValue, width: SSAValue, mode: ShuffleMode = ShuffleMode.XOR) -> None:
        super().__init__(
            operands=[value, offset, width], properties={"mode": ShuffleModeAttr(mode)}, result_types=[value.type, i1]
        )

    def verify_(self) -> None:
        if self.result.type != self.value.type:
            raise VerifyException(f"a value of type {self.value.type} is handed on, not one of {self.result.type}")


GPU = Dialect("gpu", [*XDSL.operations, ShuffleOp], [*XDSL.attributes, ShuffleModeAttr])
