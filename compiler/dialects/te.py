"""The te dialect: tensor expressions over whole tensors, SSA values.

`te.compute` is the one op: named axes, operands read through quasi-affine maps, a scalar body, and a combiner
a result where there are reduce axes. `te.index` and `te.yield` stand in its body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, IndexType, StringAttr, TensorType
from xdsl.ir import Attribute, Dialect, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from compiler.dialects.access import (
    AccessAttr,
    AxisAttr,
    names_of,
    parse_access,
    parse_combiners,
    print_access,
    print_combiners,
)
from compiler.dialects.checks import check_access, check_axes, check_body, check_combiners, shape_of

__all__ = ["TE", "AccessAttr", "AxisAttr", "ComputeOp", "IndexOp", "YieldOp"]


@irdl_op_definition
class ComputeOp(IRDLOperation):
    """Compute whole tensors from whole tensors, element by element, optionally reducing.

    For each point of the spatial axes, the body's yielded values over all points of the reduce axes are combined
    in an unspecified order, starting from the combiner's identity. An input is read at its map of the axes; where
    its condition fails, its `else` value is read instead and the tensor is not touched.

    ```mlir
    func.func @rows(%A: tensor<4x8xf32>) -> tensor<4xf32> {
      %S = te.compute "S" [m = 4, reduce k = 9] combine [add]
          (%a = %A[m, k - 1] where (k - 1 >= 0) else 0.0 : tensor<4x8xf32>) -> tensor<4xf32> {
        %0 = arith.mulf %a, %a : f32
        te.yield %0 : f32
      }
      func.return %S : tensor<4xf32>
    }
    ```
    """

    name = "te.compute"

    label = prop_def(StringAttr)
    axes = prop_def(ArrayAttr[AxisAttr])
    reads = prop_def(ArrayAttr[AccessAttr])
    combiners = prop_def(ArrayAttr[StringAttr])
    inputs = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)
    body = region_def("single_block")

    traits = traits_def(IsolatedFromAbove(), Pure())

    def __init__(
        self,
        label: str,
        axes: Sequence[AxisAttr],
        inputs: Sequence[SSAValue],
        reads: Sequence[AccessAttr],
        result_types: Sequence[Attribute],
        body: Region,
        combiners: Sequence[str] = (),
    ) -> None:
        super().__init__(
            operands=[inputs],
            result_types=[result_types],
            properties={
                "label": StringAttr(label),
                "axes": ArrayAttr(axes),
                "reads": ArrayAttr(reads),
                "combiners": ArrayAttr([StringAttr(c) for c in combiners]),
            },
            regions=[body],
        )

    @property
    def spatial_axes(self) -> list[AxisAttr]:
        """The axes that index the results."""
        return [axis for axis in self.axes if not axis.is_reduce]

    @property
    def reduce_axes(self) -> list[AxisAttr]:
        """The axes that are reduced over."""
        return [axis for axis in self.axes if axis.is_reduce]

    def verify_(self) -> None:
        axes = self.axes.data
        check_axes(axes)
        check_combiners([c.data for c in self.combiners], len(self.outputs), axes)
        if len(self.reads) != len(self.inputs):
            raise VerifyException(f"{len(self.inputs)} inputs but {len(self.reads)} accesses")
        block = check_body(self.body, self.inputs, YieldOp, "te")
        for position, (value, access) in enumerate(zip(self.inputs, self.reads, strict=True)):
            check_access(_what(value, position), access, shape_of(value), axes)
        extents = tuple(axis.size for axis in self.spatial_axes)
        expected = [TensorType(v.type, extents) for v in block.last_op.operands]  # type: ignore[union-attr]
        if list(self.outputs.types) != expected:
            raise VerifyException(
                f"the results of '{self.label.data}' must be {', '.join(map(str, expected))} "
                f"after its spatial axes and yielded values, not {', '.join(map(str, self.outputs.types))}"
            )

    def print(self, printer: Printer) -> None:
        names = names_of(self.axes.data)
        printer.print_string(" ")
        printer.print_string_literal(self.label.data)
        printer.print_string(f" [{', '.join(_axis_text(axis) for axis in self.axes)}]")
        print_combiners(printer, self.combiners)
        print_reads(printer, self.body.block.args, self.inputs, self.reads.data, names)
        printer.print_string(" -> ")
        printer.print_list(self.outputs.types, printer.print_attribute)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)
        printer.print_op_attributes(self.attributes, print_keyword=True)

    @classmethod
    def parse(cls, parser: Parser) -> ComputeOp:
        label = parser.parse_str_literal()
        axes = parser.parse_comma_separated_list(Parser.Delimiter.SQUARE, lambda: _parse_axis(parser))
        combiners = parse_combiners(parser)
        names = names_of(axes)
        reads = parse_reads(parser, names)
        parser.parse_punctuation("->")
        types = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
        body = parser.parse_region(reads.arguments)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op = cls(label, axes, reads.inputs, reads.accesses, types, body, combiners)
        if attributes is not None:
            op.attributes |= attributes.data
        return op


class Reads:
    """Inputs as parsed: the values, how each is accessed, and the body's arguments."""

    def __init__(self) -> None:
        self.inputs: list[SSAValue] = []
        self.accesses: list[AccessAttr] = []
        self.arguments: list[Parser.Argument] = []


