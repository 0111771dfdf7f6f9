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
    """Return the error, placed at an op, that it has no te form, for a reason; the caller raises it."""
    return LoweringError(f"{PASS}: '{op.name}' {reason}").at(op)


def tensor_type(op: Operation, type: Attribute) -> tuple[tuple[int, ...], str]:
    """Return the shape and te dtype of a tensor type. Raises LoweringError at `op` for a type that is no tensor, has a
    dynamic dimension, or elements that te lacks."""
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
    """The methods of a conversion that handlers call. elements: arrays by name, for constants whose text has a name
    instead of elements. swapped: for a product tensor, a function that builds the product with its operands exchanged,
    and returns for each dimension of the stated product the dimension of the new one."""

    elements: Mapping[str, Array]
    swapped: dict[Tensor, Callable[[], tuple[Tensor, list[int]]]]

    def run(self, block: Block, arguments: Sequence[Tensor], values: Mapping[SSAValue, HloValue]) -> list[Tensor]:
        """Convert the ops of a block for tensors of its arguments; return the tensors that its last op returns.
        `values` has those of the blocks around it."""

    def call(self, op: Operation, name: str, arguments: Sequence[Tensor]) -> list[Tensor]:
        """Convert the body of the function `name` for these arguments, inlined, and return its results; errors are
        placed at `op`."""

    def constant(self, array: Array, dtype: str, name: str) -> Tensor:
        """Return a constant tensor `name` of an array, of the te dtype `dtype`; of a large array an input tensor
        instead, if the conversion collects weights."""


@dataclass
class HloCall:
    """An op to convert, with its operands as te tensors; the argument of handlers. conversion: the walk, which converts
    regions and functions. known: tensors with known elements. name: for the result. scope: the tensors of the values
    defined around the op, for its regions."""

    conversion: HloWalk
    op: Operation
    operands: Sequence[Tensor]
    known: KnownValues
    name: str
    scope: Mapping[SSAValue, HloValue] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first result, from its type. Raises LoweringError for a type that te lacks."""
        return tensor_type(self.op, self.op.results[0].type)[0]

    @property
    def dtype(self) -> str:
        """The te dtype of the first result, from its type. Raises LoweringError for a type that te lacks."""
        return tensor_type(self.op, self.op.results[0].type)[1]

    def refused(self, reason: str) -> LoweringError:
        """Return the error, placed at the op, that it has no te form, for a reason."""
        return refused(self.op, reason)

    def attribute(self, name: str) -> Attribute | None:
        """Return the property or, without one, the discardable attribute of that name; None without either."""
        return self.op.properties.get(name, self.op.attributes.get(name))

    def integers(self, name: str, default: list[int] | None = None) -> list[int]:
        """Return the integers of a property or discardable attribute, or `default` without one. Raises LoweringError if
        both are missing, and ValueError for an attribute that has no integers."""
        value = self.attribute(name)
        if value is None and default is None:
            raise self.refused(f"has no '{name}'")
        return integers(value, default or [])

    def dims(self, name: str, rank: int, default: list[int] | None = None) -> list[int]:
        """Return the dimensions that a property lists, or `default` without one. Raises LoweringError unless they are
        distinct, at least 0 and below `rank`, and if both the property and `default` are missing."""
        return self.check_dims(name, self.integers(name, default), rank)

    def check_dims(self, name: str, listed: list[int], rank: int) -> list[int]:
        """Return `listed`, the dimensions of the property `name`. Raises LoweringError unless they are distinct, at
        least 0 and below `rank`."""
        if len({*listed}) != len(listed) or any(not 0 <= dim < rank for dim in listed):
            raise self.refused(f"has the {name} {listed}, which are not dimensions below {rank}, each once")
        return listed

    def per_dim(self, name: str, rank: int, default: int) -> list[int]:
        """Return the `rank` integers of a property; if it is missing, `default` for each dimension. Raises
        LoweringError for another number of integers, and ValueError for an attribute that has no integers."""
        listed = self.integers(name, [default] * rank)
        if len(listed) != rank:
            raise self.refused(f"has {len(listed)} {name} for {rank} dimensions")
        return listed

    def positive(self, name: str, rank: int) -> list[int]:
        """Return the `rank` integers of a property; if it is missing, 1 for each dimension. Raises LoweringError for
        another number of integers, or one below 1."""
        listed = self.per_dim(name, rank, 1)
        if any(number < 1 for number in listed):
            raise self.refused(f"has the {name} {listed}, expected integers of at least 1")
        return listed

    def pairs(self, name: str, rank: int) -> list[tuple[int, int]]:
        """Return a pair of integers for each of `rank` dimensions, such as the padding before and after; zeros without
        the property. Raises LoweringError for another number of integers."""
        listed = self.integers(name, [0] * (2 * rank))
        if len(listed) != 2 * rank:
            raise self.refused(f"has {len(listed)} numbers of {name} for {rank} dimensions")
        return list(zip(listed[::2], listed[1::2], strict=True))

    def at(self, tensor: Tensor, *index: IndexLike) -> Expr:
        """Return the element of a tensor at an index; a constant, whatever the index, if all elements are known and
        equal."""
        number = self.known.number(tensor)
        return tensor[index] if number is None else const(number, tensor.dtype)

    def number(self, tensor: Tensor) -> Any:
        """Return the number that all elements of a tensor are equal to; None if they differ or are unknown."""
        return self.known.number(tensor)

    def array(self, tensor: Tensor) -> Array | None:
        """Return the elements of a constant, or of a tensor that depends on constants only and has at most
        MAX_ELEMENTS, which is evaluated; else None."""
        return self.known.array(tensor)
