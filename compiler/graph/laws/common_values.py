"""Mathematical functions that a reduction and another compute apply to the same values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from compiler.affine import linear as lin
from compiler.dialects.access import AxisAttr
from compiler.graph.locations import at_location
from compiler.graph.tree import Compute, Graph, Node
from compiler.program import body
from compiler.program.body import Apply, Index, Read
from compiler.program.names import Names
from compiler.program.tree import Access, Block, Buffer
from compiler.support.origins import fused

_SHORT = frozenset(("math.absf", "math.absi", "math.copysign", "math.fma"))
"""Operations of the math dialect that take one or two instructions, too cheap to share."""


def share_powers(graph: Graph) -> Graph:
    """Compute in a separate node a mathematical function that a reduction and another compute apply to the same values;
    of several, the one with the most operations.

      %S = te.compute "S" [i = 4, reduce k = 8] combine [add] (%x = %X[i, k] ..., %m = %M[i] ...) { exp(%x - %m) }
      %Y = te.compute "Y" [i = 4, j = 8] (%x = %X[i, j] ..., %m = %M[i] ..., %s = %S[i] ...) { exp(%x - %m) / %s }
    ->
      %E = te.compute "E" [i = 4, j = 8] (%x = %X[i, j] ..., %m = %M[i] ...) { exp(%x - %m) }
      %S = te.compute "S" [i = 4, reduce k = 8] combine [add] (%e = %E[i, k] ...) { %e }
      %Y = te.compute "Y" [i = 4, j = 8] (%e = %E[i, j] ..., %s = %S[i] ...) { %e / %s }
    """
    computes = [node for node in graph.nodes if isinstance(node, Compute) and node.block.table is None]
    reduced = [use for node in computes if node.block.combiners for use in _uses(node)]
    uses: dict[object, list[_Use]] = {}
    for use in (use for node in (computes if reduced else ()) for use in _uses(node)):
        uses.setdefault(use.key, []).append(use)
    reduced_keys = {use.key for use in reduced}
    shared = [group for key, group in uses.items() if key in reduced_keys and len({id(use.node) for use in group}) > 1]
    return _shared(graph, max(shared, key=lambda group: len(body.reached([group[0].value])))) if shared else graph


@dataclass(frozen=True)
class _Use:
    """A mathematical function applied in a compute, the axes it depends on, and a key: equal keys mean equal values."""

    node: Compute
    value: Apply
    axes: tuple[int, ...]
    key: object


def _uses(node: Compute) -> Iterator[_Use]:
    """Yield each use in a compute of a mathematical function that is not cheap: the values of `math` ops, except those
    of `_SHORT`, for which `_use` returns a use."""
    for value in body.reached(node.block.body):
        if isinstance(value, Apply) and value.kind.name.startswith("math.") and value.kind.name not in _SHORT:
            use = _use(node, value)
            if use is not None:
                yield use


def _use(node: Compute, value: Apply) -> _Use | None:
    """The use of a value in a compute; None unless it uses no index as a value, its reads are unconditional, each index
    is one axis, and one read has all axes of the compute that are longer than 1, at least two."""
    block = node.block
    leaves = body.leaves([value])
    reads = {leaf.position: block.reads[leaf.position] for leaf in leaves if isinstance(leaf, Read)}
    forms = [form for access in reads.values() for form in access.index]
    if any(isinstance(leaf, Index) for leaf in leaves) or any(access.where for access in reads.values()):
        return None
    if any(form != lin.variable(min(form.variables(), default=0)) for form in forms):
        return None
    widest = max(reads.values(), key=lambda access: len(access.index), default=None)
    axes = () if widest is None else tuple(min(form.variables()) for form in widest.index)
    moved = {axis for form in forms for axis in form.variables()}
    if len(axes) < 2 or len(set(axes)) < len(axes) or moved != set(axes) or not _covers(block, moved):
        return None
    positions = {axis: position for position, axis in enumerate(axes)}
    sources = {n: (a.buffer, tuple(positions[min(f.variables())] for f in a.index)) for n, a in reads.items()}
    ordered = sorted(sources.values())
    normal_value = body.rewrite(value, {n: body.read(ordered.index(sources[n]), block.read_types[n]) for n in sources})
    return _Use(node, value, axes, (tuple(block.axes[axis].size for axis in axes), *ordered, normal_value))


def _covers(block: Block, moved: set[int]) -> bool:
    """Whether a compute evaluates a value over the axes `moved` once each: its other axes have extent 1."""
    return all(n in moved for n, axis in enumerate(block.axes) if axis.size > 1)


def _shared(graph: Graph, uses: list[_Use]) -> Graph:
    """Compute the common value of `uses` in a new node before the first use, and read it in all uses."""
    first = uses[0]
    labels = [node.block.label for node in graph.nodes if isinstance(node, Compute)]
    name = Names([*graph.values, *labels]).fresh(f"{first.node.block.label}.shared")
    shared = at_location(_compute(first, name), fused(use.node.block.location for use in uses))
    by_node = {id(use.node): use for use in uses}
    nodes: list[Node] = []
    for node in graph.nodes:
        nodes += [shared] if node is first.node else []
        nodes.append(_reading(by_node[id(node)], shared.results[0]) if id(node) in by_node else node)
    return graph.with_nodes(nodes)


def _compute(use: _Use, name: str) -> Compute:
    block, (element,) = use.node.block, use.value.types
    axes = tuple(AxisAttr(block.axes[axis].label, block.axes[axis].size, False) for axis in use.axes)
    moved = {axis: lin.variable(position) for position, axis in enumerate(use.axes)}
    ranges = {position: (0, axis.size - 1) for position, axis in enumerate(axes)}
    used = sorted({leaf.position for leaf in body.leaves([use.value]) if isinstance(leaf, Read)})
    reads = tuple(_at(block.reads[n], moved, ranges) for n in used)
    types = tuple(block.read_types[n] for n in used)
    value = body.rewrite(
        use.value, {n: body.read(position_of_read, block.read_types[n]) for position_of_read, n in enumerate(used)}
    )
    new = Block(name, axes, (), (), reads, types, (), (value,), location=block.location)
    return Compute(new, (Buffer(name, tuple(axis.size for axis in axes), element),))


def _at(access: Access, moved: Mapping[int, lin.Linear], ranges: lin.Ranges) -> Access:
    return replace(access, index=tuple(lin.substitute(form, moved, ranges) for form in access.index))


def _reading(use: _Use, shared: Buffer) -> Compute:
    """Return the compute of a use, with a read of `shared` in place of the use's value."""
    block = use.node.block
    read = body.read(len(block.reads), shared.scalar)
    access = Access(shared.name, tuple(map(lin.variable, use.axes)))
    new = replace(
        block,
        reads=(*block.reads, access),
        read_types=(*block.read_types, shared.scalar),
        body=tuple(body.replaced(value, use.value, read) for value in block.body),
    )
    return replace(use.node, block=new)
