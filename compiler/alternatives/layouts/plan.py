"""The layouts of a graph's images with the fewest estimated cycles, and the law that chooses them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from compiler.alternatives.law import Conditions, Form, Law, LawScope
from compiler.alternatives.layouts.assignment import CostTable, cost, minimum_assignment
from compiler.alternatives.layouts.estimate import copy_cycles, cycles
from compiler.alternatives.layouts.images import layout_sets
from compiler.alternatives.layouts.relaid import relaid
from compiler.graph.tree import Compute, Graph
from compiler.support.text import counted
from compiler.types.machines import Gpu, Machine

LEAST = 1.03
"""The least estimated gain of a whole program for which layouts change."""


def _forms(graph: Graph, conditions: Conditions) -> Iterator[Form]:
    """Store images between convolutions with their channels as the last dimension.

        %Y = te.compute "Y" [n = 1, k = 64, h = 14, w = 14, reduce c = 32, ...] (%x = %X[n, c, h, w], ...)
      ->
        %Y = te.compute "Y" [n = 1, h = 14, w = 14, k = 64, reduce c = 32] (%x = %X[n, h, w, c], ...)

    No step converts an image: convolutions read and write either layout, and an estimate decides which one is faster.
    Results have the same bits up to the order of a sum over channels and taps, which te leaves open. Inputs of the
    program, and images that other contractions read, keep their layout; results are copied.
    """
    machine = conditions.machine
    if machine.lanes < 2:
        return  # channels go into lanes
    last = choose_layouts(graph, machine)
    before, after = (_total(graph, names, machine) for names in (frozenset[str](), last))
    if last and before >= LEAST * after:
        yield Form(relaid(graph, last), before / after, where=f"{counted(len(last), 'image')} channels last")


def choose_layouts(graph: Graph, machine: Machine | Gpu) -> frozenset[str]:
    """The names of values to store channels last, by the fewest estimated cycles. Empty if the exact search would be
    too large, or if each chosen set has a result, which has to be copied."""
    sets = layout_sets(graph)
    chosen = minimum_assignment(layout_costs(graph, sets, machine)) or {}
    last = [sets[n] for n, is_last in chosen.items() if is_last]
    between = any(members.isdisjoint(graph.results) for members in last)
    return frozenset[str]().union(*last) if between else frozenset()


def layout_costs(graph: Graph, sets: Sequence[frozenset[str]], machine: Machine | Gpu) -> list[CostTable]:
    """Tables of the estimated cycles of each compute and of each copy of a result. Variable n is true if the set at
    position n is channels last; the cost of a compute depends on the sets of its operands and results."""
    position = {name: n for n, members in enumerate(sets) for name in members}
    computes = [node for node in graph.nodes if isinstance(node, Compute)]
    touched = ({position[name] for name in _names(node) if name in position} for node in computes)
    copies = [
        CostTable((position[name],), {(False,): 0.0, (True,): copy_cycles(name, graph)})
        for name in dict.fromkeys(graph.results)
        if name in position
    ]
    return copies + [
        cost(sorted(variables), partial(_cycles, node=node, graph=graph, sets=sets, machine=machine))
        for node, variables in zip(computes, touched, strict=True)
        if variables
    ]


def _cycles(
    values: Mapping[int, bool],
    node: Compute,
    graph: Graph,
    sets: Sequence[frozenset[str]],
    machine: Machine | Gpu,
) -> float:
    last = frozenset(name for n, is_last in values.items() if is_last for name in sets[n])
    return cycles(node, graph, last & set(_names(node)), machine)


def _names(node: Compute) -> tuple[str, ...]:
    return (*node.operands, *(value.name for value in node.results))


def _total(graph: Graph, last: frozenset[str], machine: Machine | Gpu) -> float:
    computed = sum(cycles(node, graph, last, machine) for node in graph.nodes if isinstance(node, Compute))
    return computed + sum(copy_cycles(name, graph) for name in last.intersection(graph.results))


CHANNELS_LAST = Law("channels-last", LawScope.PROGRAM, _forms)
