"""The te dialect: tensor expressions over whole tensors, SSA values.

`te.compute` is the general op: named axes, operands read through quasi-affine maps, a scalar body, and a combiner
a result where there are reduce axes. `te.index` and `te.yield` are ops of its body. `te.gather` reads a table
at a data-dependent index. `te.constant` is a tensor whose elements the program states.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from xdsl.dialects.arith import ArithConstantMaterializationInterface
from xdsl.dialects.builtin import ArrayAttr, IndexType, IntegerAttr, MemRefType, StringAttr, TensorType
from xdsl.interfaces import HasFolderInterface
from xdsl.ir import Attribute, Dialect, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
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

from compiler.affine.text import NamedAffineParser, SizedNames, to_text
from compiler.dialects.access import AccessAttr, AxisAttr, names_of, parse_access, parse_attributes, print_access
from compiler.dialects.checks import check_access, check_axes, check_body, element_type, shape_of
from compiler.dialects.combination import Combination, Combining, parse_combination, print_combination
from compiler.dialects.dense import DenseAttr, parse_dense
from compiler.dialects.gather import Gathered, Gathering, parse_gather
from compiler.dialects.printing import print_label, print_type
from compiler.dialects.sizes import DimsAttr, SizesAttr, extents_of
from compiler.types.elements import scalar_type

__all__ = ["TE", "AccessAttr", "AxisAttr", "ComputeOp", "ConstantOp", "GatherOp", "IndexOp", "YieldOp"]


@irdl_op_definition
class ComputeOp(Combining):
    """Compute whole tensors from whole tensors, element by element, optionally reducing.

    For each point of the spatial axes, the body's yielded values over all points of the reduce axes are combined
    in an unspecified order, starting from the combiner's identity: each result by a named combiner (add, mul, max,
    min), or all of them jointly by a region that states its identities. An input is read at its map of the axes; where
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
    sizes = opt_prop_def(SizesAttr)
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
        combination: Combination | None = None,
        sizes: SizesAttr | None = None,
    ) -> None:
        combination = combination or Combination()
        super().__init__(
            operands=[inputs],
            result_types=[result_types],
            properties={
                "label": StringAttr(label),
                "axes": ArrayAttr(axes),
                "reads": ArrayAttr(reads),
                "sizes": sizes,
                **combination.properties,
            },
            regions=[body, combination.region],
        )

    @property
    def spatial_axes(self) -> list[AxisAttr]:
        """The axes that index the results."""
        return [axis for axis in self.axes if not axis.is_reduce]

    def verify_(self) -> None:
        axes, sizes = self.axes.data, self.sizes
        check_axes(axes, sizes)
        self.verify_combination([element_type(v) for v in self.outputs], axes, YieldOp)
        if len(self.reads) != len(self.inputs):
            raise VerifyException(f"{len(self.inputs)} inputs but {len(self.reads)} accesses")
        block = check_body(self.body, self.inputs, YieldOp, "te")
        for position, (value, access) in enumerate(zip(self.inputs, self.reads, strict=True)):
            what = f"'{value.name_hint}'" if value.name_hint else f"input {position}"
            ends = extents_of(value, sizes) if sizes is not None else ()
            check_access(f"the read of {what}", access, shape_of(value), axes, None, sizes, ends)
        extents = tuple(axis.size for axis in self.spatial_axes)
        expected = [TensorType(v.type, extents) for v in block.last_op.operands]  # type: ignore[union-attr]
        output_types = [TensorType(scalar_type(element_type(v)), shape_of(v)) for v in self.outputs]
        if output_types != expected:
            raise VerifyException(
                f"the results of '{self.label.data}' must be {', '.join(map(str, expected))} "
                f"after its spatial axes and yielded values, not {', '.join(map(str, self.outputs.types))}"
            )

    def print(self, printer: Printer) -> None:
        names = names_of(self.axes.data, size_labels(self.sizes))
        printer.print_string(" ")
        print_label(printer, self.label.data)
        printer.print_string(f" [{', '.join(axis_text(axis, names) for axis in self.axes)}]")
        print_combination(printer, self)
        print_reads(printer, self.body.block.args, self.inputs, self.reads.data, names)
        printer.print_string(" -> ")
        printer.print_list(self.outputs.types, partial(print_type, printer))
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)
        printer.print_op_attributes(self.attributes, print_keyword=True)

    @classmethod
    def parse(cls, parser: Parser) -> ComputeOp:
        label = parser.parse_str_literal()
        axes = parser.parse_comma_separated_list(Parser.Delimiter.SQUARE, lambda: parse_axis(parser))
        combination, sizes = parse_combination(parser), parsed_sizes(parser)
        names = names_of(axes, size_labels(sizes))
        reads = parse_reads(parser, names)
        parser.parse_punctuation("->")
        types = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
        body = parser.parse_region(reads.arguments)
        return parse_attributes(parser, cls(label, axes, reads.inputs, reads.accesses, types, body, combination, sizes))


