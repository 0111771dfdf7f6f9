"""Shared by te.gather and loop.gather: a table read at an index that other tensors or buffers hold.

    %T[%I[i], d] else 0.0 : tensor<100x16xf32>, tensor<5xi64>

Each dimension of the table's index is a quasi-affine expression of the axes, or the value of an integer tensor read at
a map of the axes. Where such a value is outside the table, the `else` value is read and the table is not touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import (
    AffineMapAttr,
    AnyFloat,
    ArrayAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    TensorType,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap, AffineSymExpr
from xdsl.irdl import IRDLOperation, VarOperand, opt_prop_def, prop_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from compiler.affine.text import NamedAffineParser, to_text
from compiler.dialects.access import (
    AccessAttr,
    AxisAttr,
    literal_of,
    literal_text,
    names_of,
    parse_access,
    parse_literal,
    print_access,
)
from compiler.dialects.checks import Domain, check_access, check_axes, element_type, shape_of
from compiler.dialects.sizes import SizesAttr, extents_of
from compiler.types.elements import scalar_type

Literal = FloatAttr | IntegerAttr


@dataclass
class Gathered:
    """A table access: the table, its index map, the value `otherwise` outside its bounds, the index tensors `indices`
    and their reads.

    The map's dimensions are the axes, its symbols the values of the index tensors, each once and in order.
    """

    map: AffineMap
    otherwise: Literal
    table: SSAValue
    indices: Sequence[SSAValue] = field(default_factory=list)
    reads: Sequence[AccessAttr] = field(default_factory=list)

    @property
    def inputs(self) -> list[SSAValue]:
        """The operands of an op: the index tensors, then the table."""
        return [*self.indices, self.table]

    @property
    def properties(self) -> dict[str, Attribute]:
        """The properties of an op: index map, value outside and reads."""
        map = AffineMapAttr(self.map)
        return {"table_map": map, "otherwise": self.otherwise, "reads": ArrayAttr(self.reads)}


class Gathering(IRDLOperation):
    """The base of te.gather and loop.gather: a table access. `inputs` are the index tensors, then the table."""

    table_map = prop_def(AffineMapAttr)
    otherwise = opt_prop_def()
    reads = prop_def(ArrayAttr[AccessAttr])

    if TYPE_CHECKING:  # fields of the ops themselves
        axes: ArrayAttr[AxisAttr]
        inputs: VarOperand

    @property
    def table(self) -> SSAValue:
        """The tensor or buffer that is read at a data-dependent index."""
        return self.inputs[-1]

    @property
    def indices(self) -> Sequence[SSAValue]:
        """The integer tensors or buffers whose values index the table."""
        return list(self.inputs[:-1])

    @property
    def outside(self) -> Literal:
        """The value read for an index outside the table."""
        assert isinstance(self.otherwise, FloatAttr | IntegerAttr)
        return self.otherwise

    def verify_gather(self, domain: Domain | None = None, sizes: SizesAttr | None = None) -> None:
        """Raise VerifyException unless axes are spatial, index tensors have integers, and at least one, and these and
        the affine dimensions of the table are accessed in bounds, within `domain` if it is given, for all `sizes`."""
        check_axes(self.axes.data, sizes)
        if any(axis.is_reduce for axis in self.axes):
            raise VerifyException("a gather has spatial axes only; reduce what it gives")
        if not self.inputs or len(self.reads) != len(self.inputs) - 1:
            raise VerifyException(f"{len(self.inputs)} inputs, the table included, but {len(self.reads)} index reads")
        map, axes = self.table_map.data, self.axes.data
        symbols = [e.position for e in map.results if isinstance(e, AffineSymExpr)]
        if symbols != list(range(len(self.reads))) or map.num_symbols != len(self.reads):
            raise VerifyException("each index value is one dimension of the table's index, in order")
        if not symbols:
            raise VerifyException("no dimension is data-dependent: read the table in a te.compute")
        affine = [e for e in map.results if not isinstance(e, AffineSymExpr)]
        if any(isinstance(inner, AffineSymExpr) for e in affine for inner in e.dfs()):
            raise VerifyException("an index value is a dimension of the table's index by itself, without arithmetic")
        for value, access in zip(self.indices, self.reads, strict=True):
            _check_integer(value)
            ends = extents_of(value, sizes) if sizes is not None else ()
            check_access(_what("index", value), access, shape_of(value), axes, domain, sizes, ends)
        table, ends = self.table, extents_of(self.table, sizes) if sizes is not None else ()
        affine_parts = AccessAttr(AffineMap(map.num_dims, 0, tuple(affine_part(e) for e in map.results)))
        check_access(_what("read of table", table), affine_parts, shape_of(table), axes, domain, sizes, ends)
        if not isinstance(self.otherwise, FloatAttr | IntegerAttr) or self.otherwise.type != scalar_of(self.table):
            raise VerifyException(f"the value outside the table must be of type {scalar_of(self.table)}")

    def print_gather(self, printer: Printer, sizes: Sequence[str] = ()) -> None:
        """Print the table, its index, the value outside, and the types: ` %T[%I[i], d] else 0.0 : type, type`; `sizes`
        are the names of sizes."""
        names = names_of(self.axes.data, sizes)
        printer.print_string("\n    ")
        printer.print_ssa_value(self.table)
        printer.print_string("[")
        printer.print_list(self.table_map.data.results, lambda expr: self._print_dim(printer, expr, names))
        printer.print_string(f"] else {literal_text(self.outside, element_type(self.table))} : ")
        printer.print_list([self.table, *self.indices], lambda value: printer.print_attribute(value.type))

    def _print_dim(self, printer: Printer, expr: AffineExpr, names: Sequence[str]) -> None:
        if not isinstance(expr, AffineSymExpr):
            printer.print_string(to_text(expr, names))
            return
        index = self.indices[expr.position]
        printer.print_ssa_value(index)
        print_access(printer, self.reads.data[expr.position], names, element_type(index))


def affine_part(expr: AffineExpr) -> AffineExpr:
    """Return one expression of a table's index; zero instead of a symbol, which is a data-dependent value."""
    return AffineExpr.constant(0) if isinstance(expr, AffineSymExpr) else expr