def print_reads(
    printer: Printer,
    arguments: Sequence[SSAValue],
    inputs: Sequence[SSAValue],
    accesses: Sequence[AccessAttr],
    names: Sequence[str],
) -> None:
    """Print `(%a = %A[m, k] : type, ...)`."""

    def one(item: tuple[SSAValue, SSAValue, AccessAttr]) -> None:
        argument, value, access = item
        printer.print_ssa_value(argument)
        printer.print_string(" = ")
        printer.print_ssa_value(value)
        print_access(printer, access, names)
        printer.print_string(" : ")
        printer.print_attribute(value.type)

    printer.print_string("\n    " if inputs else " ")
    with printer.in_parens():
        printer.print_list(list(zip(arguments, inputs, accesses, strict=True)), one)


def parse_reads(parser: Parser, names: Sequence[str]) -> Reads:
    """Parse `(%a = %A[m, k] : type, ...)`."""
    reads = Reads()

    def one() -> None:
        argument = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        operand = parser.parse_unresolved_operand()
        access = parse_access(parser, names)
        parser.parse_punctuation(":")
        type = parse_shaped_type(parser)
        reads.inputs.append(parser.resolve_operand(operand, type))
        reads.accesses.append(access(type.get_element_type()))
        reads.arguments.append(argument.resolve(type.get_element_type()))

    parser.parse_comma_separated_list(Parser.Delimiter.PAREN, one)
    return reads


def parse_shaped_type(parser: Parser) -> Any:
    """Parse a tensor or memref type."""
    from xdsl.dialects.builtin import MemRefType

    place = parser.pos
    type = parser.parse_type()
    if not isinstance(type, TensorType | MemRefType):
        parser.raise_error(f"expected a tensor or memref type, got {type}", place)
    return type


def _axis_text(axis: AxisAttr) -> str:
    return f"{'reduce ' if axis.is_reduce else ''}{axis.label} = {axis.size}"


def parse_axis_head(parser: Parser) -> Callable[[int], AxisAttr]:
    """Parse `reduce m =`; the extent is given afterwards."""
    label = parser.parse_identifier()
    reduce = label == "reduce" and (name := parser.parse_optional_identifier()) is not None
    if reduce:
        assert name is not None
        label = name
    parser.parse_punctuation("=")
    return lambda extent: AxisAttr(label, extent, reduce)


def _parse_axis(parser: Parser) -> AxisAttr:
    finish = parse_axis_head(parser)
    return finish(parser.parse_integer(allow_boolean=False, allow_negative=True))


def _what(value: SSAValue, position: int) -> str:
    return f"the read of '{value.name_hint}'" if value.name_hint else f"the read of input {position}"


@irdl_op_definition
class IndexOp(IRDLOperation):
    """The value of an axis inside the body of a te.compute.

    ```mlir
    func.func @count() -> tensor<4xindex> {
      %I = te.compute "I" [i = 4] () -> tensor<4xindex> {
        %0 = te.index "i" : index
        te.yield %0 : index
      }
      func.return %I : tensor<4xindex>
    }
    ```
    """

    name = "te.index"

    label = prop_def(StringAttr)
    value = result_def(IndexType)

    traits = traits_def(Pure())
    assembly_format = "$label attr-dict `:` type($value)"

    def __init__(self, label: str) -> None:
        super().__init__(properties={"label": StringAttr(label)}, result_types=[IndexType()])

    def verify_(self) -> None:
        parent = self.parent_op()
        if not isinstance(parent, ComputeOp):
            raise VerifyException("te.index stands only in the body of a te.compute")
        if self.label.data not in names_of(parent.axes.data):
            raise VerifyException(f"'{self.label.data}' is not an axis of '{parent.label.data}'")


@irdl_op_definition
class YieldOp(IRDLOperation):
    """End the body of a te.compute with one scalar a result.

    ```mlir
    func.func @copy(%A: tensor<4xf32>) -> tensor<4xf32> {
      %B = te.compute "B" [i = 4] (%a = %A[i] : tensor<4xf32>) -> tensor<4xf32> {
        te.yield %a : f32
      }
      func.return %B : tensor<4xf32>
    }
    ```
    """

    name = "te.yield"

    values = var_operand_def()

    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict ($values^ `:` type($values))?"

    def __init__(self, *values: SSAValue) -> None:
        super().__init__(operands=[values])


TE = Dialect("te", [ComputeOp, IndexOp, YieldOp], [AxisAttr, AccessAttr])
