"""For each law where it applies to a te function, or why it does not, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from compiler.alternatives.choice import best, permitted
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


@dataclass(frozen=True)
class NamedGroup:
    """A canonical group with the inputs of it that never change, and what the program calls its parts."""

    graph: Graph
    constants: frozenset[str]
    names: Provenance


def group_explanations(groups: Sequence[NamedGroup], conditions: Conditions, laws: Sequence[Law]) -> Iterator[str]:
    """For each law of groups the groups that it gives another form, a line each, or one line that says why there are
    none: of the first group where the law has something to say."""
    known = [replace(conditions, constants=group.constants) for group in groups]
    chosen = [best(group.graph, here, laws) for group, here in zip(groups, known, strict=True)]
    for law in laws:
        taken = [(g, c.form) for g, c in zip(groups, chosen, strict=True) if c is not None and c.law.name == law.name]
        lines = [f"{_what(form, group.graph)}, for a gain of {form.gain:.3g}" for group, form in taken]
        if not lines:
            said = [refusal(law, group.graph, here) for group, here in zip(groups, known, strict=True)]
            lines = [next((line for line in said if line != NOWHERE), NOWHERE)]
        yield from (f"{law.name}: {line}" for line in lines)


NOWHERE = "nothing in the program has its form"


def refusal(law: Law, graph: Graph, conditions: Conditions) -> str:
    """Why a law does not apply to a graph: the first condition without which it would."""
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
    every = frozenset(value.name for value in graph.inputs)
    fixed = _best(law, graph, replace(conditions, policy=_FREEST, constants=every))
    if fixed is not None:
        return f"inputs would have to be constant: {_what(fixed, graph)}"
    return NOWHERE


def _what(form: Form, graph: Graph) -> str:
    """What a form replaces, in words."""
    return form.where or f"@{graph.name} in another form"


def _best(law: Law, graph: Graph, conditions: Conditions) -> Form | None:
    """A law's form with the largest gain; None where there is none."""
    forms = (form for form in law.forms(graph, conditions) if permitted(form, conditions))
    return max(forms, key=lambda form: form.gain, default=None)
