"""affine: MLIR has affine.max, and a syntax for affine.if and affine.parallel; xDSL has not."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import affine
from xdsl.dialects.builtin import (
    AffineMapAttr,
    AffineSetAttr,
    ArrayAttr,
    DenseIntElementsAttr,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Dialect, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, result_def, traits_def, var_operand_def
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from compiler.affine.text import NamedAffineParser, to_text
from compiler.dialects.upstream.formats import table_op


@irdl_op_definition
class MaxOp(IRDLOperation):
    """The largest of the results of an affine map for its operands, an index.

    ```mlir
    %0 = affine.max affine_map<(d0) -> (d0, 4)>(%i)
    ```
    """

    name = "affine.max"

    arguments = var_operand_def(IndexType)
    map = prop_def(AffineMapAttr)
    result = result_def(IndexType)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        if len(self.arguments) != self.map.data.num_dims + self.map.data.num_symbols:
            raise VerifyException("the op needs one operand for each dimension and symbol of its map")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.map)
        _print_operands(printer, self.arguments, self.map.data.num_dims)
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> MaxOp:
        position = parser.pos
        map = parser.parse_attribute()
        if not isinstance(map, AffineMapAttr):
            parser.raise_error("expected an affine map", position)
        op = cls.create(operands=_operands(parser), result_types=[IndexType()], properties={"map": map})
        op.attributes |= parser.parse_optional_attr_dict()
        return op


def _print_if(op: affine.IfOp, printer: Printer) -> None:
    """Print ` affine_set<...>(%i) { ... } else { ... }`."""
    printer.print_string(" ")
    printer.print_attribute(op.condition)
    _print_operands(printer, op.args, op.condition.data.num_dims)
    _print_types(printer, op.res.types)
    printer.print_string(" ")
    printer.print_region(op.then_region, print_block_terminators=bool(op.res))
    if op.else_region.blocks:
        printer.print_string(" else ")
        printer.print_region(op.else_region, print_block_terminators=bool(op.res))
    printer.print_op_attributes(op.attributes)


def _parse_if(parser: Parser) -> affine.IfOp:
    """Parse ` affine_set<...>(%i) { ... } else { ... }`; the braces may be without affine.yield. Raises ParseError for
    other text, also for another condition."""
    position = parser.pos
    condition = parser.parse_attribute()
    if not isinstance(condition, AffineSetAttr):
        parser.raise_error("expected an affine set", position)
    operands, types = _operands(parser), _parse_types(parser)
    regions = [_terminated(parser.parse_region())]
    regions.append(_terminated(parser.parse_region()) if parser.parse_optional_keyword("else") else Region())
    properties = {"condition": condition}
    op = affine.IfOp.create(operands=operands, result_types=types, properties=properties, regions=regions)
    op.attributes |= parser.parse_optional_attr_dict()
    return op


def _print_parallel(op: affine.ParallelOp, printer: Printer) -> None:
    """Print ` (%i, %j) = (0, 0) to (8, 16) step (1, 2) { ... }`."""
    names = [_name(printer, value) for value in op.map_operands]
    inputs = op.lowerBoundsMap.data.num_dims + op.lowerBoundsMap.data.num_symbols
    printer.print_string(" ")
    with printer.in_parens():
        printer.print_list(op.body.block.args, printer.print_ssa_value)
    lower = _bounds_text(op.lowerBoundsMap, op.lowerBoundsGroups, names[:inputs], "max")
    upper = _bounds_text(op.upperBoundsMap, op.upperBoundsGroups, names[inputs:], "min")
    printer.print_string(f" = ({lower}) to ({upper})")
    steps = [step.value.data for step in op.steps]
    if any(step != 1 for step in steps):
        printer.print_string(f" step ({', '.join(map(str, steps))})")
    printer.print_string(" ")
    printer.print_region(op.body, print_entry_block_args=False, print_block_terminators=False)
    printer.print_op_attributes(op.attributes)


def _parse_parallel(parser: Parser) -> affine.ParallelOp:
    """Parse ` (%i, %j) = (0, 0) to (8, 16) step (1, 2) { ... }`; bounds are affine expressions of values, or max
    (lower) and min (upper) of several. Raises ParseError for a reduction and for other text."""
    variables = parser.parse_comma_separated_list(
        Parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=False)
    )
    parser.parse_punctuation("=")
    lower, lower_groups, lower_operands = _parse_bounds(parser, "max")
    parser.parse_keyword("to")
    upper, upper_groups, upper_operands = _parse_bounds(parser, "min")
    steps = [1] * len(variables)
    if parser.parse_optional_keyword("step"):
        steps = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_integer)
    if parser.parse_optional_keyword("reduce"):
        parser.raise_error("affine.parallel is read without a reduction: affine.for has one, by iter_args")
    body = _terminated(parser.parse_region([variable.resolve(IndexType()) for variable in variables]))
    properties: dict[str, Attribute] = {
        "lowerBoundsMap": lower,
        "lowerBoundsGroups": lower_groups,
        "upperBoundsMap": upper,
        "upperBoundsGroups": upper_groups,
        "steps": ArrayAttr(IntegerAttr(step, i64) for step in steps),
        "reductions": ArrayAttr[StringAttr]([]),
    }
    operands = [*lower_operands, *upper_operands]
    op = affine.ParallelOp.create(operands=operands, properties=properties, regions=[body])
    op.attributes |= parser.parse_optional_attr_dict()
    return op


def _name(printer: Printer, value: SSAValue) -> str:
    """The name under which a printer prints a value, with its `%`."""
    return f"%{printer._ssa_values.get(value) or value.name_hint or '?'}"


def _print_types(printer: Printer, types: Sequence[Attribute]) -> None:
    if types:
        printer.print_string(" -> ")
        with printer.in_parens():
            printer.print_list(types, printer.print_attribute)


def _parse_types(parser: Parser) -> Sequence[Attribute]:
    """Parse `-> (f32, f32)`, or `-> f32`; no types without the arrow."""
    if parser.parse_optional_punctuation("->") is None:
        return ()
    types = parser.parse_optional_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_type)
    return [parser.parse_type()] if types is None else types


def _print_operands(printer: Printer, operands: Sequence[SSAValue], dims: int) -> None:
    """Print `(%i)[%n]`: the operands of a map's dimensions, then those of its symbols."""
    with printer.in_parens():
        printer.print_list(operands[:dims], printer.print_ssa_value)
    if operands[dims:]:
        with printer.in_square_brackets():
            printer.print_list(operands[dims:], printer.print_ssa_value)


