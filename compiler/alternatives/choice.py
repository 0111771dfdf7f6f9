"""`best`: the form of a graph that an estimate prefers among those that laws offer and the caller permits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compiler.alternatives.law import Conditions, Form, Law
from compiler.graph.tree import Graph

CLEAR = 1.15
"""The least estimated gain of a form that is taken: below it estimates are off as often as right."""


@dataclass(frozen=True)
class Chosen:
    """A form, and the law that offers it."""

    law: Law
    form: Form


def best(graph: Graph, conditions: Conditions, laws: Sequence[Law]) -> Chosen | None:
    """The permitted form with the largest estimated gain; None where the written form is the fastest."""
    forms = [offer for offer in offers(graph, conditions, laws) if permitted(offer.form, conditions)]
    chosen = max(forms, key=lambda offer: offer.form.gain, default=None)
    return chosen if chosen is not None and chosen.form.gain >= CLEAR else None


def offers(graph: Graph, conditions: Conditions, laws: Sequence[Law]) -> Iterator[Chosen]:
    """All forms of a graph."""
    for law in laws:
        for form in law.forms(graph, conditions):
            yield Chosen(law, form)


def permitted(form: Form, conditions: Conditions) -> bool:
    """Whether a form's probable error is no larger than what the caller accepts, or else than the written form's."""
    if form.rounding is None or form.written_rounding is None:
        return True
    accepted = form.written_rounding.probable if conditions.error is None else conditions.error
    return form.rounding.probable <= accepted
