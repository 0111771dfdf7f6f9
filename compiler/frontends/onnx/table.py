"""`HANDLERS`: the operators of ONNX that have a te form, a function each; `Node`, which such a function takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from compiler.support import plugins
from compiler.support.errors import StrataError
from compiler.te.tensor import Tensor
from compiler.types.elements import DTYPES

Array: TypeAlias = NDArray[Any]
Value: TypeAlias = Tensor | Array
"""A value of a graph: a tensor, or an array, where it is known."""
Given: TypeAlias = Value | Sequence[Value] | Sequence[Value | None] | None
"""What a handler gives: a result, or several; None where it leaves the node to the function that ONNX has for it."""
Handler: TypeAlias = "Callable[[Node], Given]"
H = TypeVar("H", bound=Handler)


class Refused(StrataError):
    """A node that has no te form, or not with these attributes and inputs: the message is the reason."""


HANDLERS: dict[tuple[str, str], Handler] = {}
"""The compiler's handler of each operator, by its domain and name."""


def handler_of(domain: str, operator: str) -> Handler | None:
    """The handler of an operator, the compiler's or a plugin's; None without one."""
    own = HANDLERS.get((domain, operator))
    return own or of_plugin(domain, operator)


def of_plugin(domain: str, operator: str) -> Handler | None:
    """The handler that a plugin has for an operator; None without one."""
    part = plugins.parts("ONNX operator").get(plugins.onnx_name(operator, domain))
    return None if part is None else part.guarded


def handles(*names: str, domain: str = "") -> Callable[[H], H]:
    """Enter a function into the table, under the names of operators."""

    def enter(handler: H) -> H:
        for name in names:
            assert (domain, name) not in HANDLERS, name
            HANDLERS[domain, name] = handler
        return handler

    return enter


def each(table: Mapping[str, Callable[..., Tensor]], make: Callable[[Callable[..., Tensor]], Handler]) -> None:
    """Enter operators that differ in one function only."""
    for name, function in table.items():
        handles(name)(make(function))


def plain(function: Callable[..., Tensor], tensors: int = 1, **attributes: Any) -> Handler:
    """A handler that calls a function with the first inputs as tensors, then with attributes, by default as stated."""

    def handler(node: Node) -> Tensor:
        inputs = [node.tensor(position) for position in range(tensors)]
        return function(*inputs, *(node.attribute(*item) for item in attributes.items()), name=node.name)

    return handler


def enter(family: str, handlers: Mapping[str, Handler]) -> None:
    """Enter handlers under the names of operators, as those of a module."""
    for name, handler in handlers.items():
        handler.__module__ = family
        handles(name)(handler)


@dataclass(frozen=True)
class Node:
    """One node of a graph, as a handler takes it.

    operator, name: the operator, and what tensors are called that it gives.
    opset: the version of the operator's domain.
    values: its inputs, None where one is left out; `states` makes an array a tensor.
    outputs: which of its outputs are used.
    read: the attributes that the handler has asked for.

    >>> A = te.placeholder((4,), name="A")
    >>> node = strata.frontends.Node("Elu", "y", 6, {"alpha": 0.5}, [A], [True], lambda array, name: A)
    >>> node.tensor(0), node.attribute("alpha", 1.0), node.has(1)
    (<Tensor A: f32[4]>, 0.5, False)
    """

    operator: str
    name: str
    opset: int
    attributes: Mapping[str, Any]
    values: Sequence[Value | None]
    outputs: Sequence[bool]
    states: Callable[[Array, str], Tensor]
    read: set[str] = field(default_factory=set)

    def has(self, position: int) -> bool:
        """Whether an input is given."""
        return position < len(self.values) and self.values[position] is not None

    def uses(self, position: int) -> bool:
        """Whether an output is used."""
        return position < len(self.outputs) and self.outputs[position]

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute, or what holds without it: a number as an f32, as attributes are."""
        self.read.add(name)
        return self.attributes.get(name, float(np.float32(default)) if isinstance(default, float) else default)

    def value(self, position: int) -> Value:
        """An input. Raises Refused where it is left out."""
        if not self.has(position):
            raise Refused(f"input {position} is not given")
        given = self.values[position]
        assert given is not None
        return given

    def tensor(self, position: int) -> Tensor:
        """An input as a tensor. Raises Refused where te has no such tensor."""
        return self.as_tensor(self.value(position))

    def optional(self, position: int) -> Tensor | None:
        """An input as a tensor, None where it is not given."""
        return self.tensor(position) if self.has(position) else None

    def tensors(self) -> list[Tensor]:
        """All inputs as tensors."""
        return [self.tensor(position) for position in range(len(self.values))]

    def as_tensor(self, value: Value) -> Tensor:
        """A value as a tensor. Raises Refused where te has no such tensor."""
        return value if isinstance(value, Tensor) else self.states(value, f"{self.name}.c")

    def known(self, position: int, what: str) -> Array:
        """An input whose elements are known. Raises Refused, naming the input, if its elements depend on data."""
        given = self.value(position)
        if isinstance(given, Tensor):
            raise Refused(f"{what} is computed by the model: only data decide it")
        return given

    def integers(self, position: int, what: str) -> list[int]:
        """The known integers of an input, in row-major order."""
        return [int(n) for n in self.known(position, what).reshape(-1)]

    def number(self, position: int) -> float | int | None:
        """The number that an input is, None where it is not known or more than one."""
        from compiler.frontends.onnx.types import dtype_of

        given = self.values[position]
        if not isinstance(given, np.ndarray | np.generic) or given.size != 1 or dtype_of(np.asarray(given)) is None:
            return None
        kind = DTYPES[dtype_of(np.asarray(given)) or "f32"].kind
        scalar = np.asarray(given).reshape(())
        return bool(scalar) if kind == "b" else float(scalar) if kind == "f" else int(scalar)

    def list_of(self, name: str, position: int) -> list[int] | None:
        """Integers that are an attribute in some opsets and an input in others; None where they are not given."""
        stated = self.attribute(name)
        if stated is not None:
            return list(stated)
        return self.integers(position, f"'{name}'") if self.has(position) else None


def shape_of(value: Value) -> tuple[int, ...]:
    """The shape of a value."""
    return tuple(value.shape)
