"""Convert the nodes of a graph to te tensors."""

from __future__ import annotations

import linecache
import operator
import re
from collections.abc import Mapping, Sequence
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import fx
from torch._subclasses.fake_tensor import unset_fake_temporarily

from compiler.affine.text import RESERVED
from compiler.frontends.torch import operators
from compiler.frontends.torch.dtypes import dtype_of
from compiler.frontends.torch.table import OPERATORS, Call, Results, Row, Unsupported
from compiler.program.names import spelled
from compiler.support import plugins
from compiler.support.errors import StrataError
from compiler.support.spans import Span, called_at
from compiler.te.constant import constant
from compiler.te.tensor import Tensor, placeholder

Values: TypeAlias = dict[fx.Node, Results]
"""The result of each converted node: a te tensor, or a tuple for several."""
FRAME = re.compile(r'File "([^"]+)", line (\d+)')
"""A frame in torch's stack traces."""
TORCH = str(Path(torch.__file__).parent)
assert operators.FAMILIES


def row_of(node: fx.Node) -> Row:
    """Return the row of a node's operator, the table's or a plugin's. Raises Unsupported without one."""
    name = str(node.target)
    row = OPERATORS.get(name.removeprefix("aten.")) if name.startswith("aten.") else None
    part = plugins.parts("torch operator").get(name) if row is None else None
    if part is not None:
        return Row(part.guarded, part.plugin, trivial=False)
    if row is None:
        raise Unsupported(f"{operator_name(node)} has no te form")
    return row


def own_operators() -> list[str]:
    """Return torch's names of the operators in the table, such as `aten.add.Tensor`; plugins' are not included."""
    return [f"aten.{name}" for name in OPERATORS]


def operator_name(node: fx.Node) -> str:
    """Return the name of a node's operator for messages, such as `aten.add.Tensor` or the name of a function."""
    return str(node.target) if isinstance(node.target, torch._ops.OpOverload) else getattr(node.target, "__name__", "?")


def remove_assertions(graph: fx.Graph, of_values: bool = False) -> None:
    """Remove assertions on dtypes and devices, with `of_values` also on values, and dead code from a graph in place."""
    for node in reversed(graph.nodes):
        name = str(node.target)
        is_assertion = "aten._assert_tensor_metadata" in name or (of_values and "aten._assert_async" in name)
        if is_assertion and not node.users:
            graph.erase_node(node)
    graph.eliminate_dead_code()


def is_trivial(node: fx.Node) -> bool:
    """Return whether a node computes nothing: it moves elements, is a constant, selects one of several results, or is
    no call. Raises Unsupported for a call of an operator without a te form."""
    return node.op != "call_function" or node.target is operator.getitem or row_of(node).trivial


def convert(node: fx.Node, values: Mapping[fx.Node, Results]) -> Results:
    """Convert a call or an attribute to te; `values` has the results of its arguments. Raises Unsupported, with the
    reason and for a call the operator's name, and PluginError for a failure in a plugin's conversion."""
    if node.op == "get_attr":
        return constant_of(node)
    if node.op != "call_function":
        raise Unsupported(f"a node of the kind {node.op}")
    if node.target is operator.getitem:
        return _getitem(node, values)
    row = row_of(node)
    call = _call(node)
    arguments = fx.map_arg((node.args, node.kwargs), lambda n: _argument(n, values))
    positional, named = _python_value(arguments[0]), _python_value(arguments[1])
    _check_arguments(node, row, positional, named)
    try:
        with called_at(_source_line(node), module_path(node)):
            return row.convert(call, *positional, **named)
    except Unsupported as reason:
        raise Unsupported(f"{operator_name(node)}: {reason}") from reason
    except plugins.PluginError:
        raise
    except StrataError as refusal:
        raise Unsupported(f"{operator_name(node)}: {refusal}") from refusal


def _source_line(node: fx.Node) -> Span | None:
    """Return the model's line that a node comes from: the innermost frame outside torch; None without one."""
    lines = FRAME.findall(node.meta.get("stack_trace") or "")
    frames = [(file, line) for file, line in lines if not file.startswith(TORCH)]
    if not frames:
        return None
    file, line = frames[-1][0], int(frames[-1][1])
    text = linecache.getline(file, line)
    return Span(file, line, len(text) - len(text.lstrip()) + 1)


