"""`loop.for`, `loop.alloc` and `loop.constant`: the ops around blocks."""

from __future__ import annotations

from collections.abc import Set

from xdsl.dialects.builtin import IndexType, IntAttr, MemRefType, StringAttr, UnknownLoc
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, region_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind, NoTerminator, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from compiler.affine.limits import bad_extent
from compiler.dialects.access import parse_attributes
from compiler.dialects.checks import element_type, refuse
from compiler.dialects.dense import DenseAttr, parse_dense
from compiler.dialects.printing import print_label, print_type
from compiler.types.scopes import SCOPES

BOUND = (*(f"{level}_{dim}" for level in ("block", "thread") for dim in "xyz"), "vthread")
"""The kinds of loops that are bound to a hardware index."""
KINDS = ("serial", "parallel", "vectorized", "unrolled", "tensorized", *BOUND)


@irdl_op_definition
class ForOp(IRDLOperation):
    """Run the body for each value of a named loop variable, from zero, in unit steps, up to a constant extent.

    The kind (parallel, vectorized, unrolled, a thread binding ...) is an annotation until lowering. All loops of a nest
    that an intrinsic replaces are `tensorized`; the outermost names it.

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

    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    def __init__(self, label: str, extent: int, body: Region, kind: str = "serial") -> None:
        properties = {"label": StringAttr(label), "extent": IntAttr(extent), "kind": StringAttr(kind)}
        super().__init__(properties=properties, regions=[body])

    @property
    def size(self) -> int:
        """The number of iterations."""
        return int(self.extent.data)

    @property
    def loop_kind(self) -> str:
        """The kind of the loop, one of KINDS."""
        return self.kind.data

    @property
    def iv(self) -> BlockArgument:
        """The loop variable."""
        return self.body.block.args[0]

    def verify_(self) -> None:
        refuse(bad_extent(f"loop '{self.label.data}'", self.size))
        if self.loop_kind not in KINDS:
            raise VerifyException(f"unknown loop kind '{self.loop_kind}' (there are {', '.join(KINDS)})")
        if [arg.type for arg in self.body.block.args] != [IndexType()]:
            raise VerifyException(f"loop '{self.label.data}' has one loop variable, of type index")
        if self.loop_kind == "tensorized" and self.intrinsic is None and not self._within_tensorized():
            raise VerifyException(f"the tensorized loop '{self.label.data}' names no intrinsic")
        for loop in enclosing_loops(self):
            if loop.label.data == self.label.data:
                raise VerifyException(f"loop '{self.label.data}' stands inside a loop of the same name")
        for op in self.body.block.ops:
            if op.name not in ("loop.for", "loop.alloc", "loop.block", "loop.gather"):
                raise VerifyException(f"'{op.name}' cannot stand in a loop (only loop.for, alloc, block and gather)")

    @property
    def intrinsic(self) -> str | None:
        """The name of the intrinsic that replaces the nest of this tensorized loop; None for other loops."""
        value = self.attributes.get("intrinsic")
        return value.data if self.loop_kind == "tensorized" and isinstance(value, StringAttr) else None

    def _within_tensorized(self) -> bool:
        parent = self.parent_op()
        return isinstance(parent, ForOp) and parent.loop_kind == "tensorized"

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_label(printer, self.label.data)
        printer.print_string(" ")
        printer.print_ssa_value(self.iv)
        if printer.print_debuginfo and not isinstance(self.iv.location, UnknownLoc):
            printer.print_string(" ")
            printer.print_attribute(self.iv.location)
        printer.print_string(f" = {self.size} ")
        if self.loop_kind != "serial":
            printer.print_string(f"{self.loop_kind} ")
        attributes = dict(self.attributes)
        if self.intrinsic is not None:
            printer.print_string_literal(self.intrinsic)
            printer.print_string(" ")
            del attributes["intrinsic"]
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)
        printer.print_op_attributes(attributes, print_keyword=True)

    @classmethod
    def parse(cls, parser: Parser) -> ForOp:
        label = parser.parse_str_literal()
        iv = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        extent = parser.parse_integer(allow_boolean=False, allow_negative=True)
        kind = parser.parse_optional_identifier() or "serial"
        intrinsic = parser.parse_optional_str_literal() if kind == "tensorized" else None
        body = parser.parse_region([iv.resolve(IndexType())])
        op = cls(label, extent, body, kind)
        if intrinsic is not None:
            op.attributes["intrinsic"] = StringAttr(intrinsic)
        return parse_attributes(parser, op)


class _AllocEffect(MemoryEffect):
    """The allocation of the op's own result, so that an unused buffer is dead."""

    @classmethod
    def get_effects(cls, op: Operation) -> Set[EffectInstance]:
        return {EffectInstance(MemoryEffectKind.ALLOC, op.results[0])}


