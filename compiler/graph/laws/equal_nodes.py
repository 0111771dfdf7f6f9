"""Values that are computed twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from compiler.affine import linear as lin
from compiler.graph.hashing import NameColours, sample_digest
from compiler.graph.laws.identities import copied
from compiler.graph.locations import at_location, node_location
from compiler.graph.normal_form import normal_form
from compiler.graph.rename import with_operands
from compiler.graph.tree import Call, Compute, Constant, Graph, Node
from compiler.program import body
from compiler.program.tree import Access, Block, Buffer
from compiler.support.origins import fused


def merge_equal(graph: Graph) -> Graph:
    """Compute equal values once; names and the order of reads and reduce axes do not matter.

        %A = te.compute "A" [i = 4] (%x = %X[i] ...) { arith.addf %x, %x }
        %B = te.compute "B" [j = 4] (%x = %X[j] ...) { arith.addf %x, %x }
        %C = te.compute "C" (%a = %A[...] ..., %b = %B[...] ...)
      ->
        %A = te.compute "A" [i = 4] (%x = %X[i] ...) { arith.addf %x, %x }
        %C = te.compute "C" (%a = %A[...] ..., %b = %A[...] ...)

    Of equal results of the function, the later becomes a copy of the first, or is unchanged if it is a constant, a call
    or only copies elements. Other nodes read the first, which gets the locations of all. The order of results changes
    only among equal ones.
    """
    names: dict[str, str] = {}
    representatives = _Seen()
    twins: dict[str, list[str]] = {}
    returned = set(graph.results)
    nodes: list[Node] = []
    merged: dict[str, list[Node]] = {}
    for node in graph.nodes:
        node = with_operands(node, names)
        first = representatives.first(node)
        equal = first.results
        merged.setdefault(first.results[0].name, []).append(node)
        pairs = [] if equal == node.results else list(zip(node.results, equal, strict=True))
        result_pairs = [(value, same) for value, same in pairs if value.name in returned and same.name in returned]
        if not pairs or (result_pairs and not _is_arithmetic(node)):
            nodes.append(node)
        elif result_pairs:
            nodes += [_copy(value, same, node) for value, same in result_pairs]
        for value, same in [*result_pairs, *_copies(node, graph)]:
            twins.setdefault(same.name, []).append(value.name)
        names |= {value.name: same.name for value, same in pairs}
        returned |= {same.name for value, same in pairs if value.name in returned}
    computed = {value.name for node in nodes for value in node.results}
    dropped = {old: new for old, new in names.items() if old not in computed}
    result_names = _first_before(tuple(dropped.get(name, name) for name in graph.results), twins)
    changed = graph.with_nodes([_with_locations_of(node, merged.get(node.results[0].name, ())) for node in nodes])
    return changed if result_names == graph.results else replace(changed, results=result_names)


def _with_locations_of(node: Node, equal: Sequence[Node]) -> Node:
    """The node at the locations of all nodes that are equal to it, itself included, in order."""
    return at_location(node, fused(map(node_location, equal))) if len(equal) > 1 else node


class _Seen:
    """The nodes so far, one of each class of equal nodes. Normal forms, which are slow, are only made of nodes that
    have the same operands and types as another node."""

    def __init__(self) -> None:
        self._colours = NameColours()
        self._alike: dict[object, Node] = {}
        self._equal: dict[object, Node] = {}

    def first(self, node: Node) -> Node:
        """The earlier node that is equal to `node`; `node` itself if there is none."""
        alike = (frozenset(node.operands), _types(node))
        twin = self._alike.setdefault(alike, node)
        if twin is node:
            return node
        self._equal.setdefault(_key(twin, self._colours), twin)
        return self._equal.setdefault(_key(node, self._colours), node)


def _types(node: Node) -> tuple[object, ...]:
    return tuple((value.shape, value.element) for value in node.results)


def _copies(node: Node, graph: Graph) -> list[tuple[Buffer, Buffer]]:
    """Pairs (copy, source) of a compute's results that copy other values, where both are the function's results."""
    if not isinstance(node, Compute):
        return []
    sources = [(value, copied(node, n, graph)) for n, value in enumerate(node.results) if value.name in graph.results]
    return [(value, graph.values[source]) for value, source in sources if source in graph.results and source]


def _first_before(ordered_names: tuple[str, ...], twins: Mapping[str, list[str]]) -> tuple[str, ...]:
    """Reorder results so that each precedes its copies; `twins` maps a value to its copies."""
    names = list(ordered_names)
    for first, copies in twins.items():
        positions = [n for n, name in enumerate(names) if name == first or name in copies]
        ordered = sorted((names[n] for n in positions), key=lambda name: name != first)
        for n, name in zip(positions, ordered, strict=True):
            names[n] = name
    return tuple(names)


def _is_arithmetic(node: Node) -> bool:
    """Whether a node is a compute that does more than copy elements: a copy of its result is cheaper than the
    compute."""
    if not isinstance(node, Compute):
        return False
    return bool(node.block.combiners) or not any(isinstance(value, body.Read) for value in node.block.body)


def _key(node: Node, colours: dict[str, bytes]) -> object:
    """Return a key of a node; keys of two nodes are equal if and only if they compute the same. `colours` has a
    distinct colour for each different value."""
    types = _types(node)
    if isinstance(node, Call):
        return ("call", node.callee, node.operands, types)
    if isinstance(node, Constant):
        return ("constant", sample_digest(node.value.data), node.value)
    block = normal_form(node, colours).block
    axes = tuple((axis.size, axis.is_reduce) for axis in block.axes)
    return (axes, block.reads, block.body, block.combiners, block.table, block.attributes, types)


def _copy(value: Buffer, source: Buffer, node: Node) -> Compute:
    """A compute that copies `source` to `value`, with the label and axes of the node that it replaces."""
    index = tuple(lin.variable(d) for d in range(len(value.shape)))
    assert isinstance(node, Compute), "a call gives both"
    axes = node.block.axes[: node.block.spatial]
    copied = body.read(0, value.scalar)
    read, location = Access(source.name, index), node.block.location
    return Compute(
        Block(node.block.label, axes, (), (), (read,), (value.scalar,), (), (copied,), location=location), (value,)
    )
