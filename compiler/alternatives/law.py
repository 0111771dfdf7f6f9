"""`Law`: a rewrite to another form of a te function that is a choice: it changes rounding, or may not pay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import inf, log, sqrt
from typing import TypeAlias

from compiler.graph.tree import Graph
from compiler.types.machines import Gpu, Machine


class LawScope(Enum):
    """The graphs that a law rewrites.

    >>> sorted(scope.name for scope in strata.alternatives.LawScope)
    ['GROUP', 'PROGRAM']
    """

    PROGRAM = "program"
    """The law rewrites whole canonical te functions, before they are grouped."""
    GROUP = "group"
    """The law rewrites canonical groups; the form is scheduled instead of the group."""


@dataclass(frozen=True)
class Conditions:
    """The facts on which the choice of a form depends.

    machine, policy: the target and the floating-point policy. constants: the names of inputs that never change. error:
    the accepted max|y - y64| / max|y|, where y64 is the result in float64; None for that of the written form.

    >>> conditions = strata.alternatives.Conditions(strata.targets.MACHINES["avx2"], "fast", frozenset({"W"}))
    >>> conditions.policy, sorted(conditions.constants), conditions.error
    ('fast', ['W'], None)
    """

    machine: Machine | Gpu
    policy: str
    constants: frozenset[str] = frozenset()
    error: float | None = None


@dataclass(frozen=True)
class Rounding:
    """Bounds of a form's rounding error.

    worst: relative to the largest sum of absolute products of a result. probable: relative to the largest result, at
    `CONFIDENCE`, if operands and rounding errors are independent and of mean zero (Higham and Mary, 2019).

    >>> bound = strata.alternatives.rounding_of_sums([64], 2.0**-24)
    >>> bound.worst > bound.probable
    True
    """

    worst: float
    probable: float


CONFIDENCE = 0.998


def rounding_of_sums(extents: Sequence[int], unit: float) -> Rounding:
    """Bound the rounding error of nested sums of products with `extents` terms, for unit roundoff `unit`.

    >>> bound = strata.alternatives.rounding_of_sums([64], 2.0**-24)
    >>> f"{bound.worst:.1e} {bound.probable:.1e}"
    '3.8e-06 7.3e-07'
    """
    roundings, deviation = sum(extents), sqrt(sum(n + 1 for n in extents) / 2 / 3)
    return Rounding(roundings * unit / (1 - roundings * unit), sqrt(2 * log(2 / (1 - CONFIDENCE))) * unit * deviation)


@dataclass(frozen=True)
class Form:
    """Another form of a graph, with the same inputs and results.

    gain: the estimated time of the written form over that of this form. rounding, written_rounding: the error bounds of
    both; None if only the order of sums changes. guard: for a group, a graph with the same inputs and one result of one
    element: if it is zero in a call, the group runs as written; None if the form may always be used. where: the parts
    of the graph that the form replaces and their replacement, in words.

    >>> from strata.alternatives import PROGRAM_LAWS, Conditions, offers
    >>> A, v = te.placeholder((64, 64), name="A"), te.placeholder((64, 1), name="v")
    >>> f = te.function("f", [A, v], te.nn.matmul(te.nn.matmul(A, A), v, name="B"))
    >>> graph = strata.graph.read(strata.dialects.find_function(f.module))
    >>> (chosen,) = offers(graph, Conditions(strata.targets.MACHINES["avx2"], "fast"), PROGRAM_LAWS)
    >>> chosen.form.where, chosen.form.gain > 2
    ('the products matmul, B in the order of the fewest operations', True)
    """

    graph: Graph
    gain: float
    rounding: Rounding | None = None
    written_rounding: Rounding | None = None
    guard: Graph | None = None
    where: str = ""


Forms: TypeAlias = Callable[[Graph, Conditions], Iterator[Form]]


@dataclass(frozen=True)
class Law:
    """A law: its name, its scope, and a generator of its forms of a graph, which yields none if it does not apply.

    >>> [law.name for law in strata.alternatives.PROGRAM_LAWS]
    ['flattened', 'windows', 'chain', 'online', 'logarithm', 'normalised', 'channels-last']
    """

    name: str
    scope: LawScope
    forms: Forms

    @property
    def always(self) -> Law:
        """The law with an infinite gain and no error bound for each form, to measure the real gain."""

        def forms(graph: Graph, conditions: Conditions) -> Iterator[Form]:
            for form in self.forms(graph, conditions):
                yield replace(form, gain=inf, rounding=None)

        return replace(self, forms=forms)
