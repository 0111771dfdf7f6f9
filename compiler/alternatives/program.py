"""Laws on a whole te function, before it is grouped."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from compiler.alternatives.choice import Chosen, offers, permitted
from compiler.alternatives.law import Conditions, Law
from compiler.graph.canonical import Canonical, canonical
from compiler.graph.provenance import Provenance
from compiler.graph.tree import Graph
from compiler.graph.whole import Rewrite

MOST = 1000
"""The most forms that are taken one after another, so that laws of plugins that undo each other come to an end."""


@dataclass(frozen=True)
class Applied:
    """A form that was taken: its law, its gain, and what it replaces by what, under the names of the graph."""

    law: str
    gain: float
    where: str


def preferred(
    conditions: Conditions,
    constants: Collection[int],
    laws: Sequence[Law],
    taken: Callable[[Applied], object] = lambda applied: None,
) -> Rewrite:
    """The rewrite of a program to its best form, for `whole`; `constants` are the positions of inputs that never
    change, `taken` is called with each form that is taken."""

    def rewrite(graph: Graph) -> Canonical | None:
        known = frozenset(value.name for n, value in enumerate(graph.inputs) if n in constants)
        made = rewritten(graph, replace(conditions, constants=known), laws)
        for applied in made.applied:
            taken(applied)
        return made.form

    return rewrite


@dataclass(frozen=True)
class Rewritten:
    """A graph in other forms: the graph, its canonical form with the names of the written graph, None where no form is
    taken, and the forms in their order."""

    graph: Graph
    form: Canonical | None
    applied: tuple[Applied, ...]


def rewritten(graph: Graph, conditions: Conditions, laws: Sequence[Law]) -> Rewritten:
    """A graph in its best form, canonical: the form of the largest gain, one after another, while one gains.

    Inputs and results keep their order, and inputs of the canonical names `a0`, `a1` ... keep these, so that the
    conditions hold throughout. A graph of which no form gains is returned as it is.
    """
    form, applied, is_canonical = Canonical(graph, Provenance(), (), (), {}), list[Applied](), True
    while len(applied) < MOST:
        chosen = _gaining(graph, conditions, laws)
        if chosen is not None:
            applied.append(Applied(chosen.law.name, chosen.form.gain, form.names.spoken(chosen.form.where)))
            graph, is_canonical = chosen.form.graph, False
        elif is_canonical:
            break
        else:
            form, is_canonical = _canonical(graph, form), True
            graph = form.graph
    form = form if is_canonical else _canonical(graph, form)
    return Rewritten(form.graph, form if applied else None, tuple(applied))


def _canonical(graph: Graph, former: Canonical) -> Canonical:
    """The canonical form of a graph that is made of a former one, with the names that this one has."""
    form = canonical(graph)
    return replace(form, names=form.names.after(former.names))


def _gaining(graph: Graph, conditions: Conditions, laws: Sequence[Law]) -> Chosen | None:
    """The permitted form with the largest gain; None where none gains."""
    allowed = [offer for offer in offers(graph, conditions, laws) if permitted(offer.form, conditions)]
    chosen = max(allowed, key=lambda offer: offer.form.gain, default=None)
    return chosen if chosen is not None and chosen.form.gain > 1 else None
