"""Computes that no result needs are removed."""

from __future__ import annotations

from dataclasses import replace

from compiler.graph.tree import Compute, Graph, Node
from compiler.program.combiner import Joint
from compiler.program.tree import Block


def drop_dead(graph: Graph) -> Graph:
    """Remove the nodes that no result depends on, and the results of others that nothing reads.

        %A = te.compute "A" (%X ...)          // nothing reads it
        %B, %C = te.compute "B" (%X ...)      // nothing reads %C
        return %B
      ->
        %B = te.compute "B" (%X ...)
        return %B

    The results of a joint combiner depend on each other, and those of a call are what its function gives: they stay.
    """
    needed, kept = set(graph.results), list[Node]()
    for node in reversed(graph.nodes):
        if any(value.name in needed for value in node.results):
            kept.append(_needed_part(node, needed))
            needed.update(kept[-1].operands)
    return graph.with_nodes(kept[::-1])


def _needed_part(node: Node, needed: set[str]) -> Node:
    """A node without the results that nothing needs."""
    if not isinstance(node, Compute) or isinstance(next(iter(node.block.combiners), ""), Joint):
        return node
    places = [n for n, value in enumerate(node.results) if value.name in needed]
    if len(places) == len(node.results):
        return node
    block: Block = node.block
    combiners = tuple(block.combiners[n] for n in places) if block.combiners else ()
    block = replace(block, body=tuple(block.body[n] for n in places), combiners=combiners)
    return Compute(block, tuple(node.results[n] for n in places))
