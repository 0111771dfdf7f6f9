"""`Choice`: the groups that a compute may join; `Decision`: a choice with its result; `Rule`: a generator of
choices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from compiler.graph.grouping.view import View
from compiler.support.errors import InputError

Option: TypeAlias = tuple[str, ...]
"""Names of computes: a compute joins the groups of all of them, or none."""


@dataclass(frozen=True)
class Choice:
    """The groups that a compute may join, the preferred option first. The first option that `View.join` accepts is
    taken: it joins no closed group and makes no cycle of groups. A choice without options closes the compute's group.

    >>> A = te.placeholder((4,), name="A")
    >>> f = te.function("f", [A], te.nn.exp(te.nn.sum(A, name="B"), name="C"))
    >>> (decision,) = strata.graph.decisions(strata.graph.read(strata.dialects.find_function(f.module)))
    >>> decision.choice
    Choice(compute='C', options=(('B',),))
    """

    compute: str
    options: tuple[Option, ...]


@dataclass(frozen=True)
class Decision:
    """The result of a choice. taken: the index of the option taken, None if the choice has no options. cost: for each
    option, the bytes that the compute exchanges with other groups under it."""

    choice: Choice
    taken: int | None
    cost: tuple[int, ...]


Rule: TypeAlias = Callable[[View], Iterator[Choice]]
"""A generator of choices. Each is decided before the next one is generated, so that the view has the groups so far."""


def decide(view: View, rules: Sequence[Rule]) -> list[Decision]:
    """Group the computes of a view by rules, in their order, and return the decisions.

    The first decision about a compute is final; a choice of which no option can be taken decides nothing. Raises
    InputError for a rule that names a missing compute.
    """
    decisions: list[Decision] = []
    decided: set[str] = set()
    for rule in rules:
        for choice in rule(view):
            _check(view, choice, rule)
            if choice.compute in decided:
                continue
            cost = tuple(view.crossing(choice.compute, option) for option in choice.options)
            joins = (n for n, option in enumerate(choice.options) if view.join((choice.compute, *option)))
            taken = next(joins, None)
            if not choice.options:
                view.close(choice.compute)
            if taken is not None or not choice.options:
                decided.add(choice.compute)
                decisions.append(Decision(choice, taken, cost))
    return decisions


def fixed_groups(places: Mapping[str, str]) -> Rule:
    """Return a rule that adds each compute of `places` to the group of the compute it maps to; "" closes its group."""

    def rule(view: View) -> Iterator[Choice]:
        for compute, into in places.items():
            yield Choice(compute, ((into,),) if into else ())

    return rule


def _check(view: View, choice: Choice, rule: Rule) -> None:
    for name in (choice.compute, *(name for option in choice.options for name in option)):
        if name not in view.nodes:
            names = ", ".join(view.names[:8]) + (", ..." if len(view.names) > 8 else "")
            rule_name = getattr(rule, "__name__", "a rule")
            raise InputError(
                f"the rule '{rule_name}' groups '{name}', which @{view.graph.name} has not (it has {names})"
            )
