"""`from_onnx`: import a model as a te function and its constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onnx import ModelProto, shape_inference

from compiler.frontends.model import Imported
from compiler.frontends.onnx.bodies import domain_of
from compiler.frontends.onnx.loading import bind, inputs_of, load, opsets_of
from compiler.frontends.onnx.table import Refused
from compiler.frontends.onnx.types import DTYPE_OF
from compiler.frontends.onnx.walk import GraphValue, Problem, Scope, Unknown, Walk
from compiler.program.names import Names, spelled, spellings
from compiler.support.errors import InputError
from compiler.support.text import counted
from compiler.te.function import Function, function
from compiler.te.tensor import Tensor, placeholder


class UnsupportedError(InputError):
    """The error for a model with nodes that have no te form; `problems` lists them."""

    def __init__(self, name: str, problems: Sequence[Problem]) -> None:
        super().__init__(_summary(name, problems))
        self.problems = tuple(problems)


def _summary(name: str, problems: Sequence[Problem]) -> str:
    """Return a sentence about the unsupported nodes of model `name`, grouped by operator and reason."""
    kinds: dict[tuple[str, str, str], list[str]] = {}
    for p in problems:
        kinds.setdefault((p.domain, p.operator, p.reason), []).append(p.node)
    lines = [
        f"{f'{domain}.' if domain else ''}{operator} ({counted(len(nodes), 'node')}, '{nodes[0]}'): {reason}"
        for (domain, operator, reason), nodes in kinds.items()
    ]
    verb = "has" if len(problems) == 1 else "have"
    return f"{counted(len(problems), 'node')} of '{name}' {verb} no te form: {'; '.join(lines)}"


def from_onnx(model: object, shapes: Mapping[str, Any] | None = None) -> Imported:
    """Import a model, a ModelProto or the path of a file, as a te function with the arrays of its weights.

    The function's inputs are those of the model, in order, then the weights, whose arrays are in `constants`; outputs
    are the model's. Small weights are embedded in the function. Nodes that depend on weights and shapes only are folded
    by ONNX's reference evaluator. shapes: extents of symbolic dimensions by name, such as {"N": 1}; or full shapes by
    the names of inputs.

    Raises InputError for a file that cannot be read, an invalid model, an input that is no tensor of a dtype of te, an
    unbound dimension, or a wrong name or extent in `shapes`; UnsupportedError, an InputError, that lists all nodes
    without a te form; TeError for more than MAX_NODES nodes.
    """
    if shapes is not None and not isinstance(shapes, Mapping):
        raise InputError(f"shapes is {shapes!r}: extents by the names of dimensions, such as {{'N': 1}}")
    checked = load(model)
    bound = bind(checked, shapes or {})
    model_inputs = inputs_of(checked)
    labels = spellings([value.name for value in model_inputs])
    names = Names(labels, separator="_")
    inputs = {
        value.name: placeholder(bound[value.name], DTYPE_OF[value.type.tensor_type.elem_type], label)
        for value, label in zip(model_inputs, labels, strict=True)
    }
    functions = {(domain_of(f.domain), f.name): f for f in checked.functions}
    walk = Walk(functions, names, _placeholder_finder(checked, bound))
    scope = Scope(opsets_of(checked), dict(inputs))
    walk.enter(checked.graph, scope)
    title = spelled(checked.graph.name or "model")
    outputs = [_result(walk, scope.find(value.name), value.name) for value in checked.graph.output]
    if walk.problems:
        raise UnsupportedError(checked.graph.name or "the model", walk.problems)
    imported = function(title, [*inputs.values(), *walk.inputs], [value for value in outputs if value is not None])
    _name_results(imported, [spelled(value.name) for value in checked.graph.output])
    return Imported(imported, walk.constants)


def _result(walk: Walk, value: GraphValue, name: str) -> Tensor | None:
    """Return an output's value as a tensor; None for a refused node's, and, with a new problem, for a non-tensor."""
    try:
        if value is None or isinstance(value, list):
            raise Refused("it is a sequence or an optional value")
        return None if isinstance(value, Unknown) else walk.tensor(value, name)
    except Refused as error:
        walk.problems.append(Problem("output", "", name, str(error)))
        return None


def _placeholder_finder(model: ModelProto, bound: Mapping[str, tuple[int, ...]]) -> Callable[[str], Tensor | None]:
    """Return a function from a value's name to a placeholder of its type, or to None if that is not static. Types are
    inferred at the first call, for the bound shapes of the inputs."""
    types: dict[str, Any] = {}

    def find(name: str) -> Tensor | None:
        if not types:
            types.update(_inferred_types(model, bound))
        inferred = types.get(name)
        if inferred is None or inferred.elem_type not in DTYPE_OF or not inferred.HasField("shape"):
            return None
        shape = [size.dim_value for size in inferred.shape.dim]
        return placeholder(shape, DTYPE_OF[inferred.elem_type], spelled(name)) if all(n > 0 for n in shape) else None

    return find


def _inferred_types(model: ModelProto, bound: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    """Infer the tensor type of each value by name, for the bound shapes of the inputs; none are known if that fails.
    The mapping always has an entry "", so that it is not empty once computed."""
    static = ModelProto()
    static.CopyFrom(model)
    for value in static.graph.input:
        for size, extent in zip(value.type.tensor_type.shape.dim, bound.get(value.name, ()), strict=False):
            size.dim_value = extent
    try:
        static = shape_inference.infer_shapes(static, data_prop=True)
    except (shape_inference.InferenceError, RuntimeError, ValueError):
        return {"": None}
    values = [*static.graph.value_info, *static.graph.output]
    return {"": None} | {value.name: value.type.tensor_type for value in values}


def _name_results(imported: Function, output_names: Sequence[str]) -> None:
    """Name the function's results after the model's outputs, except for inputs, and for names that inputs have; another
    value of such a name gets the result's former name."""
    block = next(iter(imported.module.ops)).body.block
    returned = block.last_op
    assert returned is not None
    values = [*block.args, *(value for op in block.ops for value in op.results)]
    holders = {value.name_hint: value for value in values}
    for value, name in zip(returned.operands, output_names, strict=True):
        if value in block.args or value.name_hint in output_names:
            continue
        if name in holders and holders[name] is not value:
            if holders[name] in block.args:
                continue
            holders[name].name_hint = value.name_hint
        value.name_hint = name


__all__ = ["UnsupportedError", "from_onnx"]
