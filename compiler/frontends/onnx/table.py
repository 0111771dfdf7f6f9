"""`HANDLERS`: a handler for each operator of ONNX with a te form; `Node`, the argument of handlers."""

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
"""A value of a graph: a tensor, or an array if it is constant."""
HandlerResult: TypeAlias = Value | Sequence[Value] | Sequence[Value | None] | None
"""One result or several; None to fall back to ONNX's function body of the operator."""
Handler: TypeAlias = "Callable[[Node], HandlerResult]"
H = TypeVar("H", bound=Handler)


class Refused(StrataError):
    """A node without a te form, or without one for its attributes and inputs; the message is the reason."""


HANDLERS: dict[tuple[str, str], Handler] = {}
"""The compiler's own handlers by domain and name of the operator."""


def handler_of(domain: str, operator: str) -> Handler | None:
    """The handler of an operator, the compiler's or a plugin's; None without one."""
    return HANDLERS.get((domain, operator)) or of_plugin(domain, operator)


def of_plugin(domain: str, operator: str) -> Handler | None:
    """A plugin's handler of an operator; None without one."""
    part = plugins.parts("ONNX operator").get(plugins.onnx_name(operator, domain))
    return None if part is None else part.guarded


def handles(*names: str, domain: str = "") -> Callable[[H], H]:
    """A decorator that registers a handler for operators."""

    def register(handler: H) -> H:
        for name in names:
            assert (domain, name) not in HANDLERS, name
            HANDLERS[domain, name] = handler
        return handler

    return register


def register_each(table: Mapping[str, Callable[..., Tensor]], make: Callable[[Callable[..., Tensor]], Handler]) -> None:
    """Register operators that differ in one function only."""
    for name, function in table.items():
        handles(name)(make(function))


def handler(function: Callable[..., Tensor], tensors: int = 1, **attributes: Any) -> Handler:
    """A handler that calls a function with the first inputs as tensors, then attributes with their defaults."""

    def handler(node: Node) -> Tensor:
        inputs = [node.tensor(position) for position in range(tensors)]
        return function(*inputs, *(node.attribute(*item) for item in attributes.items()), name=node.name)

    return handler


def register(family: str, handlers: Mapping[str, Handler]) -> None:
    """Register handlers by operator name, as defined in module `family`."""
    for name, handler in handlers.items():
        handler.__module__ = family
        handles(name)(handler)


@dataclass(frozen=True)
class Node:
    """A node of a graph, the argument of handlers.

    operator, name: the operator, and the name of its result tensors.
    opset: the version of the operator's domain.
    values: the inputs, None for an omitted one; `make_tensor` makes a tensor of an array.
    outputs: True for each output that is used.
    read: the names of attributes that the handler has read.

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
    make_tensor: Callable[[Array, str], Tensor]
    read: set[str] = field(default_factory=set)

    def has(self, position: int) -> bool:
        """True if an input is present."""
        return position < len(self.values) and self.values[position] is not None

    def uses(self, position: int) -> bool:
        """True if an output is used."""
        return position < len(self.outputs) and self.outputs[position]

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute, or the default; a float default is rounded to f32 like ONNX's attributes."""
        self.read.add(name)
        return self.attributes.get(name, float(np.float32(default)) if isinstance(default, float) else default)

    def value(self, position: int) -> Value:
        """An input. Raises Refused if it is omitted."""
        if not self.has(position):
            raise Refused(f"input {position} is not given")
        value = self.values[position]
        assert value is not None
        return value

    def tensor(self, position: int) -> Tensor:
        """An input as a tensor. Raises Refused if it is omitted, or of a dtype that te lacks."""
        return self.as_tensor(self.value(position))

    def optional(self, position: int) -> Tensor | None:
        """An input as a tensor; None if it is omitted."""
        return self.tensor(position) if self.has(position) else None

    def tensors(self) -> list[Tensor]:
        """All inputs as tensors."""
        return [self.tensor(position) for position in range(len(self.values))]

    def as_tensor(self, value: Value) -> Tensor:
        """A value as a tensor. Raises Refused for a dtype that te lacks."""
        return value if isinstance(value, Tensor) else self.make_tensor(value, f"{self.name}.c")

    def constant(self, position: int, what: str) -> Array:
        """A constant input as an array; `what` names it. Raises Refused if it is not constant."""
        value = self.value(position)
        if isinstance(value, Tensor):
            raise Refused(f"{what} is computed by the model: only data decide it")
        return value

    def integers(self, position: int, what: str) -> list[int]:
        """The integers of a constant input, in row-major order. Raises Refused."""
        return [int(n) for n in self.constant(position, what).reshape(-1)]

    def number(self, position: int) -> float | int | None:
        """A constant input of one element as a Python number, else None."""
        from compiler.frontends.onnx.types import dtype_of

        value = self.values[position]
        if not isinstance(value, np.ndarray | np.generic) or value.size != 1 or dtype_of(np.asarray(value)) is None:
            return None
        kind = DTYPES[dtype_of(np.asarray(value)) or "f32"].kind
        scalar = np.asarray(value).reshape(())
        return bool(scalar) if kind == "b" else float(scalar) if kind == "f" else int(scalar)

    def integer_list(self, name: str, position: int) -> list[int] | None:
        """Integers that are an attribute in some opsets and an input in others; None without them."""
        attribute = self.attribute(name)
        if attribute is not None:
            return list(attribute)
        return self.integers(position, f"'{name}'") if self.has(position) else None


def shape_of(value: Value) -> tuple[int, ...]:
    """The shape of a value."""
    return tuple(value.shape)