class Reads:
    """Parsed inputs of an op: the values, their accesses, and the arguments of the body."""

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
    """Print the inputs of an op over the axes `names`, with the arguments of its body, all at the same positions: `(%a
    = %A[m, k] : type, ...)`."""

    def print_read(entry: tuple[SSAValue, SSAValue, AccessAttr]) -> None:
        argument, value, access = entry
        printer.print_ssa_value(argument)
        printer.print_string(" = ")
        print_accessed(printer, value, access, names)

    printer.print_string("\n    " if inputs else " ")
    with printer.in_parens():
        printer.print_list(list(zip(arguments, inputs, accesses, strict=True)), print_read)


def parse_reads(parser: Parser, names: Sequence[str]) -> Reads:
    """Parse the inputs of an op over the axes `names`, with its body's arguments: `(%a = %A[m, k] : type, ...)`."""
    reads = Reads()

    def one() -> None:
        argument = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        value, access = parse_accessed(parser, names)
        reads.inputs.append(value)
        reads.accesses.append(access)
        reads.arguments.append(argument.resolve(scalar_type(value.type.get_element_type())))

    parser.parse_comma_separated_list(Parser.Delimiter.PAREN, one)
    return reads


def print_accessed(printer: Printer, value: SSAValue, access: AccessAttr, names: Sequence[str]) -> None:
    """Print a tensor or buffer, its index and its type: `%A[m, k] : type`."""
    printer.print_ssa_value(value)
    print_access(printer, access, names, element_type(value))
    printer.print_string(" : ")
    print_type(printer, value.type)


def parse_accessed(parser: Parser, names: Sequence[str]) -> tuple[SSAValue[TensorType | MemRefType], AccessAttr]:
    """Parse an access of a tensor or buffer and its type, `%A[m, k] : type` or `%A[h - 1] where (h - 1 >= 0) else 0.0 :
    type`, with indices over the axes `names`; return the value and the access. Raises ParseError for other text and for
    a name that `names` lacks."""
    operand = parser.parse_unresolved_operand()
    access = parse_access(parser, names)
    parser.parse_punctuation(":")
    position = parser.pos
    type = parser.parse_type()
    if not isinstance(type, TensorType | MemRefType):
        parser.raise_error(f"expected a tensor or memref type, got {type}", position)
    return parser.resolve_operand(operand, type), access(type.get_element_type())


def axis_text(axis: AxisAttr, names: Sequence[str] = ()) -> str:
    """The text of an axis and its extent: `m = 8`, `reduce m = 8`, or below a size, which `names` has, `m = 8 below
    S`."""
    below = "" if axis.below is None else f" below {to_text(axis.below, names)}"
    return f"{'reduce ' if axis.is_reduce else ''}{axis.label} = {axis.size}{below}"


def size_labels(sizes: SizesAttr | None) -> tuple[str, ...]:
    """The names of sizes, none for None."""
    return () if sizes is None else sizes.names


def parsed_sizes(parser: Parser) -> SizesAttr | None:
    """The sizes of the function that a parser is in; None without them."""
    sizes = getattr(parser, "sizes", None)
    return sizes if isinstance(sizes, SizesAttr) else None


def parse_axis(parser: Parser) -> AxisAttr:
    """Parse an axis and its extent: `m = 8`, `reduce m = 8`, or `m = 8 below S`. A negative or zero extent is parsed,
    and refused by the op's verification."""
    label = parser.parse_identifier()
    name = parser.parse_optional_identifier() if label == "reduce" else None
    parser.parse_punctuation("=")
    extent = parser.parse_integer(allow_boolean=False, allow_negative=True)
    label, reduce = (label, False) if name is None else (name, True)
    position = parser.pos
    if not parser.parse_optional_keyword("below"):
        return AxisAttr(label, extent, reduce)
    labels = size_labels(parsed_sizes(parser))
    if not labels:
        parser.raise_error(f"axis '{label}' is below a size, and the function declares none in te.sizes", position)
    end = NamedAffineParser(parser, SizedNames((), labels)).expr()
    return AxisAttr(label, extent, reduce, AffineMap(0, len(labels), (end,)))


class AxisValue(IRDLOperation, HasFolderInterface):
    """The base of te.index and loop.index: the value of the axis or size `label` inside the body of an op of the class
    OWNER."""

    OWNER: ClassVar[type[Operation]]

    label = prop_def(StringAttr)
    value = result_def(IndexType)

    traits = traits_def(Pure())
    assembly_format = "$label attr-dict `:` type($value)"

    def __init__(self, label: str) -> None:
        super().__init__(properties={"label": StringAttr(label)}, result_types=[IndexType()])

    def fold(self) -> tuple[SSAValue | Attribute] | None:
        """Zero for an axis of one point; None for other axes."""
        axes = getattr(self.parent_op(), "axes", ())
        is_unit = any(axis.label == self.label.data and axis.size == 1 for axis in axes)
        return (IntegerAttr.from_index_int_value(0),) if is_unit else None

    def verify_(self) -> None:
        parent = self.parent_op()
        if not isinstance(parent, self.OWNER):
            raise VerifyException(f"{self.name} stands only in the body of a {self.OWNER.name}")
        sizes = size_labels(getattr(parent, "sizes", None))
        if self.label.data not in (*names_of(parent.axes.data), *sizes):  # type: ignore[attr-defined]
            raise VerifyException(f"'{self.label.data}' is not an axis of '{parent.label.data}'")  # type: ignore[attr-defined]


