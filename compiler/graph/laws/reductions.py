"""Reduce axes: two that occur only as `outer * extent(inner) + inner` are merged, and one read backwards is
reversed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import permutations

from compiler.affine import linear as lin
from compiler.affine.linear import Linear
from compiler.dialects.access import axis_attribute
from compiler.graph.normal_form import with_axes
from compiler.graph.tree import Compute, Graph, Node
from compiler.program.body import Index, leaves
from compiler.program.tree import Block


def merge_reduce_axes(graph: Graph) -> Graph:
    """Merge two reduce axes that every index combines as `outer * extent(inner) + inner`.

      %Y = te.compute "Y" [reduce p = 8, reduce q = 4] combine [add] (%a = %A[4 * p + q] ...)
    ->
      %Y = te.compute "Y" [reduce p = 32] combine [add] (%a = %A[p] ...)
    """
    return _with_blocks(graph, merged)


def turn_reduce_axes(graph: Graph) -> Graph:
    """Reverse a reduce axis if most windows `i - s`, or else most reads, move backwards along it.

      %Y = te.compute "Y" [i = 8, reduce s = 3] combine [add] (%x = %X[i - s + 2], %w = %W[s]) { mulf }
    ->
      %Y = te.compute "Y" [i = 8, reduce s = 3] combine [add] (%x = %X[i + s], %w = %W[-s + 2]) { mulf }
    """
    return _with_blocks(graph, _turned)


def _with_blocks(graph: Graph, change: Callable[[Block], Block]) -> Graph:
    nodes: list[Node] = []
    for node in graph.nodes:
        if isinstance(node, Compute) and node.block.combiners and node.block.table is None:
            block = change(node.block)
            node = node if block is node.block else replace(node, block=block)
        nodes.append(node)
    return graph.with_nodes(nodes)


def _forms(block: Block) -> Iterator[Linear]:
    for access in block.reads:
        yield from access.index
        yield from (condition.form for condition in access.where)


def merged(block: Block) -> Block:
    """Merge all pairs of reduce axes of a block that occur only as `outer * extent(inner) + inner`, or a multiple; the
    same object if there is none."""
    named = {leaf.axis for leaf in leaves(block.body) if isinstance(leaf, Index)}
    reduces = [n for n in range(block.spatial, len(block.axes)) if n not in named]
    for outer, inner in permutations(reduces, 2):
        extent = block.axes[inner].size
        factors = [(form.coefficient(outer), form.coefficient(inner)) for form in _forms(block)]
        if all(a is not None and b is not None and a == b * extent for a, b in factors) and any(b for _, b in factors):
            return merged(_one(block, outer, inner))
    return block


def _one(block: Block, outer: int, inner: int) -> Block:
    """Replace the reduce axes `outer` and `inner` by one axis equal to `outer * extent(inner) + inner`."""
    first, extent = block.axes[outer], block.axes[inner].size
    merged_axis = axis_attribute(first.label, first.size * extent, True)
    kept_axes = [n for n in range(len(block.axes)) if n != inner]
    moved = {old: lin.variable(new) for new, old in enumerate(kept_axes)}
    ranges = {
        new: (0, (merged_axis if old == outer else block.axes[old]).size - 1) for new, old in enumerate(kept_axes)
    }
    axis = moved[outer]
    moved |= {outer: lin.floordiv(axis, extent, ranges), inner: lin.mod(axis, extent, ranges)}
    new = with_axes(block, [merged_axis if n == outer else block.axes[n] for n in kept_axes], moved)
    reads = tuple(
        replace(
            access,
            index=tuple(map(lin.joined, access.index)),
            where=tuple(replace(c, form=lin.joined(c.form)) for c in access.where),
        )
        for access in new.reads
    )
    return replace(new, reads=reads)


def _turned(block: Block) -> Block:
    for axis in range(block.spatial, len(block.axes)):
        if _is_backwards(block, axis):
            last = lin.constant(block.axes[axis].size - 1)
            moved = {n: lin.variable(n) for n in range(len(block.axes))}
            moved[axis] = last - lin.variable(axis)
            block = with_axes(block, block.axes, moved)
    return block


def _is_backwards(block: Block, axis: int) -> bool:
    """Whether more windows, indices of several variables, have a negative than a positive factor of an axis, or, if as
    many, more indices; False if an index divides it."""
    used = [form for access in block.reads for form in access.index if form.depends_on(axis)]
    factors = [(form.coefficient(axis), len(form.variables()) > 1) for form in used]
    if any(factor is None for factor, _ in factors):
        return False
    windows = sum(1 if (factor or 0) > 0 else -1 for factor, is_window in factors if factor and is_window)
    direction = sum(1 if (factor or 0) > 0 else -1 for factor, _ in factors if factor)
    return windows < 0 or (windows == 0 and direction < 0)
