"""Small constants move into the groups that read them, where they become literals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compiler.graph.grouping.equal_groups import MergedGroups
from compiler.graph.tree import Call, Constant, Graph

_Passed = dict[str, list[Constant | None]]
"""Map the name of a group to the small constant that all its calls pass as each argument, or None."""


def with_constants(parts: MergedGroups) -> MergedGroups:
    """Move a small constant into a group if every call of the group passes it, so that equal groups stay one function.

    A constant is small if it has at most 64 elements, or any number of equal ones: the IR text then lists them inline.
    """
    by_callee: _Passed = {}
    for graph in parts.mains:
        small = {node.results[0].name: node for node in graph.nodes if isinstance(node, Constant) and is_small(node)}
        for call in (node for node in graph.nodes if isinstance(node, Call)):
            passed = [small.get(name) for name in call.operands]
            agreed = zip(by_callee.get(call.callee, passed), passed, strict=True)
            by_callee[call.callee] = [a if a and b and a.value == b.value else None for a, b in agreed]
    mains = tuple(_passing(graph, by_callee) for graph in parts.mains)
    return replace(parts, mains=mains, groups=tuple(_holding(graph, by_callee[graph.name]) for graph in parts.groups))


def is_small(constant: Constant) -> bool:
    """Whether a constant has at most 64 elements, or equal ones only, so that it may move into a group."""
    return constant.value.data.is_inline


def _passing(graph: Graph, by_callee: _Passed) -> Graph:
    """Drop from calls the arguments that are constants in `by_callee`, and from the caller constants without use."""
    nodes = [_shorter(node, by_callee[node.callee]) if isinstance(node, Call) else node for node in graph.nodes]
    used = {name for node in nodes for name in node.operands} | set(graph.results)
    used_nodes = [node for node in nodes if not isinstance(node, Constant) or node.results[0].name in used]
    return replace(graph, nodes=tuple(used_nodes))


def _shorter(call: Call, constants: Sequence[Constant | None]) -> Call:
    operands = zip(call.operands, constants, strict=True)
    return replace(call, operands=tuple(name for name, constant in operands if constant is None))


def _holding(graph: Graph, moved: Sequence[Constant | None]) -> Graph:
    """Replace arguments of a group by constants; `moved` has a constant or None for each argument."""
    pairs = list(zip(graph.inputs, moved, strict=True))
    inputs = tuple(value for value, constant in pairs if constant is None)
    constants = [Constant(constant.value, (value,)) for value, constant in pairs if constant is not None]
    return replace(graph, inputs=inputs, nodes=(*constants, *graph.nodes))
