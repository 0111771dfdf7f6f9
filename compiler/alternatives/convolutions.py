"""Groups around one convolution, as data that laws match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import FloatAttr

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.graph.grouping import Kind
from compiler.graph.grouping.facts import kind_of
from compiler.graph.tree import Compute, Graph, Node
from compiler.program.body import Read
from compiler.program.tree import Access, Block, Buffer


@dataclass(frozen=True)
class Convolution:
    """A convolution with stride 1: Y[n, k, h, w] += X[n, c, h + r - pads[0], w + s - pads[1]] * W[k, c, r, s], where X
    is zero outside. In three dimensions filters have one tap in the first, in which results lie as images do:
    Y[n, k, d, h, w] of X[n, c, d, ...] and W[k, c, 0, r, s]."""

    compute: Compute
    image: Buffer
    weights: Buffer
    pads: tuple[int, int]

    @property
    def taps(self) -> tuple[int, ...]:
        """Rows and columns of a filter."""
        return self.weights.shape[-2:]

    @property
    def images(self) -> int:
        """Images of rows and columns."""
        return prod(self.image.shape) // prod((self.image.shape[1], *self.image.shape[-2:]))

    @property
    def rows(self) -> tuple[int, int]:
        """Rows and columns of the result."""
        return self.compute.results[0].shape[-2], self.compute.results[0].shape[-1]


def only_convolution(graph: Graph) -> Convolution | None:
    """The convolution of a graph that begins with one, and whose other computes are elementwise on its result, the last
    of them the only result of the graph; None for any other graph."""
    first, *after = graph.nodes
    if not isinstance(first, Compute) or not all(isinstance(node, Compute) for node in after):
        return None
    found = convolution_of(first, graph)
    last = graph.nodes[-1].results[0]
    if found is None or graph.results != (last.name,) or not all(_is_on_result(n, first, graph) for n in graph.nodes):
        return None
    return found


def _is_on_result(node: Node, convolution: Compute, graph: Graph) -> bool:
    """Whether a compute is the convolution or an elementwise one of its shape, which reads what is computed at its own
    indices."""
    assert isinstance(node, Compute)
    block, shape = node.block, convolution.results[0].shape
    if node is not convolution and (kind_of(block) is not Kind.ELEMENTWISE or not block.reads):
        return False
    own = tuple(lin.variable(n) if size > 1 else lin.constant(0) for n, size in enumerate(shape))
    computed = [access for access in block.reads if access.buffer in graph.producers]
    at_own = all(_without_units(access.index, shape) == own and not access.where for access in computed)
    return at_own and len(node.results) == 1 and node.results[0].shape == shape


def _without_units(index: Sequence[Linear], shape: Sequence[int]) -> tuple[Linear, ...]:
    """An index into a shape, with 0 in dimensions of one element."""
    return tuple(form if size > 1 else lin.constant(0) for form, size in zip(index, shape, strict=True))


def convolution_of(node: Compute, graph: Graph) -> Convolution | None:
    """A compute as a convolution with stride 1; None where it is none."""
    block = node.block
    spatial = block.spatial
    if kind_of(block) is not Kind.CONTRACTION or spatial not in (4, 5) or len(block.reads) != 2:
        return None
    if not all(isinstance(operand, Read) for operand in getattr(block.body[0], "operands", ())):
        return None
    of_filter = tuple(map(lin.variable, (1, *range(spatial, len(block.axes)))))
    weights = next((a for a in block.reads if a.index == of_filter and len(of_filter) == spatial), None)
    image = next((a for a in block.reads if a is not weights), None)
    if weights is None or image is None or weights.where or not _is_of_own_image(block, image):
        return None
    starts = [image.index[n] - lin.variable(n) - lin.variable(spatial - 1 + n) for n in range(2, spatial)]
    source, of_filters = graph.values[image.buffer], graph.values[weights.buffer]
    if not all(start.is_constant for start in starts) or not _reads_zero_outside(block, image, source):
        return None
    if any(size > 1 for size in of_filters.shape[2:-2]) or any(start.constant for start in starts[:-2]):
        return None
    return Convolution(node, source, of_filters, (-starts[-2].constant, -starts[-1].constant))


def _is_of_own_image(block: Block, image: Access) -> bool:
    """Whether a read is of the result's image and the reduction's channel."""
    images = (lin.variable(0),) if block.axes[0].size > 1 else (lin.variable(0), lin.constant(0))
    own = len(image.index) == block.spatial and image.index[0] in images
    return own and image.index[1] == lin.variable(block.spatial)


def _reads_zero_outside(block: Block, access: Access, source: Buffer) -> bool:
    """Whether the conditions of a read are those of its bounds, and zero is read beyond them."""
    bounds = {Condition(form) for form in access.index}
    bounds |= {Condition(lin.constant(size - 1) - form) for form, size in zip(access.index, source.shape, strict=True)}
    open_bounds = {bound for bound in bounds if not bound.always(block.axis_ranges)}
    return set(access.where) <= bounds and open_bounds <= set(access.where) and _is_zero(access)


def _is_zero(access: Access) -> bool:
    return not access.where or (isinstance(access.otherwise, FloatAttr) and access.otherwise.value.data == 0)
