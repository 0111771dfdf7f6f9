"""The estimate by which forms of a te function are compared: cycles of one core."""

from __future__ import annotations

from collections.abc import Collection
from math import prod

from compiler.alternatives.law import Conditions
from compiler.graph.grouping.facts import points, scalar_operations, size
from compiler.graph.tree import Call, Compute, Graph
from compiler.program.combiner import Joint
from compiler.types.machines import Gpu, Machine

BYTES = 16
"""The bytes that a core moves in a cycle: a mean between a vector from L2 and an element from memory."""


def gain(written: Graph, other: Graph, conditions: Conditions) -> float:
    """The estimated cycles of `written` over those of its form `other`; above 1 if `other` is faster."""
    return cycles(written, conditions) / max(cycles(other, conditions), 1)


def cycles(graph: Graph, conditions: Conditions) -> float:
    """Estimate the cycles of a call of a graph: the sum over its computes, without those of constants only.

    A compute takes the longer of its operations, at two vectors of fused multiply-adds a cycle, and of the bytes that
    it reads and writes, at BYTES a cycle. Joint reductions are not vectorized.

    >>> A = te.placeholder((64,), name="A")
    >>> graph = strata.graph.read(strata.dialects.find_function(te.function("f", [A], te.nn.relu(A)).module))
    >>> strata.alternatives.cycles(graph, strata.alternatives.Conditions(strata.targets.MACHINES["avx2"], "fast"))
    32.0
    """
    fixed_values = constant_values(graph, conditions.constants)
    computes = [node for node in graph.nodes if isinstance(node, Compute) and node.results[0].name not in fixed_values]
    return sum(_cycles(node, graph, conditions.machine) for node in computes)


def constant_values(graph: Graph, constants: Collection[str]) -> set[str]:
    """The names of values that depend on constants only: on inputs in `constants` and on constants of the graph. The
    names in `constants` are included, results of calls are not."""
    fixed_values = set(constants)
    for node in graph.nodes:
        if not isinstance(node, Call) and fixed_values.issuperset(node.operands):
            fixed_values.update(value.name for value in node.results)
    return fixed_values


def _cycles(node: Compute, graph: Graph, machine: Machine | Gpu) -> float:
    block = node.block
    instances = prod(axis.size for axis in block.axes)
    operations = instances * (scalar_operations(block) + len(block.combiners))
    read = sum(min(size(graph.values[name]), 4 * instances) for name in block.sources)
    written = points(block) * sum(size(value) // prod(value.shape) for value in node.results)
    lanes = 1 if any(isinstance(combiner, Joint) for combiner in block.combiners) else machine.lanes
    return max(operations / (4 * lanes), (read + written) / BYTES)
