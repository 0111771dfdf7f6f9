"""`group`: a te module whose functions are cut into groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import ModuleOp

from compiler.dialects.functions import functions
from compiler.graph.grouping.check import check_groups, has_groups
from compiler.graph.grouping.choice import Decision, Rule, decide
from compiler.graph.grouping.constants import with_constants
from compiler.graph.grouping.cut import cut
from compiler.graph.grouping.equal_groups import merge_equal_groups
from compiler.graph.grouping.outline import OutlinedGroups, outlined
from compiler.graph.grouping.rules import RULES
from compiler.graph.grouping.view import View
from compiler.graph.read import read
from compiler.graph.tree import Graph
from compiler.graph.write import write
from compiler.program.names import Names


def group(module: ModuleOp, rules: Sequence[Rule] = RULES) -> ModuleOp:
    """Cut each te function of a module into groups: private functions that it calls, as the pass te-group does.

    Equal groups are one function. A function that fits one group stays as it is. A module that has groups is verified
    and returned unchanged; Refusal, a VerifyException, is raised if it is invalid. rules: generators of the groups that
    a compute may join (`grouping.choice.Rule`). Raises InputError for a function that is not of te, and for a rule that
    names a compute which the function lacks.

    >>> A, W = te.placeholder((4, 8), name="A"), te.placeholder((8, 4), name="W")
    >>> module = te.function("f", [A, W], [te.nn.matmul(A, W), te.nn.sum(A, axis=0)]).module
    >>> [function.sym_name.data for function in strata.dialects.functions(strata.graph.group(module))]
    ['f', 'group_0', 'group_1']
    """
    if has_groups(module):
        check_groups(module)
        return module
    divisions = outline_groups(map(read, functions(module)), rules)
    groups = [graph for division in divisions for graph in division.groups]
    if not groups:
        return module
    united_parts = with_constants(merge_equal_groups([division.main for division in divisions], groups))
    return ModuleOp(list(map(write, (*united_parts.mains, *united_parts.groups))), dict(module.attributes))


def outline_groups(
    graphs: Iterable[Graph], rules: Sequence[Rule] = RULES, single: bool = False
) -> list[OutlinedGroups]:
    """Cut functions into groups. Without `single`, a function that fits one group stays as it is, without groups.
    Raises InputError for a rule that names a missing compute."""
    graphs = list(graphs)
    names = Names(graph.name for graph in graphs)
    divisions = []
    for graph in graphs:
        groups = groups_of(graph, rules)
        is_cut = len(groups) > (0 if single else 1)
        divisions.append(outlined(graph, groups, names) if is_cut else OutlinedGroups(graph, ()))
    return divisions


def groups_of(graph: Graph, rules: Sequence[Rule] = RULES) -> list[list[str]]:
    """The groups of a graph in an order of execution. A group lists its computes, each by the name of its first result.
    Raises InputError for a rule that names a missing compute."""
    view = View(graph)
    decide(view, rules)
    return [part for computes in view.groups() for part in cut(view, computes)]


def decisions(graph: Graph, rules: Sequence[Rule] = RULES) -> list[Decision]:
    """Return the decisions that rules make about the computes of a graph, in order. Raises InputError for a rule that
    names a missing compute.

    >>> A = te.placeholder((4,), name="A")
    >>> f = te.function("f", [A], te.nn.exp(te.nn.sum(A, name="B"), name="C"))
    >>> (decision,) = strata.graph.decisions(strata.graph.read(strata.dialects.find_function(f.module)))
    >>> decision.choice.compute, decision.choice.options
    ('C', (('B',),))
    """
    return decide(View(graph), rules)
