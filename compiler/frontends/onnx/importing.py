"""`from_onnx`: a model as a te function, and its constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onnx import ModelProto, shape_inference

from compiler.frontends.model import Imported
from compiler.frontends.onnx.bodies import domain_of
from compiler.frontends.onnx.loading import bind, inputs_of, loaded, opsets_of
from compiler.frontends.onnx.table import Refused
from compiler.frontends.onnx.types import DTYPE_OF
from compiler.frontends.onnx.walk import Found, Problem, Scope, Unknown, Walk
from compiler.program.names import Names, spelled, spellings
from compiler.support.errors import InputError
from compiler.support.text import counted
from compiler.te.function import Function, function
from compiler.te.tensor import Tensor, placeholder


class UnsupportedError(InputError):
    """A model some of whose nodes have no te form: `problems` has each."""

    def __init__(self, name: str, problems: Sequence[Problem]) -> None:
        super().__init__(_said(name, problems))
        self.problems = tuple(problems)


def _said(name: str, problems: Sequence[Problem]) -> str:
    """All nodes that have no te form, by operator and reason."""
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
    """A model of ONNX, a ModelProto or the path of a file, as a te function with the arrays of its weights.

    The function's first inputs are those of the model, in order, then come weights, whose arrays are in `constants`;
    outputs are the model's. What depends on weights and shapes alone is computed here, by ONNX's reference evaluator.
    shapes: extents of symbolic dimensions by name, such as {"N": 1}; or whole shapes by the names of inputs.

    Raises InputError for a model that is not valid, or a dimension that is not bound; UnsupportedError, one of these,
    for nodes without a te form, all of them at once.
    """
    if shapes is not None and not isinstance(shapes, Mapping):
        raise InputError(f"shapes is {shapes!r}: extents by the names of dimensions, such as {{'N': 1}}")
    checked = loaded(model)
    bound = bind(checked, shapes or {})
    given = inputs_of(checked)
    labels = spellings([value.name for value in given])
    names = Names(labels, separator="_")
    inputs = {
        value.name: placeholder(bound[value.name], DTYPE_OF[value.type.tensor_type.elem_type], label)
        for value, label in zip(given, labels, strict=True)
    }
    functions = {(domain_of(f.domain), f.name): f for f in checked.functions}
    walk = Walk(functions, names, _standing(checked, bound))
    scope = Scope(opsets_of(checked), dict(inputs))
    walk.enter(checked.graph, scope)
    title = spelled(checked.graph.name or "model")
    outputs = [_result(walk, scope.find(value.name), value.name) for value in checked.graph.output]
    if walk.problems:
        raise UnsupportedError(checked.graph.name or "the model", walk.problems)
    made = function(title, [*inputs.values(), *walk.inputs], [value for value in outputs if value is not None])
    _name_results(made, [spelled(value.name) for value in checked.graph.output])
    return Imported(made, walk.constants)


def _result(walk: Walk, value: Found, name: str) -> Tensor | None:
    """An output as a tensor; None where it was refused, which is noted."""
    try:
        if value is None or isinstance(value, list):
            raise Refused("it is a sequence or an optional value")
        return None if isinstance(value, Unknown) else walk.tensor(value, name)
    except Refused as error:
        walk.problems.append(Problem("output", "", name, str(error)))
        return None


def _standing(model: ModelProto, bound: Mapping[str, tuple[int, ...]]) -> Callable[[str], Tensor | None]:
    """Of a name a tensor of the type that ONNX infers, None where that is not static; inferred when first asked."""
    types: dict[str, Any] = {}

    def find(name: str) -> Tensor | None:
        if not types:
            types.update(_inferred(model, bound))
        inferred = types.get(name)
        if inferred is None or inferred.elem_type not in DTYPE_OF or not inferred.HasField("shape"):
            return None
        shape = [size.dim_value for size in inferred.shape.dim]
        return placeholder(shape, DTYPE_OF[inferred.elem_type], spelled(name)) if all(n > 0 for n in shape) else None

    return find


def _inferred(model: ModelProto, bound: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    """The types of tensors by name, as ONNX infers them from the shapes of the inputs."""
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


def _name_results(made: Function, wanted: Sequence[str]) -> None:
    """Call results as the model calls its outputs, where they are computed and no other value has that name."""
    block = next(iter(made.module.ops)).body.block
    returned = block.last_op
    assert returned is not None
    values = [*block.args, *(value for op in block.ops for value in op.results)]
    holders = {value.name_hint: value for value in values}
    for value, name in zip(returned.operands, wanted, strict=True):
        if value in block.args or value.name_hint in wanted:
            continue
        if name in holders and holders[name] is not value:
            if holders[name] in block.args:
                continue
            holders[name].name_hint = value.name_hint
        value.name_hint = name


__all__ = ["UnsupportedError", "from_onnx"]
