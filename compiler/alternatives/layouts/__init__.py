"""channels-last: images between convolutions with channels innermost, where an estimate prefers that.

relaid.py      a graph with some values channels last
images.py      convolutions, and images that have one layout
estimate.py    the cycles of a compute under layouts
assignment.py  the layouts of the least cycles
"""

from __future__ import annotations

from collections.abc import Iterator, Set

from compiler.alternatives.law import Conditions, Form, Law, Scope
from compiler.alternatives.layouts.assignment import Cost, cost, least
from compiler.alternatives.layouts.estimate import cycles
from compiler.alternatives.layouts.images import tied
from compiler.alternatives.layouts.relaid import relaid
from compiler.graph.tree import Compute, Graph
from compiler.support.text import counted
from compiler.types.machines import Machine

LEAST = 1.02
"""The least gain of a whole program that is worth another layout."""


def _forms(graph: Graph, conditions: Conditions) -> Iterator[Form]:
    """Images channels last: sets of images that have one layout, each plain or channels last."""
    sets = tied(graph) if isinstance(conditions.machine, Machine) else []
    costs = layout_costs(graph, sets, conditions.machine)
    chosen = least(costs)
    if not chosen or not any(chosen.values()):
        return
    last = frozenset().union(*(sets[n] for n, is_last in chosen.items() if is_last))
    computes = [node for node in graph.nodes if isinstance(node, Compute)]
    before, after = (
        sum(cycles(n, graph, names, conditions.machine) for n in computes) for names in (frozenset(), last)
    )
    if before >= LEAST * after:
        yield Form(relaid(graph, last), before / after, where=f"{counted(len(last), 'image')} channels last")


def layout_costs(graph: Graph, sets: list[frozenset[str]], machine) -> list[Cost]:
    """The cycles of each compute by the sets whose members it reads or gives, by their positions."""
    of = {name: n for n, members in enumerate(sets) for name in members}
    costs = []
    for node in graph.nodes:
        names = [name for name in (*node.operands, *(v.name for v in node.results)) if name in of]
        if not isinstance(node, Compute) or not names:
            continue

        def by(values, node=node):
            last: Set[str] = frozenset(name for name in names_of(node) if values.get(of.get(name, -1)))
            return cycles(node, graph, last, machine)

        costs.append(cost(sorted({of[name] for name in names}), by))
    return costs


def names_of(node: Compute) -> tuple[str, ...]:
    return (*node.operands, *(value.name for value in node.results))


CHANNELS_LAST = Law("channels-last", Scope.PROGRAM, _forms)
