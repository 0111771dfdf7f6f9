"""Modules of groups, written by hand: a main function that calls te functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp

from compiler import te
from compiler.dialects.functions import find_function
from compiler.pipeline.source import parse


def private(name: str, function: te.Function) -> FuncOp:
    """A te function as the group of a name."""
    group = find_function(function.module).clone()
    group.properties["sym_name"] = StringAttr(name)
    group.properties["sym_visibility"] = StringAttr("private")
    group.attributes["te.group"] = UnitAttr()
    return group


def program(
    groups: Mapping[str, te.Function],
    inputs: Mapping[str, Sequence[int]],
    calls: Sequence[str],
    outputs: Sequence[str],
    name: str = "program",
) -> ModuleOp:
    """A module of f32 tensors. A call is written "y = group(a, b)", the last one of a name holds."""
    functions = {own: private(own, function) for own, function in groups.items()}
    types = {value: f"tensor<{''.join(f'{n}x' for n in shape)}f32>" for value, shape in inputs.items()}
    lines = []
    for call in calls:
        given, _, right = call.partition(" = ")
        callee, _, remaining = right.rstrip(")").partition("(")
        arguments = [word.strip() for word in remaining.split(",")]
        type = functions[callee].function_type
        types |= dict(zip((v.strip() for v in given.split(",")), map(str, type.outputs), strict=True))
        targets = ", ".join(f"%{v.strip()}" for v in given.split(","))
        lines.append(f"  {targets} = func.call @{callee}({', '.join(f'%{a}' for a in arguments)}) : {type}")
    head = ", ".join(f"%{value}: {types[value]}" for value in inputs)
    kinds = ", ".join(types[value] for value in outputs)
    returned = ", ".join(f"%{value}" for value in outputs)
    text = [f"func.func @{name}({head}) -> ({kinds}) {{", *lines, f"  func.return {returned} : {kinds}", "}"]
    return parse("\n".join([*text, *map(str, functions.values())]))
