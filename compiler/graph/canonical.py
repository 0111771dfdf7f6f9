"""Canonical te functions: programs that compute the same in the same way have one text and one hash.

Laws rewrite equal programs to one program. Unordered parts are ordered by structure, and names follow from the order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp

from compiler.dialects.access import AxisAttr, axis_attribute
from compiler.dialects.functions import find_function, functions
from compiler.graph.order import graph_digest, input_order, ordered, position_colours, result_order, value_colours
from compiler.graph.provenance import Provenance
from compiler.graph.read import read
from compiler.graph.rename import with_operands, with_results
from compiler.graph.simplification import simplified
from compiler.graph.tree import Call, Compute, Constant, Graph, Node
from compiler.graph.write import write
from compiler.program.body import Apply, Read
from compiler.program.names import Names
from compiler.program.tree import Block, Buffer

Callees = Mapping[str, "Canonical"]


@dataclass(frozen=True)
class Canonical:
    """A canonical graph, and its relation to the graph that it was made from.

    graph: in canonical order, under canonical names; the function keeps its name. names: map canonical names to those
    of the original graph. arguments, results: the original position of each input and result. callees: by name, the
    hash of each function that it calls and whose canonical form was passed to `canonical`.

    >>> A = te.placeholder((4,), name="A")
    >>> function = strata.dialects.find_function(te.function("f", [A], te.nn.exp(A, name="B")).module)
    >>> form = strata.graph.canonical(strata.graph.read(function))
    >>> [buffer.name for buffer in form.graph.inputs], form.graph.results
    (['a0'], ('map0',))
    """

    graph: Graph
    names: Provenance
    arguments: tuple[int, ...]
    results: tuple[int, ...]
    callees: Mapping[str, bytes]

    @cached_property
    def hash(self) -> str:
        """The hash of the computation, in hexadecimal digits, independent of names. It reads all constants once."""
        return graph_digest(self.graph, self.callees).hex()

    def with_signature_of(self, former: Graph) -> Graph:
        """The canonical graph with the signature of `former`, the graph that it was made from: its inputs, under
        canonical names, and results, in their order.

        Inputs that canonicalisation has removed come back under fresh names.
        """
        by_position, unused = dict(zip(self.arguments, self.graph.inputs, strict=True)), Names(self.graph.values)
        inputs = [
            by_position[n] if n in by_position else replace(value, name=unused.fresh("unused"))
            for n, value in enumerate(former.inputs)
        ]
        by_position_of_result = dict(zip(self.results, self.graph.results, strict=True))
        return replace(
            self.graph,
            inputs=tuple(inputs),
            results=tuple(by_position_of_result[n] for n in sorted(by_position_of_result)),
        )


def canonical(graph: Graph, keep_signature: bool = True, callees: Callees | None = None) -> Canonical:
    """Return the canonical form of a te function.

    Without `keep_signature`, inputs and results are ordered by structure, and unused inputs are removed. `callees`: by
    name, the canonical forms of called functions whose signatures have changed; None if there are none.

    >>> A = te.placeholder((4,), name="A")
    >>> function = strata.dialects.find_function(te.function("f", [A], te.nn.exp(A, name="B")).module)
    >>> strata.graph.canonical(strata.graph.read(function)).names
    Provenance(blocks={'map0': 'B'}, axes={'map0': {'i0': 'i0'}}, values={'a0': 'A', 'map0': 'B'})
    """
    callees = callees or {}
    called = {node.callee for node in graph.nodes if isinstance(node, Call)}
    hashes = {name: bytes.fromhex(callee.hash) for name, callee in callees.items() if name in called}
    former = graph
    graph = simplified(_calling(graph, callees))
    result_positions = list(range(len(graph.results)))
    if not keep_signature:
        used = {*graph.results, *(name for node in graph.nodes for name in node.operands)}
        graph = replace(graph, inputs=tuple(value for value in graph.inputs if value.name in used))
        graph = replace(graph, inputs=tuple(graph.values[name] for name in input_order(graph, hashes)))
    colours = value_colours(graph, position_colours(graph), hashes)
    if not keep_signature:
        result_positions = result_order(graph, colours)
        graph = replace(graph, results=tuple(graph.results[n] for n in result_positions))
    graph = ordered(graph, colours)
    original_positions = {value.name: n for n, value in enumerate(former.inputs)}
    arguments = tuple(original_positions[value.name] for value in graph.inputs)
    renamed = _renamed(graph)
    return Canonical(renamed.graph, renamed.names, arguments, tuple(result_positions), hashes)


def canonicalize(module: ModuleOp) -> ModuleOp:
    """Build a module of the canonical forms of a verified module's te functions, in the same order, under their names.

    A private function that another function calls gets a canonical signature, and its calls are adapted. Raises
    InputError for a function that is not of te.

    >>> A = te.placeholder((4,), name="A")
    >>> module = strata.graph.canonicalize(te.function("f", [A], te.nn.exp(A, name="B")).module)
    >>> [argument.name_hint for argument in strata.dialects.find_function(module).args]
    ['a0']
    """
    forms = canonical_functions(module)
    return ModuleOp([write(form.graph) for form in forms.values()], dict(module.attributes))


def canonical_functions(module: ModuleOp) -> dict[str, Canonical]:
    """Map the name of each function of a module, in their order, to its canonical form. Raises InputError for a
    function that is not of te."""
    graphs = {function.sym_name.data: read(function) for function in functions(module)}
    called = {node.callee for graph in graphs.values() for node in graph.nodes if isinstance(node, Call)}
    forms: dict[str, Canonical] = {}
    for name in _callees_first(graphs):
        graph = graphs[name]
        forms[name] = canonical(graph, not (graph.private and name in called), forms)
    return {name: forms[name] for name in graphs}


def canonical_hash(module: ModuleOp, name: str | None = None) -> str:
    """The hash of the te function `name` of a module, in hexadecimal digits; with None, of its only function or only
    public one. Raises InputError if no function or several fit, and if the module has a function that is not of te.

    It depends on the computation and on the order of arguments and results, and on no names.
    """
    function = find_function(module, name)
    return canonical_functions(module)[function.sym_name.data].hash


def _callees_first(graphs: Mapping[str, Graph]) -> list[str]:
    """The names in `graphs`, each after the functions of `graphs` that it calls."""
    ordered_names: dict[str, None] = {}
    stack = [(name, False) for name in reversed(list(graphs))]
    while stack:
        name, is_complete = stack.pop()
        if is_complete:
            ordered_names[name] = None
        elif name not in ordered_names:
            calls = [node.callee for node in graphs[name].nodes if isinstance(node, Call) and node.callee in graphs]
            stack += [(name, True), *((callee, False) for callee in reversed(calls))]
    return list(ordered_names)


def _calling(graph: Graph, callees: Callees) -> Graph:
    """The graph with the operands and results of its calls in the order of the callees' canonical signatures."""

    def call(node: Node) -> Node:
        if not isinstance(node, Call) or node.callee not in callees:
            return node
        callee = callees[node.callee]
        operands = tuple(node.operands[n] for n in callee.arguments)
        return replace(node, operands=operands, results=tuple(node.results[n] for n in callee.results))

    return replace(graph, nodes=tuple(map(call, graph.nodes)))


