"""Function bodies of operators: from ONNX's schemas, and functions of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from onnx import AttributeProto, FunctionProto, NodeProto, TypeProto, defs, helper

from compiler.frontends.onnx.table import Value
from compiler.frontends.onnx.types import TYPE_OF, dtype_of
from compiler.te.tensor import Tensor

Functions: TypeAlias = Mapping[tuple[str, str], FunctionProto]
"""The functions of a model by their domain and name."""


def domain_of(name: str) -> str:
    """Normalise a domain name: "" for "ai.onnx"; other names are unchanged."""
    return "" if name == "ai.onnx" else name


def schema_of(node: NodeProto, opsets: Mapping[str, int]) -> defs.OpSchema | None:
    """Return the schema of a node's operator in the opset of its domain (default: 1); None for an unknown operator."""
    domain = domain_of(node.domain)
    try:
        return defs.get_schema(node.op_type, opsets.get(domain, 1), domain)
    except defs.SchemaError:
        return None


def body_of(
    node: NodeProto, opsets: Mapping[str, int], functions: Functions, values: Sequence[Value | None]
) -> FunctionProto | None:
    """Return the function body of a node's operator: the model's, else the schema's for inputs of the types of
    `values`, in the opsets by domain; None without one."""
    function = functions.get((domain_of(node.domain), node.op_type))
    if function is not None:
        return function
    schema, version = schema_of(node, opsets), opsets.get(domain_of(node.domain), 1)
    if schema is None:
        return None
    if schema.has_function:
        return _latest(schema.function_opset_versions, version, schema.get_function_with_opset_version)
    if not schema.has_context_dependent_function:
        return None
    types = [_type_of(value) for value in values]

    def build(opset: int) -> Any:
        return schema.get_context_dependent_function_with_opset_version(
            opset, node.SerializeToString(), [t.SerializeToString() for t in types]
        )

    return _latest(schema.context_dependent_function_opset_versions, version, build)


def _latest(versions: Sequence[int], newest: int, build: object) -> FunctionProto | None:
    """Parse build(version) for the highest of `versions` that is at most `newest`; None without such a version, and for
    a body without nodes."""
    usable = [version for version in versions if version <= newest]
    if not usable or not callable(build):
        return None
    body = FunctionProto()
    text = build(max(usable))
    body.ParseFromString(text if isinstance(text, bytes) else text.encode())
    return body if body.node else None


def _type_of(value: Value | None) -> TypeProto:
    if value is None:
        return TypeProto()
    dtype = value.dtype if isinstance(value, Tensor) else dtype_of(value)
    element_type = TYPE_OF.get(dtype or "")
    if element_type is None:
        element_type = helper.np_dtype_to_tensor_dtype(value.dtype)
    return helper.make_tensor_type_proto(element_type, list(value.shape))


def instantiate(function: FunctionProto, call: NodeProto, opsets: Mapping[str, int]) -> list[NodeProto]:
    """Return a function's nodes with each attribute reference replaced by the call's value or the default, else
    dropped."""
    attributes = {attribute.name: attribute for attribute in function.attribute_proto}
    schema = schema_of(call, opsets)
    for name, attribute in schema.attributes.items() if schema is not None else ():
        if attribute.default_value.name:
            attributes[name] = attribute.default_value
    attributes |= {attribute.name: attribute for attribute in call.attribute}
    return [_substitute(node, attributes) for node in function.node]


def _substitute(node: NodeProto, attributes: Mapping[str, AttributeProto]) -> NodeProto:
    copy = NodeProto()
    copy.CopyFrom(node)
    del copy.attribute[:]
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            copy.attribute.append(_substitute_subgraph(attribute, attributes))
        elif attribute.ref_attr_name in attributes:
            copied = copy.attribute.add()
            copied.CopyFrom(attributes[attribute.ref_attr_name])
            copied.name = attribute.name
    return copy


def _substitute_subgraph(attribute: AttributeProto, attributes: Mapping[str, AttributeProto]) -> AttributeProto:
    """Copy a subgraph attribute with the function's attributes substituted in its nodes; return an attribute without a
    subgraph unchanged."""
    if attribute.type != AttributeProto.GRAPH:
        return attribute
    copy = AttributeProto()
    copy.CopyFrom(attribute)
    nodes = [_substitute(node, attributes) for node in copy.g.node]
    del copy.g.node[:]
    copy.g.node.extend(nodes)
    return copy
