"""Splice te functions into graphs: instead of a compute, or after the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compiler.dialects.functions import find_function
from compiler.graph.locations import at_location, node_location
from compiler.graph.read import read
from compiler.graph.rename import with_operands, with_results
from compiler.graph.tree import Compute, Graph, Node
from compiler.program.names import Names
from compiler.support.origins import fused
from compiler.te.function import Function


def splice_function(graph: Graph, compute: Compute, form: Function) -> Graph:
    """Replace a compute of a graph by a te function, which must compute the same results. Inputs of the function are
    values of the graph, by name. Its computes get fresh names if theirs are taken, and the location of `compute`."""
    position = graph.nodes.index(compute)
    nodes = _nodes(graph, form, [value.name for value in compute.results])
    inner = [at_location(node, compute.block.location) for node in nodes]
    return replace(graph, nodes=(*graph.nodes[:position], *inner, *graph.nodes[position + 1 :]))


def append_function(graph: Graph, form: Function) -> Graph:
    """Append a te function to a graph; the function's only output becomes the only result. Inputs of the function are
    values of the graph, by name; those that the graph lacks become inputs of the graph. The appended computes have the
    locations of the graph's."""
    values = dict(graph.values)
    new = [value for value in read(find_function(form.module)).inputs if value.name not in values]
    graph = replace(graph, inputs=(*graph.inputs, *new))
    name = Names(graph.values).fresh(form.outputs[0].name)
    place = fused(map(node_location, graph.nodes))
    nodes = [at_location(node, place) for node in _nodes(graph, form, [name])]
    return replace(graph, nodes=(*graph.nodes, *nodes), results=(name,))


def _nodes(graph: Graph, form: Function, results: Sequence[str]) -> list[Node]:
    """Return the nodes of a te function, to be put into a graph: its inputs are the graph's values of the names of
    `form.inputs`, its outputs are named `results`, and all other values and the labels have names that are new to the
    graph."""
    inner = read(find_function(form.module))
    names = Names([*graph.values, *results])
    labels = Names(node.block.label for node in graph.nodes if isinstance(node, Compute))
    values = {value.name: tensor.name for value, tensor in zip(inner.inputs, form.inputs, strict=True)}
    values |= dict(zip(inner.results, results, strict=True))
    nodes: list[Node] = []
    for node in inner.nodes:
        for value in node.results:
            values.setdefault(value.name, names.fresh(value.name))
        node = with_results(with_operands(node, values), tuple(replace(v, name=values[v.name]) for v in node.results))
        if isinstance(node, Compute):
            node = replace(node, block=replace(node.block, label=labels.fresh(node.block.label)))
        nodes.append(node)
    return nodes
