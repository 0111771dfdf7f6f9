"""Laws on a whole te function, before it is grouped."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from compiler.alternatives.choice import offers, permitted
from compiler.alternatives.law import Conditions, Law
from compiler.graph.canonical import Canonical, canonical
from compiler.graph.tree import Graph
from compiler.graph.whole import Rewrite

MOST = 1000
"""The most forms that are taken one after another, so that laws of plugins that undo each other come to an end."""


def preferred(conditions: Conditions, constants: Collection[int], laws: Sequence[Law]) -> Rewrite:
    """The rewrite of a program to its best form, for `whole`; `constants` are the positions of inputs that never
    change."""

    def rewrite(graph: Graph) -> Canonical | None:
        known = frozenset(value.name for n, value in enumerate(graph.inputs) if n in constants)
        return rewritten(graph, replace(conditions, constants=known), laws).form

    return rewrite


@dataclass(frozen=True)
class Applied:
    """A form that was taken: its law, its gain, and what it replaces by what, under the names of the graph."""

    law: str
    gain: float
    where: str


@dataclass(frozen=True)
class Rewritten:
    """A graph in other forms: the graph, its canonical form with the names of the written graph, None where no form is
    taken, and the forms in their order."""

    graph: Graph
    form: Canonical | None
    applied: tuple[Applied, ...]


def rewritten(graph: Graph, conditions: Conditions, laws: Sequence[Law]) -> Rewritten:
    """A graph in its best form, canonical: each law's form of the largest gain, one after another, while one gains.

    Inputs and results keep their order, and inputs of the canonical names `a0`, `a1` ... keep these, so that the
    conditions hold throughout. A graph of which no form gains is returned as it is.
    """
    form: Canonical | None = None
    applied = list[Applied]()
    while len(applied) < MOST:
        allowed = [offer for offer in offers(graph, conditions, laws) if permitted(offer.form, conditions)]
        chosen = max(allowed, key=lambda offer: offer.form.gain, default=None)
        if chosen is None or chosen.form.gain <= 1:
            break
        where = chosen.form.where if form is None else form.names.spoken(chosen.form.where)
        applied.append(Applied(chosen.law.name, chosen.form.gain, where))
        made = canonical(chosen.form.graph)
        form = made if form is None else replace(made, names=made.names.after(form.names))
        graph = form.graph
    return Rewritten(graph, form, tuple(applied))
