"""A graph is a te function as data: inputs, nodes in an order that respects their dependences, and results.

A value is a `Buffer` whose name is unique in the graph. A compute is the `Block` of `compiler.program.tree` without
bindings, guard and writes: its results are indexed by its spatial axes in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import is_
from typing import TypeAlias

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr
from xdsl.ir import Attribute

from compiler.dialects.dense import DenseAttr
from compiler.program.body import Read
from compiler.program.tree import Access, Block, Buffer


@dataclass(frozen=True)
class Compute:
    """A te.compute or, where the block has a table, a te.gather.

    >>> A = te.placeholder((4,), name="A")
    >>> function = strata.dialects.find_function(te.function("f", [A], te.nn.exp(A, name="B")).module)
    >>> (compute,) = strata.graph.read(function).nodes
    >>> compute.operands, compute.results[0].name
    (('A',), 'B')
    """

    block: Block
    results: tuple[Buffer, ...]

    @property
    def operands(self) -> tuple[str, ...]:
        """The names of the values that the compute reads, a gather's table included, each once."""
        return self.block.sources

    def copied(self, position: int) -> Access | None:
        """The read whose elements the result at `position` copies; None for a result that is computed or gathered."""
        block, value = self.block, self.block.body[position]
        if block.combiners or block.table is not None or not isinstance(value, Read):
            return None
        return block.reads[value.position]


@dataclass(frozen=True)
class Constant:
    """A te.constant; `value` is the attribute with its elements.

    >>> f = te.function("f", [], te.nn.exp(te.constant([1.0, 2.0], name="W")))
    >>> constant, compute = strata.graph.read(strata.dialects.find_function(f.module)).nodes
    >>> constant.results[0].shape, compute.operands
    ((2,), ('W',))
    """

    value: DenseAttr
    results: tuple[Buffer]
    operands: tuple[str, ...] = ()


@dataclass(frozen=True)
class Call:
    """A func.call of the function `callee` of the same module; `operands` are the names of values. `location` is that
    of what this call computes; equality ignores it."""

    callee: str
    operands: tuple[str, ...]
    results: tuple[Buffer, ...]
    location: LocationAttr = field(default=UNKNOWN_LOC, compare=False)


Node: TypeAlias = Compute | Constant | Call


@dataclass(frozen=True)
class Graph:
    """A te function: inputs, nodes in an order of execution, and the names of its results. `private`: only functions of
    its module call it. `attributes` are those of the function except its name, type and visibility.

    >>> A = te.placeholder((4,), name="A")
    >>> function = strata.dialects.find_function(te.function("f", [A], te.nn.exp(A, name="B")).module)
    >>> graph = strata.graph.read(function)
    >>> graph.name, graph.results, len(graph.nodes)
    ('f', ('B',), 1)
    """

    name: str
    inputs: tuple[Buffer, ...]
    nodes: tuple[Node, ...]
    results: tuple[str, ...]
    private: bool = False
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    location: LocationAttr = field(default=UNKNOWN_LOC, compare=False)

    def with_nodes(self, nodes: Sequence[Node]) -> Graph:
        """The graph with other nodes; the same object if `nodes` are identical to its nodes."""
        same = len(nodes) == len(self.nodes) and all(map(is_, nodes, self.nodes))
        return self if same else replace(self, nodes=tuple(nodes))

    @cached_property
    def values(self) -> dict[str, Buffer]:
        """Map the name of each input and node result to its buffer."""
        return {v.name: v for v in (*self.inputs, *(v for node in self.nodes for v in node.results))}

    @cached_property
    def producers(self) -> dict[str, Node]:
        """Map the name of each value that is no input to the node that computes it."""
        return {v.name: node for node in self.nodes for v in node.results}

    @cached_property
    def consumers(self) -> dict[str, list[Node]]:
        """Map the name of each value to the nodes that read it, each once, in the order of the graph; [] if no node
        reads it."""
        readers: dict[str, list[Node]] = {name: [] for name in self.values}
        for node in self.nodes:
            for name in node.operands:
                if not readers[name] or readers[name][-1] is not node:
                    readers[name].append(node)
        return readers
