"""The named ops with a syntax of their own: transpose, broadcast, reduce, map, softmax; and those that are not read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    I64,
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    ShapedType,
    TensorType,
    i64,
)
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.dialects.linalg.ops import YieldOp
from xdsl.ir import Attribute, Block, Region
from xdsl.ir.affine import AffineMap
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    SameVariadicOperandSize,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from compiler.dialects.upstream.linalg.bodies import build_body
from compiler.dialects.upstream.linalg.generic import element_of, kinds_of, rank_of
from compiler.dialects.upstream.linalg.syntax import ParsedParts, parse_parts, print_operands, print_results


class RegionlessOp(LinalgStructuredOperation):
    """The base of transpose and broadcast, which copy their input. WORD: the name of the property with their
    dimensions."""

    irdl_options = (SameVariadicOperandSize(), ParsePropInAttrDict())
    WORD: ClassVar[str]

    @property
    def numbers(self) -> list[int]:
        """The integers of the op's property: the permutation of a transpose, the dimensions of a broadcast."""
        listed = self.properties[self.WORD]
        assert isinstance(listed, DenseArrayBase)
        return [int(number) for number in listed.get_values()]

    def get_iterator_types(self) -> ArrayAttr[IteratorTypeAttr]:
        """Return the iterator types: parallel for each dimension of the output."""
        return kinds_of(rank_of(self.outputs[0]), 0)

    def input_dims(self, rank: int) -> list[int]:
        """Return the dimension of the iteration space, of rank `rank`, that indexes each dimension of the input;
        subclasses define it."""
        raise NotImplementedError

    def get_indexing_maps(self) -> ArrayAttr[AffineMapAttr]:
        """Return the indexing maps of the input and of the output. Raises VerifyException unless the integers of the
        property are distinct dimensions of the output."""
        identity = AffineMap.identity(rank_of(self.outputs[0]))
        if sorted({*self.numbers}) != sorted(self.numbers) or any(not 0 <= n < identity.num_dims for n in self.numbers):
            raise VerifyException(f"{self.numbers} are not dimensions of {self.outputs[0].type}, each once")
        results = tuple(identity.results[dim] for dim in self.input_dims(identity.num_dims))
        return ArrayAttr([AffineMapAttr(AffineMap(identity.num_dims, 0, results)), AffineMapAttr(identity)])

    @classmethod
    def parse(cls, parser: Parser) -> RegionlessOp:
        parts = parse_parts(parser, [cls.WORD])
        position = parser.pos
        if len(parts.ins) != 1 or len(parts.outs) != 1 or cls.WORD not in parts.attributes:
            parser.raise_error(f"{cls.name} has an input, an output and {cls.WORD}", position)
        region = build_body("copy", [element_of(value) for value in parts.operands], False, YieldOp)
        return cls.build(
            operands=[parts.ins, parts.outs],
            result_types=[parts.results],
            properties={cls.WORD: parts.attributes.pop(cls.WORD)},
            attributes=parts.attributes,
            regions=[region],
        )

    def print(self, printer: Printer) -> None:
        print_operands(printer, "ins", self.inputs)
        print_operands(printer, "outs", self.outputs)
        printer.print_string(f" {self.WORD} = {self.numbers}")
        printer.print_op_attributes(self.attributes)


@irdl_op_definition
class TransposeOp(RegionlessOp):
    """Permute the dimensions of a tensor: dimension n of the result is number permutation[n] of the input."""

    name = "linalg.transpose"
    WORD: ClassVar = "permutation"
    permutation = prop_def(DenseArrayBase.constr(i64))

    def input_dims(self, rank: int) -> list[int]:
        return [self.numbers.index(dim) for dim in range(rank) if dim in self.numbers]


@irdl_op_definition
class BroadcastOp(RegionlessOp):
    """Repeat a tensor along the new dimensions that the property dimensions lists."""

    name = "linalg.broadcast"
    WORD: ClassVar = "dimensions"
    dimensions = prop_def(DenseArrayBase.constr(i64))

    def input_dims(self, rank: int) -> list[int]:
        return [dim for dim in range(rank) if dim not in self.numbers]