@irdl_op_definition
class AllocOp(IRDLOperation):
    """Begin the lifetime of a buffer; inside a loop, each iteration has its own buffer.

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

    traits = traits_def(_AllocEffect())

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
        print_label(printer, self.label.data)
        if self.scope.data != "global":
            printer.print_string(f" {self.scope.data}")
        printer.print_string(" : ")
        print_type(printer, self.buffer.type)
        printer.print_op_attributes(self.attributes, print_keyword=True)

    @classmethod
    def parse(cls, parser: Parser) -> AllocOp:
        label = parser.parse_str_literal()
        scope = parser.parse_optional_identifier() or "global"
        parser.parse_punctuation(":")
        position = parser.pos
        type = parser.parse_type()
        if not isinstance(type, MemRefType):
            parser.raise_error(f"expected a memref type, got {type}", position)
        return parse_attributes(parser, cls(label, type, scope))


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """A buffer whose elements the program states, defined outside all loops; blocks read it, none writes it.

    ```mlir
    func.func @f(%A: memref<4xf32>) attributes {outputs = 1 : i64} {
      %W = loop.constant "W" dense<[1.0, -1.0, 0.5, 0.0]> : tensor<4xf32>
      loop.for "i" %i = 4 {
        loop.block "A" [i = 4 at %i] (%w = %W[i] : memref<4xf32>) -> (%A[i] : memref<4xf32>) {
          loop.yield %w : f32
        }
      }
      func.return
    }
    ```
    """

    name = "loop.constant"

    label = prop_def(StringAttr)
    value = prop_def(DenseAttr)
    buffer = result_def(MemRefType)

    traits = traits_def(Pure())

    def __init__(self, label: str, value: DenseAttr) -> None:
        type = MemRefType(value.type.element_type, value.type.get_shape())
        super().__init__(properties={"label": StringAttr(label), "value": value}, result_types=[type])
        self.buffer.name_hint = label if SSAValue.is_valid_name(label) else None

    def verify_(self) -> None:
        type = self.value.type
        if self.buffer.type != MemRefType(type.element_type, type.get_shape()):
            raise VerifyException(f"the buffer of a constant of type {type} is no {self.buffer.type}")
        if not isinstance(self.parent_op(), FuncOp):
            raise VerifyException(f"the constant '{self.label.data}' does not stand outside all loops")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_label(printer, self.label.data)
        printer.print_string(" ")
        printer.print_attribute(self.value)
        printer.print_op_attributes(self.attributes, print_keyword=True)

    @classmethod
    def parse(cls, parser: Parser) -> ConstantOp:
        label = parser.parse_str_literal()
        return parse_attributes(parser, cls(label, parse_dense(parser)))


def enclosing_loops(op: Operation) -> list[ForOp]:
    """The loops around an op, outermost first, without the op itself."""
    loops: list[ForOp] = []
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, ForOp):
            loops.insert(0, parent)
        parent = parent.parent_op()
    return loops


def loop_of(value: SSAValue) -> ForOp:
    """Find the loop of a loop variable. Raises VerifyException for any other value."""
    owner = value.owner
    loop = None if isinstance(owner, Operation) else owner.parent_op()
    if not isinstance(loop, ForOp):
        raise VerifyException(f"'{value.name_hint}' is not the variable of a loop")
    return loop
