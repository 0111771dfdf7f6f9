"""`OPERATORS`: a function for each operator of torch's core ATen set with a te form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from compiler.support.errors import StrataError
from compiler.te.tensor import Tensor

Results: TypeAlias = "Tensor | tuple[Tensor | None, ...]"
"""The result of an operator: a tensor, or a tuple of several, in which None is a result without a te form."""
Operator: TypeAlias = Callable[..., Results]
"""A conversion to te. Parameters: a Call, then the operator's arguments: tensors, numbers, lists of them."""
F = TypeVar("F", bound=Operator)


class Unsupported(StrataError):
    """Raised for an operator, or arguments of one, without a te form; the message is the reason."""


@dataclass(frozen=True)
class Call:
    """A node of a graph, the first argument of an operator's te form.

    name: the node's name, also of its tensor.
    shapes, dtypes: those of the results.
    common: the dtype to which torch promotes the first two arguments.

    >>> strata.frontends.Call("linear", ((4, 2),), ("f32",), "f32").shapes
    ((4, 2),)
    """

    name: str
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    common: str

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first result."""
        return self.shapes[0]

    @property
    def dtype(self) -> str:
        """The dtype of the first result."""
        return self.dtypes[0]


@dataclass(frozen=True)
class Row:
    """An operator: the function that converts it, the module or plugin that defines this function, and `trivial`: True
    if the operator only moves elements or is a constant."""

    convert: Operator
    family: str
    trivial: bool


OPERATORS: dict[str, Row] = {}
"""Rows by torch's name of the operator without `aten.`: `add.Tensor`."""


def operator(*names: str, trivial: bool = False) -> Callable[[F], F]:
    """Return a decorator that registers a te form for operators; a name without an overload means `.default`. trivial:
    True if the operator only moves elements or is a constant."""

    def register(convert: F) -> F:
        for name in names:
            full = name if "." in name else f"{name}.default"
            assert full not in OPERATORS, full
            OPERATORS[full] = Row(convert, convert.__module__, trivial)
        return convert

    return register


def check_default(name: str, value: Any, default: Any) -> None:
    """Raise Unsupported, with the argument's name, unless its value is the default."""
    if value != default:
        raise Unsupported(f"{name} is {value!r}; supported is {default!r}")
