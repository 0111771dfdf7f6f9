"""linalg.generic, and what it shares with the named ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, MemRefType, ShapedType, StringAttr, TensorType
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.attrs import IteratorType, IteratorTypeAttr
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.irdl import AttrSizedOperandSegments, ParsePropInAttrDict, irdl_op_definition, prop_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from compiler.dialects.upstream.linalg.syntax import parse_parts, parse_results, print_operands, print_results


def element_of(value: SSAValue) -> Attribute:
    """The element type of a tensor or buffer; a scalar's own type."""
    return value.type.get_element_type() if isinstance(value.type, TensorType | MemRefType) else value.type


def rank_of(value: SSAValue) -> int:
    """The rank of a tensor or buffer; 0 for a scalar."""
    return len(value.type.get_shape()) if isinstance(value.type, ShapedType) else 0


def kinds_of(parallel: int, reduction: int) -> ArrayAttr[IteratorTypeAttr]:
    """Return the iterator types of dimensions of which the first `parallel` are parallel and the last `reduction`
    reductions."""
    return ArrayAttr([IteratorTypeAttr.parallel()] * parallel + [IteratorTypeAttr.reduction()] * reduction)


def verify_structured(op: LinalgStructuredOperation, verify: Callable[[], None]) -> None:
    """Call `verify`, xDSL's verifier of maps and shapes, unless an operand has a dynamic shape, which a pass refuses
    later."""
    shapes = [operand.type.get_shape() for operand in op.operands if isinstance(operand.type, ShapedType)]
    if all(size >= 0 for shape in shapes for size in shape):
        verify()


@irdl_op_definition
class GenericOp(LinalgStructuredOperation):
    """A perfect loop nest over tensors: a map for each operand, iterator types, and a scalar body."""

    name = "linalg.generic"
    indexing_maps = prop_def(ArrayAttr[AffineMapAttr])
    iterator_types = prop_def(ArrayAttr[IteratorTypeAttr])
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())

    def __init__(
        self,
        inputs: Sequence[SSAValue],
        outputs: Sequence[SSAValue],
        maps: Sequence[AffineMap],
        kinds: ArrayAttr[IteratorTypeAttr],
        body: Region,
        results: Sequence[Attribute],
    ) -> None:
        super().__init__(
            operands=[inputs, outputs],
            result_types=[results],
            properties={"indexing_maps": ArrayAttr(map(AffineMapAttr, maps)), "iterator_types": kinds},
            regions=[body],
        )

    def get_indexing_maps(self) -> ArrayAttr[AffineMapAttr]:
        """The property indexing_maps: one map for each operand."""
        return self.indexing_maps

    def get_iterator_types(self) -> ArrayAttr[IteratorTypeAttr]:
        """The property iterator_types: parallel or reduction for each dimension."""
        return self.iterator_types

    def verify_(self) -> None:
        verify_structured(self, super().verify_)

    @classmethod
    def parse(cls, parser: Parser) -> GenericOp:
        position = parser.pos
        parts = parse_parts(parser, body=True)
        region = parser.parse_region()
        parse_results(parser, parts)
        maps, kinds = (parts.attributes.pop(name, None) for name in ("indexing_maps", "iterator_types"))
        if not isinstance(maps, ArrayAttr) or not isinstance(kinds, ArrayAttr):
            parser.raise_error("linalg.generic has indexing_maps and iterator_types", position)
        for unread in ("doc", "library_call"):
            parts.attributes.pop(unread, None)
        try:
            types = [IteratorTypeAttr(IteratorType(k.data)) if isinstance(k, StringAttr) else k for k in kinds]
        except ValueError as error:
            parser.raise_error(f"{error} of iterators", position)
        op = cls(parts.ins, parts.outs, [a.data for a in maps], ArrayAttr(types), region, parts.results)
        op.attributes |= parts.attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" {indexing_maps = ")
        printer.print_attribute(self.indexing_maps)
        printer.print_string(", iterator_types = [")
        printer.print_list(self.iterator_types, lambda kind: printer.print_string_literal(kind.data))
        printer.print_string("]}")
        print_operands(printer, "ins", self.inputs)
        print_operands(printer, "outs", self.outputs)
        if self.attributes:
            printer.print_string(" attrs =")
            printer.print_op_attributes(self.attributes)
        printer.print_string(" ")
        printer.print_region(self.body)
        print_results(printer, self.res.types)
