"""Operators of old opsets that ONNX's version converter does not convert, or converts wrongly.

Before the conversion their nodes move to a separate domain, which the converter ignores. They are modernised when the
walk reaches them, since that depends on ranks and dtypes of their inputs.
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
from compiler.types.dtypes import DTYPES, is_float

LEGACY = "strata.legacy"
"""The domain of legacy nodes, which the converter leaves unchanged."""
BROADCASTING = ["Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "PRelu", "Pow", "Sub", "Xor"]
"""Operators whose second input is aligned with the first's dimensions at the attribute `axis`; PRelu's at axis 1."""
LEGACY_BELOW = dict.fromkeys(BROADCASTING, 7) | {"Clip": 11, "Pad": 11, "Resize": 11, "Scan": 9, "Upsample": 10}
"""Map each operator to the opset from which it is current; in earlier ones it is legacy."""
LIMIT = float(np.finfo(np.float32).max)


def to_legacy_domain(model: ModelProto, version: int) -> ModelProto:
    """Copy a model of opset `version`, with its legacy nodes in the domain `LEGACY`; a Clip of opset 6 or later gets
    omitted bounds as attributes, -LIMIT and LIMIT."""
    copy = ModelProto()
    copy.CopyFrom(model)
    for graph in _graphs(copy.graph):
        for node in (node for node in graph.node if _is_legacy(node, version)):
            _move_to_legacy(node, version)
    copy.opset_import.append(helper.make_opsetid(LEGACY, 1))
    return copy


def _move_to_legacy(node: NodeProto, version: int) -> None:
    node.domain = LEGACY
    attributes = {attribute.name for attribute in node.attribute}
    if node.op_type == "Clip" and version >= 6:
        defaults = {"min": -LIMIT, "max": LIMIT}
        node.attribute.extend(helper.make_attribute(k, v) for k, v in defaults.items() if k not in attributes)


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """Yield a graph and, recursively, the subgraphs in its nodes' attributes."""
    yield graph
    for attribute in (attribute for node in graph.node for attribute in node.attribute):
        for inner in [attribute.g] if attribute.HasField("g") else attribute.graphs:
            yield from _graphs(inner)


def flatten_hardmax(converted: ModelProto) -> ModelProto:
    """Replace each Hardmax in place by Flatten, Hardmax of a matrix and Reshape; return the model. Before opset 13 it
    is over all dimensions from `axis` on together, and the converter leaves it unchanged."""
    for graph in _graphs(converted.graph):
        _flatten_graph_hardmax(graph)
    return converted


def _flatten_graph_hardmax(graph: GraphProto) -> None:
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
    return not domain_of(node.domain) and version < LEGACY_BELOW.get(node.op_type, 0)


def modernise(node: NodeProto, values: Sequence[Any]) -> tuple[NodeProto, list[Any]]:
    """Return a current node for a legacy one, and its inputs; attributes other than `mode` become inputs or are applied
    to them. A node with a sequence as input only changes its domain. Raises Refused for Scan of opset 8."""
    current = NodeProto()
    current.CopyFrom(node)
    current.ClearField("domain")
    attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    if not all(value is None or hasattr(value, "shape") for value in values):
        return current, list(values)
    inputs = _MODERN.get(node.op_type, _broadcast)(current, attributes, list(values))
    mode_attribute = [attribute for attribute in node.attribute if attribute.name == "mode"]
    del current.attribute[:], current.input[:]
    current.attribute.extend(mode_attribute)
    current.input.extend(["" if value is None else f"input{n}" for n, value in enumerate(inputs)])
    return current, inputs


def _broadcast(node: NodeProto, attributes: dict[str, Any], values: list[Any]) -> list[Any]:
    """Return two inputs; the second has dimensions of extent 1 appended, so that numpy broadcasts it from dimension
    `axis` of the first on (1 for a PRelu of several slopes). It is unchanged without `axis`, and if it is a scalar or
    reaches the first's last dimension."""
    first, second = values
    rank, shape = len(shape_of(first)), shape_of(second)
    axis = attributes.get("axis") if node.op_type != "PRelu" or shape == (1,) else 1
    trailing = 0 if axis is None else rank - axis % max(rank, 1) - len(shape)
    if trailing <= 0 or not shape:
        return values
    padded_shape = (*shape, *[1] * trailing)
    return [first, nn.reshape(second, padded_shape) if isinstance(second, Tensor) else second.reshape(padded_shape)]


def _clip(node: NodeProto, attributes: dict[str, Any], values: list[Any]) -> list[Any]:
    """Return Clip's inputs: the tensor and both bounds; None for a bound that is omitted, infinite in the tensor's
    dtype or, for integers, not within f32's range."""
    dtype = _dtype(values[0])
    bounds = [np.array(attributes.get(name, np.inf), np.float64) for name in ("min", "max")]
    within = [abs(float(bound)) < (DTYPES[dtype].infinite if is_float(dtype) else LIMIT) for bound in bounds]
    array = DTYPES[dtype].array
    return [values[0], *(bound.astype(array) if fits else None for bound, fits in zip(bounds, within, strict=True))]


def _pad(node: NodeProto, attributes: dict[str, Any], values: list[Any]) -> list[Any]:
    value = np.array(attributes.get("value", 0.0), DTYPES[_dtype(values[0])].array)
    return [values[0], np.array(attributes.get("pads", attributes.get("paddings")), np.int64), value]


def _upsample(node: NodeProto, attributes: dict[str, Any], values: list[Any]) -> list[Any]:
    """Rename a node to Upsample, also a Resize of opset 10; return its inputs, with the attribute `scales` second."""
    node.op_type = "Upsample"
    return [values[0], np.array(attributes["scales"], np.float32)] if "scales" in attributes else values


def _scan(node: NodeProto, attributes: dict[str, Any], values: list[Any]) -> list[Any]:
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
