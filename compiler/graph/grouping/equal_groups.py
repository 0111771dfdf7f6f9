"""Groups that differ in names only become one function."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from compiler.dialects.access import axis_attribute
from compiler.graph.tree import Call, Compute, Constant, Graph, Node
from compiler.program.names import Names
from compiler.program.tree import Block, Buffer


@dataclass(frozen=True)
class MergedGroups:
    """The functions of a module: the callers, and distinct groups in the order of their first calls.

    origins: map the new name of each group to its former name; for merged groups, to that of the group called first.
    """

    mains: tuple[Graph, ...]
    groups: tuple[Graph, ...]
    origins: Mapping[str, str]


def merge_equal_groups(mains: Sequence[Graph], groups: Iterable[Graph]) -> MergedGroups:
    """Merge groups that differ in names only, and name them `group_0`, `group_1`, ... in the order of their first
    calls, with a suffix such as `group_0.1` if a caller has the name. Groups without a call are dropped. Requires that
    the callees of `mains` are in `groups`."""
    by_name = {graph.name: graph for graph in groups}
    keys = {name: key(graph) for name, graph in by_name.items()}
    fresh = Names(graph.name for graph in mains)
    names: dict[Hashable, str] = {}
    origins: dict[str, str] = {}
    for callee in (node.callee for graph in mains for node in graph.nodes if isinstance(node, Call)):
        if keys[callee] not in names:
            names[keys[callee]] = fresh.fresh(f"group_{len(names)}")
            origins[names[keys[callee]]] = callee
    called = {name: names[keys[name]] for name in by_name if keys[name] in names}
    numbered = tuple(replace(by_name[origin], name=name) for name, origin in origins.items())
    return MergedGroups(tuple(_calling(graph, called) for graph in mains), numbered, origins)


def _calling(graph: Graph, names: Mapping[str, str]) -> Graph:
    """Rename the callees of a graph by `names`, from old to new."""
    nodes = [replace(node, callee=names[node.callee]) if isinstance(node, Call) else node for node in graph.nodes]
    return replace(graph, nodes=tuple(nodes))


def key(graph: Graph) -> Hashable:
    """A key of a te function; two keys are equal if and only if the functions differ at most in names, locations and
    attributes of the functions themselves."""
    values = {name: f"v{n}" for n, name in enumerate(graph.values)}
    nodes = tuple(_plain(node, f"c{n}", values) for n, node in enumerate(graph.nodes))
    return tuple(_value(v, values) for v in graph.inputs), nodes, tuple(values[name] for name in graph.results)


def _plain(node: Node, label: str, values: Mapping[str, str]) -> Node:
    renamed = tuple(_value(value, values) for value in node.results)
    match node:
        case Compute():
            return Compute(_plain_block(node.block, label, values), renamed)
        case Constant():
            return Constant(node.value, (renamed[0],))
        case Call():
            return Call(node.callee, tuple(values[name] for name in node.operands), renamed)


def _plain_block(block: Block, label: str, values: Mapping[str, str]) -> Block:
    axes = tuple(axis_attribute(f"a{n}", axis.size, axis.is_reduce) for n, axis in enumerate(block.axes))
    reads = tuple(replace(access, buffer=values[access.buffer]) for access in block.reads)
    table = None if block.table is None else replace(block.table, buffer=values[block.table.buffer])
    return replace(block, label=label, axes=axes, reads=reads, table=table)


def _value(value: Buffer, values: Mapping[str, str]) -> Buffer:
    return replace(value, name=values[value.name])
