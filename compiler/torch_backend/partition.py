"""Partition a graph into compiled parts and parts that stay with torch."""

from __future__ import annotations

import operator
from collections import Counter
from dataclasses import dataclass

import torch
from torch import fx
from torch.fx.passes.split_module import split_module

from compiler.frontends.torch.conversion import is_trivial, refusal_of, remove_assertions
from compiler.frontends.torch.devices import other_device
from compiler.torch_backend.aliases import views_of_results
from compiler.torch_backend.empties import is_empty, without_empty_operands

CPU = torch.device("cpu")
IDLE = "it stands in a part that only moves elements"
"""The reason of nodes that have a te form and yet stay with torch: a kernel would not pay."""


@dataclass(frozen=True)
class Split:
    """A module that calls parts as submodules.

    compiled: the names of the submodules to compile. reasons: the number of computing nodes that stay with torch, by
    reason. computing, computing_compiled: the number of computing nodes in all parts, and in those to compile.
    """

    module: fx.GraphModule
    compiled: tuple[str, ...]
    reasons: Counter[str]
    computing: int
    computing_compiled: int


def split(graph: fx.GraphModule, device: torch.device = CPU) -> Split:
    """Partition a graph into as few parts as possible, compiled ones, `submod_{2n}`, and torch's, `submod_{2n+1}`; each
    depends on earlier ones only. Nodes with tensors on another device than `device` stay with torch. Changes the graph:
    removes assertions, replaces empty operands and returned views."""
    remove_assertions(graph.graph)
    without_empty_operands(graph.graph)
    shown = views_of_results(graph.graph)
    nodes = [node for node in graph.graph.nodes if node.op not in ("placeholder", "output", "get_attr")]
    reasons = _reasons(nodes, device)
    supported = {node for node in nodes if reasons[node] is None and node not in shown and not is_empty(node)}
    turns = _turns(nodes, supported)
    while idle := _idle(turns, supported):
        supported -= idle
        turns = _turns(nodes, supported)
    place = {node: 2 * turn + (node not in supported) for node, turn in turns.items()}
    module = split_module(graph, None, lambda node: place[node])
    compiled = tuple(f"submod_{2 * turn}" for turn in sorted({turns[node] for node in supported}))
    computing = [node for node in nodes if computes(node) and node not in shown]
    why = Counter(reasons[node] or IDLE for node in computing if node not in supported)
    return Split(module, compiled, why, len(computing), sum(node in supported for node in computing))


def computes(node: fx.Node) -> bool:
    """Return whether a node is an operator, other than `getitem` of several results, whose result has elements."""
    is_operator = node.op not in ("placeholder", "output", "get_attr") and node.target is not operator.getitem
    return is_operator and not is_empty(node)


def _reasons(nodes: list[fx.Node], device: torch.device) -> dict[fx.Node, str | None]:
    """Map each node to the reason for which it stays with torch, None for a te form. If a read (`getitem`) of one
    result of an operator is refused, the operator and all reads of its results have that reason."""
    reasons = {node: other_device(node, device) or refusal_of(node) for node in nodes}
    for node in nodes:
        if node.target is operator.getitem and reasons[node] and not reasons[node.args[0]]:
            reasons[node.args[0]] = reasons[node]
    for node in nodes:
        if node.target is operator.getitem:
            reasons[node] = reasons[node.args[0]]
    return reasons


def _turns(nodes: list[fx.Node], supported: set[fx.Node]) -> dict[fx.Node, int]:
    """Map each node to n, for part 2n (compiled) or 2n + 1 (torch): the most changes from torch to compiled code on a
    path to the node. A compiled (`supported`) node without inputs, such as `full`, has the least n of its users."""
    turns: dict[fx.Node, int] = {}
    for node in nodes:
        before = [turns[n] + (node in supported and n not in supported) for n in node.all_input_nodes if n in turns]
        turns[node] = max(before, default=0)
    for node in reversed(nodes):
        if not any(n in turns for n in node.all_input_nodes) and node in supported:
            turns[node] = min((turns[user] for user in node.users if user in turns), default=turns[node])
    return turns


def _idle(turns: dict[fx.Node, int], supported: set[fx.Node]) -> set[fx.Node]:
    """Return the supported nodes of parts in which all supported nodes only move elements."""
    busy = {turns[node] for node in supported if not is_trivial(node)}
    return {node for node in supported if turns[node] not in busy}
