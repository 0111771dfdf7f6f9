"""The nodes of a model in order, from values to values; nodes without a te form are noted, and the walk goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from onnx import AttributeProto, GraphProto, NodeProto, helper, numpy_helper

from compiler.frontends.onnx import operators
from compiler.frontends.onnx.bodies import Functions, body_of, bound, domain_of, schema_of
from compiler.frontends.onnx.evaluation import evaluated
from compiler.frontends.onnx.legacy import LEGACY, modern
from compiler.frontends.onnx.refusals import RANDOM_OPERATORS, SEQUENCES, reason_of
from compiler.frontends.onnx.table import Handler, Node, Refused, Value, handler_of, of_plugin, shape_of
from compiler.frontends.onnx.types import Array, dtype_of
from compiler.program.names import Names, spelled
from compiler.support.errors import TeError
from compiler.support.plugins import onnx_name
from compiler.te.compute import compute
from compiler.te.constant import constant
from compiler.te.nn.elementwise import where
from compiler.te.nn.shape import stack
from compiler.te.tensor import Tensor, placeholder
from compiler.types.elements import is_float

assert operators.HANDLERS

SMALL = 4
"""The elements up to which a known tensor of floats is part of the program, not an input with a constant array."""
SMALL_INTEGERS = 1024
MOST_TRIPS = 256
"""The most iterations of a loop that are unrolled."""
MEANINGLESS = frozenset(
    ("kernel_shape", "storage_order", "momentum", "stash_type", "seed", "hidden_size", "saturate", "num_outputs")
)
"""Attributes that follow from shapes, or that do not change results."""
UNFITTING = (ArithmeticError, LookupError, TypeError, ValueError)
"""Exceptions of handlers for a rank, or a number of attributes, that the operator does not have."""
MOST_NODES = 100_000
"""The most nodes that are walked, with the iterations of loops and the bodies of functions."""


class Unknown:
    """What a node that was refused gives."""


UNKNOWN = Unknown()
Found: TypeAlias = "Value | list[Any] | Unknown | None"
"""What a name of a graph stands for; lists are sequences of ONNX, None is left out."""


@dataclass(frozen=True)
class Problem:
    """A node that has no te form, and why."""

    operator: str
    domain: str
    node: str
    reason: str


@dataclass
class Scope:
    """The values of a graph or function by their names, and the opsets of its nodes; a subgraph sees its parent's."""

    opsets: Mapping[str, int]
    values: dict[str, Found] = field(default_factory=dict)
    parent: Scope | None = None
    prefix: str = ""

    def find(self, name: str) -> Found:
        """The value of a name; None for an unknown name."""
        if name in self.values or self.parent is None:
            return self.values.get(name)
        return self.parent.find(name)


