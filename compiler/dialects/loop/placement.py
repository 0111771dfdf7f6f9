"""Shared by `loop.block` and `loop.gather`: axes bound to loops, a guard, targets, an origin; and its syntax."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import AffineMapAttr, AffineSetAttr, ArrayAttr, IndexType, MemRefType, StringAttr
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap, AffineSet
from xdsl.irdl import AttrSizedOperandSegments, IRDLOperation, opt_prop_def, prop_def, var_operand_def
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from compiler.affine.exact import escape
from compiler.affine.limits import bad_index
from compiler.affine.text import NamedAffineParser, to_text
from compiler.dialects.access import AccessAttr, AxisAttr, names_of, parse_indices, print_indices, print_set
from compiler.dialects.checks import Domain, check_access, check_condition, refuse, shape_of
from compiler.dialects.loop.loops import ConstantOp, ForOp, enclosing_loops, loop_of
from compiler.dialects.printing import print_label
from compiler.dialects.te import axis_text, parse_accessed, parse_axis, print_accessed


@dataclass(frozen=True)
class Header:
    """The common arguments of blocks and gathers: label, axes, targets and their accesses, `writes`, and the origin, a
    te result and its index over the axes, or None for none. `bindings` maps the variables `loops` to the axes; the
    guard is over `loops`."""

    label: str
    axes: Sequence[AxisAttr]
    loops: Sequence[SSAValue]
    bindings: AffineMap
    guard: AffineSet
    targets: Sequence[SSAValue] = ()
    writes: Sequence[AccessAttr] = ()
    origin: tuple[str, AffineMap] | None = None


class Placed(IRDLOperation):
    """The base of loop.block and loop.gather: axes bound to the surrounding loops, a guard, targets, the origin."""

    label = prop_def(StringAttr)
    axes = prop_def(ArrayAttr[AxisAttr])
    bindings = prop_def(AffineMapAttr)
    where = opt_prop_def(AffineSetAttr)
    writes = prop_def(ArrayAttr[AccessAttr])
    origin_label = opt_prop_def(StringAttr)
    origin_map = opt_prop_def(AffineMapAttr)
    loops = var_operand_def(IndexType)
    inputs = var_operand_def(MemRefType)
    targets = var_operand_def(MemRefType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        place: Header,
        inputs: Sequence[SSAValue],
        properties: Mapping[str, Attribute | None],
        regions: Sequence[Region | None] = (),
    ) -> None:
        placed = {
            "label": StringAttr(place.label),
            "axes": ArrayAttr(place.axes),
            "bindings": AffineMapAttr(place.bindings),
            "where": AffineSetAttr(place.guard) if place.guard.constraints else None,
            "writes": ArrayAttr(place.writes),
            "origin_label": StringAttr(place.origin[0]) if place.origin else None,
            "origin_map": AffineMapAttr(place.origin[1]) if place.origin else None,
        }
        operands = [place.loops, inputs, place.targets]
        super().__init__(operands=operands, properties={**placed, **properties}, regions=regions)

    @property
    def guard(self) -> AffineSet | None:
        """The condition over `loops` under which the block runs, or None for always."""
        return self.where.data if self.where is not None else None

    @property
    def loop_ops(self) -> list[ForOp]:
        """The loops whose variables are the operands `loops`, in order. Raises VerifyException for an operand that is
        no loop variable."""
        return [loop_of(value) for value in self.loops]

    @property
    def domain(self) -> Domain:
        """The bindings, the guard and the extents of the loops."""
        return self.bindings.data, self.guard, [loop.size for loop in self.loop_ops]

    def verify_writes(self) -> None:
        """Raise VerifyException unless each target has one access, in bounds and without a condition, no target is a
        constant, and the origin is over the axes."""
        if len(self.writes) != len(self.targets):
            raise VerifyException("the block needs one access an input and one a target")
        for value, access in zip(self.targets, self.writes, strict=True):
            if isinstance(value.owner, ConstantOp):
                raise VerifyException(f"the constant '{value.name_hint}' is written")
            check_access(f"the access to '{value.name_hint}'", access, shape_of(value), self.axes.data, self.domain)
        if any(access.condition is not None for access in self.writes):
            raise VerifyException("a write has no condition; the guard is the place")
        if self.origin_map is not None and self.origin_map.data.num_dims != len(self.axes):
            raise VerifyException("the origin must be indexed by the block's axes")

    def verify_bindings(self) -> None:
        """Raise VerifyException unless each axis is bound to surrounding loops, inside its extent under the guard."""
        enclosing = enclosing_loops(self)
        for value in self.loops:
            if not any(loop.iv is value for loop in enclosing):
                raise VerifyException(f"'{value.name_hint}' is not the variable of an enclosing loop")
        loops = self.loop_ops
        bindings = self.bindings.data
        if bindings.num_dims != len(loops) or bindings.num_symbols or len(bindings.results) != len(self.axes):
            raise VerifyException("the block needs one binding an axis, over its loops")
        extents = [loop.size for loop in loops]
        names = [f"%{loop.label.data}" for loop in loops]
        check_condition(f"block '{self.label.data}'", self.guard, extents)
        for axis, expr in zip(self.axes, bindings.results, strict=True):
            refuse(bad_index(f"the binding of axis '{axis.label}' of block '{self.label.data}'", expr, extents))
            escaping = escape(expr, axis.size, extents, self.guard)
            if escaping is not None:
                point_text = ", ".join(f"{n}={v}" for n, v in zip(names, escaping.point, strict=True))
                raise VerifyException(
                    f"axis '{axis.label}' of block '{self.label.data}' is bound to {to_text(expr, names)}, "
                    f"which is {escaping.value} at {point_text}, outside its extent {axis.size}"
                )

    def print_head(self, printer: Printer) -> None:
        """Print label, bound axes and guard: ` "S" [k = 10 at %k.0 * 4 + %k.1] where (...)`."""
        loops = _loop_names(printer, self)
        printer.print_string(" ")
        print_label(printer, self.label.data)
        bound = zip(self.axes, self.bindings.data.results, strict=True)
        axes = ", ".join(f"{axis_text(axis)} at {to_text(expr, loops)}" for axis, expr in bound)
        printer.print_string(f" [{axes}]")
        if self.guard is not None:
            print_set(printer, self.guard, loops)

    def print_tail(self, printer: Printer) -> None:
        """Print targets and origin: ` -> (%S[] : memref<f32>) origin "S"[k]`."""
        names = names_of(self.axes.data)
        printer.print_string(" -> ")
        with printer.in_parens():
            printer.print_list(
                list(zip(self.targets, self.writes, strict=True)),
                lambda pair: print_accessed(printer, pair[0], pair[1], names),
            )
        if self.origin_label is not None and self.origin_map is not None:
            printer.print_string(" origin ")
            print_label(printer, self.origin_label.data)
            print_indices(printer, self.origin_map.data, names)


def parse_head(parser: Parser) -> Header:
    """Parse label, bound axes and guard, `"S" [k = 10 at %k.0 * 4 + %k.1] where (...)`, to a header without targets and
    origin; without `where` the guard has no constraints. Its `loops` are the variables in the order of their first
    uses."""
    label = parser.parse_str_literal()
    affine = NamedAffineParser(parser, None)
    axes: list[AxisAttr] = []
    bound: list[AffineExpr] = []

    def one() -> None:
        axes.append(parse_axis(parser))
        parser.parse_keyword("at")
        bound.append(affine.expr())

    parser.parse_comma_separated_list(Parser.Delimiter.SQUARE, one)
    constraints = []
    if parser.parse_optional_keyword("where"):
        constraints = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, affine.constraint)
    loops = [parser.resolve_operand(UnresolvedOperand(s, 0), IndexType()) for s in affine.spans]
    guard = AffineSet(len(loops), 0, tuple(constraints))
    return Header(label, axes, loops, AffineMap(len(loops), 0, tuple(bound)), guard)


def parse_tail(parser: Parser, place: Header) -> Header:
    """Parse `-> (%S[] : memref<f32>) origin "S"[k]`, and return the parsed head `place` with these targets and this
    origin, None if the text has none."""
    names = names_of(place.axes)
    parser.parse_punctuation("->")
    writes = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, lambda: parse_accessed(parser, names))
    origin = None
    if parser.parse_optional_keyword("origin"):
        origin = (parser.parse_str_literal(), parse_indices(parser, names))
    return replace(place, targets=[v for v, _ in writes], writes=[access for _, access in writes], origin=origin)


def _loop_names(printer: Printer, block: Placed) -> list[str]:
    named = printer._ssa_values  # an op printed on its own, as in an error, has loops without names
    return [f"%{named.get(value) or value.name_hint or '?'}" for value in block.loops]
