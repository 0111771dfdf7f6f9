"""Tensors without elements, which te lacks: their operators are replaced by constants."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import unset_fake_temporarily

aten = torch.ops.aten


def is_empty(node: object) -> bool:
    """Return whether all results of a node are tensors without elements; False for other objects."""
    value = node.meta.get("val") if isinstance(node, fx.Node) else None
    tensors = value if isinstance(value, tuple | list) else (value,)
    return bool(tensors) and all(isinstance(t, torch.Tensor) and _count(t) == 0 for t in tensors)


def without_empty_operands(graph: fx.Graph) -> None:
    """Replace operators whose operands all lack elements by constants, if the elements of the result are equal, and
    drop operands without elements from concatenations. Changes `graph`.

      y = sum(x[:0]) + cat([x, x[:0]])
    ->
      y = full((), 0) + cat([x])
    """
    for node in list(graph.nodes):
        if node.op != "call_function" or is_empty(node):
            continue
        if node.target is aten.cat.default:
            node.args = ([part for part in node.args[0] if not is_empty(part)], *node.args[1:])
        elif node.all_input_nodes and all(is_empty(operand) for operand in node.all_input_nodes):
            _state(graph, node)
    graph.eliminate_dead_code()


def _state(graph: fx.Graph, node: fx.Node) -> None:
    """Evaluate a node whose operands have no elements, and replace it by `full` if the result's elements are equal;
    complex tensors and several results stay."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or value.is_complex():
        return
    with unset_fake_temporarily():
        given = fx.map_arg((node.args, node.kwargs), _real)
        actual: Any = node.target(*given[0], **given[1])
        first = actual.flatten()[0].item()
        equal = bool((actual != actual).all() if math.isnan(first) else (actual == first).all())
    if not equal:
        return
    with graph.inserting_before(node):
        stated = graph.call_function(aten.full.default, (list(value.shape), first), {"dtype": value.dtype})
    stated.meta = dict(node.meta)
    node.replace_all_uses_with(stated)
    graph.erase_node(node)


def _real(node: fx.Node) -> torch.Tensor:
    value = node.meta["val"]
    return torch.empty(tuple(int(size) for size in value.shape), dtype=value.dtype)


def _count(tensor: torch.Tensor) -> int:
    return math.prod(int(size) for size in tensor.shape)
