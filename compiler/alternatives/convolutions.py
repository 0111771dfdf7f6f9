"""Match groups that consist of one convolution and elementwise computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.dialects.builtin import FloatAttr

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.alternatives.layouts.layout import ImageLayout
from compiler.graph.grouping import Kind
from compiler.graph.grouping.facts import kind_of
from compiler.graph.tree import Call, Compute, Constant, Graph, Node
from compiler.program.body import Read
from compiler.program.tree import Access, Block, Buffer


@dataclass(frozen=True)
class Convolution:
    """A convolution with stride 1: Y[n, k, h, w] += X[n, c, h + r - pads[0], w + s - pads[1]] * W[k, c, r, s], where X
    is zero outside of its bounds.

    In three dimensions filters have one tap along the first: Y[n, k, d, h, w] of X[n, c, d, ...] and W[k, c, 0, r, s].
    `read` and `written` are the layouts of X and Y, plain or channels last. `before` are the nodes that compute X.
    """

    compute: Compute
    image: Buffer
    weights: Buffer
    pads: tuple[int, int]
    read: ImageLayout
    written: ImageLayout
    before: tuple[Node, ...] = ()

    @property
    def taps(self) -> tuple[int, ...]:
        """The numbers of rows and columns of a filter."""
        return self.weights.shape[-2:]

    @property
    def images(self) -> int:
        """The number of two-dimensional images in the result: batch times depth."""
        shape = self.compute.results[0].shape
        return shape[0] * prod(shape[d] for d in self.written.pixels[:-2])

    @property
    def rows(self) -> tuple[int, int]:
        """The numbers of rows and columns of the result."""
        height, width = (self.compute.results[0].shape[d] for d in self.written.pixels[-2:])
        return height, width


def only_convolution(graph: Graph) -> Convolution | None:
    """The only convolution of a graph whose other computes are elementwise; None for any other graph.

    Computes before it compute its image only; computes after it read its result, and the last of them is the only
    result of the graph. Constants may be anywhere.
    """
    position = next((n for n, node in enumerate(graph.nodes) if _is_contraction(node)), len(graph.nodes))
    before, (first, *after) = graph.nodes[:position], graph.nodes[position:] or (None,)
    after = [node for node in after if not isinstance(node, Constant)]
    if not isinstance(first, Compute) or graph.results != ([first, *after][-1].results[0].name,):
        return None
    convolution = convolution_of(first, graph)
    if convolution is None or not all(_is_on_result(node, convolution, graph) for node in after):
        return None
    return replace(convolution, before=before) if _is_for_image(before, convolution, graph) else None


def _is_contraction(node: Node) -> bool:
    return isinstance(node, Compute) and kind_of(node.block) is Kind.CONTRACTION


def _is_for_image(before: Sequence[Node], convolution: Convolution, graph: Graph) -> bool:
    """Whether nodes are constants, and elementwise computes on which only the convolution's image depends."""
    if any(isinstance(node, Call) for node in before):
        return False
    computes = [node for node in before if isinstance(node, Compute)]
    readers = [reader for node in computes for reader in graph.consumers[node.results[0].name]]
    is_elementwise = all(len(n.results) == 1 and kind_of(n.block) is Kind.ELEMENTWISE for n in computes)
    inside = all(any(reader is each for each in (*computes, convolution.compute)) for reader in readers)
    return is_elementwise and inside and convolution.weights.name not in {node.results[0].name for node in before}


def _is_on_result(node: Node, convolution: Convolution, graph: Graph) -> bool:
    """Whether a node is elementwise, has the shape of a convolution's result, and reads computed values at the indices
    of the element that it computes."""
    if not isinstance(node, Compute):
        return False
    block, shape = node.block, convolution.compute.results[0].shape
    if kind_of(block) is not Kind.ELEMENTWISE or not block.reads:
        return False
    identity = tuple(lin.variable(n) if size > 1 else lin.constant(0) for n, size in enumerate(shape))
    computed = [access for access in block.reads if isinstance(graph.producers.get(access.buffer), Compute)]
    at_own = all(_without_units(access.index, shape) == identity and not access.where for access in computed)
    return at_own and len(node.results) == 1 and node.results[0].shape == shape


