"""The named ops whose name states their body: products, convolutions, pooling, functions of elements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, DenseIntOrFPElementsAttr
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.dialects.linalg.ops import YieldOp
from xdsl.ir import Attribute, Region
from xdsl.ir.affine import AffineMap
from xdsl.irdl import AttrSizedOperandSegments, ParsePropInAttrDict, irdl_op_definition, opt_prop_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from compiler.dialects.upstream.linalg.attributes import ElementwiseKindAttr, TypeFunctionAttr
from compiler.dialects.upstream.linalg.bodies import build_body
from compiler.dialects.upstream.linalg.generic import element_of, rank_of, verify_structured
from compiler.dialects.upstream.linalg.structures import KINDS, POINTWISE, STRUCTURES, NamedStructure
from compiler.dialects.upstream.linalg.syntax import ParsedParts, parse_parts, print_operands, print_results


class NamedOp(LinalgStructuredOperation):
    """The base of the linalg ops whose name states their body and, mostly, their indexing maps. strides, dilations: of
    windows, an entry for each; 1 without them. cast: how integers are converted. kind: the function of a
    linalg.elementwise. WORDS: the properties that the text states as `word = value`."""

    indexing_maps = opt_prop_def(ArrayAttr[AffineMapAttr])
    strides = opt_prop_def(DenseIntOrFPElementsAttr)
    dilations = opt_prop_def(DenseIntOrFPElementsAttr)
    cast = opt_prop_def(TypeFunctionAttr)
    kind = opt_prop_def(ElementwiseKindAttr)

    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())

    WORDS: ClassVar = ("kind", "indexing_maps")

    def default_maps(self) -> list[AffineMap]:
        """Return the indexing maps of an op without the property indexing_maps. Raises VerifyException if it has none,
        or strides and dilations of another number."""
        raise NotImplementedError

    def get_indexing_maps(self) -> ArrayAttr[AffineMapAttr]:
        """Return the indexing maps: those of the property, else those of the op's name."""
        if self.indexing_maps is not None:
            return self.indexing_maps
        return ArrayAttr([AffineMapAttr(map) for map in self.default_maps()])

    def get_iterator_types(self) -> ArrayAttr[IteratorTypeAttr]:
        """Return the iterator types: parallel for each dimension in the map of an output, else reduction."""
        maps = [attribute.data for attribute in self.get_indexing_maps()]
        parallel = {dim for map in maps[len(self.inputs) :] for dim in map.used_dims()}
        kinds = [IteratorTypeAttr.parallel(), IteratorTypeAttr.reduction()]
        return ArrayAttr([kinds[dim not in parallel] for dim in range(maps[0].num_dims)])

    @classmethod
    def parse(cls, parser: Parser) -> NamedOp:
        position = parser.pos
        parts = parse_parts(parser, cls.WORDS)
        names = cls.get_irdl_definition().properties
        properties = {name: parts.attributes.pop(name) for name in [*parts.attributes] if name in names}
        try:
            region = cls.body_of(parts, properties)
        except ValueError as error:
            parser.raise_error(str(error), position)
        return cls.build(
            operands=[parts.ins, parts.outs],
            result_types=[parts.results],
            properties=properties,
            attributes=parts.attributes,
            regions=[region],
        )

    @classmethod
    def body_of(cls, parts: ParsedParts, properties: dict[str, Attribute]) -> Region:
        """Build the body for the operands' element types, with conversions as the property `cast` states. Raises
        ValueError for another number of operands, for types that the op lacks, or for properties that state no body."""
        unsigned = properties.get("cast") == TypeFunctionAttr("cast_unsigned")
        types = [element_of(value) for value in parts.operands]
        name = cls.body_name(properties)
        if not parts.outs or len(types) != len(parts.ins) + 1:
            raise ValueError(f"{cls.name} has one output")
        if len(parts.ins) != cls.count(name):
            raise ValueError(f"{cls.name} has {cls.count(name)} inputs, not {len(parts.ins)}")
        return build_body(name, types, unsigned, YieldOp)

    @classmethod
    def body_name(cls, properties: Mapping[str, Attribute]) -> str:
        """Return the name of the body, a key of BODIES. The base class returns that of the op, whatever its properties;
        subclasses raise ValueError if these state none."""
        return cls.name.removeprefix("linalg.")

    @classmethod
    def count(cls, body: str) -> int:
        """Return the number of inputs of an op whose body has this name."""
        raise NotImplementedError

    def verify_(self) -> None:
        verify_structured(self, super().verify_)

    def print(self, printer: Printer) -> None:
        for word in self.WORDS:
            if word in self.properties:
                printer.print_string(f" {word} = ")
                printer.print_attribute(self.properties[word])
        others = {name: self.properties[name] for name in ("strides", "dilations", "cast") if name in self.properties}
        printer.print_op_attributes(others | self.attributes)
        print_operands(printer, "ins", self.inputs)
        print_operands(printer, "outs", self.outputs)
        print_results(printer, self.res.types)


