"""Convert the nodes of a model in order; nodes without a te form are recorded as problems, and the walk goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from onnx import AttributeProto, GraphProto, NodeProto, helper, numpy_helper

from compiler.frontends.onnx import operators
from compiler.frontends.onnx.bodies import Functions, body_of, domain_of, instantiate, schema_of
from compiler.frontends.onnx.evaluation import evaluate
from compiler.frontends.onnx.legacy import LEGACY, modernise
from compiler.frontends.onnx.refusals import RANDOM_OPERATORS, SEQUENCES, reason_of
from compiler.frontends.onnx.table import Array, Handler, Node, Refused, Value, handler_of, of_plugin, shape_of
from compiler.frontends.onnx.types import dtype_of
from compiler.program.names import Names, spelled
from compiler.support.errors import TeError
from compiler.support.plugins import onnx_name
from compiler.support.spans import called_at
from compiler.te.compute import compute
from compiler.te.constant import constant
from compiler.te.nn.elementwise import where
from compiler.te.nn.shape import stack
from compiler.te.tensor import Tensor, placeholder
from compiler.types.dtypes import is_float

assert operators.HANDLERS

SMALL_FLOATS = 4
"""The most elements of a constant float tensor that is embedded in the program rather than made an input."""
SMALL_INTEGERS = 1024
MAX_TRIPS = 256
"""The most iterations of an unrolled loop."""
IGNORED_ATTRIBUTES = frozenset(
    ("kernel_shape", "storage_order", "momentum", "stash_type", "seed", "hidden_size", "saturate", "num_outputs")
)
"""Attributes that handlers need not read: they follow from shapes, or do not affect results."""
MISMATCH_ERRORS = (ArithmeticError, LookupError, TypeError, ValueError)
"""Exceptions of handlers for inputs and attributes that do not match."""
MAX_NODES = 100_000
"""The most nodes of a walk, unrolled loops and function bodies included."""


class Unknown:
    """The type of UNKNOWN, the value of a refused node's output without a placeholder."""


UNKNOWN = Unknown()
GraphValue: TypeAlias = "Value | list[Any] | Unknown | None"
"""A value of a graph: a tensor or array, a list for ONNX's sequences, None for an omitted input."""


@dataclass(frozen=True)
class Problem:
    """A node without a te form, and the reason. `operator` is "output" or "initializer" for a value that has none."""

    operator: str
    domain: str
    node: str
    reason: str


@dataclass
class Scope:
    """The values of a graph or function by name, the opset of each domain, and a prefix of tensor names, "" in the main
    graph; a subgraph also reads its parent's values. expanded: the name and operator of the node whose definition the
    graph is, from ONNX's schema; None for a graph of the model."""

    opsets: Mapping[str, int]
    values: dict[str, GraphValue] = field(default_factory=dict)
    parent: Scope | None = None
    prefix: str = ""
    expanded: tuple[str, str] | None = None

    def find(self, name: str) -> GraphValue:
        """Return the value of a name, here or in an enclosing graph; None for an unknown name."""
        if name in self.values or self.parent is None:
            return self.values.get(name)
        return self.parent.find(name)


