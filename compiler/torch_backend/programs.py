"""`Program`: a part of a graph as a te function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from compiler.frontends.torch.conversion import Values, convert, placeholder_of, te_name
from compiler.frontends.torch.dtypes import DTYPES
from compiler.program.names import Names
from compiler.te import nn
from compiler.te.function import Function, function
from compiler.te.tensor import Tensor

TORCH_DTYPES = {ours: theirs for theirs, ours in DTYPES.items()}
"""torch's dtypes by te's names."""


@dataclass(frozen=True)
class Program:
    """A part as a te function.

    positions: the position of each of the function's inputs among the part's arguments.
    orders: for each input the argument's dimensions in the order of the input's; None if equal.
    views: for each result the permutation from the function's output, row-major, to torch's dimensions; None if equal.
    single: True if the part returns a tensor, not a tuple.
    """

    function: Function
    positions: tuple[int, ...]
    orders: tuple[tuple[int, ...] | None, ...]
    views: tuple[tuple[int, ...] | None, ...]
    single: bool

    def returned(self, outputs: Sequence[Any]) -> Any:
        """Return the part's result, a tensor or a tuple, of the tensors that are the function's outputs."""
        results = [r if v is None else r.permute(v) for r, v in zip(outputs, self.views, strict=True)]
        return results[0] if self.single else tuple(results)


def program_of(module: fx.GraphModule, name: str, any_order: bool = False) -> Program:
    """Convert a part whose nodes all have a te form to a te function, with results in torch's memory layout. any_order:
    inputs, too, have their dimensions in the order of their memory, such as channels last, so that none is copied."""
    names, values = Names(separator="_"), Values()
    inputs: dict[int, Tensor] = {}
    input_orders: dict[int, tuple[int, ...] | None] = {}
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    for position, node in enumerate(placeholders):
        if isinstance(node.meta.get("val"), torch.Tensor):
            order = _order(node) if any_order else None
            inputs[position] = placeholder_of(node, names.fresh(te_name(node.name)), order)
            input_orders[position] = order
            values[node] = inputs[position] if order is None else nn.transpose(inputs[position], _inverse(order))
    returned: Any = ()
    for node in module.graph.nodes:
        if node.op == "output":
            returned = node.args[0]
        elif node.op != "placeholder":
            values[node] = convert(node, values)
    single = isinstance(returned, fx.Node)
    nodes = [returned] if single else list(returned)
    orders = [_order(node) for node in nodes]
    outputs = [_permuted(values[node], order) for node, order in zip(nodes, orders, strict=True)]
    views = tuple(None if order is None else _inverse(order) for order in orders)
    te_function = function(names.fresh(te_name(name)), list(inputs.values()), outputs)
    return Program(te_function, tuple(inputs), tuple(input_orders.values()), views, single)


def _inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(order.index(d) for d in range(len(order)))


def _order(node: fx.Node) -> tuple[int, ...] | None:
    """Return a tensor's dimensions by decreasing stride in torch's memory; None for a row-major one, and for one
    with gaps or with elements that share memory."""
    value = node.meta["val"]
    if value.is_contiguous() or 0 in value.stride():
        return None
    order = tuple(sorted(range(value.dim()), key=lambda d: (-value.stride(d), d)))
    return order if value.permute(order).is_contiguous() else None


def _permuted(tensor: object, order: Sequence[int] | None) -> Tensor:
    assert isinstance(tensor, Tensor)
    return tensor if order is None else nn.transpose(tensor, order, f"{tensor.name}.laid")
