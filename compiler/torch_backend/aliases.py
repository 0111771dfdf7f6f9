"""Results of a graph that share memory: views of one tensor, made by torch after the parts have run."""

from __future__ import annotations

from collections import defaultdict

import torch
from torch import fx


def views_of_results(graph: fx.Graph) -> set[fx.Node]:
    """Recompute results that share memory, at the end of a graph, as views of one tensor; return the added nodes.

        y = x * 2; z = y.t(); return y, z, z @ y
      ->
        y = x * 2; z = y.t(); w = z @ y; v = y.t(); return y, v, w        // {v}

    Results that share memory then do so in the compiled graph too: a write to one is visible in the others, as in
    eager mode. The nodes stay with torch. Results that are views of inputs are unchanged: torch makes those.
    """
    owners = _owners(graph)
    families = defaultdict[fx.Node, list[fx.Node]](list)
    end = graph.output_node()
    for returned in dict.fromkeys(end.all_input_nodes):
        memory = _memory(returned)
        owner = None if memory is None else owners.get(memory)
        if owner is not None and owner.op == "call_function":
            families[owner].append(returned)
    added: dict[fx.Node, fx.Node] = {}
    with graph.inserting_before(end):
        for owner, nodes in families.items():
            for returned in nodes if len(nodes) > 1 else ():
                for node in reversed(_steps(returned, owner)):
                    if node not in added:
                        added[node] = graph.node_copy(node, lambda n: added.get(n, n))
                end.replace_input_with(returned, added.get(returned, returned))
    graph.eliminate_dead_code()
    return set(added.values())


def _owners(graph: fx.Graph) -> dict[int, fx.Node]:
    """Map the identifier of each storage to the first node with a tensor in it; later tensors are views of that."""
    owners: dict[int, fx.Node] = {}
    for node in graph.nodes:
        memory = _memory(node)
        if memory is not None and isinstance(node.meta["val"], torch.Tensor):
            owners.setdefault(memory, node)
    return owners


def _memory(node: fx.Node) -> int | None:
    """Return an identifier of the storage of a node's value, or of its first tensor; None without a strided tensor."""
    value = node.meta.get("val")
    first = value[0] if isinstance(value, tuple | list) and value else value
    strided = isinstance(first, torch.Tensor) and first.layout is torch.strided
    return first.untyped_storage()._cdata if strided else None


def _steps(node: fx.Node, owner: fx.Node) -> list[fx.Node]:
    """Return the chain of views from a node back to its storage's owner, which is not included; empty if a node of the
    chain has no operand in that storage."""
    steps: list[fx.Node] = []
    while node is not owner:
        steps.append(node)
        before = [n for n in node.all_input_nodes if _memory(n) == _memory(owner)]
        if not before:
            return []
        node = before[0]
    return steps