class ScalarYield(IRDLOperation):
    """The base of te.yield and loop.yield: the scalars that a body computes."""

    values = var_operand_def()

    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict ($values^ `:` type($values))?"

    def __init__(self, *values: SSAValue) -> None:
        super().__init__(operands=[values])


@irdl_op_definition
class IndexOp(AxisValue):
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
    OWNER: ClassVar = ComputeOp


@irdl_op_definition
class YieldOp(ScalarYield):
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


@irdl_op_definition
class GatherOp(Gathering):
    """Read a table at data-dependent indices, for each point of the axes.

    A dimension of the table's index is a quasi-affine expression of the axes, proved in bounds, or the value of an
    integer tensor. If such a value is outside the table, the `else` value is read; negative values do not wrap.

    ```mlir
    func.func @rows(%T: tensor<100x16xf32>, %I: tensor<5xi64>) -> tensor<5x16xf32> {
      %Y = te.gather "Y" [i = 5, d = 16] %T[%I[i], d] else 0.0 : tensor<100x16xf32>, tensor<5xi64>
          -> tensor<5x16xf32>
      func.return %Y : tensor<5x16xf32>
    }
    ```
    """

    name = "te.gather"

    label = prop_def(StringAttr)
    axes = prop_def(ArrayAttr[AxisAttr])
    sizes = opt_prop_def(SizesAttr)
    inputs = var_operand_def(TensorType)
    output = result_def(TensorType)

    traits = traits_def(Pure())

    def __init__(
        self,
        label: str,
        axes: Sequence[AxisAttr],
        gathered: Gathered,
        result_type: Attribute,
        sizes: SizesAttr | None = None,
    ) -> None:
        placed = {"label": StringAttr(label), "axes": ArrayAttr(axes), "sizes": sizes}
        super().__init__(
            operands=[gathered.inputs], result_types=[result_type], properties={**placed, **gathered.properties}
        )

    def verify_(self) -> None:
        self.verify_gather(sizes=self.sizes)
        assert isinstance(self.table.type, TensorType)
        expected = TensorType(self.table.type.get_element_type(), [axis.size for axis in self.axes])
        if self.output.type != expected:
            raise VerifyException(
                f"the result of '{self.label.data}' must be {expected} after its axes and its table, "
                f"not {self.output.type}"
            )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_label(printer, self.label.data)
        names = names_of(self.axes.data, size_labels(self.sizes))
        printer.print_string(f" [{', '.join(axis_text(axis, names) for axis in self.axes)}]")
        self.print_gather(printer, size_labels(self.sizes))
        printer.print_string(" -> ")
        print_type(printer, self.output.type)
        printer.print_op_attributes(self.attributes, print_keyword=True)

    @classmethod
    def parse(cls, parser: Parser) -> GatherOp:
        label = parser.parse_str_literal()
        axes = parser.parse_comma_separated_list(Parser.Delimiter.SQUARE, lambda: parse_axis(parser))
        sizes = parsed_sizes(parser)
        gathered = parse_gather(parser, names_of(axes, size_labels(sizes)))
        parser.parse_punctuation("->")
        return parse_attributes(parser, cls(label, axes, gathered, parser.parse_type(), sizes))


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """A tensor whose elements the program states.

    Up to 64 elements, and any number of equal ones, are printed in the op. The bytes of others are in the text's
    trailer, under the name in the op: `dense_resource<W_1f3a09c25d7e8b46> : tensor<512x512xf32>`.

    ```mlir
    func.func @scaled(%A: tensor<4xf32>) -> tensor<4xf32> {
      %W = te.constant dense<[1.0, -1.0, 0.5, 0.0]> : tensor<4xf32>
      %B = te.compute "B" [i = 4] (%a = %A[i] : tensor<4xf32>, %w = %W[i] : tensor<4xf32>) -> tensor<4xf32> {
        %0 = arith.mulf %a, %w : f32
        te.yield %0 : f32
      }
      func.return %B : tensor<4xf32>
    }
    ```
    """

    name = "te.constant"

    value = prop_def(DenseAttr)
    output = result_def(TensorType)

    traits = traits_def(Pure())

    def __init__(self, value: DenseAttr) -> None:
        super().__init__(properties={"value": value}, result_types=[value.type])

    def verify_(self) -> None:
        if self.output.type != self.value.type:
            raise VerifyException(f"the result of a constant of type {self.value.type} is no {self.output.type}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.value)
        printer.print_op_attributes(self.attributes, print_keyword=True)

    @classmethod
    def parse(cls, parser: Parser) -> ConstantOp:
        return parse_attributes(parser, cls(parse_dense(parser)))


TE = Dialect(
    "te",
    [ComputeOp, ConstantOp, GatherOp, IndexOp, YieldOp],
    [AxisAttr, AccessAttr, DimsAttr, SizesAttr],
    [ArithConstantMaterializationInterface()],
)