@dataclass
class Walk:
    """The state of the walk over one model.

    functions: the model's. names: the names in use. inputs, constants: the weights that became inputs, and their arrays
    by name. find_placeholder: maps an output of a refused node to a placeholder of its type, or None, so that the nodes
    after it are checked too.
    """

    functions: Functions
    names: Names
    find_placeholder: Callable[[str], Tensor | None]
    constants: dict[str, Array] = field(default_factory=dict)
    inputs: list[Tensor] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    _tensors: dict[int, Tensor] = field(default_factory=dict)
    _labels: dict[int, str] = field(default_factory=dict)
    _keep_alive: list[Any] = field(default_factory=list)
    _walked: int = 0

    def enter(self, graph: GraphProto, scope: Scope) -> None:
        """Bind the initialisers of a graph as arrays in a scope and convert the graph's nodes; a sparse initialiser is
        UNKNOWN, with a problem."""
        for stored in graph.initializer:
            array = numpy_helper.to_array(stored)
            self._labels[id(array)] = spelled(stored.name)
            self._keep_alive.append(array)
            scope.values[stored.name] = array
        for sparse in graph.sparse_initializer:
            scope.values[sparse.values.name] = UNKNOWN
            self.problems.append(Problem("initializer", "", sparse.values.name, "it is a sparse tensor"))
        self.walk(graph.node, scope)

    def walk(self, nodes: Iterable[NodeProto], scope: Scope) -> None:
        """Convert nodes in order, and bind their outputs' values in the scope; a node without a te form is recorded in
        `problems`. Raises TeError for more than MAX_NODES nodes."""
        for node in nodes:
            self._walked += 1
            if self._walked > MAX_NODES:
                raise TeError(f"the model has more than {MAX_NODES} nodes, with its loops unrolled")
            with called_at(None, *self._origin(node, scope)):
                outputs = self._results(node, scope)
            for name, value in zip(node.output, outputs, strict=False):
                if name:
                    scope.values[name] = value

    def _origin(self, node: NodeProto, scope: Scope) -> tuple[str, str]:
        """Return the name and the operator of the model's node that a node belongs to; an unnamed one has the name of
        its first output."""
        label = node.name or next((name for name in node.output if name), node.op_type)
        return scope.expanded or (f"{scope.prefix}{label}", node.op_type)

    def tensor(self, value: Value, hint: str) -> Tensor:
        """Return a value as a tensor, the same for the same array: an array of at most SMALL_FLOATS floats or
        SMALL_INTEGERS integers or bools becomes a constant, a larger one weights, which are an input. `hint` names an
        array without a name in the model. Raises Refused for an array without elements or of a dtype that te lacks."""
        if isinstance(value, Tensor):
            return value
        array = np.asarray(value)
        if id(array) not in self._tensors:
            self._keep_alive.append(array)
            self._tensors[id(array)] = self._make_tensor(array, self._labels.get(id(array), spelled(hint)))
        return self._tensors[id(array)]

    def _make_tensor(self, array: Array, label: str) -> Tensor:
        dtype = dtype_of(array)
        if dtype is None:
            raise Refused(f"'{label}' is a tensor of {array.dtype}, which te has no elements of")
        if not array.size:
            raise Refused(f"'{label}' of shape {array.shape} has no elements")
        if array.size <= (SMALL_FLOATS if is_float(dtype) else SMALL_INTEGERS):
            return constant(array, name=label)
        weight = placeholder(array.shape, dtype, self.names.fresh(label))
        self.constants[weight.name] = array
        self.inputs.append(weight)
        return weight

    def _results(self, node: NodeProto, scope: Scope) -> Sequence[GraphValue]:
        """Convert a node and return its outputs' values. For a refused node record a problem, and return placeholders
        of its outputs or UNKNOWN; a node with an UNKNOWN input has UNKNOWN outputs, and a problem only if its operator
        has no te form."""
        values = [scope.find(name) if name else None for name in node.input]
        if any(value is UNKNOWN for value in values):
            self._note_unsupported(node, scope)
            return [UNKNOWN] * len(node.output)
        problem_count = len(self.problems)
        try:
            if node.domain == LEGACY:
                node, values = modernise(node, values)
            return self._convert(node, values, scope)
        except (Refused, TeError) as error:
            if len(self.problems) == problem_count:
                self._note(node, scope, str(error))
            return [self._stand_in(name, scope) for name in node.output]

    def _stand_in(self, name: str, scope: Scope) -> GraphValue:
        placeholder = self.find_placeholder(name) if name and not scope.prefix else None
        return UNKNOWN if placeholder is None else placeholder

    def _note(self, node: NodeProto, scope: Scope, reason: str) -> None:
        label = node.name or next((name for name in node.output if name), "")
        domain = "" if node.domain == LEGACY else domain_of(node.domain)
        self.problems.append(Problem(node.op_type, domain, f"{scope.prefix}{label}", reason))

    def _note_unsupported(self, node: NodeProto, scope: Scope) -> None:
        """Record a problem for a node with an UNKNOWN input, if its operator has neither a handler nor a body."""
        key = (domain_of(node.domain), node.op_type)
        if handler_of(*key) or key in self.functions or key in CONTROL or node.domain == LEGACY:
            return
        if body_of(node, scope.opsets, self.functions, [None] * len(node.input)) is None:
            self._note(node, scope, reason_of(*key))

    def _convert(self, node: NodeProto, values: Sequence[Any], scope: Scope) -> Sequence[GraphValue]:
        key = (domain_of(node.domain), node.op_type)
        if key in CONTROL:
            return CONTROL[key](self, node, values, scope)
        is_function = key in self.functions
        is_constant = all(not isinstance(value, Tensor) for value in values)
        foreign = of_plugin(*key) is not None and schema_of(node, scope.opsets) is None
        if is_constant and not (is_function or foreign or node.op_type in RANDOM_OPERATORS or _subgraphs(node)):
            return self._evaluate(node, values, scope)
        if any(isinstance(value, list) for value in values):
            raise Refused(SEQUENCES)
        handler = handler_of(*key)
        if handler is not None and not is_function:
            outputs = self._handle(handler, node, values, scope)
            if outputs is not None:
                return outputs
        body = body_of(node, scope.opsets, self.functions, values)
        if body is None:
            raise Refused(reason_of(*key))
        inner = Scope(
            {domain_of(o.domain): o.version for o in body.opset_import},
            prefix=f"{self._label(node, scope)}.",
            expanded=None if is_function else self._origin(node, scope),
        )
        inner.values.update(zip(body.input, values, strict=False))
        self.walk(instantiate(body, node, scope.opsets), inner)
        return [inner.find(name) for name in body.output]

    def _evaluate(self, node: NodeProto, values: Sequence[Any], scope: Scope) -> Sequence[GraphValue]:
        outputs = evaluate(node, values, scope.opsets)
        for name, array in zip(node.output, outputs, strict=False):
            self._keep_alive.append(array)
            self._labels.setdefault(id(array), spelled(f"{scope.prefix}{name}"))
        return outputs

    def _handle(
        self, handler: Handler, node: NodeProto, values: Sequence[Value | None], scope: Scope
    ) -> Sequence[GraphValue] | None:
        domain = domain_of(node.domain)
        argument = Node(
            node.op_type,
            self._label(node, scope),
            scope.opsets.get(domain, 1),
            {attribute.name: _python_value(attribute) for attribute in node.attribute},
            values,
            [bool(name) for name in node.output],
            self.tensor,
        )
        try:
            outputs = handler(argument)
        except MISMATCH_ERRORS as error:
            raise Refused(f"its inputs and attributes do not fit each other ({error})") from error
        unread = _unread_attributes(node, argument, scope.opsets)
        if outputs is None or (unread and body_of(node, scope.opsets, self.functions, values) is not None):
            return None
        if unread:
            raise Refused(f"its attribute '{unread[0]}' is not supported")
        return [outputs] if isinstance(outputs, Tensor | np.ndarray) else list(outputs)

    def _label(self, node: NodeProto, scope: Scope) -> str:
        return spelled(f"{scope.prefix}{next((name for name in node.output if name), node.op_type)}")

    def _subgraph(self, graph: GraphProto, scope: Scope, inputs: Sequence[GraphValue], label: str) -> list[GraphValue]:
        """Convert a subgraph with these values for its inputs; return its outputs. `label` prefixes its names."""
        inner = replace(scope, values={}, parent=scope, prefix=f"{label}.")
        inner.values.update(zip((i.name for i in graph.input), inputs, strict=True))
        self.enter(graph, inner)
        return [inner.find(output.name) for output in graph.output]

    def branch(self, node: NodeProto, values: Sequence[Any], scope: Scope) -> Sequence[GraphValue]:
        """Convert If: the taken branch of a constant condition, else a selection between the results of both branches,
        UNKNOWN if one of them is. Raises Refused if results to select from differ in shape, or are sequences or
        omitted."""
        graphs, label = _subgraphs(node), self._label(node, scope)
        condition = values[0]
        if not isinstance(condition, Tensor):
            branch_name = "then_branch" if np.asarray(condition).reshape(-1)[0] else "else_branch"
            return self._subgraph(graphs[branch_name], scope, [], label)
        sides = [self._subgraph(graphs[f"{side}_branch"], scope, [], f"{label}.{side}") for side in ("then", "else")]
        return [self._select(condition, then, otherwise, label) for then, otherwise in zip(*sides, strict=True)]

    def _select(self, condition: Tensor, then: GraphValue, otherwise: GraphValue, label: str) -> GraphValue:
        if isinstance(then, Unknown) or isinstance(otherwise, Unknown):
            return UNKNOWN
        if then is None or otherwise is None or isinstance(then, list) or isinstance(otherwise, list):
            raise Refused(SEQUENCES)
        first, second = self.tensor(then, label), self.tensor(otherwise, label)
        if first.shape != second.shape:
            raise Refused("data decide which branch is taken, and the branches give other shapes")
        return where(condition, first, second, name=label)

    def loop(self, node: NodeProto, values: Sequence[Any], scope: Scope) -> Sequence[GraphValue]:
        """Convert Loop by unrolling it; return its final state, then the scan outputs, stacked along axis 0. Raises
        Refused unless trip count and conditions are constant, for more than MAX_TRIPS iterations, and for scan outputs
        without an iteration."""
        body, label = _subgraphs(node)["body"], self._label(node, scope)
        bounds = [value for value in values[:2] if value is not None]
        if any(isinstance(value, Tensor) for value in bounds):
            raise Refused("data decide how often its body runs")
        count = MAX_TRIPS + 1 if values[0] is None else int(np.asarray(values[0]).reshape(-1)[0])
        condition: Any = np.array(True) if len(values) < 2 or values[1] is None else values[1]
        state, rows, trip = list(values[2:]), list[list[GraphValue]](), 0
        while trip < count and np.asarray(condition).reshape(-1)[0]:
            if trip == MAX_TRIPS:
                raise Refused(f"its body runs more than {MAX_TRIPS} times: unrolled, it would be too large")
            outputs = self._subgraph(body, scope, [np.array(trip), condition, *state], f"{label}.{trip}")
            condition, state, trip = outputs[0], outputs[1 : 1 + len(state)], trip + 1
            rows.append(outputs[1 + len(state) :])
            if isinstance(condition, Tensor | Unknown):
                raise Refused("data decide how often its body runs")
        scans = len(body.output) - 1 - len(state)
        return [*state, *(self._stack([row[n] for row in rows], label) for n in range(scans))]

    def scan(self, node: NodeProto, values: Sequence[Any], scope: Scope) -> Sequence[GraphValue]:
        """Convert Scan by unrolling it over the scanned axis; return its final state, then its other outputs, each
        stacked along its scan_output_axes. Raises Refused for more than MAX_TRIPS iterations, for stacked outputs
        without an iteration, and for an input that is omitted or a sequence."""
        body, label = _subgraphs(node)["body"], self._label(node, scope)
        attributes: dict[str, Any] = {a.name: list(a.ints) or a.i for a in node.attribute if a.name != "body"}
        count = int(attributes["num_scan_inputs"])
        if any(value is None or isinstance(value, list) for value in values):
            raise Refused(SEQUENCES)
        state, scanned = list(values[:-count]), values[-count:]
        axes, reversals = (attributes.get(f"scan_input_{name}", [0] * count) for name in ("axes", "directions"))
        trips = shape_of(scanned[0])[axes[0]]
        if trips > MAX_TRIPS:
            raise Refused(f"its body runs more than {MAX_TRIPS} times: unrolled, it would be too large")
        rows = list[list[GraphValue]]()
        for trip in range(trips):
            inputs = zip(scanned, axes, reversals, strict=True)
            elements = [_element(value, axis, trips - 1 - trip if back else trip) for value, axis, back in inputs]
            outputs = self._subgraph(body, scope, [*state, *elements], f"{label}.{trip}")
            state = outputs[: len(state)]
            rows.append(outputs[len(state) :])
        output_count = len(body.output) - len(state)
        axes, reversals = (attributes.get(f"scan_output_{name}", [0] * output_count) for name in ("axes", "directions"))
        ordered = [[row[n] for row in rows][:: -1 if reversals[n] else 1] for n in range(output_count)]
        return [*state, *(self._stack(elements, label, axes[n]) for n, elements in enumerate(ordered))]

    def _stack(self, parts: Sequence[GraphValue], label: str, axis: int = 0) -> GraphValue:
        """Stack an output of all iterations along a new axis, arrays to an array; UNKNOWN if one of `parts` is. Raises
        Refused without iterations, and for sequences."""
        if any(isinstance(part, Unknown) for part in parts):
            return UNKNOWN
        if not parts or any(part is None or isinstance(part, list) for part in parts):
            raise Refused("its body never runs, so that a result has no elements" if not parts else SEQUENCES)
        if not any(isinstance(part, Tensor) for part in parts):
            return np.stack([np.asarray(part) for part in parts], axis)
        return stack([self.tensor(part, label) for part in parts], axis, label)  # type: ignore[arg-type]


