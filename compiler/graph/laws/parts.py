"""Computes of a concatenation whose results are read in parts: each part is computed separately."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from compiler.affine import linear as lin
from compiler.dialects.access import axis_attribute
from compiler.graph.laws.concatenations import read_at
from compiler.graph.normal_form import with_axes
from compiler.graph.tree import Compute, Graph, Node
from compiler.program.body import Apply, Read
from compiler.program.names import Names
from compiler.program.tree import Access, Block, Buffer


def compute_parts(graph: Graph) -> Graph:
    """Compute the parts of a value separately, if an operand is a concatenation and each read of the value is inside
    one part.

        %J = te.compute "J" [k = 8, j = 6] (%a = %A[k, j] where (2 - j >= 0) ..., %b = %B[k, j - 3] ...) { select }
        %P = te.compute "P" [i = 4, j = 6, reduce k = 8] combine [add] (%x = %X[i, k] ..., %j = %J[k, j] ...) { mulf }
        %Y = te.compute "Y" [i = 4, j = 3] (%p = %P[i, j + 3] ...) { ... }      // and others of each part
      ->
        %P1 = te.compute "P1" [i = 4, j = 3, reduce k = 8] combine [add] (%X[i, k], %J[k, j + 3]) { mulf }
        %Y = te.compute "Y" [i = 4, j = 3] (%p = %P1[i, j] ...) { ... }

    Then each read of the concatenation is inside one part, and `read_parts` makes it unused. A product by concatenated
    weights is no faster than a product by each (`python -m benchmarks.alternatives joined`).
    """
    computes = [node for node in graph.nodes if isinstance(node, Compute)]
    joins = {node.results[0].name: node for node in computes if _is_join(node)}
    names = Names([*graph.values, *(node.block.label for node in computes)])
    parts: dict[str, _Parts] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        if isinstance(node, Compute):
            node = _reading(node, parts)
            cut = _cut(node, joins, graph)
            if cut is not None:
                part_nodes = [_part(node, cut.dimension, window, names) for window in cut.windows]
                named = {window: part.results[0].name for window, part in zip(cut.windows, part_nodes, strict=True)}
                parts[node.results[0].name] = replace(cut, names=named)
                nodes += part_nodes
                continue
        nodes.append(node)
    return graph.with_nodes(nodes)


@dataclass(frozen=True)
class _Parts:
    """A dimension along which a value is cut, the index ranges of its parts, both ends included, and the name of each
    part by its range."""

    dimension: int
    windows: tuple[lin.Range, ...]
    names: Mapping[lin.Range, str]


def _is_join(node: Compute) -> bool:
    if len(node.results) != 1 or node.block.combiners or node.block.table is not None:
        return False
    value = node.block.body[0]
    return isinstance(value, Apply) and value.kind.name == "arith.select"


def _cut(node: Compute, joins: Mapping[str, Compute], graph: Graph) -> _Parts | None:
    """The dimension and index ranges by which to cut a compute's result; None if it is not to be cut. `joins` maps
    concatenations to their computes. Each read of the result is inside one range, and for each range the compute reads
    one part of each concatenation."""
    block = node.block
    if len(node.results) != 1 or block.table is not None or _is_join(node) or node.results[0].name in graph.results:
        return None
    reads = [(access, joins[access.buffer]) for access in block.reads if access.buffer in joins]
    for dimension in range(block.spatial) if reads else ():
        windows = _windows(node.results[0].name, dimension, graph)
        if len(windows) > 1 and all(_is_part(*read, block, dimension, window) for read in reads for window in windows):
            return _Parts(dimension, windows, {})
    return None


def _windows(name: str, dimension: int, graph: Graph) -> tuple[lin.Range, ...]:
    """The index ranges in which readers access a dimension of a value, in order; empty if ranges overlap, leave the
    value or depend on data, or a call reads it."""
    # Dimension 1 of extent 6, read at [i, j] and at [i, j + 3] for j in 0..2, has the windows (0, 2) and (3, 5).
    windows = set()
    for reader in graph.consumers[name]:
        if not isinstance(reader, Compute) or (reader.block.table and reader.block.table.buffer == name):
            return ()
        reads = [access for access in reader.block.reads if access.buffer == name]
        windows |= {lin.bounds(access.index[dimension], reader.block.axis_ranges) for access in reads}
    ordered = sorted(windows)
    are_disjoint = all(before[1] < after[0] for before, after in pairwise(ordered))
    inside = all(low >= 0 and high < graph.values[name].shape[dimension] for low, high in ordered)
    return tuple(ordered) if are_disjoint and inside else ()


def _is_part(access: Access, join: Compute, block: Block, dimension: int, window: lin.Range) -> bool:
    """Whether the index of a read of a concatenation depends on the axis `dimension`, and the read stays inside one
    part while that axis is in `window`."""
    if not any(form.depends_on(dimension) for form in access.index):
        return False
    ranges = block.axis_ranges | {dimension: window}
    return isinstance(read_at(join.block.body[0], dict(enumerate(access.index)), ranges), Read)


def _part(node: Compute, dimension: int, window: lin.Range, names: Names) -> Compute:
    """Return a compute restricted to the range `window`, both ends included, of the spatial axis `dimension`, with a
    fresh name. Requires a compute of one result."""
    (low, high), block = window, node.block
    size = high - low + 1
    axes = list(block.axes)
    axes[dimension] = axis_attribute(axes[dimension].label, size)
    moved = {n: lin.variable(n) for n in range(len(axes))}
    moved[dimension] = lin.variable(dimension) + lin.constant(low)
    name, (value,) = names.fresh(block.label), node.results
    shape = (*value.shape[:dimension], size, *value.shape[dimension + 1 :])
    return Compute(replace(with_axes(block, axes, moved), label=name), (Buffer(name, shape, value.element),))


def _reading(node: Compute, parts: Mapping[str, _Parts]) -> Compute:
    """Return a node that reads the parts of values that are cut; `parts` maps the name of such a value to its parts."""
    block = node.block
    if not any(name in parts for name in block.sources):
        return node

    def read(access: Access) -> Access:
        cut = parts.get(access.buffer)
        if cut is None:
            return access
        window = lin.bounds(access.index[cut.dimension], block.axis_ranges)
        index = list(access.index)
        index[cut.dimension] = index[cut.dimension] - lin.constant(window[0])
        return replace(access, buffer=cut.names[window], index=tuple(index))

    return replace(node, block=replace(block, reads=tuple(map(read, block.reads))))
