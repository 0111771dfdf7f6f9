"""Sizes: integers that each call gives, with a range; the attributes that declare them and the shapes over them.

    func.func @f(%X: tensor<512x768xf32> {te.dims = #te.dims<[S, 768]>}) -> ...
        attributes {te.sizes = #te.sizes<S = 1 to 512>}

A type has the capacity: the most that an extent can be. `te.dims` has the extents themselves, forms of sizes. An op
over sizes has the property `sizes`, equal to its function's; in its maps and sets size n is the symbol `sn`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import AffineMapAttr, AffineSetAttr, ArrayAttr, IntAttr, NoneAttr, StringAttr, TensorType
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Block, Operation, ParametrizedAttribute, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap, AffineSet, AffineSymExpr
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from compiler.affine import linear as lin
from compiler.affine.sized import Domain, capacity, empty
from compiler.affine.text import RESERVED, NamedAffineParser, SizedNames, constraint_text, to_text

SIZES, DIMS = "te.sizes", "te.dims"
MOST = 1 << 31
"""The exclusive bound on the values of a size."""


@irdl_attr_definition
class SizesAttr(ParametrizedAttribute):
    """The sizes of a function: names, least and most values, and relations that hold of them.

    ```mlir
    #te.sizes<pos = 0 to 2047, T = 1 to 16 where (-pos - T + 2048 >= 0)>
    ```
    """

    name = SIZES

    labels: ArrayAttr[StringAttr]
    least: ArrayAttr[IntAttr]
    most: ArrayAttr[IntAttr]
    where: AffineSetAttr | NoneAttr

    def __init__(self, sizes: Sequence[tuple[str, int, int]], relations: AffineSet | None = None) -> None:
        super().__init__(*_parameters(sizes, relations))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the sizes, in order: size n is symbol n."""
        return tuple(label.data for label in self.labels)

    @property
    def ranges(self) -> tuple[lin.Range, ...]:
        """The inclusive range of each size."""
        return tuple((low.data, high.data) for low, high in zip(self.least, self.most, strict=True))

    @property
    def relations(self) -> AffineSet | None:
        """A set over the sizes as symbols in which all calls are, besides the ranges; None without relations."""
        return self.where.data if isinstance(self.where, AffineSetAttr) else None

    def domain(self, extents: Sequence[AffineExpr]) -> Domain:
        """The domain of axes with these extents, expressions of the sizes."""
        return Domain(tuple(extents), self.ranges, self.relations)

    def verify(self) -> None:
        """Raise VerifyException unless names are unique identifiers, ranges are within 0 and 2^31, and some values are
        in the ranges and the relations."""
        for label, (least, most) in zip(self.names, self.ranges, strict=True):
            if label in RESERVED or not label.isidentifier():
                raise VerifyException(f"'{label}' cannot name a size: a name is an identifier, and no reserved word")
            if self.names.count(label) > 1:
                raise VerifyException(f"size '{label}' occurs twice")
            if not 0 <= least <= most < MOST:
                raise VerifyException(
                    f"size '{label}' is from {least} to {most}; a range begins at 0 or more, and ends below 2^31"
                )
        if not self.names:
            raise VerifyException("no size is declared: leave the attribute out")
        if self.relations is not None and (self.relations.num_dims or self.relations.num_symbols != len(self.names)):
            raise VerifyException(f"the relations of sizes are over {len(self.names)} symbols")
        if empty(self.domain(())):
            raise VerifyException(f"no {', '.join(self.names)} in their ranges satisfy {self.relations_text}")

    @property
    def relations_text(self) -> str:
        """The text of the relations, such as `-pos - T + 2048 >= 0`; empty without them."""
        constraints = self.relations.constraints if self.relations is not None else ()
        return ", ".join(constraint_text(c, SizedNames((), self.names)) for c in constraints)

    def print_parameters(self, printer: Printer) -> None:
        ranges = zip(self.names, self.ranges, strict=True)
        sizes = ", ".join(f"{label} = {least} to {most}" for label, (least, most) in ranges)
        relations = "" if self.relations is None else f" where ({self.relations_text})"
        printer.print_string(f"<{sizes}{relations}>")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            sizes = parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: _parse_size(parser))
            names = [label for label, _, _ in sizes]
            relations = None
            if parser.parse_optional_keyword("where"):
                affine = NamedAffineParser(parser, SizedNames((), names))
                constraints = parser.parse_comma_separated_list(parser.Delimiter.PAREN, affine.constraint)
                relations = AffineSet(0, len(names), tuple(constraints))
        return _parameters(sizes, relations)


