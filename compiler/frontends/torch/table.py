"""`OPERATORS`: the operators of torch's core ATen set that have a te form, a function each, by their names there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from compiler.support.errors import StrataError
from compiler.te.tensor import Tensor

Results: TypeAlias = "Tensor | tuple[Tensor | None, ...]"
"""The result of an operator: a tensor, or several, None for results without a te form."""
Operator: TypeAlias = Callable[..., Results]
"""Takes a Call, then the operator's arguments: tensors, numbers, lists of them."""
F = TypeVar("F", bound=Operator)


class Unsupported(StrataError):
    """An operator, or a form of it, that stays with torch: the message is the reason."""


@dataclass(frozen=True)
class Call:
    """One node of a graph.

    name: of the node, which the tensor has, too.
    shapes, dtypes: of the results; a dtype is None where te has none.
    common: the dtype to which torch promotes the arguments.

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
    """One operator: its te form, the file that has it, and whether it only moves elements or states them."""

    convert: Operator
    family: str
    moves: bool


OPERATORS: dict[str, Row] = {}
"""The row of each operator, by torch's name without `aten.`: `add.Tensor`."""


def operator(*names: str, moves: bool = False) -> Callable[[F], F]:
    """Enter a function into the table; a name without an overload stands for the default one."""

    def enter(convert: F) -> F:
        for name in names:
            full = name if "." in name else f"{name}.default"
            assert full not in OPERATORS, full
            OPERATORS[full] = Row(convert, convert.__module__, moves)
        return convert

    return enter


def default(name: str, given: Any, usual: Any) -> None:
    """Raise Unsupported unless an argument has its usual value."""
    if given != usual:
        raise Unsupported(f"{name} is {given!r}; supported is {usual!r}")
