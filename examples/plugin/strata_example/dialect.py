"""The dialect `example`."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Dialect
from xdsl.irdl import AnyAttr, IRDLOperation, VarConstraint, irdl_op_definition, operand_def, result_def


@irdl_op_definition
class DoubleOp(IRDLOperation):
    """Twice a number: `%y = example.double %x : f32`."""

    T: ClassVar = VarConstraint("T", AnyAttr())
    name = "example.double"
    number = operand_def(T)
    result = result_def(T)
    assembly_format = "$number attr-dict `:` type($number)"

    def verify_(self) -> None:
        from xdsl.utils.exceptions import VerifyException

        if not isinstance(self.number.type, AnyFloat):
            raise VerifyException(f"example.double is of floats, not of {self.number.type}")


EXAMPLE = Dialect("example", [DoubleOp], [])
