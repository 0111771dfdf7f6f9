"""`HloCall`: an op with the te tensors of its operands, the argument of a handler."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from compiler.dialects.upstream.stablehlo.attributes import integers
from compiler.lowering.stablehlo_to_te.known import Array, KnownValues
from compiler.support.errors import LoweringError
from compiler.te.expr import Expr, const
from compiler.te.index import IndexLike
from compiler.te.tensor import Tensor
from compiler.types.dtypes import row_of

PASS = "convert-stablehlo-to-te"


def refused(op: Operation, reason: str) -> LoweringError:
    """The error that an op has no te form, at the op."""
    return LoweringError(f"{PASS}: '{op.name}' {reason}").at(op)


def tensor_type(op: Operation, type: Attribute) -> tuple[tuple[int, ...], str]:
    """The shape and dtype of a tensor type at an op. Raises LoweringError for a type that te lacks."""
    if not isinstance(type, TensorType):
        raise refused(op, f"has a value of type {type}, which is no tensor")
    shape = tuple(type.get_shape())
    if any(size < 0 for size in shape):
        raise refused(op, f"has a value of type {type}: shapes of te are static")
    row = row_of(type.element_type)
    if row is None:
        raise refused(op, f"has a value of type {type}: te has no elements of {type.element_type}")
    return shape, row.name


@dataclass(frozen=True)
class EmptyTensor:
    """A tensor without elements, which te lacks; a concatenation drops it, other ops refuse it."""

    shape: tuple[int, ...]
    dtype: str


HloValue: TypeAlias = Tensor | EmptyTensor


class HloWalk(Protocol):
    """What handlers need of the conversion.

    elements: the arrays of constants whose text has a name instead of elements. swapped: for each product, a function
    that builds it with its operands exchanged, and returns where its dimensions are then.
    """

    elements: Mapping[str, Array]
    swapped: dict[Tensor, Callable[[], tuple[Tensor, list[int]]]]

    def run(self, block: Block, arguments: Sequence[Tensor], values: Mapping[SSAValue, HloValue]) -> list[Tensor]:
        """Convert the ops of a block for tensors of its arguments; return what its last op returns."""

    def call(self, op: Operation, name: str, arguments: Sequence[Tensor]) -> list[Tensor]:
        """Convert the body of a function for these arguments."""

    def constant(self, array: Array, dtype: str, name: str) -> Tensor:
        """A constant; a weight, which is an input, if it is large and the caller takes weights."""


@dataclass
class HloCall:
    """An op, and its operands as te tensors.

    conversion: the walk, for regions and functions. known: the values known before a run. name: of the result.
    scope: the tensors of the values around the op, which its regions read.
    """

    conversion: HloWalk
    op: Operation
    operands: Sequence[Tensor]
    known: KnownValues
    name: str
    scope: Mapping[SSAValue, HloValue] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        """The stated shape of the first result."""
        return tensor_type(self.op, self.op.results[0].type)[0]

    @property
    def dtype(self) -> str:
        """The stated dtype of the first result."""
        return tensor_type(self.op, self.op.results[0].type)[1]

    def refused(self, reason: str) -> LoweringError:
        """The error that the op has no te form."""
        return refused(self.op, reason)

    def attribute(self, name: str) -> Attribute | None:
        """A property of the op, also if the text has it as an attribute; None without it."""
        return self.op.properties.get(name, self.op.attributes.get(name))

    def integers(self, name: str, default: list[int] | None = None) -> list[int]:
        """The integers of a property. Raises LoweringError for a missing one without a default."""
        value = self.attribute(name)
        if value is None and default is None:
            raise self.refused(f"has no '{name}'")
        return integers(value, default or [])

    def dims(self, name: str, rank: int, default: list[int] | None = None) -> list[int]:
        """The dimensions that a property lists. Raises LoweringError unless they are below `rank`, each once."""
        return self.check_dims(name, self.integers(name, default), rank)

    def check_dims(self, name: str, listed: list[int], rank: int) -> list[int]:
        """Return dimensions. Raises LoweringError unless they are below `rank`, each once."""
        if len({*listed}) != len(listed) or any(not 0 <= dim < rank for dim in listed):
            raise self.refused(f"has the {name} {listed}, which are not dimensions below {rank}, each once")
        return listed

    def per_dim(self, name: str, rank: int, default: int) -> list[int]:
        """One integer for each dimension. Raises LoweringError for another number of them."""
        listed = self.integers(name, [default] * rank)
        if len(listed) != rank:
            raise self.refused(f"has {len(listed)} {name} for {rank} dimensions")
        return listed

    def positive(self, name: str, rank: int) -> list[int]:
        """One integer of at least 1 for each dimension, by default 1. Raises LoweringError for others."""
        listed = self.per_dim(name, rank, 1)
        if any(number < 1 for number in listed):
            raise self.refused(f"has the {name} {listed}, expected integers of at least 1")
        return listed

    def pairs(self, name: str, rank: int) -> list[tuple[int, int]]:
        """A pair of integers for each dimension, such as padding; zeros by default."""
        listed = self.integers(name, [0] * (2 * rank))
        if len(listed) != 2 * rank:
            raise self.refused(f"has {len(listed)} numbers of {name} for {rank} dimensions")
        return list(zip(listed[::2], listed[1::2], strict=True))

    def at(self, tensor: Tensor, *index: IndexLike) -> Expr:
        """The element of a tensor at an index; a literal if all its elements are equal and known."""
        number = self.known.number(tensor)
        return tensor[index] if number is None else const(number, tensor.dtype)

    def number(self, tensor: Tensor) -> Any:
        """The number that all elements of a tensor are equal to; None if unknown."""
        return self.known.number(tensor)

    def array(self, tensor: Tensor) -> Array | None:
        """The elements of a tensor if they are known before a run; else None."""
        return self.known.array(tensor)
