"""The verifier of modules that have groups, written by hand or by the compiler."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp

from compiler.dialects import te
from compiler.dialects.dominance import Refusal, verify_module
from compiler.dialects.functions import functions, is_private
from compiler.graph.grouping.outline import GROUP


def is_group(function: FuncOp) -> bool:
    """Whether a function has the attribute `te.group`."""
    return GROUP in function.attributes


def has_groups(module: ModuleOp) -> bool:
    """Whether a module has groups or any call of a function."""
    calls = (isinstance(op, CallOp) for f in functions(module) for op in f.walk())
    return any(is_group(f) for f in functions(module)) or any(calls)


def check_groups(module: ModuleOp) -> None:
    """Verify a module that has groups.

    Groups are private and call nothing. Other functions are public; one that calls has calls of groups and constants
    only, with matching types. Raises Refusal, a VerifyException with the op.
    """
    verify_module(module)
    groups = {f.sym_name.data for f in functions(module) if is_group(f)}
    for function in functions(module):
        name = function.sym_name.data
        if len(function.body.blocks) != 1:
            raise Refusal(function, f"@{name} has no body")
        if is_group(function):
            _check_group(function)
        elif is_private(function):
            raise Refusal(function, f"@{name} is private and no group: give it the attribute '{GROUP}'")
        else:
            _check_main(function, groups)


def _check_group(function: FuncOp) -> None:
    name = function.sym_name.data
    if not is_private(function):
        raise Refusal(function, f"the group @{name} is public; a group is private")
    for op in function.body.block.ops:
        if isinstance(op, CallOp):
            raise Refusal(op, f"the group @{name} calls @{op.callee.string_value()}; a group calls nothing")


def _check_main(function: FuncOp, groups: set[str]) -> None:
    name = function.sym_name.data
    calls = [op for op in function.body.block.ops if isinstance(op, CallOp)]
    for op in function.body.block.ops:
        if calls and isinstance(op, te.ComputeOp | te.GatherOp):
            raise Refusal(op, f"@{name} calls groups and computes '{op.label.data}' itself; put that into a group")
    for op in calls:
        callee = op.callee.string_value()
        if callee == name:
            raise Refusal(op, f"@{name} calls itself")
        if callee not in groups:
            raise Refusal(op, f"@{name} calls @{callee}, which is no group: give it the attribute '{GROUP}'")
