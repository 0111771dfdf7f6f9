"""Outline groups: each becomes a private function that the original function calls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.dialects.builtin import LocationAttr, UnitAttr

from compiler.graph.grouping.facts import scalar_operations
from compiler.graph.tree import Call, Compute, Constant, Graph
from compiler.program.names import Names
from compiler.support.origins import fused

GROUP = "te.group"
"""The attribute of functions that are groups."""
LAW = "te.law"
"""The attribute of a group that a law rewrote; its value is the law's name."""


@dataclass(frozen=True)
class OutlinedGroups:
    """A function that calls groups, and the groups in the order of their first calls."""

    main: Graph
    groups: tuple[Graph, ...]


def outlined(graph: Graph, groups: Sequence[Sequence[str]], names: Names) -> OutlinedGroups:
    """Move each group of computes to a private function that the original function calls.

    `groups` are in an order of execution and name computes by their first results; `names` are the names of the
    module's functions, to which those of the groups are added. The arguments of a group are the values that it reads
    from outside, in the order of reading; its results are the values that other groups read or the function returns.
    Constants stay in the original function.
    """
    nodes = {node.results[0].name: node for node in graph.nodes if isinstance(node, Compute)}
    group_nodes = [[nodes[name] for name in group] for group in groups]
    group_of = {value.name: n for n, members in enumerate(group_nodes) for node in members for value in node.results}
    read = {
        v for n, members in enumerate(group_nodes) for node in members for v in node.operands if group_of.get(v, n) != n
    }
    outside = read | set(graph.results)
    group_functions = tuple(
        _part(graph, members, outside, names.fresh(f"group_{n}")) for n, members in enumerate(group_nodes)
    )
    calls = [
        Call(
            g.name,
            tuple(v.name for v in g.inputs),
            tuple(g.values[name] for name in g.results),
            g.location,
        )
        for g in group_functions
    ]
    constants = [node for node in graph.nodes if isinstance(node, Constant)]
    return OutlinedGroups(replace(graph, nodes=(*constants, *calls)), group_functions)


def _part(graph: Graph, computes: Sequence[Compute], outside: set[str], name: str) -> Graph:
    """Return the private function `name` of a group's computes. Its inputs are the other values that they read, its
    results those of their values that are in `outside`."""
    computed = {value.name for node in computes for value in node.results}
    reads = dict.fromkeys(name for node in computes for name in node.operands if name not in computed)
    outputs = tuple(v.name for node in computes for v in node.results if v.name in outside)
    inputs = tuple(graph.values[name] for name in reads)
    location = _location_of_call(computes)
    return Graph(name, inputs, tuple(computes), outputs, True, {GROUP: UnitAttr()}, location)


def _location_of_call(computes: Iterable[Compute]) -> LocationAttr:
    """The location of a call of a group: those of its computes, that with the most scalar operations first."""
    return fused(node.block.location for node in sorted(computes, key=lambda node: -_work(node)))


def _work(node: Compute) -> int:
    """The scalar operations of a compute, reductions included; at least one for each point of its axes."""
    block = node.block
    return prod(axis.size for axis in block.axes) * max(1, scalar_operations(block) + len(block.combiners))