def _parse_region(parser: Parser) -> Region:
    """Parse `(%in: f32, ...) { ... }`."""
    arguments = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_argument)
    return parser.parse_region(arguments)


def _short_region(parser: Parser, parts: ParsedParts, types: Sequence[Attribute], order: Sequence[int]) -> Region:
    """Return the region of the short form `{ OP }`: the op applied to the arguments of the numbers `order`, in this
    order, and a yield of its result. Raises ParseError for an unknown op."""
    kind = parser.ctx.get_optional_op(parts.short)
    block = Block(arg_types=types)
    if kind is None:
        parser.raise_error(f"'{parts.short}' is not an op")
    operands = [block.args[n] for n in order]
    op = kind.create(operands=operands, result_types=[types[-1]], properties=parts.short_properties)
    block.add_ops([op, YieldOp(op.results[0])])
    return Region(block)


def _print_region(printer: Printer, body: Region) -> None:
    printer.print_string("\n  (")
    printer.print_list(body.block.args, printer.print_block_argument)
    printer.print_string(") ")
    printer.print_region(body, print_entry_block_args=False)


@irdl_op_definition
class ReduceOp(LinalgStructuredOperation):
    """Combine the elements along dimensions by a body."""

    name = "linalg.reduce"
    dimensions = prop_def(DenseArrayBase.constr(i64))
    irdl_options = (SameVariadicOperandSize(), ParsePropInAttrDict())

    @property
    def reduced(self) -> list[int]:
        """The dimensions that are combined."""
        return [int(number) for number in self.dimensions.get_values()]

    def get_indexing_maps(self) -> ArrayAttr[AffineMapAttr]:
        """Return the indexing maps: the identity for inputs, the dimensions that are not reduced for outputs."""
        rank = rank_of(self.inputs[0])
        identity = AffineMap.identity(rank)
        stay = tuple(identity.results[dim] for dim in range(rank) if dim not in self.reduced)
        maps = [identity] * len(self.inputs) + [AffineMap(rank, 0, stay)] * len(self.outputs)
        return ArrayAttr([AffineMapAttr(map) for map in maps])

    def get_iterator_types(self) -> ArrayAttr[IteratorTypeAttr]:
        """Return the iterator types: reduction for the dimensions that are combined, else parallel."""
        kinds = [IteratorTypeAttr.parallel(), IteratorTypeAttr.reduction()]
        return ArrayAttr([kinds[dim in self.reduced] for dim in range(rank_of(self.inputs[0]))])

    @classmethod
    def parse(cls, parser: Parser) -> ReduceOp:
        parts = parse_parts(parser, ["dimensions"], short=True)
        types = [element_of(value) for value in parts.operands]
        if "dimensions" not in parts.attributes or not parts.ins:
            parser.raise_error("linalg.reduce has inputs, outputs and dimensions")
        body = _short_region(parser, parts, types, (1, 0)) if parts.short else _parse_region(parser)
        return cls.build(
            operands=[parts.ins, parts.outs],
            result_types=[parts.results],
            properties={"dimensions": parts.attributes.pop("dimensions")},
            attributes=parts.attributes,
            regions=[body],
        )

    def print(self, printer: Printer) -> None:
        print_operands(printer, "ins", self.inputs)
        print_operands(printer, "outs", self.outputs)
        printer.print_string(f" dimensions = {self.reduced}")
        printer.print_op_attributes(self.attributes)
        _print_region(printer, self.body)


