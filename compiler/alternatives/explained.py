"""For each law where it applies to a te function, or why it does not, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from compiler.alternatives.choice import permitted
from compiler.alternatives.law import Conditions, Form, Law
from compiler.alternatives.program import rewritten
from compiler.graph.provenance import Provenance
from compiler.graph.tree import Graph

_FREEST = "fast"
"""The policy that permits what any other one does."""


def explanations(graph: Graph, conditions: Conditions, laws: Sequence[Law], names: Provenance) -> Iterator[str]:
    """For each law of whole functions the places where it applies to a canonical graph, a line each, or one line that
    says why it does not. `names` is what the program calls the parts of the graph."""
    made = rewritten(graph, conditions, laws)
    for law in laws:
        taken = [applied for applied in made.applied if applied.law == law.name]
        lines = [f"{applied.where}, for a gain of {applied.gain:.3g}" for applied in taken]
        for line in lines or [refusal(law, graph, conditions)]:
            yield names.spoken(f"{law.name}: {line}")


def refusal(law: Law, graph: Graph, conditions: Conditions) -> str:
    """Why a law does not apply to a graph: the first condition without which it would."""
    best = _best(law, graph, conditions)
    if best is not None:
        return f"it does not pay: {best.where}, for a gain of {best.gain:.3g}"
    exact = next(law.forms(graph, conditions), None)
    if exact is not None and exact.rounding is not None:
        bound = f"max|y - y64| / max|y| <= {exact.rounding.probable:.2g}"
        return f"it errs more than is accepted: {exact.where}, {bound}"
    free = _best(law, graph, replace(conditions, policy=_FREEST))
    if free is not None:
        return f"the policy {conditions.policy} does not permit it: under {_FREEST} {free.where}"
    every = frozenset(value.name for value in graph.inputs)
    fixed = _best(law, graph, replace(conditions, policy=_FREEST, constants=every))
    if fixed is not None:
        return f"inputs would have to be constant: {fixed.where}"
    return "nothing in the program has its form"


def _best(law: Law, graph: Graph, conditions: Conditions) -> Form | None:
    """A law's form with the largest gain; None where there is none."""
    forms = (form for form in law.forms(graph, conditions) if permitted(form, conditions))
    return max(forms, key=lambda form: form.gain, default=None)
