"""From the nodes of a graph to te tensors."""

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
from compiler.program.names import spelled as spelled_name
from compiler.support import plugins
from compiler.support.errors import StrataError
from compiler.support.spans import Span, called_at
from compiler.te.constant import constant
from compiler.te.tensor import Tensor, placeholder

Values: TypeAlias = dict[fx.Node, Results]
"""What nodes have become."""
FRAME = re.compile(r'File "([^"]+)", line (\d+)')
"""The frames of torch's stack traces."""
TORCH = str(Path(torch.__file__).parent)
assert operators.FAMILIES


def row_of(node: fx.Node) -> Row:
    """The table's row of a node's operator. Raises Unsupported."""
    name = str(node.target)
    row = OPERATORS.get(name.removeprefix("aten.")) if name.startswith("aten.") else None
    part = plugins.parts("torch operator").get(name) if row is None else None
    if part is not None:
        return Row(part.guarded, part.plugin, moves=False)
    if row is None:
        raise Unsupported(f"{spelled(node)} has no te form")
    return row


def own_operators() -> list[str]:
    """The names of the operators that the front end has, as torch spells them."""
    return [f"aten.{name}" for name in OPERATORS]


def spelled(node: fx.Node) -> str:
    """The operator of a node as users know it."""
    return str(node.target) if isinstance(node.target, torch._ops.OpOverload) else getattr(node.target, "__name__", "?")


def without_checks(graph: fx.Graph, of_values: bool = False) -> None:
    """Leave out what a graph asserts of dtypes and devices, which are known; or of values, too."""
    for node in reversed(graph.nodes):
        name = str(node.target)
        checks = "aten._assert_tensor_metadata" in name or (of_values and "aten._assert_async" in name)
        if checks and not node.users:
            graph.erase_node(node)
    graph.eliminate_dead_code()


def moves(node: fx.Node) -> bool:
    """Whether a node computes nothing: it moves elements, states them, or takes one of several results."""
    return node.op != "call_function" or node.target is operator.getitem or row_of(node).moves


def converted(node: fx.Node, values: Mapping[fx.Node, Results]) -> Results:
    """What a node becomes, whose arguments have. Raises Unsupported, with the reason."""
    if node.op == "get_attr":
        return stated(node)
    if node.op != "call_function":
        raise Unsupported(f"a node of the kind {node.op}")
    if node.target is operator.getitem:
        return _item(node, values)
    row = row_of(node)
    call = _call(node)
    arguments = fx.map_arg((node.args, node.kwargs), lambda n: _argument(n, values))
    given, named = _plain(arguments[0]), _plain(arguments[1])
    _check_arguments(node, row, given, named)
    try:
        with called_at(_place(node)):
            return row.convert(call, *given, **named)
    except Unsupported as reason:
        raise Unsupported(f"{spelled(node)}: {reason}") from reason
    except plugins.PluginError:
        raise
    except StrataError as refusal:
        raise Unsupported(f"{spelled(node)}: {refusal}") from refusal


def _place(node: fx.Node) -> Span | None:
    """The line of the model that a node is of: the innermost outside torch."""
    lines = FRAME.findall(node.meta.get("stack_trace") or "")
    own = [(file, line) for file, line in lines if not file.startswith(TORCH)]
    if not own:
        return None
    file, line = own[-1][0], int(own[-1][1])
    text = linecache.getline(file, line)
    return Span(file, line, len(text) - len(text.lstrip()) + 1)


def _check_arguments(node: fx.Node, row: Row, given: Sequence[Any], named: Mapping[str, Any]) -> None:
    try:
        _signature(row.convert).bind(None, *given, **named)
    except TypeError as error:
        raise Unsupported(f"{spelled(node)}: {error}") from error


_signature = cache(signature)


def _item(node: fx.Node, values: Mapping[fx.Node, Results]) -> Tensor:
    source, position = node.args
    outputs = values[source]
    output: Tensor | None = outputs[position] if isinstance(outputs, tuple) else None
    if output is None:
        raise Unsupported(f"result {position} of {spelled(source)} has no te form")
    return output