class StructuredNamedOp(NamedOp):
    """The base of the named ops in the table STRUCTURES."""

    @classmethod
    def row(cls) -> NamedStructure:
        """Return the op's row of the table STRUCTURES."""
        return STRUCTURES[cls.name.removeprefix("linalg.")]

    @classmethod
    def body_name(cls, properties: Mapping[str, Attribute]) -> str:
        return cls.row().body

    def default_maps(self) -> list[AffineMap]:
        structure = self.row()
        ones = (1,) * structure.windows
        factors = [ones if given is None else tuple(given.get_values()) for given in (self.strides, self.dilations)]
        if any(len(numbers) != structure.windows for numbers in factors):
            raise VerifyException(f"{self.name} has {structure.windows} strides and dilations")
        return structure.maps(*factors)

    @classmethod
    def count(cls, body: str) -> int:
        return len(cls.row().operands) - 1


class PointwiseOp(NamedOp):
    """The base of the named ops in the table POINTWISE: all operands have one shape, or indexing maps; one of lower
    rank is indexed by the first dimensions."""

    def default_maps(self) -> list[AffineMap]:
        rank = rank_of(self.outputs[0])
        return [AffineMap(rank, 0, AffineMap.identity(rank).results[: rank_of(value)]) for value in self.operands]

    @classmethod
    def count(cls, body: str) -> int:
        return 3 if body == "select" else POINTWISE.get(body, 2)


@irdl_op_definition
class ElementwiseOp(PointwiseOp):
    """A linalg.elementwise: a scalar function of a kind, applied to each element of operands with indexing maps."""

    name = "linalg.elementwise"

    @classmethod
    def body_name(cls, properties: Mapping[str, Attribute]) -> str:
        kind = properties.get("kind")
        if not isinstance(kind, ElementwiseKindAttr):
            raise ValueError("linalg.elementwise has a kind, such as kind = #linalg.elementwise_kind<add>")
        return KINDS[kind.data]


@irdl_op_definition
class FillOp(PointwiseOp):
    """Fill a tensor with a scalar."""

    name = "linalg.fill"

    @classmethod
    def body_name(cls, properties: Mapping[str, Attribute]) -> str:
        return "copy"


@irdl_op_definition
class ContractOp(NamedOp):
    """A sum of products of the elements of two operands, by its indexing maps."""

    name = "linalg.contract"

    @classmethod
    def body_name(cls, properties: Mapping[str, Attribute]) -> str:
        return "mul_add"

    @classmethod
    def count(cls, body: str) -> int:
        return 2

    def default_maps(self) -> list[AffineMap]:
        raise VerifyException("linalg.contract has indexing_maps")


def _named(base: type[NamedOp], name: str) -> type[NamedOp]:
    """Define the op `linalg.NAME` of a row of a table."""
    title = "".join(part.title() for part in name.split("_")) + "Op"
    return irdl_op_definition(type(title, (base,), {"name": f"linalg.{name}", "__module__": __name__}))


NAMED = [
    *(_named(StructuredNamedOp, name) for name in STRUCTURES),
    *(_named(PointwiseOp, name) for name in POINTWISE),
]
"""The ops of the tables."""