@irdl_op_definition
class MapOp(LinalgStructuredOperation):
    """Compute each element of a tensor by a body, from the elements of the inputs at the same index."""

    name = "linalg.map"
    inputs = var_operand_def()
    outputs = operand_def(ShapedType)  # type: ignore[assignment]
    res = var_result_def(TensorType)
    irdl_options = (ParsePropInAttrDict(),)

    def get_indexing_maps(self) -> ArrayAttr[AffineMapAttr]:
        """Return the indexing maps: the identity for all operands."""
        identity = AffineMapAttr(AffineMap.identity(rank_of(self.operands[-1])))
        return ArrayAttr([identity] * len(self.operands))

    def get_iterator_types(self) -> ArrayAttr[IteratorTypeAttr]:
        """Return the iterator types: parallel for each dimension."""
        return kinds_of(rank_of(self.operands[-1]), 0)

    @classmethod
    def parse(cls, parser: Parser) -> MapOp:
        parts = parse_parts(parser, short=True)
        types = [element_of(value) for value in parts.operands]
        if len(parts.outs) != 1:
            parser.raise_error("linalg.map has one output")
        order = range(len(parts.ins))
        body = _short_region(parser, parts, types, order) if parts.short else _parse_region(parser)
        if len(body.block.args) == len(parts.ins):  # MLIR before 22 has no argument for the output
            body.block.insert_arg(types[-1], len(body.block.args))
        return cls.build(
            operands=[parts.ins, parts.outs[0]],
            result_types=[parts.results],
            attributes=parts.attributes,
            regions=[body],
        )

    def print(self, printer: Printer) -> None:
        print_operands(printer, "ins", self.inputs)
        print_operands(printer, "outs", [self.operands[-1]])
        printer.print_op_attributes(self.attributes)
        _print_region(printer, self.body)


@irdl_op_definition
class IndexOp(IRDLOperation):
    """The value of a dimension of the iteration space inside a body: `linalg.index 0 : index`."""

    name = "linalg.index"
    dim = prop_def(IntegerAttr[I64])
    result = result_def(IndexType)
    assembly_format = "$dim attr-dict `:` type($result)"


@irdl_op_definition
class SoftmaxOp(IRDLOperation):
    """exp(x - max x) / sum exp(x - max x) along a dimension."""

    name = "linalg.softmax"
    input = operand_def(ShapedType)
    output = operand_def(ShapedType)
    dimension = prop_def(IntegerAttr)
    res = var_result_def(TensorType)
    irdl_options = (ParsePropInAttrDict(),)

    @classmethod
    def parse(cls, parser: Parser) -> SoftmaxOp:
        parser.parse_keyword("dimension")
        parser.parse_punctuation("(")
        dimension = IntegerAttr(parser.parse_integer(), i64)
        parser.parse_punctuation(")")
        parts = parse_parts(parser)
        if len(parts.ins) != 1 or len(parts.outs) != 1:
            parser.raise_error("linalg.softmax has an input and an output")
        return cls.build(
            operands=parts.operands,
            result_types=[parts.results],
            properties={"dimension": dimension},
            attributes=parts.attributes,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(f" dimension({self.dimension.value.data})")
        print_operands(printer, "ins", [self.input])
        print_operands(printer, "outs", [self.output])
        print_results(printer, self.res.types)


class FormlessOp(IRDLOperation):
    """The base of the ops that the parser refuses with a sentence, since te has no form of them."""

    arguments = var_operand_def()
    res = var_result_def()

    @classmethod
    def parse(cls, parser: Parser) -> FormlessOp:
        parser.raise_error(f"{cls.name} is not read: {FORMLESS[cls.name]}")

    def verify_(self) -> None:
        raise VerifyException(f"{self.name} is not read: {FORMLESS[self.name]}")


_WINOGRAD = "give the convolution itself; Winograd's form of it is one of Strata's own laws"
FORMLESS = {
    "linalg.fill_rng_2d": "te has no random numbers",
    **{f"linalg.winograd_{part}_transform": _WINOGRAD for part in ("filter", "input", "output")},
}
"""Map each op without a form to the reason."""


def _formless(name: str) -> type[FormlessOp]:
    title = "".join(part.title() for part in name.removeprefix("linalg.").split("_")) + "Op"
    return irdl_op_definition(type(title, (FormlessOp,), {"name": name, "__module__": __name__}))


FORMLESS_OPS = [*map(_formless, FORMLESS)]
"""The ops that are not read."""
