"""`loop.block`, one structured statement, and the ops of its body."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, UnitAttr
from xdsl.ir import Region, SSAValue
from xdsl.irdl import irdl_op_definition, opt_prop_def, prop_def, region_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from compiler.dialects.access import AccessAttr, names_of, parse_attributes
from compiler.dialects.checks import check_access, check_axes, check_body, element_type, shape_of
from compiler.dialects.combination import Combination, Combining, parse_combination, print_combination
from compiler.dialects.loop.placement import Header, Placed, parse_head, parse_tail
from compiler.dialects.te import AxisValue, ScalarYield, parse_reads, print_reads
from compiler.types.elements import scalar_type


@irdl_op_definition
class BlockOp(Placed, Combining):
    """One structured statement, run in each iteration of its loops where its guard holds.

    Each axis is bound to a quasi-affine expression of surrounding loops. Inputs are read and targets written at maps of
    the axes. With combiners, the yielded value is combined into the target; unless the block is marked `accumulate`,
    its targets are set to the identity immediately before the outermost enclosing loop that binds one of its reduce
    axes. `origin` is the te result, and the index in it, that the block computes.

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

    reads = prop_def(ArrayAttr[AccessAttr])
    accumulate = opt_prop_def(UnitAttr)
    body = region_def("single_block")

    traits = traits_def(IsolatedFromAbove(), MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self,
        place: Header,
        inputs: Sequence[SSAValue],
        reads: Sequence[AccessAttr],
        body: Region,
        combination: Combination | None = None,
        accumulate: bool = False,
    ) -> None:
        combination = combination or Combination()
        properties = {
            "reads": ArrayAttr(reads),
            **combination.properties,
            "accumulate": UnitAttr() if accumulate else None,
        }
        super().__init__(place, inputs, properties, [body, combination.region])

    def verify_(self) -> None:
        axes = self.axes.data
        check_axes(axes)
        self.verify_combination([element_type(v) for v in self.targets], axes, YieldOp)
        if self.accumulate is not None and not self.is_reduction:
            raise VerifyException("only a block with combiners can accumulate")
        self.verify_bindings()
        if len(self.reads) != len(self.inputs):
            raise VerifyException("the block needs one access an input and one a target")
        block = check_body(self.body, self.inputs, YieldOp, "loop")
        for value, access in zip(self.inputs, self.reads, strict=True):
            check_access(f"the access to '{value.name_hint}'", access, shape_of(value), axes, self.domain)
        self.verify_writes()
        yielded = [value.type for value in block.last_op.operands]  # type: ignore[union-attr]
        if yielded != [scalar_type(element_type(target)) for target in self.targets]:
            raise VerifyException("the body must yield one value a target, of its element type")

    def print(self, printer: Printer) -> None:
        names = names_of(self.axes.data)
        self.print_head(printer)
        print_combination(printer, self)
        if self.accumulate is not None:
            printer.print_string(" accumulate")
        print_reads(printer, self.body.block.args, self.inputs, self.reads.data, names)
        self.print_tail(printer)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)
        printer.print_op_attributes(self.attributes, print_keyword=True)

    @classmethod
    def parse(cls, parser: Parser) -> BlockOp:
        head = parse_head(parser)
        combination = parse_combination(parser)
        accumulate = parser.parse_optional_keyword("accumulate") is not None
        reads = parse_reads(parser, names_of(head.axes))
        head = parse_tail(parser, head)
        body = parser.parse_region(reads.arguments)
        return parse_attributes(parser, cls(head, reads.inputs, reads.accesses, body, combination, accumulate))


@irdl_op_definition
class IndexOp(AxisValue):
    """The value of an axis inside the body of a loop.block.

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
    OWNER: ClassVar = BlockOp


@irdl_op_definition
class YieldOp(ScalarYield):
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