@dataclass(frozen=True)
class _Renamed:
    graph: Graph
    names: Provenance


def _renamed(graph: Graph) -> _Renamed:
    """The graph under canonical names: a stem for the kind of node, such as `product`, and a number; with the map back
    to the former names."""
    counts = dict[str, int]()
    values: dict[str, str] = {}
    blocks: dict[str, str] = {}
    axes: dict[str, dict[str, str]] = {}

    def fresh(stem: str) -> str:
        counts[stem] = counts.get(stem, -1) + 1
        return f"{stem}{counts[stem]}"

    def named(buffers: tuple[Buffer, ...], label: str) -> tuple[Buffer, ...]:
        names = [label] if len(buffers) == 1 else [f"{label}.{n}" for n in range(len(buffers))]
        values.update((value.name, name) for value, name in zip(buffers, names, strict=True))
        return tuple(replace(value, name=name) for value, name in zip(buffers, names, strict=True))

    inputs = tuple(buffer for value in graph.inputs for buffer in named((value,), fresh("a")))
    nodes = []
    for node in graph.nodes:
        label = fresh(_stem(node))
        node = with_operands(node, values)
        if isinstance(node, Compute):
            block = node.block
            new = tuple(_axis(n, axis, block.spatial) for n, axis in enumerate(block.axes))
            blocks[label] = block.label
            axes[label] = {a.label: b.label for a, b in zip(new, block.axes, strict=True)}
            node = replace(node, block=replace(block, label=label, axes=new))
        nodes.append(with_results(node, named(node.results, label)))
    returned = tuple(values[name] for name in graph.results)
    names = Provenance(blocks, axes, {new: old for old, new in values.items()})
    return _Renamed(replace(graph, inputs=inputs, nodes=tuple(nodes), results=returned), names)


def _axis(position: int, axis: AxisAttr, spatial: int) -> AxisAttr:
    label = f"r{position - spatial}" if axis.is_reduce else f"i{position}"
    return axis_attribute(label, axis.size, axis.is_reduce)


def _stem(node: Node) -> str:
    """The stem of a node's canonical name: `call`, `constant`, `gather`; of a compute without reduction `view` if it
    only copies elements of one value, else `map`; of a reduction `product` for one sum of products of several reads,
    else, if all its results have one named combiner, that as `sum`, `prod`, `max` or `min`, else `reduce`."""
    match node:
        case Call():
            return "call"
        case Constant():
            return "constant"
        case Compute(Block(table=table)) if table is not None:
            return "gather"
    block = node.block
    value = block.body[0]
    if not block.combiners:
        return "view" if len(block.body) == 1 and isinstance(value, Read) else "map"
    if len(set(block.combiners)) > 1 or not isinstance(block.combiners[0], str):
        return "reduce"
    is_product = isinstance(value, Apply) and value.kind in (arith.MulfOp, arith.MuliOp) and len(block.reads) > 1
    return "product" if is_product and block.combiners == ("add",) else _REDUCTIONS[block.combiners[0]]


_REDUCTIONS = {"add": "sum", "mul": "prod", "max": "max", "min": "min"}
