"""Sentences on where each law applies to a te function, or why it does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from compiler.alternatives.choice import best, permitted
from compiler.alternatives.law import Conditions, Form, Law
from compiler.alternatives.program import rewrite_graph
from compiler.graph.provenance import Provenance
from compiler.graph.tree import Graph

_FREEST = "fast"
"""The floating-point policy that permits all that other policies permit."""


def explanations(graph: Graph, conditions: Conditions, laws: Sequence[Law], names: Provenance) -> Iterator[str]:
    """Yield for each law of whole functions a line for each form of it that is taken for a canonical graph, or a line
    with the reason why none is. `names` are the user's names in the graph."""
    rewriting = rewrite_graph(graph, conditions, laws)
    for law in laws:
        applications = [applied for applied in rewriting.applied if applied.law == law.name]
        lines = [f"{applied.where}, for a gain of {applied.gain:.3g}" for applied in applications]
        for line in lines or [refusal(law, graph, conditions)]:
            yield names.with_user_names(f"{law.name}: {line}")


@dataclass(frozen=True)
class NamedGroup:
    """A canonical group (`graph`), the names of its inputs that are the same in all calls (`constants`), and the
    names that the user gave to its values (`names`)."""

    graph: Graph
    constants: frozenset[str]
    names: Provenance


def group_explanations(groups: Sequence[NamedGroup], conditions: Conditions, laws: Sequence[Law]) -> Iterator[str]:
    """Yield for each law of groups a line for each group that gets a form of it, or, if no group does, the first
    refusal that is not NOWHERE, else NOWHERE."""
    group_conditions = [replace(conditions, constants=group.constants) for group in groups]
    chosen = [best(group.graph, here, laws) for group, here in zip(groups, group_conditions, strict=True)]
    for law in laws:
        chosen_groups = [
            (g, c.form) for g, c in zip(groups, chosen, strict=True) if c is not None and c.law.name == law.name
        ]
        lines = [f"{_what(form, group.graph)}, for a gain of {form.gain:.3g}" for group, form in chosen_groups]
        if not lines:
            refusals = [refusal(law, group.graph, here) for group, here in zip(groups, group_conditions, strict=True)]
            lines = [next((line for line in refusals if line != NOWHERE), NOWHERE)]
        yield from (f"{law.name}: {line}" for line in lines)


NOWHERE = "nothing in the program has its form"


def refusal(law: Law, graph: Graph, conditions: Conditions) -> str:
    """Return a sentence on why no form of a law is taken for a graph: it does not pay, errs too much, or needs a freer
    policy or constant inputs; NOWHERE if the law has no form of the graph under any of these."""
    paid = _best(law, graph, conditions)
    if paid is not None:
        return f"it does not pay: {_what(paid, graph)}, for a gain of {paid.gain:.3g}"
    exact = next(law.forms(graph, conditions), None)
    if exact is not None and exact.rounding is not None:
        bound = f"max|y - y64| / max|y| <= {exact.rounding.probable:.2g}"
        return f"it errs more than is accepted: {_what(exact, graph)}, {bound}"
    free = _best(law, graph, replace(conditions, policy=_FREEST))
    if free is not None:
        return f"the policy {conditions.policy} does not permit it: under {_FREEST} {_what(free, graph)}"
    input_names = frozenset(value.name for value in graph.inputs)
    fixed = _best(law, graph, replace(conditions, policy=_FREEST, constants=input_names))
    if fixed is not None:
        return f"inputs would have to be constant: {_what(fixed, graph)}"
    return NOWHERE


def _what(form: Form, graph: Graph) -> str:
    """The sentence of a form on its replacement; the graph's name if the form has none."""
    return form.where or f"@{graph.name} in another form"


def _best(law: Law, graph: Graph, conditions: Conditions) -> Form | None:
    """The permitted form of a law with the largest gain; None if there is no permitted form."""
    forms = (form for form in law.forms(graph, conditions) if permitted(form, conditions))
    return max(forms, key=lambda form: form.gain, default=None)
