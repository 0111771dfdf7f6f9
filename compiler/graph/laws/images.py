"""Convolutions: restore the axes of extent 1, batch and taps, that te.nn writes and that some programs leave out."""

from __future__ import annotations

from dataclasses import replace

from compiler.affine import linear as lin
from compiler.affine.linear import Linear
from compiler.dialects.access import axis_attribute
from compiler.graph.grouping.facts import Kind, kind_of
from compiler.graph.tree import Compute, Graph, Node
from compiler.program.tree import Access, Block


def name_unit_axes(graph: Graph) -> Graph:
    """Index images by a batch axis of extent 1, and add axes of extent 1 for the taps of 1x1 convolutions, as schedules
    expect.

      %Y = te.compute "Y" [n = 1, o = 8, y = 7, x = 7, reduce c = 4] combine [add]
          (%w = %W[o, c, 0, 0] : tensor<8x4x1x1xf32>, %x = %X[0, c, y, x] : tensor<1x4x7x7xf32>) { mulf }
    ->
      %Y = te.compute "Y" [n = 1, o = 8, y = 7, x = 7, reduce c = 4, reduce r = 1, reduce s = 1] combine [add]
          (%w = %W[o, c, r, s] : tensor<8x4x1x1xf32>, %x = %X[n, c, y + r, x + s] : tensor<1x4x7x7xf32>) { mulf }
    """
    nodes: list[Node] = []
    for node in graph.nodes:
        if isinstance(node, Compute) and _is_of_images(node.block):
            block = _with_batch(_with_taps(node.block, graph), graph)
            node = node if block is node.block else replace(node, block=block)
        nodes.append(node)
    return graph.with_nodes(nodes)


def _is_of_images(block: Block) -> bool:
    return block.spatial == 4 and len(block.reads) == 2 and kind_of(block) is Kind.CONTRACTION


def _image(block: Block, weights: int) -> Access | None:
    """The image of a convolution, the read that is not at position `weights`; None unless it has four dimensions."""
    image = block.reads[1 - weights]
    return image if len(image.index) == 4 else None


def _with_taps(block: Block, graph: Graph) -> Block:
    """Add reduce axes of extent 1 for the taps of a 1x1 convolution; return any other block as it is."""
    if len(block.axes) != 5:
        return block
    for position, weights in enumerate(block.reads):
        image, shape = _image(block, position), graph.values[weights.buffer].shape
        filters = [lin.variable(1), lin.variable(4), lin.constant(0), lin.constant(0)]
        if image is None or list(weights.index) != filters or shape[2:] != (1, 1) or weights.where:
            continue
        if image.index[1:] == (lin.variable(4), lin.variable(2), lin.variable(3)) and not image.where:
            taps = lin.variable(5), lin.variable(6)
            rows, columns = (form + tap for form, tap in zip(image.index[2:], taps, strict=True))
            changed = {position: (*weights.index[:2], *taps), 1 - position: (*image.index[:2], rows, columns)}
            reads = tuple(replace(access, index=changed[n]) for n, access in enumerate(block.reads))
            return replace(block, axes=(*block.axes, *(axis_attribute(n, 1, True) for n in "rs")), reads=reads)
    return block


def _with_batch(block: Block, graph: Graph) -> Block:
    """Index the image of a convolution by its batch axis of extent 1 instead of 0; return any other block as it is."""
    named = {axis for access in block.reads for form in access.index for axis in form.variables()}
    if block.axes[0].size != 1 or 0 in named or len(block.axes) != 7:
        return block

    def read(access: Access) -> Access:
        is_image = len(access.index) == 4 and any(len(form.variables()) > 1 for form in access.index)
        if not is_image or graph.values[access.buffer].shape[0] != 1:
            return access
        index: tuple[Linear, ...] = (lin.variable(0), *access.index[1:])
        return replace(access, index=index)

    reads = tuple(map(read, block.reads))
    return block if reads == block.reads else replace(block, reads=reads)