def _call(node: fx.Node) -> Call:
    value = node.meta.get("val")
    tensors = [tensor for tensor in (value if isinstance(value, tuple | list) else (value,)) if tensor is not None]
    if not tensors or not all(isinstance(tensor, torch.Tensor) for tensor in tensors):
        raise Unsupported(f"{spelled(node)}: its result is no tensor")
    shapes = tuple(_shape(tensor) for tensor in tensors)
    return Call(node.name, shapes, tuple(dtype_of(tensor.dtype) for tensor in tensors), _common(node))


def _shape(value: torch.Tensor) -> tuple[int, ...]:
    if value.device.type != "cpu":
        raise Unsupported(f"a tensor on the device {value.device.type}")
    if value.layout is not torch.strided:
        raise Unsupported(f"a tensor of the layout {value.layout}".replace("torch.", ""))
    return tuple(int(size) for size in value.shape)


def _common(node: fx.Node) -> str:
    """The dtype that torch promotes the first two arguments to."""
    given = [a.meta.get("val") if isinstance(a, fx.Node) else a for a in node.args[:2]]
    operands = [a for a in given if isinstance(a, torch.Tensor | int | float)]
    if not operands or not isinstance(operands[0], torch.Tensor):
        return "f32"
    return dtype_of(torch.result_type(operands[0], operands[-1]))


def _argument(node: fx.Node, values: Mapping[fx.Node, Results]) -> Any:
    value = node.meta.get("val")
    if isinstance(value, torch.SymInt | int) and node not in values:
        return int(value)
    return values[node]


def _plain(arguments: Any) -> Any:
    """Arguments in lists and mappings of Python's, symbolic integers as integers."""
    if isinstance(arguments, Mapping):
        return {name: _plain(value) for name, value in arguments.items()}
    if isinstance(arguments, Sequence) and not isinstance(arguments, str):
        return [_plain(value) for value in arguments]
    return int(arguments) if isinstance(arguments, torch.SymInt) else arguments


def stated(node: fx.Node) -> Tensor:
    """The tensor that a graph's module has, as a constant."""
    value = node.graph.owning_module
    for part in str(node.target).split("."):
        value = getattr(value, part)
    if not isinstance(value, torch.Tensor) or value.device.type != "cpu":
        raise Unsupported("an attribute that is no tensor on the CPU")
    dtype = dtype_of(value.dtype)
    with unset_fake_temporarily():  # while torch traces, tensors have no elements
        array = (value.detach().float() if dtype == "bf16" else value.detach()).contiguous().numpy()
    return constant(array, dtype, name_of(node.name))


def name_of(name: str) -> str:
    """A name that te can spell, close to one."""
    return spelled_name(name if name[:1].isalpha() and name not in RESERVED else f"x_{name}")


def input_of(node: fx.Node, name: str | None = None) -> Tensor:
    """An input that stands for a node's value. Raises Unsupported."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        raise Unsupported(f"the input '{node.name}' is no tensor")
    try:
        return placeholder(_shape(value), dtype_of(value.dtype), name_of(name or node.name))
    except StrataError as error:
        raise Unsupported(str(error)) from error


def why_not(node: fx.Node) -> str | None:
    """The reason why a node stays with torch, None if it has a te form."""
    try:
        if node.op == "call_function" and node.target is operator.getitem:
            source = node.args[0]
            assert isinstance(source, fx.Node)
            _item(node, {source: converted(source, _stand_ins(source))})
            return None
        if node.op == "call_function":
            row_of(node)  # its absence is the first reason
        converted(node, _stand_ins(node))
    except Unsupported as reason:
        return str(reason)
    return None


def _stand_ins(node: fx.Node) -> Values:
    """Tensors like those that a node takes."""
    inputs = [n for n in node.all_input_nodes if isinstance(n.meta.get("val"), torch.Tensor)]
    return {n: stated(n) if n.op == "get_attr" else input_of(n) for n in inputs}
