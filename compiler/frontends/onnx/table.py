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
from compiler.types.dtypes import DTYPES

Array: TypeAlias = NDArray[Any]
Value: TypeAlias = Tensor | Array
"""A value of a graph: a tensor, or an array if it is constant."""
HandlerResult: TypeAlias = Value | Sequence[Value] | Sequence[Value | None] | None
"""One result or several; None to fall back to ONNX's function body of the operator."""
Handler: TypeAlias = "Callable[[Node], HandlerResult]"
H = TypeVar("H", bound=Handler)


class Refused(StrataError):
    """Raised by a handler for a node that has no te form, or none for its attributes and inputs; the message is the
    reason."""


HANDLERS: dict[tuple[str, str], Handler] = {}
"""The compiler's own handlers by domain and name of the operator."""


def handler_of(domain: str, operator: str) -> Handler | None:
    """Return the handler of an operator, the compiler's or else a plugin's; None without one."""
    return HANDLERS.get((domain, operator)) or of_plugin(domain, operator)


def of_plugin(domain: str, operator: str) -> Handler | None:
    """Return a plugin's handler of an operator, with its errors reported as the plugin's; None without one."""
    part = plugins.parts("ONNX operator").get(plugins.onnx_name(operator, domain))
    return None if part is None else part.guarded


def handles(*names: str, domain: str = "") -> Callable[[H], H]:
    """Return a decorator that registers a handler for the named operators of a domain."""

    def register(handler: H) -> H:
        for name in names:
            assert (domain, name) not in HANDLERS, name
            HANDLERS[domain, name] = handler
        return handler

    return register


def register_each(table: Mapping[str, Callable[..., Tensor]], make: Callable[[Callable[..., Tensor]], Handler]) -> None:
    """Register make(function) as the handler of each operator of a table from names to functions."""
    for name, function in table.items():
        handles(name)(make(function))


def handler(function: Callable[..., Tensor], tensors: int = 1, **attributes: Any) -> Handler:
    """Return a handler that calls a function with the first `tensors` inputs, then the attributes in the order of
    `attributes`, a mapping from names to defaults, and the node's name as `name`."""

    def handler(node: Node) -> Tensor:
        inputs = [node.tensor(position) for position in range(tensors)]
        return function(*inputs, *(node.attribute(*item) for item in attributes.items()), name=node.name)

    return handler


def register(family: str, handlers: Mapping[str, Handler]) -> None:
    """Register handlers by operator name, and set their module to `family`."""
    for name, handler in handlers.items():
        handler.__module__ = family
        handles(name)(handler)


@dataclass(frozen=True)
class Node:
    """A node of a graph, the argument of handlers.

    operator, name: the operator, and a name for its first result's tensor.
    opset: the version of the operator's domain.
    values: the inputs, None for an omitted one; `make_tensor(array, name)` converts a constant to a tensor.
    outputs: for each output, True if it has a name and so may be read.
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
        """Return whether the input at a position is present."""
        return position < len(self.values) and self.values[position] is not None

    def uses(self, position: int) -> bool:
        """Return whether the output at a position has a name; a handler need not return others."""
        return position < len(self.outputs) and self.outputs[position]

    def attribute(self, name: str, default: Any = None) -> Any:
        """Return an attribute or the default, a float rounded to f32 as in ONNX's files, and add its name to `read`."""
        self.read.add(name)
        return self.attributes.get(name, float(np.float32(default)) if isinstance(default, float) else default)

    def value(self, position: int) -> Value:
        """Return the input at a position, a tensor or an array. Raises Refused if it is omitted."""
        if not self.has(position):
            raise Refused(f"input {position} is not given")
        value = self.values[position]
        assert value is not None
        return value

    def tensor(self, position: int) -> Tensor:
        """Return the input at a position as a tensor. Raises Refused if it is omitted, without elements, or of a dtype
        that te lacks."""
        return self.as_tensor(self.value(position))

    def optional(self, position: int) -> Tensor | None:
        """Return the input at a position as a tensor; None if it is omitted. Raises Refused if it is without elements,
        or of a dtype that te lacks."""
        return self.tensor(position) if self.has(position) else None

    def tensors(self) -> list[Tensor]:
        """Return all inputs as tensors. Raises Refused if one is omitted, without elements, or of a dtype that te
        lacks."""
        return [self.tensor(position) for position in range(len(self.values))]

    def as_tensor(self, value: Value) -> Tensor:
        """Return a value as a tensor. Raises Refused for an array without elements or of a dtype that te lacks."""
        return value if isinstance(value, Tensor) else self.make_tensor(value, f"{self.name}.c")

    def constant(self, position: int, what: str) -> Array:
        """Return a constant input as an array. Raises Refused if it is omitted or, with `what` as its name, if the
        model computes it."""
        value = self.value(position)
        if isinstance(value, Tensor):
            raise Refused(f"{what} is computed by the model: only data decide it")
        return value

    def integers(self, position: int, what: str) -> list[int]:
        """Return the elements of a constant input in row-major order. Raises Refused if it is omitted or, with `what`
        as its name, if the model computes it."""
        return [int(n) for n in self.constant(position, what).reshape(-1)]

    def number(self, position: int) -> float | int | None:
        """Return a constant input of one element as a Python bool, int or float; None for an omitted input, for one
        that the model computes, and for a dtype that te lacks. The position must be below the number of `values`."""
        from compiler.frontends.onnx.types import dtype_of

        value = self.values[position]
        if not isinstance(value, np.ndarray | np.generic) or value.size != 1 or dtype_of(np.asarray(value)) is None:
            return None
        kind = DTYPES[dtype_of(np.asarray(value)) or "f32"].kind
        scalar = np.asarray(value).reshape(())
        return bool(scalar) if kind == "b" else float(scalar) if kind == "f" else int(scalar)

    def integer_list(self, name: str, position: int) -> list[int] | None:
        """Return the integers of the attribute `name`, or else of the constant input at a position; None without
        either: newer opsets pass some attributes as inputs. Raises Refused if the model computes the input."""
        attribute = self.attribute(name)
        if attribute is not None:
            return list(attribute)
        return self.integers(position, f"'{name}'") if self.has(position) else None


def shape_of(value: Value) -> tuple[int, ...]:
    """Return the shape of a tensor or an array."""
    return tuple(value.shape)
