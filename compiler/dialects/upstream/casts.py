"""arith: MLIR converts scalars, vectors and tensors; xDSL's casts take scalars."""

from __future__ import annotations

from typing import ClassVar, get_args

from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType, TensorType, VectorType
from xdsl.interfaces import HasFolderInterface
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from compiler.types.elements import element_bits

FLOATS = get_args(AnyFloat)
"""The classes of float types, also those that no dtype has."""


def element_of(type: Attribute) -> Attribute:
    """The element type of a vector or tensor; a scalar type itself."""
    return type.element_type if isinstance(type, VectorType | TensorType) else type


def shape_of(type: Attribute) -> tuple[int, ...]:
    """The shape of a vector or tensor; () for a scalar."""
    return type.get_shape() if isinstance(type, VectorType | TensorType) else ()


class CastOp(IRDLOperation, HasFolderInterface):
    """The base of conversions between scalars, or between vectors or tensors of one shape, from an element type of FROM
    to one of TO. UNDOES: the names of the conversions that this one undoes if it returns to their type."""

    FROM: ClassVar[tuple[type[Attribute], ...]] = (IntegerType,)
    TO: ClassVar[tuple[type[Attribute], ...]] = (IntegerType,)
    UNDOES: ClassVar[tuple[str, ...]] = ()

    input = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` type($input) `to` type($result)"

    def __init__(self, value: SSAValue | Operation, type: Attribute) -> None:
        super().__init__(operands=[value], result_types=[type])

    def verify_(self) -> None:
        source, target = self.input.type, self.result.type
        before, after = element_of(source), element_of(target)
        if shape_of(source) != shape_of(target) or not isinstance(before, self.FROM) or not isinstance(after, self.TO):
            raise VerifyException(f"{source} cannot become {target}")
        if self.FROM == self.TO and not self._fits(element_bits(before), element_bits(after)):
            raise VerifyException(f"{source} is not {'narrower' if 'ext' in self.name else 'wider'} than {target}")

    def fold(self) -> tuple[SSAValue | Attribute] | None:
        """The value that a wider type held, where its conversion is undone: an op of UNDOES; None for other
        operands."""
        former = self.input.owner
        if not isinstance(former, CastOp) or former.name not in self.UNDOES or former.input.type != self.result.type:
            return None
        return (former.input,)

    def _fits(self, before: int, after: int) -> bool:
        return before < after if "ext" in self.name else before > after


@irdl_op_definition
class ExtFOp(CastOp):
    """Extend a float to a wider type: `%b = arith.extf %a : f16 to f32`."""

    name = "arith.extf"
    FROM: ClassVar = FLOATS
    TO: ClassVar = FLOATS


@irdl_op_definition
class TruncFOp(CastOp):
    """Round a float to a narrower type, to nearest, ties to even: `%b = arith.truncf %a : f32 to f16`."""

    name = "arith.truncf"
    FROM: ClassVar = FLOATS
    TO: ClassVar = FLOATS
    UNDOES: ClassVar = ("arith.extf",)


@irdl_op_definition
class ExtSIOp(CastOp):
    """Extend a signed integer to a wider type: `%b = arith.extsi %a : i8 to i32`."""

    name = "arith.extsi"


@irdl_op_definition
class ExtUIOp(CastOp):
    """Extend an unsigned integer to a wider type: `%b = arith.extui %a : i8 to i32`."""

    name = "arith.extui"


@irdl_op_definition
class TruncIOp(CastOp):
    """Truncate an integer to its low bits: `%b = arith.trunci %a : i32 to i8`."""

    name = "arith.trunci"
    UNDOES: ClassVar = ("arith.extsi", "arith.extui")


@irdl_op_definition
class SIToFPOp(CastOp):
    """Convert a signed integer to a float: `%b = arith.sitofp %a : i32 to f32`."""

    name = "arith.sitofp"
    TO: ClassVar = FLOATS


@irdl_op_definition
class UIToFPOp(CastOp):
    """Convert an unsigned integer to a float: `%b = arith.uitofp %a : i8 to f32`."""

    name = "arith.uitofp"
    TO: ClassVar = FLOATS


@irdl_op_definition
class FPToSIOp(CastOp):
    """Truncate a float to a signed integer, undefined beyond its limits: `%b = arith.fptosi %a : f32 to i32`."""

    name = "arith.fptosi"
    FROM: ClassVar = FLOATS


@irdl_op_definition
class FPToUIOp(CastOp):
    """Truncate a float to an unsigned integer, undefined beyond its limits: `%b = arith.fptoui %a : f32 to i8`."""

    name = "arith.fptoui"
    FROM: ClassVar = FLOATS


@irdl_op_definition
class IndexCastOp(CastOp):
    """Convert an index to an integer, or the reverse: `%b = arith.index_cast %a : index to i64`."""

    name = "arith.index_cast"
    FROM: ClassVar = (IndexType, IntegerType)
    TO: ClassVar = (IndexType, IntegerType)
    UNDOES: ClassVar = ("arith.index_cast",)

    def verify_(self) -> None:
        super().verify_()
        ends = [isinstance(element_of(value.type), IndexType) for value in (self.input, self.result)]
        if ends[0] == ends[1]:
            raise VerifyException(f"{self.input.type} cannot become {self.result.type}")

    def fold(self) -> tuple[SSAValue | Attribute] | None:
        """The value before its conversion that is undone, if the type between, an index of 64 bits or an integer, holds
        it; None for other operands."""
        between, outer = (
            type.width.data if isinstance(type, IntegerType) else 64
            for type in (element_of(self.input.type), element_of(self.result.type))
        )
        return super().fold() if between >= outer else None

    def _fits(self, before: int, after: int) -> bool:
        return True


CASTS = (ExtFOp, TruncFOp, ExtSIOp, ExtUIOp, TruncIOp, SIToFPOp, UIToFPOp, FPToSIOp, FPToUIOp, IndexCastOp)
"""The conversions; each replaces xDSL's op of the same name, which takes scalars only."""
