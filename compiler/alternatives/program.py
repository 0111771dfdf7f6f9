"""Laws on a whole te function, before it is grouped."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from compiler.alternatives.choice import Chosen, offers, permitted
from compiler.alternatives.law import Conditions, Law
from compiler.graph.canonical import Canonical, canonical
from compiler.graph.grouped_module import Rewrite
from compiler.graph.provenance import Provenance
from compiler.graph.tree import Graph
from compiler.support.actions import perform

MOST = 1000
"""The most forms applied to one program: laws of plugins may undo each other without end."""


@dataclass(frozen=True)
class AppliedForm:
    """A form that was applied: its law, its estimated gain, and its replacement in words, under the user's names."""

    law: str
    gain: float
    where: str


def preferred(
    conditions: Conditions,
    constants: Collection[int],
    laws: Sequence[Law],
    taken: Callable[[AppliedForm], object] = lambda applied: None,
) -> Rewrite:
    """Return the rewrite of a program by the best forms of `laws`, for `group_program`. `constants` are the positions
    of inputs that never change; `taken` is called with each form applied."""

    def rewrite(graph: Graph) -> Canonical | None:
        constant_names = frozenset(value.name for n, value in enumerate(graph.inputs) if n in constants)
        rewriting = rewrite_graph(graph, replace(conditions, constants=constant_names), laws)
        for applied in rewriting.applied:
            taken(applied)
        return rewriting.form

    return rewrite


@dataclass(frozen=True)
class RewrittenGraph:
    """A rewritten graph. form: its canonical form, whose `names` map to those of the graph that was rewritten; None if
    no form was applied. applied: the forms, in order.

    >>> from strata.alternatives import PROGRAM_LAWS, Conditions, rewrite_graph
    >>> A, v = te.placeholder((64, 64), name="A"), te.placeholder((64, 1), name="v")
    >>> f = te.function("f", [A, v], te.nn.matmul(te.nn.matmul(A, A), v, name="B"))
    >>> graph = strata.graph.read(strata.dialects.find_function(f.module))
    >>> unchanged = rewrite_graph(graph, Conditions(strata.targets.MACHINES["avx2"], "fast"), laws=[])
    >>> unchanged.graph is graph, unchanged.form, unchanged.applied
    (True, None, ())
    """

    graph: Graph
    form: Canonical | None
    applied: tuple[AppliedForm, ...]


def rewrite_graph(graph: Graph, conditions: Conditions, laws: Sequence[Law]) -> RewrittenGraph:
    """Rewrite a graph to the form of the largest gain, repeatedly while a gain is above 1, at most MOST times, and make
    it canonical.

    Inputs and results keep their order, and inputs with canonical names `a0`, `a1` ... keep these, so that the names in
    `conditions` stay valid. A graph without such a form is returned as it is.

    >>> from strata.alternatives import PROGRAM_LAWS, Conditions, rewrite_graph
    >>> A, v = te.placeholder((64, 64), name="A"), te.placeholder((64, 1), name="v")
    >>> f = te.function("f", [A, v], te.nn.matmul(te.nn.matmul(A, A), v, name="B"))
    >>> graph = strata.graph.read(strata.dialects.find_function(f.module))
    >>> rewrite_graph(graph, Conditions(strata.targets.MACHINES["avx2"], "fast"), PROGRAM_LAWS).applied[0].law
    'chain'
    """
    form, applied, is_canonical = Canonical(graph, Provenance(), (), (), {}), list[AppliedForm](), True
    while len(applied) < MOST:
        chosen = _gaining(graph, conditions, laws)
        if chosen is not None and perform("law", chosen.law.name, chosen.form.where, optional=True):
            applied.append(
                AppliedForm(chosen.law.name, chosen.form.gain, form.names.with_user_names(chosen.form.where))
            )
            graph, is_canonical = chosen.form.graph, False
        elif is_canonical:
            break
        else:
            form, is_canonical = _canonical(graph, form), True
            graph = form.graph
    form = form if is_canonical else _canonical(graph, form)
    return RewrittenGraph(form.graph, form if applied else None, tuple(applied))


def _canonical(graph: Graph, former: Canonical) -> Canonical:
    """The canonical form of a graph derived from `former.graph`, with the user's names of `former`."""
    form = canonical(graph)
    return replace(form, names=form.names.after(former.names))


def _gaining(graph: Graph, conditions: Conditions, laws: Sequence[Law]) -> Chosen | None:
    """The permitted form with the largest estimated gain; None if no gain is above 1."""
    allowed = [offer for offer in offers(graph, conditions, laws) if permitted(offer.form, conditions)]
    chosen = max(allowed, key=lambda offer: offer.form.gain, default=None)
    return chosen if chosen is not None and chosen.form.gain > 1 else None
