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
"""The policy that permits whatever another one does."""


def explanations(graph: Graph, conditions: Conditions, laws: Sequence[Law], names: Provenance) -> Iterator[str]:
    """For each law of whole functions, a line for each place where it applies to a canonical graph, or a line on why
    it does not apply. `names`: the user's names of the graph's parts."""
    rewriting = rewrite_graph(graph, conditions, laws)
    for law in laws:
        applications = [applied for applied in rewriting.applied if applied.law == law.name]
        lines = [f"{applied.where}, for a gain of {applied.gain:.3g}" for applied in applications]
        for line in lines or [refusal(law, graph, conditions)]:
            yield names.with_user_names(f"{law.name}: {line}")


@dataclass(frozen=True)
class NamedGroup:
    """A canonical group with its inputs that never change, and the user's names of its parts."""

    graph: Graph
    constants: frozenset[str]
    names: Provenance


def group_explanations(groups: Sequence[NamedGroup], conditions: Conditions, laws: Sequence[Law]) -> Iterator[str]:
    """For each law of groups, a line for each group to which it gives another form, or one refusal if there is none."""
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
    """The reason why a law does not apply to a graph: the first condition without which it would."""
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
    """The parts that a form replaces, in words."""
    return form.where or f"@{graph.name} in another form"


def _best(law: Law, graph: Graph, conditions: Conditions) -> Form | None:
    """A law's form with the largest gain; None where there is none."""
    forms = (form for form in law.forms(graph, conditions) if permitted(form, conditions))
    return max(forms, key=lambda form: form.gain, default=None)
