"""Groups around one convolution, as data that laws match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    """A convolution of two dimensions with stride 1: Y[n, k, h, w] += X[n, c, h + r - pads[0], w + s - pads[1]] *
    W[k, c, r, s], where X is zero outside."""

    compute: Compute
    image: Buffer
    weights: Buffer
    pads: tuple[int, int]

    @property
    def taps(self) -> tuple[int, ...]:
        """Rows and columns of a filter."""
        return self.weights.shape[2:]

    @property
    def shape(self) -> tuple[int, ...]:
        """Images, filters, rows and columns of the result."""
        return self.compute.results[0].shape


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
    if kind_of(block) is not Kind.CONTRACTION or block.spatial != 4 or len(block.axes) != 7 or len(block.reads) != 2:
        return None
    if not all(isinstance(operand, Read) for operand in getattr(block.body[0], "operands", ())):
        return None
    weights = next((a for a in block.reads if a.index == tuple(map(lin.variable, (1, 4, 5, 6)))), None)
    image = next((a for a in block.reads if a is not weights), None)
    if weights is None or image is None or weights.where or not _is_of_own_image(block, image):
        return None
    rows, columns = (image.index[2 + n] - lin.variable(2 + n) - lin.variable(5 + n) for n in range(2))
    source = graph.values[image.buffer]
    if not (rows.is_constant and columns.is_constant) or not _reads_zero_outside(block, image, source):
        return None
    return Convolution(node, source, graph.values[weights.buffer], (-rows.constant, -columns.constant))


def _is_of_own_image(block: Block, image: Access) -> bool:
    """Whether a read is of the result's image and the reduction's channel."""
    if len(image.index) != 4:
        return False
    images = (lin.variable(0),) if block.axes[0].size > 1 else (lin.variable(0), lin.constant(0))
    return image.index[0] in images and image.index[1] == lin.variable(4)


def _reads_zero_outside(block: Block, access: Access, source: Buffer) -> bool:
    """Whether the conditions of a read are those of its bounds, and zero is read beyond them."""
    bounds = {Condition(form) for form in access.index}
    bounds |= {Condition(lin.constant(size - 1) - form) for form, size in zip(access.index, source.shape, strict=True)}
    open_bounds = {bound for bound in bounds if not bound.always(block.axis_ranges)}
    return set(access.where) <= bounds and open_bounds <= set(access.where) and _is_zero(access)


def _is_zero(access: Access) -> bool:
    return not access.where or (isinstance(access.otherwise, FloatAttr) and access.otherwise.value.data == 0)
