"""`best`: the permitted form of a graph with the largest estimated gain; `faster_forms`: the forms worth timing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compiler.alternatives.law import Conditions, Form, Law
from compiler.graph.tree import Graph

CLEAR = 1.15
"""The least estimated gain for which a form is taken: below it estimates are as often wrong as right."""
PLAUSIBLE = 0.8
"""The least estimated gain for which a form is worth timing beside the written one."""


@dataclass(frozen=True)
class Chosen:
    """A form of a program with the law that produced it."""

    law: Law
    form: Form


def best(graph: Graph, conditions: Conditions, laws: Sequence[Law]) -> Chosen | None:
    """The permitted form with the largest estimated gain; None if that is below CLEAR, or there is no form."""
    return preferred(faster_forms(graph, conditions, laws))


def preferred(forms: Sequence[Chosen]) -> Chosen | None:
    """The first of `forms`, which are sorted by gain, if its estimated gain is at least CLEAR; else None."""
    return forms[0] if forms and forms[0].form.gain >= CLEAR else None


def faster_forms(graph: Graph, conditions: Conditions, laws: Sequence[Law]) -> tuple[Chosen, ...]:
    """The permitted forms of gain PLAUSIBLE or more: the best of each law, the largest gain first."""
    forms = [offer for offer in offers(graph, conditions, laws) if permitted(offer.form, conditions)]
    by_law: dict[str, Chosen] = {}
    for offer in sorted(forms, key=lambda offer: offer.form.gain, reverse=True):
        if offer.form.gain >= PLAUSIBLE:
            by_law.setdefault(offer.law.name, offer)
    return tuple(by_law.values())


def offers(graph: Graph, conditions: Conditions, laws: Sequence[Law]) -> Iterator[Chosen]:
    """Yield the forms that each law has of a graph, permitted or not.

    >>> from strata.alternatives import PROGRAM_LAWS, Conditions, offers
    >>> A, v = te.placeholder((64, 64), name="A"), te.placeholder((64, 1), name="v")
    >>> f = te.function("f", [A, v], te.nn.matmul(te.nn.matmul(A, A), v, name="B"))
    >>> graph = strata.graph.read(strata.dialects.find_function(f.module))
    >>> [chosen.law.name for chosen in offers(graph, Conditions(strata.targets.MACHINES["avx2"], "fast"), PROGRAM_LAWS)]
    ['chain']
    """
    for law in laws:
        for form in law.forms(graph, conditions):
            yield Chosen(law, form)


def permitted(form: Form, conditions: Conditions) -> bool:
    """Whether the probable error of a form is at most the accepted one, by default that of the written form; True for a
    form without error bounds.

    >>> from strata.alternatives import Conditions, Form, Rounding, permitted
    >>> graph = strata.graph.read(strata.dialects.find_function(te.function("f", [], te.constant([1.0])).module))
    >>> form = Form(graph, 1.5, Rounding(worst=1e-4, probable=1e-5), Rounding(worst=1e-4, probable=1e-6))
    >>> permitted(form, Conditions(strata.targets.MACHINES["avx2"], "fast", error=1e-3))
    True
    >>> permitted(form, Conditions(strata.targets.MACHINES["avx2"], "fast"))  # the written form rounds less
    False
    """
    if form.rounding is None or form.written_rounding is None:
        return True
    accepted = form.written_rounding.probable if conditions.error is None else conditions.error
    return form.rounding.probable <= accepted
