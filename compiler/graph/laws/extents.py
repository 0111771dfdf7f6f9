"""Axes of extent 1."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerType

from compiler.affine import linear as lin
from compiler.affine.linear import Linear
from compiler.graph.grouping.facts import Kind, kind_of
from compiler.graph.normal_form import with_axes
from compiler.graph.tree import Call, Compute, Graph, Node
from compiler.program import body
from compiler.program.combiner import Joint
from compiler.program.tree import Access, Block, Table

_PLAIN = {"fastmath": arith.FastMathFlagsAttr("none")}


def drop_unit_axes(graph: Graph) -> Graph:
    """Remove reduce axes of extent 1, and spatial axes of extent 1 with the dimension of the result that they index.

        %S = te.compute "S" [i = 128, j = 1, reduce k = 768] combine [add] (%x = %X[i, k] ...) -> tensor<128x1xf32>
        %Y = te.compute "Y" [i = 128, n = 768] (%x = %X[i, n] ..., %s = %S[i, 0] : tensor<128x1xf32>)
      ->
        %S = te.compute "S" [i = 128, reduce k = 768] combine [add] (%x = %X[i, k] ...) -> tensor<128xf32>
        %Y = te.compute "Y" [i = 128, n = 768] (%x = %X[i, n] ..., %s = %S[i] : tensor<128xf32>)

    Inputs and results of the function, operands and results of calls, and dimensions of tables at a data-dependent
    index keep their shapes. A reduction over one element is that element; a sum of floats is 0.0 + x, since it begins
    at 0.0 and is never -0.0. A joint combiner keeps one axis. Convolutions, and elementwise computes after them, keep
    the axes of batches and taps, which schedules expect.
    """
    fixed, images = _fixed(graph), _images(graph)
    shapes: dict[str, list[int]] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        if isinstance(node, Compute):
            node = _reading(node, shapes)
            if images.isdisjoint(value.name for value in node.results):
                node = _without(node, all(value.name not in fixed for value in node.results), shapes)
        nodes.append(node)
    return graph.with_nodes(nodes)


def _images(graph: Graph) -> set[str]:
    """The operands and results of convolutions, and the results of elementwise computes that read one of these values
    and have its shape."""
    images: set[str] = set()
    for node in graph.nodes:
        if not isinstance(node, Compute):
            continue
        block, (value, *_) = node.block, node.results
        if kind_of(block) is Kind.CONTRACTION and block.spatial > 2 and len(block.axes) > block.spatial + 1:
            images.update(node.operands, (value.name for value in node.results))
        shapes = [graph.values[name].shape for name in node.operands if name in images]
        if kind_of(block) is Kind.ELEMENTWISE and value.shape in shapes:
            images.add(value.name)
    return images


def _fixed(graph: Graph) -> Collection[str]:
    """The values that keep their shapes: inputs and results of the function, constants, operands and results of calls,
    and tables with a data-dependent index into a dimension of extent 1."""
    fixed = {*graph.results, *(value.name for value in graph.inputs)}
    for node in graph.nodes:
        if not isinstance(node, Compute):
            fixed.update(value.name for value in node.results)
            fixed.update(node.operands if isinstance(node, Call) else ())
            continue
        table = node.block.table
        if table is not None:
            shape = graph.values[table.buffer].shape
            if any(isinstance(d, int) and size == 1 for d, size in zip(table.index, shape, strict=True)):
                fixed.add(table.buffer)
    return fixed


def _reading(node: Compute, shapes: Mapping[str, list[int]]) -> Compute:
    """Adapt the reads of a node to values that lost dimensions; `shapes` maps such a value to its remaining ones."""
    block = node.block
    if not any(name in shapes for name in block.sources):
        return node

    def read(access: Access) -> Access:
        remaining_dims = shapes.get(access.buffer)
        return (
            access if remaining_dims is None else replace(access, index=tuple(access.index[d] for d in remaining_dims))
        )

    table: Table | None = block.table
    if table is not None and table.buffer in shapes:
        table = replace(table, index=tuple(table.index[d] for d in shapes[table.buffer]))
    return replace(node, block=replace(block, reads=tuple(map(read, block.reads)), table=table))


def _without(node: Compute, free: bool, shapes: dict[str, list[int]]) -> Compute:
    """Remove the axes of extent 1 of a node, spatial axes only if it is `free` to change its shape. Axes of extent 1
    that stay become 0 in its indices. The remaining dimensions of its results are added to `shapes`."""
    block = node.block
    unit_axes = [n for n, axis in enumerate(block.axes) if axis.size == 1]
    if not unit_axes:
        return node
    dropped = [n for n in unit_axes if (block.axes[n].is_reduce or free)]
    reduces = [n for n, axis in enumerate(block.axes) if axis.is_reduce]
    if reduces and set(reduces) <= set(dropped) and not _is_single(node):
        dropped.remove(reduces[0])
    kept_axes = [n for n in range(len(block.axes)) if n not in dropped]
    moved: dict[int, Linear] = {n: lin.constant(0) for n in unit_axes}
    moved |= {old: lin.variable(new) for new, old in enumerate(kept_axes) if old not in moved}
    new = with_axes(block, [block.axes[n] for n in kept_axes], moved)
    if reduces and set(reduces) <= set(dropped):
        new = _single(new)
    dimensions = [n for n in range(block.spatial) if n in kept_axes]
    if not dropped and new == block:
        return node
    if len(dimensions) < block.spatial:
        shapes |= {value.name: dimensions for value in node.results}
    return Compute(
        new, tuple(replace(value, shape=tuple(value.shape[d] for d in dimensions)) for value in node.results)
    )


def _is_single(node: Compute) -> bool:
    """Whether a reduction over one element can be written as an elementwise compute: its combiners are not joint, and
    its results are integers or floats."""
    has_identities = all(isinstance(value.element, IntegerType | AnyFloat) for value in node.results)
    return has_identities and not any(isinstance(combiner, Joint) for combiner in node.block.combiners)


def _single(block: Block) -> Block:
    """The elementwise block equal to a block that reduces over one element; a sum of floats becomes x + 0.0."""
    values = []
    for combiner, value in zip(block.combiners, block.body, strict=True):
        type = value.types[0] if isinstance(value, body.Apply) else getattr(value, "type", None)
        if combiner == "add" and isinstance(type, AnyFloat):
            value = body.apply(arith.AddfOp, (value, body.constant(FloatAttr(0.0, type))), _PLAIN, (type,))
        values.append(value)
    return replace(block, body=tuple(values), combiners=())