@dataclass
class Walk:
    """The state of the walk over one model.

    names: those of inputs. constants: the arrays of inputs that never change. standing: of an output that was
    refused, a tensor of its type, so that what follows is looked at too.
    """

    functions: Functions
    names: Names
    standing: Callable[[str], Tensor | None]
    constants: dict[str, Array] = field(default_factory=dict)
    inputs: list[Tensor] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    _stated: dict[int, Tensor] = field(default_factory=dict)
    _labels: dict[int, str] = field(default_factory=dict)
    _held: list[Any] = field(default_factory=list)
    _walked: int = 0

    def enter(self, graph: GraphProto, scope: Scope) -> None:
        """Bind the initialisers of a graph and walk its nodes."""
        for stored in graph.initializer:
            array = numpy_helper.to_array(stored)
            self._labels[id(array)] = spelled(stored.name)
            self._held.append(array)
            scope.values[stored.name] = array
        for sparse in graph.sparse_initializer:
            scope.values[sparse.values.name] = UNKNOWN
            self.problems.append(Problem("initializer", "", sparse.values.name, "it is a sparse tensor"))
        self.walk(graph.node, scope)

    def walk(self, nodes: Iterable[NodeProto], scope: Scope) -> None:
        """Give each output of each node its value."""
        for node in nodes:
            self._walked += 1
            if self._walked > MOST_NODES:
                raise TeError(f"the model has more than {MOST_NODES} nodes, with its loops unrolled")
            outputs = self._results(node, scope)
            for name, value in zip(node.output, outputs, strict=False):
                if name:
                    scope.values[name] = value

    def tensor(self, value: Value, hint: str) -> Tensor:
        """A value as a tensor: a known one is a constant of the program, or an input with a constant array."""
        if isinstance(value, Tensor):
            return value
        array = np.asarray(value)
        if id(array) not in self._stated:
            self._held.append(array)
            self._stated[id(array)] = self._state(array, self._labels.get(id(array), spelled(hint)))
        return self._stated[id(array)]

    def _state(self, array: Array, label: str) -> Tensor:
        dtype = dtype_of(array)
        if dtype is None:
            raise Refused(f"'{label}' is a tensor of {array.dtype}, which te has no elements of")
        if not array.size:
            raise Refused(f"'{label}' of shape {array.shape} has no elements")
        if array.size <= (SMALL if is_float(dtype) else SMALL_INTEGERS):
            return constant(array, name=label)
        made = placeholder(array.shape, dtype, self.names.fresh(label))
        self.constants[made.name] = array
        self.inputs.append(made)
        return made

    def _results(self, node: NodeProto, scope: Scope) -> Sequence[Found]:
        """The values of a node's outputs; where it has no te form, that is noted."""
        values = [scope.find(name) if name else None for name in node.input]
        if any(value is UNKNOWN for value in values):
            self._note_unsupported(node, scope)
            return [UNKNOWN] * len(node.output)
        before = len(self.problems)
        try:
            if node.domain == LEGACY:
                node, values = modern(node, values)
            return self._converted(node, values, scope)
        except (Refused, TeError) as error:
            if len(self.problems) == before:
                self._note(node, scope, str(error))
            return [self._stand_in(name, scope) for name in node.output]

    def _stand_in(self, name: str, scope: Scope) -> Found:
        placeholder = self.standing(name) if name and not scope.prefix else None
        return UNKNOWN if placeholder is None else placeholder

    def _note(self, node: NodeProto, scope: Scope, reason: str) -> None:
        named = node.name or next((name for name in node.output if name), "")
        domain = "" if node.domain == LEGACY else domain_of(node.domain)
        self.problems.append(Problem(node.op_type, domain, f"{scope.prefix}{named}", reason))

    def _note_unsupported(self, node: NodeProto, scope: Scope) -> None:
        """Note a node behind one that was refused if its operator alone says that it has no te form."""
        key = (domain_of(node.domain), node.op_type)
        if handler_of(*key) or key in self.functions or key in CONTROL or node.domain == LEGACY:
            return
        if body_of(node, scope.opsets, self.functions, [None] * len(node.input)) is None:
            self._note(node, scope, reason_of(*key))

    def _converted(self, node: NodeProto, values: Sequence[Any], scope: Scope) -> Sequence[Found]:
        key = (domain_of(node.domain), node.op_type)
        if key in CONTROL:
            return CONTROL[key](self, node, values, scope)
        is_function = key in self.functions
        ahead = all(not isinstance(value, Tensor) for value in values)
        foreign = of_plugin(*key) is not None and schema_of(node, scope.opsets) is None
        if ahead and not (is_function or foreign or node.op_type in RANDOM_OPERATORS or _subgraphs(node)):
            return self._evaluated(node, values, scope)
        if any(isinstance(value, list) for value in values):
            raise Refused(SEQUENCES)
        handler = handler_of(*key)
        if handler is not None and not is_function:
            handled = self._handled(handler, node, values, scope)
            if handled is not None:
                return handled
        body = body_of(node, scope.opsets, self.functions, values)
        if body is None:
            raise Refused(reason_of(*key))
        inner = Scope(
            {domain_of(o.domain): o.version for o in body.opset_import}, prefix=f"{self._label(node, scope)}."
        )
        inner.values.update(zip(body.input, values, strict=False))
        self.walk(bound(body, node, scope.opsets), inner)
        return [inner.find(name) for name in body.output]

    def _evaluated(self, node: NodeProto, values: Sequence[Any], scope: Scope) -> Sequence[Found]:
        outputs = evaluated(node, values, scope.opsets)
        for name, array in zip(node.output, outputs, strict=False):
            self._held.append(array)
            self._labels.setdefault(id(array), spelled(f"{scope.prefix}{name}"))
        return outputs

    def _handled(
        self, handler: Handler, node: NodeProto, values: Sequence[Value | None], scope: Scope
    ) -> Sequence[Found] | None:
        domain = domain_of(node.domain)
        given = Node(
            node.op_type,
            self._label(node, scope),
            scope.opsets.get(domain, 1),
            {attribute.name: _plain(attribute) for attribute in node.attribute},
            values,
            [bool(name) for name in node.output],
            self.tensor,
        )
        try:
            outputs = handler(given)
        except UNFITTING as error:
            raise Refused(f"its inputs and attributes do not fit each other ({error})") from error
        unread = _unread(node, given, scope.opsets)
        if outputs is None or (unread and body_of(node, scope.opsets, self.functions, values) is not None):
            return None
        if unread:
            raise Refused(f"its attribute '{unread[0]}' is not supported")
        return [outputs] if isinstance(outputs, Tensor | np.ndarray) else list(outputs)

    def _label(self, node: NodeProto, scope: Scope) -> str:
        return spelled(f"{scope.prefix}{next((name for name in node.output if name), node.op_type)}")

    def _subgraph(self, graph: GraphProto, scope: Scope, given: Sequence[Found], label: str) -> list[Found]:
        """The outputs of a subgraph, for values of its inputs."""
        inner = replace(scope, values={}, parent=scope, prefix=f"{label}.")
        inner.values.update(zip((i.name for i in graph.input), given, strict=True))
        self.enter(graph, inner)
        return [inner.find(output.name) for output in graph.output]

    def branch(self, node: NodeProto, values: Sequence[Any], scope: Scope) -> Sequence[Found]:
        """If: the branch that a known condition takes; of both, element by element, where data decide."""
        graphs, label = _subgraphs(node), self._label(node, scope)
        condition = values[0]
        if not isinstance(condition, Tensor):
            taken = "then_branch" if np.asarray(condition).reshape(-1)[0] else "else_branch"
            return self._subgraph(graphs[taken], scope, [], label)
        sides = [self._subgraph(graphs[f"{side}_branch"], scope, [], f"{label}.{side}") for side in ("then", "else")]
        return [self._either(condition, then, otherwise, label) for then, otherwise in zip(*sides, strict=True)]

    def _either(self, condition: Tensor, then: Found, otherwise: Found, label: str) -> Found:
        if isinstance(then, Unknown) or isinstance(otherwise, Unknown):
            return UNKNOWN
        if then is None or otherwise is None or isinstance(then, list) or isinstance(otherwise, list):
            raise Refused(SEQUENCES)
        first, second = self.tensor(then, label), self.tensor(otherwise, label)
        if first.shape != second.shape:
            raise Refused("data decide which branch is taken, and the branches give other shapes")
        return where(condition, first, second, name=label)

    def loop(self, node: NodeProto, values: Sequence[Any], scope: Scope) -> Sequence[Found]:
        """Loop: unrolled, where the count and the condition are known."""
        body, label = _subgraphs(node)["body"], self._label(node, scope)
        bounds = [value for value in values[:2] if value is not None]
        if any(isinstance(value, Tensor) for value in bounds):
            raise Refused("data decide how often its body runs")
        count = MOST_TRIPS + 1 if values[0] is None else int(np.asarray(values[0]).reshape(-1)[0])
        going: Any = np.array(True) if len(values) < 2 or values[1] is None else values[1]
        state, rows, trip = list(values[2:]), list[list[Found]](), 0
        while trip < count and np.asarray(going).reshape(-1)[0]:
            if trip == MOST_TRIPS:
                raise Refused(f"its body runs more than {MOST_TRIPS} times: unrolled, it would be too large")
            outputs = self._subgraph(body, scope, [np.array(trip), going, *state], f"{label}.{trip}")
            going, state, trip = outputs[0], outputs[1 : 1 + len(state)], trip + 1
            rows.append(outputs[1 + len(state) :])
            if isinstance(going, Tensor | Unknown):
                raise Refused("data decide how often its body runs")
        scans = len(body.output) - 1 - len(state)
        return [*state, *(self._stacked([row[n] for row in rows], label) for n in range(scans))]

    def scan(self, node: NodeProto, values: Sequence[Any], scope: Scope) -> Sequence[Found]:
        """Scan: unrolled over the extent of its inputs."""
        body, label = _subgraphs(node)["body"], self._label(node, scope)
        stated: dict[str, Any] = {a.name: list(a.ints) or a.i for a in node.attribute if a.name != "body"}
        count = int(stated["num_scan_inputs"])
        if any(value is None or isinstance(value, list) for value in values):
            raise Refused(SEQUENCES)
        state, scanned = list(values[:-count]), values[-count:]
        axes, turned = (stated.get(f"scan_input_{name}", [0] * count) for name in ("axes", "directions"))
        trips = shape_of(scanned[0])[axes[0]]
        if trips > MOST_TRIPS:
            raise Refused(f"its body runs more than {MOST_TRIPS} times: unrolled, it would be too large")
        rows = list[list[Found]]()
        for trip in range(trips):
            ways = zip(scanned, axes, turned, strict=True)
            parts = [_at(value, axis, trips - 1 - trip if back else trip) for value, axis, back in ways]
            outputs = self._subgraph(body, scope, [*state, *parts], f"{label}.{trip}")
            state = outputs[: len(state)]
            rows.append(outputs[len(state) :])
        given = len(body.output) - len(state)
        axes, turned = (stated.get(f"scan_output_{name}", [0] * given) for name in ("axes", "directions"))
        ordered = [[row[n] for row in rows][:: -1 if turned[n] else 1] for n in range(given)]
        return [*state, *(self._stacked(parts, label, axes[n]) for n, parts in enumerate(ordered))]

    def _stacked(self, parts: Sequence[Found], label: str, axis: int = 0) -> Found:
        """What the iterations of a loop have given, along a new axis."""
        if any(isinstance(part, Unknown) for part in parts):
            return UNKNOWN
        if not parts or any(part is None or isinstance(part, list) for part in parts):
            raise Refused("its body never runs, so that a result has no elements" if not parts else SEQUENCES)
        if not any(isinstance(part, Tensor) for part in parts):
            return np.stack([np.asarray(part) for part in parts], axis)
        return stack([self.tensor(part, label) for part in parts], axis, label)  # type: ignore[arg-type]