def _parameters(
    sizes: Sequence[tuple[str, int, int]], relations: AffineSet | None
) -> tuple[ArrayAttr[StringAttr], ArrayAttr[IntAttr], ArrayAttr[IntAttr], AffineSetAttr | NoneAttr]:
    """The parameters of an attribute of sizes, each with its name and inclusive range; not verified."""
    return (
        ArrayAttr([StringAttr(label) for label, _, _ in sizes]),
        ArrayAttr([IntAttr(least) for _, least, _ in sizes]),
        ArrayAttr([IntAttr(most) for _, _, most in sizes]),
        NoneAttr() if relations is None else AffineSetAttr(relations),
    )


def _parse_size(parser: AttrParser) -> tuple[str, int, int]:
    label = parser.parse_identifier()
    parser.parse_punctuation("=")
    least = parser.parse_integer(allow_boolean=False, allow_negative=True)
    parser.parse_keyword("to")
    return label, least, parser.parse_integer(allow_boolean=False, allow_negative=True)


@irdl_attr_definition
class DimsAttr(ParametrizedAttribute):
    """The extents of an argument over sizes, in the order of the dimensions; the type has their capacities.

    ```mlir
    #te.dims<[S + 4, 768]>
    ```
    """

    name = DIMS

    labels: ArrayAttr[StringAttr]
    extents: AffineMapAttr

    def __init__(self, labels: Sequence[str], extents: Sequence[AffineExpr]) -> None:
        map = AffineMap(0, len(labels), tuple(extents))
        super().__init__(ArrayAttr([StringAttr(label) for label in labels]), AffineMapAttr(map))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the sizes that the extents have, in the order of their symbols."""
        return tuple(label.data for label in self.labels)

    def over(self, sizes: SizesAttr) -> tuple[AffineExpr, ...]:
        """The extents with the symbols of `sizes`. Raises VerifyException for a size that is not among these."""
        for label in self.names:
            if label not in sizes.names:
                raise VerifyException(f"te.dims has the size '{label}', which te.sizes does not declare")
        symbols = [AffineExpr.symbol(sizes.names.index(label)) for label in self.names]
        return tuple(e.replace_dims_and_symbols((), symbols) for e in self.extents.data.results)

    def print_parameters(self, printer: Printer) -> None:
        names = SizedNames((), self.names)
        printer.print_string(f"<[{', '.join(to_text(e, names) for e in self.extents.data.results)}]>")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            affine = _NewSizes(parser, SizedNames(()))
            extents = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, affine.expr)
        return cls(affine.sizes, extents).parameters


class _NewSizes(NamedAffineParser):
    """Parser of expressions in which each name is a size: it is declared behind the arguments."""

    def _leaf(self) -> AffineExpr | None:
        name = self._current_token.text
        if name.isidentifier() and name not in RESERVED and name not in self.sizes:
            self.sizes = (*self.sizes, name)
        return super()._leaf()


def dims_attribute(extents: Sequence[AffineExpr], sizes: SizesAttr) -> DimsAttr:
    """The attribute of extents over the symbols of `sizes`, with only the sizes that occur, in order of occurrence."""
    symbols = [part.position for e in extents for part in e.dfs() if isinstance(part, AffineSymExpr)]
    used, zero = list(dict.fromkeys(symbols)), AffineExpr.constant(0)
    places = [AffineExpr.symbol(used.index(n)) if n in used else zero for n in range(len(sizes.names))]
    return DimsAttr([sizes.names[n] for n in used], [e.replace_dims_and_symbols((), places) for e in extents])


def sizes_of(function: FuncOp) -> SizesAttr | None:
    """The sizes of a function, None without the attribute. Raises VerifyException for another kind of attribute."""
    stated = function.attributes.get(SIZES)
    if stated is not None and not isinstance(stated, SizesAttr):
        raise VerifyException(f"te.sizes is #te.sizes<S = 1 to 512>, not {stated}")
    return stated


def stated_dims(function: FuncOp, number: int) -> DimsAttr | None:
    """The attribute te.dims of an argument, None without one. Raises VerifyException for another kind of attribute."""
    rows = function.arg_attrs.data if function.arg_attrs is not None else ()
    stated = rows[number].data.get(DIMS) if number < len(rows) else None
    if stated is not None and not isinstance(stated, DimsAttr):
        raise VerifyException(f"te.dims is #te.dims<[S, 768]>, not {stated}")
    return stated


def extents_of(value: SSAValue, sizes: SizesAttr) -> tuple[AffineExpr, ...]:
    """The extents of a tensor as expressions of the function's sizes: those of an argument's te.dims, or of the axes of
    the op that computes the tensor; else those of the type. Raises VerifyException for invalid attributes."""
    assert isinstance(value.type, TensorType)
    owner = value.owner
    if isinstance(owner, Block):
        function = owner.parent_op()
        stated = stated_dims(function, value.index) if isinstance(function, FuncOp) else None  # type: ignore[attr-defined]
        if stated is not None:
            return stated.over(sizes)
    elif owner.name in ("te.compute", "te.gather"):
        return tuple(axis.end for axis in owner.axes if not axis.is_reduce)  # type: ignore[attr-defined]
    return tuple(map(AffineExpr.constant, value.type.get_shape()))


def size_faults(function: FuncOp) -> Iterator[tuple[Operation, str]]:
    """Each fault of a function's sizes, with the op at fault: an extent below 1 or that is not the type's at its most,
    an op over other sizes, a call. A function without sizes has none, unless an argument or an op has some."""
    try:
        sizes = sizes_of(function)
        types = [*function.function_type.inputs, *function.function_type.outputs]
        if sizes is not None and (len(function.body.blocks) != 1 or not all(isinstance(t, TensorType) for t in types)):
            yield function, "te.sizes is of functions of tensors with one block: other functions take no sizes yet"
        for number, argument in enumerate(function.args if function.body.blocks else ()):
            stated = stated_dims(function, number)
            fault = "" if stated is None else _dims_fault(argument, stated, sizes)
            if fault:
                yield function, f"argument {number} of @{function.sym_name.data}: {fault}"
    except VerifyException as error:
        yield function, str(error)
        return
    for op in function.body.block.ops if len(function.body.blocks) == 1 else ():
        if sizes is not None and isinstance(op, CallOp):
            yield op, "a function with sizes calls no others yet"
        own = op.properties.get("sizes")
        if op.name in ("te.compute", "te.gather") and own != sizes:
            yield op, f"the op is over the sizes {own or 'none'}, its function over {sizes or 'none'}"


def _dims_fault(argument: SSAValue, stated: DimsAttr, sizes: SizesAttr | None) -> str:
    """A sentence if the stated extents of an argument do not fit its type and the sizes, else empty."""
    if not isinstance(argument.type, TensorType):
        return f"te.dims are of tensors, not of {argument.type}"
    if sizes is None:
        return "te.dims needs the attribute te.sizes of the function"
    extents, shape = stated.over(sizes), argument.type.get_shape()
    if len(extents) != len(shape):
        return f"te.dims has {len(extents)} extents, the type {argument.type} has {len(shape)}"
    for dim, (extent, most) in enumerate(zip(extents, shape, strict=True)):
        fault = extent_fault(f"dimension {dim}", extent, most, sizes)
        if fault:
            return fault
    return ""


def extent_fault(what: str, extent: AffineExpr, most: int, sizes: SizesAttr) -> str:
    """A sentence about `what` unless an extent, an expression of sizes, is 1 or more for all of them, and `most` at its
    most; else empty."""
    low, high = capacity(extent, sizes.ranges)
    text = to_text(extent, SizedNames((), sizes.names))
    if high != most:
        return f"{what} is {text}, at most {high}, and its capacity is {most}"
    return f"{what} is {text}, which may be {low}; extents are at least 1" if low < 1 else ""


def not_built(function: FuncOp) -> str:
    """A sentence that a function with sizes is not taken beyond the te level; empty for one without."""
    sizes = sizes_of(function)
    if sizes is None:
        return ""
    subject = f"@{function.sym_name.data} has sizes ({', '.join(sizes.names)})"
    return f"{subject}: these are not hashed, scheduled or built yet; te.bound and the pass bind-sizes give them values"
