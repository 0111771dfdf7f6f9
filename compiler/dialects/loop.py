"""The loop dialect: buffers, explicit loops with kinds, and blocks.

`loop.for` is a named loop, `loop.alloc` a buffer whose lifetime begins there, `loop.block` one structured
statement. Schedules act on this level; every analysis reads attributes instead of guessing from loads and stores.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    AffineMapAttr,
    AffineSetAttr,
    ArrayAttr,
    IndexType,
    IntAttr,
    MemRefType,
    StringAttr,
    UnitAttr,
)
from xdsl.ir import BlockArgument, Dialect, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap, AffineSet
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, NoTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from compiler.affine.exact import escape
from compiler.affine.text import NamedAffineParser, constraint_text, to_text
from compiler.dialects.access import (
    AccessAttr,
    AxisAttr,
    names_of,
    parse_access,
    parse_combiners,
    parse_indices,
    print_access,
    print_combiners,
    print_indices,
)
from compiler.dialects.checks import (
    check_access,
    check_axes,
    check_body,
    check_combiners,
    element_type,
    shape_of,
)
from compiler.dialects.te import parse_axis_head, parse_reads, parse_shaped_type, print_reads

KINDS = (
    "serial",
    "parallel",
    "vectorized",
    "unrolled",
    "block_x",
    "block_y",
    "block_z",
    "thread_x",
    "thread_y",
    "thread_z",
    "vthread",
)
SCOPES = ("global", "shared", "local", "fragment")


@irdl_op_definition
class ForOp(IRDLOperation):
    """Run the body for each value of a named loop variable, from zero, in unit steps, up to a constant extent.

    The kind (parallel, vectorized, unrolled, a thread binding ...) is an annotation until lowering.

    ```mlir
    func.func @f(%A: memref<4xf32>) attributes {outputs = 1 : i64} {
      loop.for "i" %i = 4 vectorized {
        loop.block "A" [i = 4 at %i] () -> (%A[i] : memref<4xf32>) {
          %0 = arith.constant 1.0 : f32
          loop.yield %0 : f32
        }
      }
      func.return
    }
    ```
    """

    name = "loop.for"

    label = prop_def(StringAttr)
    extent = prop_def(IntAttr)
    kind = prop_def(StringAttr)
    body = region_def("single_block")

    traits = traits_def(NoTerminator())

    def __init__(self, label: str, extent: int, body: Region, kind: str = "serial") -> None:
        properties = {"label": StringAttr(label), "extent": IntAttr(extent), "kind": StringAttr(kind)}
        super().__init__(properties=properties, regions=[body])

    @property
    def size(self) -> int:
        """The extent."""
        return int(self.extent.data)

    @property
    def loop_kind(self) -> str:
        """One of KINDS."""
        return self.kind.data

    @property
    def iv(self) -> BlockArgument:
        """The loop variable."""
        return self.body.block.args[0]

    def verify_(self) -> None:
        if self.size < 1:
            raise VerifyException(f"loop '{self.label.data}' has extent {self.size}; extents are at least 1")
        if self.loop_kind not in KINDS:
            raise VerifyException(f"unknown loop kind '{self.loop_kind}' (there are {', '.join(KINDS)})")
        if [arg.type for arg in self.body.block.args] != [IndexType()]:
            raise VerifyException(f"loop '{self.label.data}' has one loop variable, of type index")
        for loop in enclosing_loops(self):
            if loop.label.data == self.label.data:
                raise VerifyException(f"loop '{self.label.data}' stands inside a loop of the same name")
        for op in self.body.block.ops:
            if not isinstance(op, ForOp | AllocOp | BlockOp):
                raise VerifyException(f"'{op.name}' cannot stand in a loop (only loop.for, alloc and block)")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.label.data)
        printer.print_string(" ")
        printer.print_ssa_value(self.iv)
        printer.print_string(f" = {self.size} ")
        if self.loop_kind != "serial":
            printer.print_string(f"{self.loop_kind} ")
        printer.print_region(self.body, print_entry_block_args=False)
        printer.print_op_attributes(self.attributes, print_keyword=True)

    @classmethod
    def parse(cls, parser: Parser) -> ForOp:
        label = parser.parse_str_literal()
        iv = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        extent = parser.parse_integer(allow_boolean=False, allow_negative=True)
        kind = parser.parse_optional_identifier() or "serial"
        body = parser.parse_region([iv.resolve(IndexType())])
        op = cls(label, extent, body, kind)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        if attributes is not None:
            op.attributes |= attributes.data
        return op


@irdl_op_definition
class AllocOp(IRDLOperation):
    """Begin the lifetime of a buffer; inside a loop, each iteration has its own.

    ```mlir
    func.func @f() {
      %T = loop.alloc "T" shared : memref<4x6xf32>
      func.return
    }
    ```
    """

    name = "loop.alloc"

    label = prop_def(StringAttr)
    scope = prop_def(StringAttr)
    buffer = result_def(MemRefType)

    def __init__(self, label: str, type: MemRefType, scope: str = "global") -> None:
        properties = {"label": StringAttr(label), "scope": StringAttr(scope)}
        super().__init__(properties=properties, result_types=[type])
        self.buffer.name_hint = label if SSAValue.is_valid_name(label) else None

    def verify_(self) -> None:
        if self.scope.data not in SCOPES:
            raise VerifyException(f"unknown scope '{self.scope.data}' (there are {', '.join(SCOPES)})")
        element_type(self.buffer)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.label.data)
        if self.scope.data != "global":
            printer.print_string(f" {self.scope.data}")
        printer.print_string(" : ")
        printer.print_attribute(self.buffer.type)
        printer.print_op_attributes(self.attributes, print_keyword=True)

    @classmethod
    def parse(cls, parser: Parser) -> AllocOp:
        label = parser.parse_str_literal()
        scope = parser.parse_optional_identifier() or "global"
        parser.parse_punctuation(":")
        place = parser.pos
        type = parser.parse_type()
        if not isinstance(type, MemRefType):
            parser.raise_error(f"expected a memref type, got {type}", place)
        op = cls(label, type, scope)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        if attributes is not None:
            op.attributes |= attributes.data
        return op


@irdl_op_definition
class BlockOp(IRDLOperation):
    """One structured statement, run in each iteration of its loops where its guard holds.

    Each iterator is bound to a quasi-affine expression of surrounding loops. Inputs are read and targets written
    at maps of the iterators. With combiners, the yielded value is combined into the target; unless the block is
    marked `accumulate`, its targets are set to the identity immediately before the outermost enclosing loop that
    binds one of its reduce iterators. `origin` says what the block computes: a te result, at which index.

    ```mlir
    func.func @sum(%A: memref<10xf32>, %S: memref<f32>) attributes {outputs = 1 : i64} {
      loop.for "k.0" %k.0 = 3 {
        loop.for "k.1" %k.1 = 4 {
          loop.block "S" [reduce k = 10 at %k.0 * 4 + %k.1] where (%k.0 * -4 - %k.1 + 9 >= 0) combine [add]
              (%a = %A[k] : memref<10xf32>) -> (%S[] : memref<f32>) origin "S"[k] {
            loop.yield %a : f32
          }
        }
      }
      func.return
    }
    ```
    """

    name = "loop.block"

    label = prop_def(StringAttr)
    axes = prop_def(ArrayAttr[AxisAttr])
    bindings = prop_def(AffineMapAttr)
    where = opt_prop_def(AffineSetAttr)
    reads = prop_def(ArrayAttr[AccessAttr])
    writes = prop_def(ArrayAttr[AccessAttr])
    combiners = prop_def(ArrayAttr[StringAttr])
    accumulate = opt_prop_def(UnitAttr)
    origin_label = opt_prop_def(StringAttr)
    origin_map = opt_prop_def(AffineMapAttr)
    loops = var_operand_def(IndexType)
    inputs = var_operand_def(MemRefType)
    targets = var_operand_def(MemRefType)
    body = region_def("single_block")

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(IsolatedFromAbove())

    def __init__(
        self,
        label: str,
        axes: Sequence[AxisAttr],
        loops: Sequence[SSAValue],
        bindings: AffineMap,
        inputs: Sequence[SSAValue],
        reads: Sequence[AccessAttr],
        targets: Sequence[SSAValue],
        writes: Sequence[AccessAttr],
        body: Region,
        combiners: Sequence[str] = (),
        guard: AffineSet | None = None,
        accumulate: bool = False,
        origin: tuple[str, AffineMap] | None = None,
    ) -> None:
        super().__init__(
            operands=[loops, inputs, targets],
            properties={
                "label": StringAttr(label),
                "axes": ArrayAttr(axes),
                "bindings": AffineMapAttr(bindings),
                "where": AffineSetAttr(guard) if guard is not None and guard.constraints else None,
                "reads": ArrayAttr(reads),
                "writes": ArrayAttr(writes),
                "combiners": ArrayAttr([StringAttr(c) for c in combiners]),
                "accumulate": UnitAttr() if accumulate else None,
                "origin_label": StringAttr(origin[0]) if origin else None,
                "origin_map": AffineMapAttr(origin[1]) if origin else None,
            },
            regions=[body],
        )

    @property
    def guard(self) -> AffineSet | None:
        """The condition over `loops` under which the block runs, or None for always."""
        return self.where.data if self.where is not None else None

    @property
    def loop_ops(self) -> list[ForOp]:
        """The loops whose variables `loops` are, in that order."""
        return [loop_of(value) for value in self.loops]

    def verify_(self) -> None:
        axes = self.axes.data
        check_axes(axes)
        check_combiners([c.data for c in self.combiners], len(self.targets), axes)
        if self.accumulate is not None and not self.combiners.data:
            raise VerifyException("only a block with combiners can accumulate")
        self._verify_bindings()
        if len(self.reads) != len(self.inputs) or len(self.writes) != len(self.targets):
            raise VerifyException("the block needs one access an input and one a target")
        block = check_body(self.body, self.inputs, YieldOp, "loop")
        extents = [loop.size for loop in self.loop_ops]
        for values, accesses in ((self.inputs, self.reads), (self.targets, self.writes)):
            for value, access in zip(values, accesses, strict=True):
                what = f"the access to '{value.name_hint}'"
                check_access(what, access, shape_of(value), axes, (self.bindings.data, self.guard, extents))
        if any(access.condition is not None for access in self.writes):
            raise VerifyException("a write has no condition; the guard is the place")
        yielded = [value.type for value in block.last_op.operands]  # type: ignore[union-attr]
        if yielded != [element_type(target) for target in self.targets]:
            raise VerifyException("the body must yield one value a target, of its element type")
        if self.origin_map is not None and self.origin_map.data.num_dims != len(axes):
            raise VerifyException("the origin must be indexed by the block's axes")

    def _verify_bindings(self) -> None:
        enclosing = enclosing_loops(self)
        for value in self.loops:
            if not any(loop.iv is value for loop in enclosing):
                raise VerifyException(f"'{value.name_hint}' is not the variable of an enclosing loop")
        loops = self.loop_ops
        bindings = self.bindings.data
        if bindings.num_dims != len(loops) or len(bindings.results) != len(self.axes):
            raise VerifyException("the block needs one binding an axis, over its loops")
        extents = [loop.size for loop in loops]
        names = [f"%{loop.label.data}" for loop in loops]
        for axis, expr in zip(self.axes, bindings.results, strict=True):
            found = escape(expr, axis.size, extents, self.guard)
            if found is not None:
                at = ", ".join(f"{n}={v}" for n, v in zip(names, found.point, strict=True))
                raise VerifyException(
                    f"axis '{axis.label}' of block '{self.label.data}' is bound to {to_text(expr, names)}, "
                    f"which is {found.value} at {at}, outside its extent {axis.size}"
                )

    def print(self, printer: Printer) -> None:
        names = names_of(self.axes.data)
        loops = _loop_names(printer, self)
        printer.print_string(" ")
        printer.print_string_literal(self.label.data)
        bound = zip(self.axes, self.bindings.data.results, strict=True)
        printer.print_string(f" [{', '.join(_bound_axis(axis, expr, loops) for axis, expr in bound)}]")
        if self.guard is not None:
            conditions = ", ".join(constraint_text(c, loops) for c in self.guard.constraints)
            printer.print_string(f" where ({conditions})")
        print_combiners(printer, self.combiners)
        if self.accumulate is not None:
            printer.print_string(" accumulate")
        print_reads(printer, self.body.block.args, self.inputs, self.reads.data, names)
        printer.print_string(" -> ")
        with printer.in_parens():
            printer.print_list(
                list(zip(self.targets, self.writes, strict=True)),
                lambda item: _print_write(printer, item[0], item[1], names),
            )
        if self.origin_label is not None and self.origin_map is not None:
            printer.print_string(" origin ")
            printer.print_string_literal(self.origin_label.data)
            print_indices(printer, self.origin_map.data, names)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)
        printer.print_op_attributes(self.attributes, print_keyword=True)

    @classmethod
    def parse(cls, parser: Parser) -> BlockOp:
        label = parser.parse_str_literal()
        affine = NamedAffineParser(parser, None)
        axes: list[AxisAttr] = []
        bound: list[AffineExpr] = []

        def one() -> None:
            finish = parse_axis_head(parser)
            axes.append(finish(parser.parse_integer(allow_boolean=False, allow_negative=True)))
            parser.parse_keyword("at")
            bound.append(affine.expr())

        parser.parse_comma_separated_list(Parser.Delimiter.SQUARE, one)
        constraints = []
        if parser.parse_optional_keyword("where"):
            constraints = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, affine.constraint)
        loops = [parser.resolve_operand(UnresolvedOperand(s, 0), IndexType()) for s in affine.spans]
        combiners = parse_combiners(parser)
        accumulate = parser.parse_optional_keyword("accumulate") is not None
        names = names_of(axes)
        reads = parse_reads(parser, names)
        parser.parse_punctuation("->")
        writes = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, lambda: _parse_write(parser, names))
        origin = None
        if parser.parse_optional_keyword("origin"):
            origin = (parser.parse_str_literal(), parse_indices(parser, names))
        body = parser.parse_region(reads.arguments)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op = cls(
            label,
            axes,
            loops,
            AffineMap(len(loops), 0, tuple(bound)),
            reads.inputs,
            reads.accesses,
            [target for target, _ in writes],
            [access for _, access in writes],
            body,
            combiners,
            AffineSet(len(loops), 0, tuple(constraints)),
            accumulate,
            origin,
        )
        if attributes is not None:
            op.attributes |= attributes.data
        return op


def _loop_names(printer: Printer, block: BlockOp) -> list[str]:
    named = printer._ssa_values  # an op printed on its own, as in an error, has loops without names
    return [f"%{named.get(value) or value.name_hint or '?'}" for value in block.loops]


def _bound_axis(axis: AxisAttr, expr: AffineExpr, loops: Sequence[str]) -> str:
    reduce = "reduce " if axis.is_reduce else ""
    return f"{reduce}{axis.label} = {axis.size} at {to_text(expr, loops)}"


def _print_write(printer: Printer, target: SSAValue, access: AccessAttr, names: Sequence[str]) -> None:
    printer.print_ssa_value(target)
    print_access(printer, access, names)
    printer.print_string(" : ")
    printer.print_attribute(target.type)


def _parse_write(parser: Parser, names: Sequence[str]) -> tuple[SSAValue, AccessAttr]:
    operand = parser.parse_unresolved_operand()
    access = parse_access(parser, names)
    parser.parse_punctuation(":")
    type = parse_shaped_type(parser)
    return parser.resolve_operand(operand, type), access(type.get_element_type())


def enclosing_loops(op: Operation) -> list[ForOp]:
    """The loops around an op, outermost first."""
    loops: list[ForOp] = []
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, ForOp):
            loops.insert(0, parent)
        parent = parent.parent_op()
    return loops


def loop_of(value: SSAValue) -> ForOp:
    """The loop whose variable a value is."""
    owner = value.owner
    loop = None if isinstance(owner, Operation) else owner.parent_op()
    if not isinstance(loop, ForOp):
        raise VerifyException(f"'{value.name_hint}' is not the variable of a loop")
    return loop


@irdl_op_definition
class IndexOp(IRDLOperation):
    """The value of an iterator inside the body of a loop.block.

    ```mlir
    func.func @count(%I: memref<4xindex>) attributes {outputs = 1 : i64} {
      loop.for "i" %i = 4 {
        loop.block "I" [i = 4 at %i] () -> (%I[i] : memref<4xindex>) {
          %0 = loop.index "i" : index
          loop.yield %0 : index
        }
      }
      func.return
    }
    ```
    """

    name = "loop.index"

    label = prop_def(StringAttr)
    value = result_def(IndexType)

    traits = traits_def(Pure())
    assembly_format = "$label attr-dict `:` type($value)"

    def __init__(self, label: str) -> None:
        super().__init__(properties={"label": StringAttr(label)}, result_types=[IndexType()])

    def verify_(self) -> None:
        parent = self.parent_op()
        if not isinstance(parent, BlockOp):
            raise VerifyException("loop.index stands only in the body of a loop.block")
        if self.label.data not in names_of(parent.axes.data):
            raise VerifyException(f"'{self.label.data}' is not an axis of '{parent.label.data}'")


@irdl_op_definition
class YieldOp(IRDLOperation):
    """End the body of a loop.block with one scalar a target.

    ```mlir
    func.func @zero(%A: memref<f32>) attributes {outputs = 1 : i64} {
      loop.block "A" [] () -> (%A[] : memref<f32>) {
        %0 = arith.constant 0.0 : f32
        loop.yield %0 : f32
      }
      func.return
    }
    ```
    """

    name = "loop.yield"

    values = var_operand_def()

    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict ($values^ `:` type($values))?"

    def __init__(self, *values: SSAValue) -> None:
        super().__init__(operands=[values])


LOOP = Dialect("loop", [ForOp, AllocOp, BlockOp, IndexOp, YieldOp], [])