def _without_units(index: Sequence[Linear], shape: Sequence[int]) -> tuple[Linear, ...]:
    """An index into `shape`, with 0 in dimensions of extent 1."""
    return tuple(form if size > 1 else lin.constant(0) for form, size in zip(index, shape, strict=True))


def convolution_of(node: Compute, graph: Graph) -> Convolution | None:
    """Match a compute as a convolution with stride 1 of images of two or three dimensions in any layouts; else None."""
    block = node.block
    rank = block.spatial
    if kind_of(block) is not Kind.CONTRACTION or rank not in (4, 5) or len(block.reads) != 2:
        return None
    if len(block.axes) != 2 * rank - 1:
        return None
    if not all(isinstance(operand, Read) for operand in getattr(block.body[0], "operands", ())):
        return None
    layouts = (ImageLayout(False, rank), ImageLayout(True, rank))
    candidates = (_in_layouts(node, graph, read, written) for read in layouts for written in layouts)
    return next((convolution for convolution in candidates if convolution is not None), None)


def _in_layouts(node: Compute, graph: Graph, read: ImageLayout, written: ImageLayout) -> Convolution | None:
    """Match a compute as a convolution with stride 1 that reads its image in the layout `read` and writes its result in
    `written`; None for any other compute."""
    block, rank = node.block, node.block.spatial
    of_filter = tuple(map(lin.variable, (written.channels, *range(rank, len(block.axes)))))
    weights = next((access for access in block.reads if access.index == of_filter), None)
    image = next((access for access in block.reads if access is not weights), None)
    if weights is None or image is None or weights.where or not _is_of_own_image(block, image, read):
        return None
    pixels = zip(read.pixels, written.pixels, range(rank + 1, len(block.axes)), strict=True)
    starts = [image.index[d] - lin.variable(axis) - lin.variable(tap) for d, axis, tap in pixels]
    source, of_filters = graph.values[image.buffer], graph.values[weights.buffer]
    if not all(start.is_constant for start in starts) or not _reads_zero_outside(block, image, source):
        return None
    if any(size > 1 for size in of_filters.shape[2:-2]) or any(start.constant for start in starts[:-2]):
        return None
    pads = (-starts[-2].constant, -starts[-1].constant)
    return Convolution(node, source, of_filters, pads, read, written)


def _is_of_own_image(block: Block, image: Access, layout: ImageLayout) -> bool:
    """Whether the index of an image has the result's batch axis (or 0 for a batch of 1), and the first reduce axis as
    its channel."""
    images = (lin.variable(0),) if block.axes[0].size > 1 else (lin.variable(0), lin.constant(0))
    reads_own_image = len(image.index) == block.spatial and image.index[0] in images
    return reads_own_image and image.index[layout.channels] == lin.variable(block.spatial)


def _reads_zero_outside(block: Block, access: Access, source: Buffer) -> bool:
    """Whether the conditions of a read are bounds of its source, include all bounds that can fail, and give zero where
    they fail."""
    # X[h + r - 1] of extent 8, h in 0..7, r in 0..2: h + r - 1 >= 0 and 8 - h - r >= 0 can fail and must both be there.
    bounds = {Condition(form) for form in access.index}
    bounds |= {Condition(lin.constant(size - 1) - form) for form, size in zip(access.index, source.shape, strict=True)}
    open_bounds = {bound for bound in bounds if not bound.always(block.axis_ranges)}
    return set(access.where) <= bounds and open_bounds <= set(access.where) and _is_zero(access)


def _is_zero(access: Access) -> bool:
    return not access.where or (isinstance(access.otherwise, FloatAttr) and access.otherwise.value.data == 0)
