"""Values that are read through one view only: the view is computed instead."""

from __future__ import annotations

from compiler.affine import linear as lin
from compiler.graph.laws.permutations import is_plain_product, order_of
from compiler.graph.laws.views import ReadView, quotients, view_of
from compiler.graph.normal_form import with_axes
from compiler.graph.tree import Compute, Graph
from compiler.program.tree import Access, Block


def compute_views(graph: Graph) -> Graph:
    """Compute a view instead of its source if nothing else reads the source: slices, flips, strides, transposes.

        %P = te.compute "P" [i = 8, j = 6, reduce k = 4] combine [add] (%a = %A[i, k] ..., %b = %B[k, j] ...) { mulf }
        %T = te.compute "T" [j = 6, i = 8] (%p = %P[i, j] ...) { te.yield %p : f32 }
      ->
        %T = te.compute "T" [j = 6, i = 8, reduce k = 4] combine [add] (%a = %A[i, k] ..., %b = %B[k, j] ...) { mulf }

    The view reads each element once at most, so that there is no more work than before. Dimensions keep the order that
    schedules expect, except in plain products and in elementwise computes whose operands lie in the order of the view.
    Only elementwise computes are reshaped.
    """
    nodes = list(graph.nodes)
    moved: dict[str, Compute] = {}
    for node in graph.nodes:
        new = _computed(node, graph, moved) if isinstance(node, Compute) else None
        if isinstance(node, Compute) and new is not None:
            moved[node.results[0].name] = new
            nodes = [new if old_node is node else old_node for old_node in nodes]
    return graph.with_nodes(nodes)


def _computed(node: Compute, graph: Graph, moved: dict[str, Compute]) -> Compute | None:
    """The compute that replaces a view: its source computed over the view's axes; None if the node stays as it is.
    `moved` has the replacements so far, by the name of the result."""
    (value, *other_results) = node.results
    view = None if other_results else view_of(node, 0, value, graph)
    if view is None or view.where or view.source.name in graph.results:
        return None
    source = moved.get(view.source.name) or graph.producers.get(view.source.name)
    if not isinstance(source, Compute) or len(source.results) != 1 or source.block.table is not None:
        return None
    if len(graph.consumers[view.source.name]) != 1 or view_of(source, 0, view.source, graph) is not None:
        return None
    new = _at_view(source.block, node.block, view.access)
    return Compute(new, node.results) if _is_no_worse(source.block, new, view, graph) else None


def _at_view(source: Block, view: Block, access: Access) -> Block:
    """The block of a source over the axes of its view, which reads the source at `access`."""
    count = view.spatial
    forms = dict(enumerate(access.index))
    forms |= {n: lin.variable(count + n - source.spatial) for n in range(source.spatial, len(source.axes))}
    axes = (*view.axes, *source.axes[source.spatial :])
    return with_axes(source, axes, forms)


def _is_no_worse(source: Block, new: Block, view: ReadView, graph: Graph) -> bool:
    """Whether the block `new` of a view takes no longer than the block `source`: it has no more quotients, computes
    each element once, and keeps the order of axes, or is a plain product or elementwise with operands in the new
    order."""
    index = [form for form in view.access.index if not form.is_constant]
    if quotients(view.access) or sum(map(quotients, new.reads)) > sum(map(quotients, source.reads)):
        return False
    if any(len(form.terms) > 1 for form in index):
        result_offset = lin.offset(
            tuple(map(lin.variable, range(new.spatial))), [axis.size for axis in new.axes[: new.spatial]]
        )
        return not source.combiners and lin.offset(view.access.index, view.source.shape) == result_offset
    order = [min(form.variables()) for form in index]
    is_single = len(set(order)) == len(order) and all(
        n in order for n, axis in enumerate(new.axes[: new.spatial]) if axis.size > 1
    )
    if not is_single or order == sorted(order):
        return is_single
    if source.combiners:
        return is_plain_product(source)
    return all(_is_straight(access, graph) for access in new.reads)


def _is_straight(access: Access, graph: Graph) -> bool:
    """Whether a read is indexed by axes in increasing order, or its elementwise producer reads its operands in that
    order."""
    order = order_of(access)
    if order is None or order == tuple(sorted(order)):
        return order is not None
    producer = graph.producers.get(access.buffer)
    if not isinstance(producer, Compute) or producer.block.combiners or producer.block.table is not None:
        return False
    permutation = tuple(order.index(axis) for axis in sorted(order))
    return {order_of(read) for read in producer.block.reads if len(read.index) > 1} == {permutation}