def module_path(node: fx.Node) -> str:
    """Return the path of the innermost module that calls a node, such as `encoder.layers.0.q_proj`; "" for the model
    itself, and for a graph of functions."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    path = str(stack[-1][0]) if stack else ""
    return path_of(path)


def path_of(expression: str) -> str:
    """Convert the access of a module in torch's graphs to its path: `L['self'].layers._modules['0'].proj` or
    `L['self'].layers[0].proj` to `layers.0.proj`."""
    root = re.sub(r"^L\['\w+'\]|^L__\w+?__", "", expression)
    return re.sub(r"(?:\._modules)?\[['\"]?([\w.]+)['\"]?\]", r".\1", root).strip(".")


def _check_arguments(node: fx.Node, row: Row, positional: Sequence[Any], named: Mapping[str, Any]) -> None:
    try:
        _signature(row.convert).bind(None, *positional, **named)
    except TypeError as error:
        raise Unsupported(f"{operator_name(node)}: {error}") from error


_signature = cache(signature)


def _getitem(node: fx.Node, values: Mapping[fx.Node, Results]) -> Tensor:
    source, position = node.args
    outputs = values[source]
    output: Tensor | None = outputs[position] if isinstance(outputs, tuple) else None
    if output is None:
        raise Unsupported(f"result {position} of {operator_name(source)} has no te form")
    return output


def _call(node: fx.Node) -> Call:
    value = node.meta.get("val")
    tensors = [tensor for tensor in (value if isinstance(value, tuple | list) else (value,)) if tensor is not None]
    if not tensors or not all(isinstance(tensor, torch.Tensor) for tensor in tensors):
        raise Unsupported(f"{operator_name(node)}: its result is no tensor")
    shapes = tuple(_shape(tensor) for tensor in tensors)
    return Call(node.name, shapes, tuple(dtype_of(tensor.dtype) for tensor in tensors), _common(node))


def _shape(value: torch.Tensor) -> tuple[int, ...]:
    if value.device.type == "meta":
        raise Unsupported(f"a tensor on the device {value.device.type}")
    if value.layout is not torch.strided:
        raise Unsupported(f"a tensor of the layout {value.layout}".replace("torch.", ""))
    return tuple(int(size) for size in value.shape)


def _common(node: fx.Node) -> str:
    """Return the dtype to which torch promotes the first two arguments; f32 if the first tensor or number of them is no
    tensor, or there is none. Raises Unsupported for a dtype that te lacks."""
    values = [a.meta.get("val") if isinstance(a, fx.Node) else a for a in node.args[:2]]
    operands = [a for a in values if isinstance(a, torch.Tensor | int | float)]
    if not operands or not isinstance(operands[0], torch.Tensor):
        return "f32"
    return dtype_of(torch.result_type(operands[0], operands[-1]))


def _argument(node: fx.Node, values: Mapping[fx.Node, Results]) -> Any:
    value = node.meta.get("val")
    if isinstance(value, torch.SymInt | int) and node not in values:
        return int(value)
    return values[node]


def _python_value(arguments: Any) -> Any:
    """Convert values in arguments: sequences to lists, mappings to dictionaries, symbolic integers to int."""
    if isinstance(arguments, Mapping):
        return {name: _python_value(value) for name, value in arguments.items()}
    if isinstance(arguments, Sequence) and not isinstance(arguments, str):
        return [_python_value(value) for value in arguments]
    return int(arguments) if isinstance(arguments, torch.SymInt) else arguments


def constant_of(node: fx.Node) -> Tensor:
    """Return the te constant of the attribute of a graph's module that a node reads. Raises Unsupported unless the
    attribute is a tensor of a dtype of te, with elements."""
    value = node.graph.owning_module
    for part in str(node.target).split("."):
        value = getattr(value, part)
    if not isinstance(value, torch.Tensor) or value.device.type == "meta":
        raise Unsupported("an attribute that is no tensor with elements")
    dtype = dtype_of(value.dtype)
    with unset_fake_temporarily():  # fake tensors have no elements
        array = (value.detach().float() if dtype == "bf16" else value.detach()).cpu().contiguous().numpy()
    return constant(array, dtype, te_name(node.name))


def te_name(name: str) -> str:
    """Spell a name as a te name: invalid characters become `_`, and `x_` precedes reserved words and names that do not
    begin with a letter."""
    return spelled(name if name[:1].isalpha() and name not in RESERVED else f"x_{name}")


def placeholder_of(node: fx.Node, name: str | None = None, order: Sequence[int] | None = None) -> Tensor:
    """Return a placeholder of the shape and dtype of a node's value, by default named after the node; with an `order`,
    its dimension d is dimension order[d] of the value. Raises Unsupported unless the value is a tensor that te can
    express."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        raise Unsupported(f"the input '{node.name}' is no tensor")
    try:
        shape = _shape(value if order is None else value.permute(tuple(order)))
        return placeholder(shape, dtype_of(value.dtype), te_name(name or node.name))
    except StrataError as error:
        raise Unsupported(str(error)) from error


def refusal_of(node: fx.Node) -> str | None:
    """Return the reason for which torch runs a node; None for a node with a te form. The node is converted alone, with
    placeholders as inputs. Raises PluginError for a failure in a plugin's conversion."""
    try:
        if node.op == "call_function" and node.target is operator.getitem:
            source = node.args[0]
            assert isinstance(source, fx.Node)
            _getitem(node, {source: convert(source, _placeholders(source))})
            return None
        if node.op == "call_function":
            row_of(node)  # a missing row is the first reason
        convert(node, _placeholders(node))
    except Unsupported as reason:
        return str(reason)
    return None


def _placeholders(node: fx.Node) -> Values:
    """Return placeholders for the tensor inputs of a node, constants for attributes of the module."""
    inputs = [n for n in node.all_input_nodes if isinstance(n.meta.get("val"), torch.Tensor)]
    return {n: constant_of(n) if n.op == "get_attr" else placeholder_of(n) for n in inputs}