def _operands(parser: Parser) -> list[SSAValue]:
    """Parse `(%i)[%n]`: the operands of a map's dimensions, then those of its symbols."""
    operands: list[SSAValue] = []
    for delimiter in (Parser.Delimiter.PAREN, Parser.Delimiter.SQUARE):
        listed = parser.parse_optional_comma_separated_list(delimiter, lambda: parser.parse_operand(IndexType()))
        operands += listed or []
    return operands


def _terminated(region: Region) -> Region:
    """Add the affine.yield that the syntax omits, and the block of empty braces."""
    if not region.blocks:
        region.add_block(Block())
    if not isinstance(region.block.last_op, affine.YieldOp):
        region.block.add_op(affine.YieldOp.get())
    return region


def _bounds_text(bounds: AffineMapAttr, groups: DenseIntElementsAttr, names: Sequence[str], joint: str) -> str:
    """The bounds of a box, such as `%i, min(%i + 4, 8)`: a group of several results is joined by `joint`."""
    results = [to_text(_over_dims(bounds.data, expr), names) for expr in bounds.data.results]
    texts, start = [], 0
    for size in groups.get_values():
        group = ", ".join(results[start : start + int(size)])
        texts.append(group if size == 1 else f"{joint}({group})")
        start += int(size)
    return ", ".join(texts)


def _over_dims(map: AffineMap, expr: AffineExpr) -> AffineExpr:
    """Replace symbol n of a map's result by dimension n after the map's own."""
    dims = [AffineExpr.dimension(n) for n in range(map.num_dims + map.num_symbols)]
    return expr.replace_dims_and_symbols(dims[: map.num_dims], dims[map.num_dims :])


def _parse_bounds(parser: Parser, joint: str) -> tuple[AffineMapAttr, DenseIntElementsAttr, list[SSAValue]]:
    """Parse `(%i, min(%i + 4, 8))` to a map, the number of its results for each bound, and its operands; `joint` is the
    word `min` or `max` of bounds of several results."""
    exprs = NamedAffineParser(parser, None)

    def group() -> list[AffineExpr]:
        if parser.parse_optional_keyword(joint) is None:
            return [exprs.expr()]
        return parser.parse_comma_separated_list(Parser.Delimiter.PAREN, exprs.expr)

    groups = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, group)
    operands: list[SSAValue] = [parser.resolve_operand(UnresolvedOperand(s, 0), IndexType()) for s in exprs.spans]
    map = AffineMap(len(operands), 0, tuple(expr for bound in groups for expr in bound))
    type: TensorType[IndexType | IntegerType] = TensorType(i32, [len(groups)])
    return AffineMapAttr(map), DenseIntOrFPElementsAttr.from_list(type, [len(bound) for bound in groups]), operands


# Not subclasses: xDSL's definitions of ops cannot be extended.
affine.IfOp.parse = _parse_if  # type: ignore[method-assign]
affine.IfOp.print = _print_if  # type: ignore[method-assign, assignment]
affine.ParallelOp.parse = _parse_parallel  # type: ignore[method-assign]
affine.ParallelOp.print = _print_parallel  # type: ignore[method-assign, assignment]

for _op, _effect in (
    *((op, MemoryReadEffect()) for op in (affine.LoadOp, affine.VectorLoadOp)),
    *((op, MemoryWriteEffect()) for op in (affine.StoreOp, affine.VectorStoreOp)),
    *((op, RecursiveMemoryEffect()) for op in (affine.ForOp, affine.ParallelOp)),
    (affine.MinOp, Pure()),
):
    _op.traits.add_trait(_effect)

_READ_ONLY = [
    table_op(
        "affine.delinearize_index",
        "$linear_index `into` custom<BasisList>($dynamic_basis, $static_basis) attr-dict `:` type($multi_index)",
        operands="linear_index:index dynamic_basis*:index",
        properties="static_basis:array",
        results="multi_index*",
        traits=(Pure(),),
    ),
    table_op(
        "affine.linearize_index",
        "(`disjoint` $disjoint^)? `[` $multi_index `]` `by` custom<BasisList>($dynamic_basis, $static_basis) "
        "attr-dict `:` type($linear_index)",
        operands="multi_index*:index dynamic_basis*:index",
        properties="static_basis:array disjoint?:unit",
        results="linear_index",
        traits=(Pure(),),
    ),
]
"""Ops that are read and printed, not lowered."""

AFFINE = Dialect(affine.Affine.name, [*affine.Affine.operations, MaxOp, *_READ_ONLY], list(affine.Affine.attributes))
