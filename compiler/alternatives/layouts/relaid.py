"""A graph with some values in another layout: channels last."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace

from compiler.affine import linear as lin
from compiler.affine.linear import Linear
from compiler.alternatives.layouts.layout import channels_last
from compiler.dialects.access import axis_attribute
from compiler.graph.normal_form import with_axes
from compiler.graph.rename import with_operands, with_results
from compiler.graph.tree import Compute, Graph, Node
from compiler.program.body import read
from compiler.program.names import Names
from compiler.program.tree import Access, Block, Buffer


def relaid(graph: Graph, last: Set[str]) -> Graph:
    """Store the values in `last` channels last; each must be the only result of a compute.

        %y = te.compute "y" [n = 1, k = 64, h = 14, w = 14, reduce c = 32, reduce r = 1, reduce s = 1] combine [add]
            (%x = %X[n, c, h + r, w + s] ..., %w = %W[k, c, r, s] ...) -> tensor<1x64x14x14xf32>
      ->
        %y = te.compute "y" [n = 1, h = 14, w = 14, k = 64, reduce c = 32] combine [add]
            (%x = %X[n, h, w, c] ..., %w = %W[k, c, 0, 0] ...) -> tensor<1x14x14x64xf32>

    Elements keep their bits. Taps of extent 1 are dropped, which leaves a product, and so is the single channel of a
    depthwise filter. Results of the graph are copied back to the plain layout at the end.
    """
    nodes = [_relaid(node, last) for node in graph.nodes]
    results, names = sorted(last & set(graph.results)), Names(graph.values)
    renamed = {name: names.fresh(f"{name}.last") for name in results}
    nodes = [_under(node, renamed) for node in nodes]
    labels = Names(node.block.label for node in nodes if isinstance(node, Compute))
    copies = [_plain(graph.values[name], renamed[name], labels.fresh("plain")) for name in results]
    return graph.with_nodes([*nodes, *copies])


def _under(node: Node, renamed: Mapping[str, str]) -> Node:
    """A node with its operands and results renamed, from old to new names."""
    node = with_operands(node, renamed)
    return with_results(node, tuple(replace(value, name=renamed.get(value.name, value.name)) for value in node.results))


def _plain(value: Buffer, source: str, label: str) -> Compute:
    """The compute that copies `source`, which is channels last, to `value` in the plain layout."""
    axes = tuple(axis_attribute(f"i{n}", size, False) for n, size in enumerate(value.shape))
    access = Access(source, channels_last([lin.variable(n) for n in range(len(axes))]))
    types = (value.element,)
    return Compute(Block(label, axes, (), (), (access,), types, (), (read(0, value.element),)), (value,))


def _relaid(node: Node, last: Set[str]) -> Node:
    if not isinstance(node, Compute):
        return node
    if not last.isdisjoint(node.block.sources):
        node = replace(node, block=replace(node.block, reads=tuple(_read(access, last) for access in node.block.reads)))
    value = node.results[0]
    if value.name not in last:
        return node
    return Compute(_moved(node.block), (replace(value, shape=channels_last(value.shape)),))


def _read(access: Access, last: Set[str]) -> Access:
    return replace(access, index=channels_last(access.index)) if access.buffer in last else access


def _moved(block: Block) -> Block:
    """Move the channels of a block to the last spatial axis. Drop reduce axes of extent 1 if one longer reduce axis is
    left, or several without the channels."""
    spatial, reduces = range(block.spatial), range(block.spatial, len(block.axes))
    long = [n for n in reduces if block.axes[n].size > 1]
    is_dense = len(long) > 1 and block.axes[block.spatial].size > 1
    order = [*channels_last(spatial), *(reduces if is_dense or not long else long)]
    moved: Mapping[int, Linear] = {n: lin.constant(0) for n in range(len(block.axes))}
    moved = {**moved, **{old: lin.variable(new) for new, old in enumerate(order)}}
    return with_axes(block, [block.axes[n] for n in order], moved)
