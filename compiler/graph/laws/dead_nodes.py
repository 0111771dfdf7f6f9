"""Nodes that no result needs."""

from __future__ import annotations

from dataclasses import replace

from compiler.graph.tree import Compute, Graph, Node
from compiler.program.combiner import Joint
from compiler.program.tree import Block


def drop_dead(graph: Graph) -> Graph:
    """Remove the nodes that no result of the function depends on, and the unread results of the other nodes.

        %A = te.compute "A" (%X ...)          // nothing reads it
        %B, %C = te.compute "B" (%X ...)      // nothing reads %C
        return %B
      ->
        %B = te.compute "B" (%X ...)
        return %B

    The results of a joint combiner depend on each other, and those of a call are fixed by its callee: they stay.
    """
    needed, needed_nodes = set(graph.results), list[Node]()
    for node in reversed(graph.nodes):
        if any(value.name in needed for value in node.results):
            needed_nodes.append(_needed_part(node, needed))
            needed.update(needed_nodes[-1].operands)
    return graph.with_nodes(needed_nodes[::-1])


def _needed_part(node: Node, needed: set[str]) -> Node:
    """A compute without the results that are not in `needed`; calls and joint reductions keep all results."""
    if not isinstance(node, Compute) or isinstance(next(iter(node.block.combiners), ""), Joint):
        return node
    positions = [n for n, value in enumerate(node.results) if value.name in needed]
    if len(positions) == len(node.results):
        return node
    block: Block = node.block
    combiners = tuple(block.combiners[n] for n in positions) if block.combiners else ()
    block = replace(block, body=tuple(block.body[n] for n in positions), combiners=combiners)
    return Compute(block, tuple(node.results[n] for n in positions))