CONTROL: dict[tuple[str, str], Callable[[Walk, NodeProto, Sequence[Any], Scope], Sequence[GraphValue]]] = {
    ("", "If"): Walk.branch,
    ("", "Loop"): Walk.loop,
    ("", "Scan"): Walk.scan,
}
"""Map the domain and name of each operator with subgraphs to its conversion."""


def own_operators() -> list[str]:
    """Return the qualified names of the operators that the compiler converts without a plugin, such as
    `ai.onnx.ml.Scaler`."""
    return [onnx_name(name, domain) for domain, name in (*operators.HANDLERS, *CONTROL)]


def _element(value: Value, axis: int, index: int) -> Value:
    """Return the slice of a value at an index of an axis; that axis is dropped."""
    if not isinstance(value, Tensor):
        return np.asarray(np.take(value, index, axis))
    axis %= value.rank
    shape = (*value.shape[:axis], *value.shape[axis + 1 :])
    return compute(shape, lambda *i: value[(*i[:axis], index, *i[axis:])], f"{value.name}.{index}")


def _subgraphs(node: NodeProto) -> dict[str, GraphProto]:
    return {a.name: a.g for a in node.attribute if a.type == AttributeProto.GRAPH}


def _unread_attributes(node: NodeProto, argument: Node, opsets: Mapping[str, int]) -> list[str]:
    """Return the names of attributes with a non-default value that the handler has not read and that matter."""
    schema = schema_of(node, opsets)
    defaults = {} if schema is None else {name: a.default_value for name, a in schema.attributes.items()}
    default_values = {name: _python_value(default) for name, default in defaults.items() if default.name}
    unread = [a for a in node.attribute if a.name not in argument.read | IGNORED_ATTRIBUTES]
    return [a.name for a in unread if a.name not in default_values or default_values[a.name] != _python_value(a)]


def _python_value(attribute: AttributeProto) -> Any:
    """Return an attribute's value as a Python object: bytes as text, repeated numbers as a list."""
    value = helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return list(value) if attribute.type in (AttributeProto.INTS, AttributeProto.FLOATS) else value
