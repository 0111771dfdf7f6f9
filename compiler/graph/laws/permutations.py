"""Intermediates that are written and read against their layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from compiler.affine import linear as lin
from compiler.graph.grouping.facts import Kind, kind_of
from compiler.graph.normal_form import with_axes
from compiler.graph.tree import Compute, Graph, Node
from compiler.program.tree import Access, Block


def straighten(graph: Graph) -> Graph:
    """Permute an elementwise intermediate to the order of dimensions of its operands and of its readers.

        %E = te.compute "E" [j = 6, i = 4] (%x = %X[i, j] ...) { math.exp %x }
        %Y = te.compute "Y" [i = 4, j = 6] (%e = %E[j, i] ...) { ... }
      ->
        %E = te.compute "E" [i = 4, j = 6] (%x = %X[i, j] ...) { math.exp %x }
        %Y = te.compute "Y" [i = 4, j = 6] (%e = %E[i, j] ...) { ... }

    All its readers, and all its operands of more than one dimension, must have that order. A product of two matrices is
    transposed if all its readers are such products and read it transposed.
    """
    orders: dict[str, tuple[int, ...]] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        if isinstance(node, Compute):
            node = _reading(node, orders)
            order = _order(node, graph)
            if order is not None:
                orders |= {value.name: order for value in node.results}
                node = _permuted(node, order)
        nodes.append(node)
    return graph.with_nodes(nodes)


def _order(node: Compute, graph: Graph) -> tuple[int, ...] | None:
    """The new order of a compute's spatial axes, by old positions; None if the order stays."""
    block = node.block
    if block.table is not None or any(value.name in graph.results for value in node.results):
        return None
    if is_plain_product(block):
        (value,) = node.results
        readers = graph.consumers[value.name]
        return (1, 0) if all(_is_transposed(reader, value.name) for reader in readers) else None
    if block.combiners or block.spatial < 2:
        return None
    orders = {order for order in (order_of(access) for access in block.reads) if order is None or len(order) > 1}
    order = next(iter(orders), None)
    if order is None or len(orders) > 1 or set(order) != set(range(block.spatial)) or order == tuple(sorted(order)):
        return None
    return order if all(_reads_in(order, value.name, graph) for value in node.results) else None


def is_plain_product(block: Block) -> bool:
    """Whether a block is a product of two matrices, with all three axes longer than 1 and no index that is a sum of
    axes."""
    is_long = len(block.axes) == 3 and block.spatial == 2 and all(axis.size > 1 for axis in block.axes)
    windows = any(len(form.terms) > 1 for access in block.reads for form in access.index)
    return is_long and not windows and kind_of(block) is Kind.CONTRACTION


def _is_transposed(reader: Node, name: str) -> bool:
    """Whether a reader is a product of two matrices that reads `name` with the reduce axis first, as the left operand,
    or last, as the right operand."""
    if not isinstance(reader, Compute) or not is_plain_product(reader.block):
        return False
    indices = [access.index for access in reader.block.reads if access.buffer == name]
    row, column, depth = map(lin.variable, range(3))
    return all(index in ((depth, row), (column, depth)) for index in indices)


def order_of(access: Access) -> tuple[int, ...] | None:
    """The axes that index a read, in order; constant indices are left out. None if an index is neither an axis nor a
    constant, an axis occurs twice, or the read has conditions."""
    axes = [form.as_variable for form in access.index if form.terms]
    moved = tuple(axis for axis in axes if axis is not None)
    return moved if not access.where and len(axes) == len(moved) == len(set(moved)) else None


def _reads_in(order: tuple[int, ...], name: str, graph: Graph) -> bool:
    """Whether all readers of a value are computes that index it by axes, without conditions, and its dimensions, taken
    in `order`, by increasing axes."""
    for reader in graph.consumers[name]:
        if not isinstance(reader, Compute) or reader.block.table is not None:
            return False
        for access in (access for access in reader.block.reads if access.buffer == name):
            if access.where or any(form != lin.variable(min(form.variables(), default=0)) for form in access.index):
                return False
            spatial = [min(access.index[d].variables()) for d in order]
            if spatial != sorted(spatial) or len(set(spatial)) != len(spatial):
                return False
    return True


def _permuted(node: Compute, order: tuple[int, ...]) -> Compute:
    """Permute the spatial axes and the result dimensions of a compute: new dimension n is the old `order[n]`."""
    permutation = (*order, *range(len(order), len(node.block.axes)))
    moved = {old: lin.variable(new) for new, old in enumerate(permutation)}
    block: Block = with_axes(node.block, [node.block.axes[n] for n in permutation], moved)
    results = tuple(replace(value, shape=tuple(value.shape[n] for n in order)) for value in node.results)
    return Compute(block, results)


def _reading(node: Compute, orders: Mapping[str, tuple[int, ...]]) -> Compute:
    """Adapt the reads of a node to permuted values; `orders` maps each to its new order, by old dimensions."""
    block = node.block
    if not any(name in orders for name in block.sources):
        return node
    reads = tuple(
        replace(a, index=tuple(a.index[n] for n in orders[a.buffer])) if a.buffer in orders else a for a in block.reads
    )
    return replace(node, block=replace(block, reads=reads))
