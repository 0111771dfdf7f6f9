"""Operators of old opsets that ONNX's converter does not convert, or whose meaning it changes.

Before the conversion their nodes move to a domain of their own, so that the converter leaves them alone. When they are
walked, they become nodes of today: there the ranks and dtypes are known that this depends on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, helper

from compiler.frontends.onnx.bodies import domain_of
from compiler.frontends.onnx.table import Refused, shape_of
from compiler.frontends.onnx.types import dtype_of
from compiler.te import nn
from compiler.te.tensor import Tensor
from compiler.types.elements import DTYPES, is_float

LEGACY = "strata.legacy"
"""The domain of the nodes that the converter leaves alone."""
BROADCASTING = ["Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "PRelu", "Pow", "Sub", "Xor"]
"""Operators whose second input is broadcast along an axis that an attribute states; PRelu's along the channels."""
BELOW = dict.fromkeys(BROADCASTING, 7) | {"Clip": 11, "Pad": 11, "Resize": 11, "Scan": 9, "Upsample": 10}
"""The opset below which an operator is a legacy one."""
LIMIT = float(np.finfo(np.float32).max)


def set_apart(model: ModelProto, version: int) -> ModelProto:
    """The model with its legacy nodes in the domain `LEGACY`."""
    made = ModelProto()
    made.CopyFrom(model)
    for graph in _graphs(made.graph):
        for node in (node for node in graph.node if _is_legacy(node, version)):
            _set_apart(node, version)
    made.opset_import.append(helper.make_opsetid(LEGACY, 1))
    return made


def _set_apart(node: NodeProto, version: int) -> None:
    node.domain = LEGACY
    stated = {attribute.name for attribute in node.attribute}
    if node.op_type == "Clip" and version >= 6:
        usual = {"min": -LIMIT, "max": LIMIT}
        node.attribute.extend(helper.make_attribute(k, v) for k, v in usual.items() if k not in stated)


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """A graph and those of the branches and loops in it."""
    yield graph
    for attribute in (attribute for node in graph.node for attribute in node.attribute):
        for inner in [attribute.g] if attribute.HasField("g") else attribute.graphs:
            yield from _graphs(inner)


def with_flat_maxima(converted: ModelProto) -> ModelProto:
    """A converted model whose Hardmax nodes, which the converter does not change, are of matrices, as they were: of all
    dimensions from the axis on."""
    for graph in _graphs(converted.graph):
        _flatten_maxima(graph)
    return converted


def _flatten_maxima(graph: GraphProto) -> None:
    for position, node in reversed(list(enumerate(graph.node))):
        if node.op_type == "Hardmax" and not domain_of(node.domain):
            source, target = node.input[0], node.output[0]
            axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 1)
            matrix, maxima, shape = (f"{target}.{part}" for part in ("matrix", "maxima", "shape"))
            parts = [
                helper.make_node("Flatten", [source], [matrix], axis=axis),
                helper.make_node("Hardmax", [matrix], [maxima], axis=1),
                helper.make_node("Shape", [source], [shape]),
                helper.make_node("Reshape", [maxima, shape], [target], name=node.name),
            ]
            del graph.node[position]
            for part in reversed(parts):
                graph.node.insert(position, part)


def _is_legacy(node: NodeProto, version: int) -> bool:
    return not domain_of(node.domain) and version < BELOW.get(node.op_type, 0)


def modern(node: NodeProto, values: Sequence[Any]) -> tuple[NodeProto, list[Any]]:
    """A legacy node as one of today's, and its inputs. Raises Refused."""
    made = NodeProto()
    made.CopyFrom(node)
    made.ClearField("domain")
    stated = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    if not all(value is None or hasattr(value, "shape") for value in values):
        return made, list(values)
    inputs = _MODERN.get(node.op_type, _broadcast)(made, stated, list(values))
    kept = [attribute for attribute in node.attribute if attribute.name == "mode"]
    del made.attribute[:], made.input[:]
    made.attribute.extend(kept)
    made.input.extend(["" if value is None else f"input{n}" for n, value in enumerate(inputs)])
    return made, inputs


def _broadcast(node: NodeProto, stated: dict[str, Any], values: list[Any]) -> list[Any]:
    """The second input with the rank that numpy's broadcasting needs."""
    first, second = values
    rank, shape = len(shape_of(first)), shape_of(second)
    axis = stated.get("axis") if node.op_type != "PRelu" or shape == (1,) else 1
    trailing = 0 if axis is None else rank - axis % max(rank, 1) - len(shape)
    if trailing <= 0 or not shape:
        return values
    wanted = (*shape, *[1] * trailing)
    return [first, nn.reshape(second, wanted) if isinstance(second, Tensor) else second.reshape(wanted)]


def _clip(node: NodeProto, stated: dict[str, Any], values: list[Any]) -> list[Any]:
    """Bounds as inputs, those that its dtype holds."""
    dtype = _dtype(values[0])
    bounds = [np.array(stated.get(name, np.inf), np.float64) for name in ("min", "max")]
    within = [abs(float(bound)) < (DTYPES[dtype].infinite if is_float(dtype) else LIMIT) for bound in bounds]
    array = DTYPES[dtype].array
    return [values[0], *(bound.astype(array) if fits else None for bound, fits in zip(bounds, within, strict=True))]


def _pad(node: NodeProto, stated: dict[str, Any], values: list[Any]) -> list[Any]:
    value = np.array(stated.get("value", 0.0), DTYPES[_dtype(values[0])].array)
    return [values[0], np.array(stated.get("pads", stated.get("paddings")), np.int64), value]


def _upsample(node: NodeProto, stated: dict[str, Any], values: list[Any]) -> list[Any]:
    """Scales as an input; opset 10 had Resize so too."""
    node.op_type = "Upsample"
    return [values[0], np.array(stated["scales"], np.float32)] if "scales" in stated else values


def _scan(node: NodeProto, stated: dict[str, Any], values: list[Any]) -> list[Any]:
    raise Refused("it is Scan of opset 8, whose sequences have lengths of their own")


def _dtype(value: Any) -> str:
    return value.dtype if isinstance(value, Tensor) else dtype_of(value) or "f32"


_MODERN: dict[str, Callable[[NodeProto, dict[str, Any], list[Any]], list[Any]]] = {
    "Clip": _clip,
    "Pad": _pad,
    "Resize": _upsample,
    "Scan": _scan,
    "Upsample": _upsample,
}
