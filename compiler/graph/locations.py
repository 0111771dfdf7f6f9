"""Locations of nodes through laws: a node keeps the locations of the nodes that a law has merged into it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr

from compiler.graph.tree import Call, Compute, Constant, Graph, Node
from compiler.support.origins import fused


def node_location(node: Node) -> LocationAttr:
    """The location of a compute or call; UNKNOWN_LOC for a constant."""
    match node:
        case Compute():
            return node.block.location
        case Call():
            return node.location
        case Constant():
            return UNKNOWN_LOC


def at_location(node: Node, place: LocationAttr) -> Node:
    """The node at another location; the same object at its own location, and for a constant."""
    if isinstance(node, Constant) or node_location(node) == place:
        return node
    if isinstance(node, Compute):
        return replace(node, block=replace(node.block, location=place))
    return replace(node, location=place)


def with_merged_locations(before: Graph, after: Graph) -> Graph:
    """The graph `after` a law, in which each changed node also has the locations of the nodes of its results `before`,
    and of the nodes that it has absorbed, its own first: views that it no longer reads, and operands that are gone.

        %v = te.compute "V" { %x[j, i] } loc("m.py":1:1)    %y = te.compute "Y" { exp %v[i, j] } loc("m.py":2:1)
      ->
        %y = te.compute "Y" { exp %x[i, j] } loc(fused["m.py":2:1, "m.py":1:1])
    """
    unchanged = set(map(id, before.nodes))
    if all(id(node) in unchanged for node in after.nodes):
        return after
    gone = {name for name in before.producers if name not in after.producers}
    nodes = []
    for node in after.nodes:
        if id(node) not in unchanged:
            former = {id(n): n for v in node.results if (n := before.producers.get(v.name)) is not None}
            absorbed = _absorbed(former.values(), node, gone, before.producers)
            node = at_location(node, fused(map(node_location, (node, *former.values(), *absorbed))))
        nodes.append(node)
    return after.with_nodes(nodes)


def _absorbed(nodes: Iterable[Node], new: Node, gone: set[str], producers: Mapping[str, Node]) -> Iterator[Node]:
    """Yield the nodes that `nodes` read, directly or through such nodes, and `new`, which replaces them, does not: of
    values `gone`, and those that only copy elements. Each once."""
    stack, visited = list(nodes), set(new.operands)
    while stack:
        for name in stack.pop(0).operands:
            node = producers.get(name)
            if name not in visited and node is not None and (name in gone or _is_view(node)):
                visited.add(name)
                yield node
                stack.append(node)


def _is_view(node: Node) -> bool:
    return isinstance(node, Compute) and all(node.copied(n) is not None for n in range(len(node.results)))
