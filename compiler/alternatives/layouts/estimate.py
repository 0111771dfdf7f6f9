"""The estimate of a compute's cycles under the layouts of its operands and result."""

from __future__ import annotations

from collections.abc import Set
from math import prod

from compiler.affine import linear as lin
from compiler.alternatives.cost import BYTES
from compiler.alternatives.layouts.images import ImageConvolution, image_convolution
from compiler.alternatives.layouts.layout import channels_last
from compiler.graph.grouping.facts import points, scalar_operations, size
from compiler.graph.tree import Compute, Graph
from compiler.program.tree import Access
from compiler.types.machines import Gpu, Machine

TRANSPOSED = 1.05
"""The cost, relative to its multiplications, of a convolution whose tiles are transposed to store a plain result."""
DEPTHWISE, DEPTHWISE_LAST = 3.8, 3.6
"""The cost of a depthwise convolution relative to its multiplications, vectorized by pixels, and by channels."""
STRIDED = 1.8
"""The cost factor of a strided depthwise convolution vectorized by pixels, whose columns are deinterleaved."""
GROUPED = 10.0
"""The cost, relative to its multiplications, of a grouped convolution with fewer channels in a group than lanes."""
MIXED = 12.0
"""The cost factor of depthwise and grouped convolutions whose image or result has a layout unfit for their vectors."""
GATHERED = 1.25
"""The cost factor of a 1x1 convolution whose image is transposed when it is packed."""
SCATTERED = 4.0
"""The cost factor of reads of elements that are not neighbours in memory."""


def cycles(node: Compute, graph: Graph, last: Set[str], machine: Machine | Gpu) -> float:
    """Return the estimated clock cycles of a compute if the values in `last` are channels last and all others plain."""
    convolution, value = image_convolution(node), node.results[0].name
    if convolution is None:
        return _moved(node, graph, last, machine)
    work = prod(axis.size for axis in node.block.axes) / (2 * machine.lanes)
    return work * _factor(convolution, graph, value in last, convolution.image.buffer in last, machine.lanes)


def copy_cycles(name: str, graph: Graph) -> float:
    """The estimated cycles of the copy of a result from channels last to the plain layout."""
    return SCATTERED * 2 * size(graph.values[name]) / BYTES


def _factor(convolution: ImageConvolution, graph: Graph, to_last: bool, from_last: bool, lanes: int) -> float:
    """Return the cost of a convolution relative to its multiply-adds, for vectors of `lanes` elements. `to_last`,
    `from_last`: whether its result, and its image, are channels last."""
    shape = convolution.node.results[0].shape
    idle = _padded(shape[1], lanes)
    if convolution.is_depthwise:
        factor = DEPTHWISE_LAST * idle if to_last else DEPTHWISE * (STRIDED if convolution.is_strided else 1)
        return factor * (MIXED if to_last != from_last else 1)
    if convolution.is_grouped:
        channels = convolution.node.block.axes[convolution.node.block.spatial].size
        return (GROUPED if channels < lanes else TRANSPOSED) * (MIXED if to_last or from_last else 1)
    if to_last:
        return idle
    if convolution.taps > 1 or convolution.is_transposed:
        return TRANSPOSED * idle
    packed = 2 * size(graph.values[convolution.image.buffer]) / BYTES
    work = prod(axis.size for axis in convolution.node.block.axes) / (2 * lanes)
    plain = TRANSPOSED * min(idle, _padded(prod(shape[2:]), lanes)) + packed / work
    return plain * (GATHERED if from_last else 1)


def _padded(extent: int, lanes: int) -> float:
    """The extent rounded up to whole vectors of `lanes`, relative to the extent."""
    return -(-extent // lanes) * lanes / extent


def _moved(node: Compute, graph: Graph, last: Set[str], machine: Machine | Gpu) -> float:
    """The estimated cycles of a compute that is no convolution: the longer of its operations and its traffic, times
    SCATTERED if a read is not contiguous. Values in `last` are channels last."""
    block, value = node.block, node.results[0]
    operations = prod(axis.size for axis in block.axes) * (scalar_operations(block) + len(block.combiners))
    inner = 1 if value.name in last else block.spatial - 1
    scattered = any(not _is_near(access, block.spatial, inner, graph, last) for access in block.reads)
    read = sum(min(size(graph.values[name]), 4 * prod(a.size for a in block.axes)) for name in block.sources)
    written = points(block) * sum(size(v) // prod(v.shape) for v in node.results)
    factor = SCATTERED if scattered else 1.0
    return factor * max(operations / (4 * machine.lanes), (read + written) / BYTES)


def _is_near(access: Access, spatial: int, inner: int, graph: Graph, last: Set[str]) -> bool:
    """Whether a read has stride 0 or 1 along the result's innermost axis `inner`, or stride 1 along a reduce axis, from
    `spatial` on. Values in `last` are channels last."""
    shape, index = graph.values[access.buffer].shape, access.index
    if access.buffer in last:
        shape, index = channels_last(shape), channels_last(index)
    offset = lin.offset(index, shape)
    if offset.coefficient(inner) in (0, 1):
        return True
    return any(offset.coefficient(n) == 1 for n in offset.variables() if n >= spatial)
