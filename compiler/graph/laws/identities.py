"""Copies of values."""

from __future__ import annotations

from dataclasses import replace

from compiler.affine import linear as lin
from compiler.graph.rename import with_operands
from compiler.graph.tree import Compute, Graph, Node


def drop_copies(graph: Graph) -> Graph:
    """Read the original instead of a copy.

        %C = te.compute "C" [i = 4] (%a = %A[i] : tensor<4xf32>) -> tensor<4xf32> { te.yield %a : f32 }
        %D = te.compute "D" (%c = %C[...] ...)
      ->
        %D = te.compute "D" (%c = %A[...] ...)

    A copy that is a result stays if the original is an input or another result. A value of another dtype is no copy,
    such as ui8 of i8.
    """
    originals: dict[str, str] = {}
    interface_names = {*graph.results, *(value.name for value in graph.inputs)}
    nodes: list[Node] = []
    for node in graph.nodes:
        node = with_operands(node, originals)
        if isinstance(node, Compute):
            for position, value in enumerate(node.results):
                source = copied(node, position, graph)
                if source is not None and (value.name not in graph.results or source not in interface_names):
                    originals[value.name] = source
                    interface_names.update((source,) if value.name in graph.results else ())
        nodes.append(node)
    if not originals:
        return graph
    result_names = tuple(originals.get(name, name) for name in graph.results)
    return replace(graph, nodes=tuple(nodes), results=result_names)


def copied(node: Compute, position: int, graph: Graph) -> str | None:
    """The name of the value that a result of a node copies unchanged, in its shape and dtype; None for other
    results."""
    access = node.copied(position)
    if access is None:
        return None
    source = graph.values[access.buffer]
    same = source.shape == node.results[position].shape and source.element == node.results[position].element
    reads_in_place = access.index == tuple(lin.variable(d) for d in range(len(node.block.axes)))
    return access.buffer if same and reads_in_place and not access.where else None