CONTROL: dict[tuple[str, str], Callable[[Walk, NodeProto, Sequence[Any], Scope], Sequence[Found]]] = {
    ("", "If"): Walk.branch,
    ("", "Loop"): Walk.loop,
    ("", "Scan"): Walk.scan,
}
"""The operators with subgraphs."""


def own_operators() -> list[str]:
    """The names of the operators that the front end has, with their domains."""
    return [onnx_name(name, domain) for domain, name in (*operators.HANDLERS, *CONTROL)]


def _at(value: Value, axis: int, place: int) -> Value:
    """The elements at one place of an axis, without it."""
    if not isinstance(value, Tensor):
        return np.asarray(np.take(value, place, axis))
    axis %= value.rank
    shape = (*value.shape[:axis], *value.shape[axis + 1 :])
    return compute(shape, lambda *i: value[(*i[:axis], place, *i[axis:])], f"{value.name}.{place}")


def _subgraphs(node: NodeProto) -> dict[str, GraphProto]:
    return {a.name: a.g for a in node.attribute if a.type == AttributeProto.GRAPH}


def _unread(node: NodeProto, given: Node, opsets: Mapping[str, int]) -> list[str]:
    """The attributes that say something which the handler has not looked at."""
    schema = schema_of(node, opsets)
    defaults = {} if schema is None else {name: stated.default_value for name, stated in schema.attributes.items()}
    usual = {name: _plain(default) for name, default in defaults.items() if default.name}
    unread = [a for a in node.attribute if a.name not in given.read | MEANINGLESS]
    return [a.name for a in unread if a.name not in usual or usual[a.name] != _plain(a)]


def _plain(attribute: AttributeProto) -> Any:
    """The value of an attribute in Python's types."""
    value = helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return list(value) if attribute.type in (AttributeProto.INTS, AttributeProto.FLOATS) else value
