"""The estimate of a compute's cycles under the layouts of what it reads and gives."""

from __future__ import annotations

from collections.abc import Set
from math import prod

from compiler.affine import linear as lin
from compiler.alternatives.cost import BYTES
from compiler.alternatives.layouts.images import Filtering, filtering
from compiler.alternatives.layouts.layout import channels_last
from compiler.graph.grouping.facts import points, scalar_operations, size
from compiler.graph.tree import Compute, Graph
from compiler.program.tree import Access
from compiler.types.machines import Gpu, Machine

TRANSPOSED = 1.05
"""What a convolution costs whose tiles are transposed from filters to pixels when they are stored."""
DEPTHWISE, DEPTHWISE_LAST = 3.8, 3.6
"""What a depthwise convolution costs, as a factor of its multiplications, by pixels and by channels."""
STRIDED = 1.8
"""What its columns that are taken apart cost, by pixels."""
GROUPED = 10.0
"""What a grouped convolution costs that has fewer channels in a group than a vector has lanes."""
MIXED = 12.0
"""What these cost, as a factor, where an image or a result lies otherwise than vectors of it need."""
GATHERED = 1.25
"""What a convolution of one tap costs, as a factor, whose image is transposed when it is packed."""
SCATTERED = 4.0
"""What reads cost that are not of neighbours."""


def cycles(node: Compute, graph: Graph, last: Set[str], machine: Machine | Gpu) -> float:
    """The cycles of a compute where some values lie channels last."""
    found, value = filtering(node), node.results[0].name
    if found is None:
        return _moved(node, graph, last, machine)
    work = prod(axis.size for axis in node.block.axes) / (2 * machine.lanes)
    return work * _factor(found, graph, value in last, found.image.buffer in last, machine.lanes)


def copying(name: str, graph: Graph) -> float:
    """The cycles in which a result of a graph is copied from channels last."""
    return SCATTERED * 2 * size(graph.values[name]) / BYTES


def _factor(found: Filtering, graph: Graph, to_last: bool, from_last: bool, lanes: int) -> float:
    """What a convolution costs, as a factor of its multiplications."""
    shape = found.node.results[0].shape
    idle = _padded(shape[1], lanes)
    if found.is_depthwise:
        factor = DEPTHWISE_LAST * idle if to_last else DEPTHWISE * (STRIDED if found.is_strided else 1)
        return factor * (MIXED if to_last != from_last else 1)
    if found.is_grouped:
        channels = found.node.block.axes[found.node.block.spatial].size
        return (GROUPED if channels < lanes else TRANSPOSED) * (MIXED if to_last or from_last else 1)
    if to_last:
        return idle
    if found.taps > 1 or found.is_transposed:
        return TRANSPOSED * idle
    packed = 2 * size(graph.values[found.image.buffer]) / BYTES
    work = prod(axis.size for axis in found.node.block.axes) / (2 * lanes)
    plain = TRANSPOSED * min(idle, _padded(prod(shape[2:]), lanes)) + packed / work
    return plain * (GATHERED if from_last else 1)


def _padded(extent: int, lanes: int) -> float:
    """Lanes of whole vectors over those that are used."""
    return -(-extent // lanes) * lanes / extent


def _moved(node: Compute, graph: Graph, last: Set[str], machine: Machine | Gpu) -> float:
    """The cycles of a compute that is limited by what it moves."""
    block, value = node.block, node.results[0]
    operations = prod(axis.size for axis in block.axes) * (scalar_operations(block) + len(block.combiners))
    inner = 1 if value.name in last else block.spatial - 1
    scattered = any(not _is_near(access, block.spatial, inner, graph, last) for access in block.reads)
    read = sum(min(size(graph.values[name]), 4 * prod(a.size for a in block.axes)) for name in block.sources)
    written = points(block) * sum(size(v) // prod(v.shape) for v in node.results)
    factor = SCATTERED if scattered else 1.0
    return factor * max(operations / (4 * machine.lanes), (read + written) / BYTES)


def _is_near(access: Access, spatial: int, inner: int, graph: Graph, last: Set[str]) -> bool:
    """Whether a read is of neighbours along the innermost axis of the result, or along an axis of the reduction."""
    shape, index = graph.values[access.buffer].shape, access.index
    if access.buffer in last:
        shape, index = channels_last(shape), channels_last(index)
    place = lin.offset(index, shape)
    if place.coefficient(inner) in (0, 1):
        return True
    return any(place.coefficient(n) == 1 for n in place.variables() if n >= spatial)
