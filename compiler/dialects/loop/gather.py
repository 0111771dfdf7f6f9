"""`loop.gather`, a table read at an index that buffers hold."""

from __future__ import annotations

from xdsl.irdl import irdl_op_definition, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from compiler.dialects.access import names_of, parse_attributes
from compiler.dialects.checks import element_type
from compiler.dialects.gather import Gathered, Gathering, parse_gather
from compiler.dialects.loop.placement import Header, Placed, parse_head, parse_tail


@irdl_op_definition
class GatherOp(Placed, Gathering):
    """Read a table at data-dependent indices, in each iteration of its loops in which its guard is true.

    A statement like loop.block without a body: the element read is written to the one target. If an index value is
    outside the table, the `else` value is written.

    ```mlir
    func.func @rows(%T: memref<100x16xf32>, %I: memref<5xi64>, %Y: memref<5x16xf32>) attributes {outputs = 1 : i64} {
      loop.for "i" %i = 5 {
        loop.for "d" %d = 16 {
          loop.gather "Y" [i = 5 at %i, d = 16 at %d] %T[%I[i], d] else 0.0 : memref<100x16xf32>, memref<5xi64>
              -> (%Y[i, d] : memref<5x16xf32>) origin "Y"[i, d]
        }
      }
      func.return
    }
    ```
    """

    name = "loop.gather"

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, place: Header, gathered: Gathered) -> None:
        super().__init__(place, gathered.inputs, gathered.properties)

    def verify_(self) -> None:
        self.verify_bindings()
        self.verify_gather(self.domain)
        self.verify_writes()
        if [element_type(target) for target in self.targets] != [element_type(self.table)]:
            raise VerifyException("a gather writes one target, of the table's element type")

    def print(self, printer: Printer) -> None:
        self.print_head(printer)
        self.print_gather(printer)
        self.print_tail(printer)
        printer.print_op_attributes(self.attributes, print_keyword=True)

    @classmethod
    def parse(cls, parser: Parser) -> GatherOp:
        head = parse_head(parser)
        gathered = parse_gather(parser, names_of(head.axes))
        position = parser.pos
        head = parse_tail(parser, head)
        if len(head.targets) != 1:
            parser.raise_error("a gather writes one target", position)
        return parse_attributes(parser, cls(head, gathered))