def _what(verb: str, value: SSAValue) -> str:
    return f"the {verb} '{value.name_hint}'" if value.name_hint else f"the {verb}"


def scalar_of(value: SSAValue) -> Attribute:
    """The scalar type of the elements of a tensor or buffer."""
    return scalar_type(element_type(value))


def _check_integer(value: SSAValue) -> None:
    element = scalar_of(value)
    if not isinstance(element, IndexType) and not (isinstance(element, IntegerType) and element.width.data >= 8):
        raise VerifyException(f"{_what('index', value)} holds {element}; the values of an index are integers")


def parse_gather(parser: Parser, names: Sequence[str]) -> Gathered:
    """Parse a table access over the axes `names`: `%T[%I[i], d] else 0.0 : type, type`; the access of an index tensor
    may have a condition. Raises ParseError for other text, a name that `names` lacks, a size in the table's index, and
    a literal that the type lacks."""
    affine = NamedAffineParser(parser, names)
    table = parser.parse_unresolved_operand()
    unresolved = []
    accesses = []

    def dimension() -> AffineExpr:
        operand, position = parser.parse_optional_unresolved_operand(), parser.pos
        if operand is None:
            expr = affine.expr()
            if any(isinstance(part, AffineSymExpr) for part in expr.dfs()):
                parser.raise_error("a size in the index of a table is not supported yet", position)
            return expr
        unresolved.append(operand)
        accesses.append(parse_access(parser, names))
        return AffineExpr.symbol(len(accesses) - 1)

    expressions = parser.parse_comma_separated_list(Parser.Delimiter.SQUARE, dimension)
    parser.parse_keyword("else")
    position = parser.pos
    number = parse_literal(parser)
    parser.parse_punctuation(":")
    types = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
    if len(types) != 1 + len(accesses) or not all(isinstance(t, TensorType | MemRefType) for t in types):
        parser.raise_error(f"expected {1 + len(accesses)} tensor or memref types: of the table, then of each index")
    resolved = parser.resolve_operand(table, types[0])
    assert isinstance(types[0], TensorType | MemRefType)
    otherwise = _literal(parser, number, types[0].get_element_type(), position)
    indices = [parser.resolve_operand(o, t) for o, t in zip(unresolved, types[1:], strict=True)]
    reads = [finish(scalar_of(v)) for finish, v in zip(accesses, indices, strict=True)]
    return Gathered(AffineMap(len(names), len(accesses), tuple(expressions)), otherwise, resolved, indices, reads)


def _literal(parser: Parser, number: float, element: Attribute, place: int) -> Literal:
    if not isinstance(element, AnyFloat) and not isinstance(element, IntegerType):
        parser.raise_error(f"a table of {element} cannot be gathered from", place)
    return literal_of(parser, number, element, place)
