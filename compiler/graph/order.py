"""Canonical order in a graph: inputs and results of private functions, reads and nodes, by structure.

Inputs of a public function are distinguished by their positions, and thus all values by their computation: no two
computes are equal, since a law merges them. Inputs of a private function are distinguished by their uses: their colours
are refined by the digests of their readers, up and down the graph, as by Weisfeiler and Leman. Remaining ties are
broken by trial: each tied input is marked in turn, and the mark that gives the whole graph the least digest is taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from compiler.graph.hashing import constant_digest, digest, input_colour, sample_digest, text_of
from compiler.graph.normal_form import node_digest, normal_form
from compiler.graph.tree import Call, Compute, Constant, Graph, Node

ROUNDS = 3
"""The most rounds of refinement before ties are broken by trial."""
MOST_TRIALS = 8
"""The most inputs of a tie that are marked on trial."""

Colours = dict[str, bytes]
Callees = Mapping[str, bytes]
"""Map the name of a called function to its hash; without a hash the name is used."""


def ordered(graph: Graph, colours: Colours) -> Graph:
    """The graph with its computes in normal form and its nodes in canonical order.

    Nodes are in depth-first order from the results, operands in the order of the reads; nodes that no result needs are
    dropped. `colours` has a different colour for each value.
    """
    nodes = {id(n): normal_form(n, colours) if isinstance(n, Compute) else n for n in graph.nodes}
    return replace(graph, nodes=tuple(_depth_first(graph, nodes)))


def result_order(graph: Graph, colours: Colours) -> list[int]:
    """The positions of the graph's results, sorted by the colours of the results; equal ones stay in order."""
    return sorted(range(len(graph.results)), key=lambda n: colours[graph.results[n]])


def graph_digest(graph: Graph, callees: Callees) -> bytes:
    """The digest of the function that a graph computes. It depends on the order of inputs and results and on all
    attributes but `te.group`; on no names, except of callees without a hash."""
    colours = value_colours(graph, position_colours(graph), callees, is_exact=True)
    attributes = [(name, text_of(value)) for name, value in sorted(graph.attributes.items()) if name != "te.group"]
    types = [(text_of(value.element), value.shape) for value in graph.inputs]
    return digest("function", types, [colours[name] for name in graph.results], attributes)


def position_colours(graph: Graph) -> Colours:
    """Map each input to a colour that depends on its type and position."""
    return {value.name: input_colour(value, n) for n, value in enumerate(graph.inputs)}


def value_colours(graph: Graph, inputs: Mapping[str, bytes], callees: Callees, is_exact: bool = False) -> Colours:
    """Map each value to a colour that depends on its computation, from the colours of the inputs and the hashes of
    called functions, `callees`.

    The colour of a constant depends on samples of its bytes if they distinguish all constants of the graph; else, and
    with `is_exact`, on all bytes.
    """
    colours = dict(inputs) | _constants(graph, is_exact)
    for node in graph.nodes:
        if not isinstance(node, Constant):
            digest_of_node = _node_digest(node, colours, callees)
            colours |= {value.name: digest(digest_of_node, n) for n, value in enumerate(node.results)}
    return colours


def _constants(graph: Graph, is_exact: bool) -> Colours:
    nodes = [node for node in graph.nodes if isinstance(node, Constant)]
    sampled = {} if is_exact else {node.results[0].name: sample_digest(node.value.data) for node in nodes}
    if len(set(sampled.values())) == len(nodes):
        return sampled
    return {node.results[0].name: constant_digest(node.value.data) for node in nodes}


def _node_digest(node: Compute | Call, colours: Colours, callees: Callees) -> bytes:
    if isinstance(node, Compute):
        return node_digest(node, colours)
    callee = callees.get(node.callee, node.callee.encode())
    return digest("call", callee, [colours[name] for name in node.operands])


def _downward(graph: Graph, colours: Colours, callees: Callees) -> Colours:
    """Return a colour for each value that depends on its colour in `colours`, which identifies its computation, and on
    its uses by readers and results. `callees`: the hashes of called functions."""
    uses: dict[str, list[bytes]] = {name: [] for name in graph.values}
    for name, count in Counter(graph.results).items():
        uses[name].append(digest("result", count))
    by_use: Colours = {}
    for node in reversed(graph.nodes):
        for value in node.results:
            by_use[value.name] = digest(colours[value.name], sorted(uses[value.name]))
        if isinstance(node, Constant):
            continue
        after = [by_use[value.name] for value in node.results]
        operands = {name: colours[name] for name in node.operands}
        for name in operands:
            role = _node_digest(node, operands | {name: digest("here", colours[name])}, callees)
            uses[name].append(digest(role, after))
    return by_use | {v.name: digest(colours[v.name], sorted(uses[v.name])) for v in graph.inputs}


def input_order(graph: Graph, callees: Callees) -> list[str]:
    """Return the names of the inputs of a graph, whose called functions have the hashes `callees`, in an order that
    depends on their types and uses, not on their names or order. Of inputs that these do not tell apart MOST_TRIALS are
    tried; with more in a tie the order may depend on the order of `graph.inputs`."""
    inputs = {value.name: input_colour(value, "") for value in graph.inputs}
    inputs = _refined(graph, inputs, callees)
    while tied := _first_tie(inputs):
        trials = [_refined(graph, _marked(inputs, name), callees) for name in tied[:MOST_TRIALS]]
        inputs = min(trials, key=lambda colours: _certificate(graph, colours, callees))
    return sorted(inputs, key=lambda name: inputs[name])


def _refined(graph: Graph, inputs: Colours, callees: Callees) -> Colours:
    """The colours of the inputs, refined by their uses, of functions with the hashes `callees`, until no class splits
    or all differ, at most ROUNDS times."""
    for _ in range(ROUNDS):
        if len(set(inputs.values())) == len(inputs):
            break
        by_use = _downward(graph, value_colours(graph, inputs, callees), callees)
        classes, inputs = len(set(inputs.values())), {name: by_use[name] for name in inputs}
        if len(set(inputs.values())) == classes:
            break
    return inputs


def _first_tie(inputs: Colours) -> list[str]:
    """The inputs of the least colour that several inputs have; empty if all colours differ."""
    counts = Counter(inputs.values())
    ties = sorted(colour for colour, count in counts.items() if count > 1)
    return [name for name, colour in inputs.items() if colour == ties[0]] if ties else []


def _marked(inputs: Colours, name: str) -> Colours:
    return inputs | {name: digest("first", inputs[name])}


def _certificate(graph: Graph, inputs: Colours, callees: Callees) -> bytes:
    """The digest of a graph for colours of its inputs, independent of the order of inputs and results; `callees`: the
    hashes of called functions."""
    colours = value_colours(graph, inputs, callees)
    return digest(sorted(inputs.values()), sorted(colours[name] for name in graph.results))


def _depth_first(graph: Graph, nodes: Mapping[int, Node]) -> Sequence[Node]:
    """The nodes that results need, in depth-first order of operands; `nodes` maps the id of a node to its normal
    form."""
    ordered_nodes: dict[int, Node] = {}
    stack = [(graph.producers[name], False) for name in reversed(graph.results) if name in graph.producers]
    while stack:
        node, is_complete = stack.pop()
        if id(node) in ordered_nodes:
            continue
        if is_complete:
            ordered_nodes[id(node)] = nodes[id(node)]
            continue
        stack.append((node, True))
        operands = reversed(nodes[id(node)].operands)
        stack += [(graph.producers[name], False) for name in operands if name in graph.producers]
    return list(ordered_nodes.values())
