"""The estimate by which forms of a te function are compared: cycles of one core."""

from __future__ import annotations

from math import prod

from compiler.graph.grouping.facts import points, scalar_operations, size
from compiler.graph.tree import Compute, Graph
from compiler.types.machines import Gpu, Machine

BYTES = 16
"""The bytes that a core moves in a cycle: between a vector from L2 and an element from memory."""


def cycles(graph: Graph, machine: Machine | Gpu) -> float:
    """The estimated cycles of a call: each compute takes as long as its operations, two vectors of fused
    multiplications a cycle, or as the bytes that it reads and writes."""
    return sum(_cycles(node, graph, machine) for node in graph.nodes if isinstance(node, Compute))


def _cycles(node: Compute, graph: Graph, machine: Machine | Gpu) -> float:
    block = node.block
    instances = prod(axis.size for axis in block.axes)
    operations = instances * (scalar_operations(block) + len(block.combiners))
    read = sum(min(size(graph.values[name]), 4 * instances) for name in block.sources)
    written = points(block) * sum(size(value) // prod(value.shape) for value in node.results)
    return max(operations / (4 * machine.lanes), (read + written) / BYTES)
