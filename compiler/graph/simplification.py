"""Apply all laws to a graph until none of them applies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import cycle
from operator import is_

from compiler.graph.hashing import NameColours
from compiler.graph.laws.common_values import share_powers
from compiler.graph.laws.computed_views import compute_views
from compiler.graph.laws.concatenations import read_parts
from compiler.graph.laws.dead_nodes import drop_dead
from compiler.graph.laws.equal_nodes import merge_equal
from compiler.graph.laws.extents import drop_unit_axes
from compiler.graph.laws.identities import drop_copies
from compiler.graph.laws.images import name_unit_axes
from compiler.graph.laws.literals import simplify_arithmetic
from compiler.graph.laws.parts import compute_parts
from compiler.graph.laws.permutations import straighten
from compiler.graph.laws.reductions import merge_reduce_axes, turn_reduce_axes
from compiler.graph.laws.splits import split_axes
from compiler.graph.laws.views import absorb_views
from compiler.graph.locations import with_merged_locations
from compiler.graph.normal_form import normal_form
from compiler.graph.tree import Compute, Graph, Node
from compiler.support.actions import perform

LAWS: tuple[Callable[[Graph], Graph], ...] = (
    drop_dead,
    drop_unit_axes,
    drop_copies,
    absorb_views,
    read_parts,
    compute_parts,
    split_axes,
    compute_views,
    straighten,
    merge_reduce_axes,
    turn_reduce_axes,
    name_unit_axes,
    simplify_arithmetic,
    share_powers,
    merge_equal,
)
"""The laws in the order of application; each takes time linear in the graph."""


def simplified(graph: Graph) -> Graph:
    """Apply the laws to a graph, in turn, until none applies; names stay. This terminates: each law leaves fewer nodes,
    axes, functions, quotients, reads of views, or reads against the layout."""
    normal_nodes: dict[int, Node] = {}
    laws: tuple[Callable[[Graph], Graph], ...] = (partial(_normalised, normal_nodes=normal_nodes), *LAWS)
    steps, idle = cycle(laws), 0
    while idle <= len(LAWS):
        before, law = graph, next(steps)
        graph = law(graph)
        if graph is not before and law in LAWS and not perform("law", _name(law), graph.name, optional=True):
            graph = before
        elif graph is not before and law in LAWS and law is not merge_equal:
            graph = with_merged_locations(before, graph)
        idle = idle + 1 if graph is before else 0
    return graph


def _name(law: Callable[[Graph], Graph]) -> str:
    return str(getattr(law, "__name__", "")).replace("_", "-")


def _normalised(graph: Graph, normal_nodes: dict[int, Node]) -> Graph:
    """The graph with each compute in normal form. `normal_nodes` maps the id of each node in normal form to the node;
    the new ones are added."""
    colours = NameColours()
    nodes: list[Node] = []
    for node in graph.nodes:
        if isinstance(node, Compute) and id(node) not in normal_nodes:
            node = normal_form(node, colours)
            normal_nodes[id(node)] = node
        nodes.append(node)
    return graph if all(map(is_, nodes, graph.nodes)) else replace(graph, nodes=tuple(nodes))
