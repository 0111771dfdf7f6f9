"""Calls: functions that call others, their callees, and recursion."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.traits import SymbolTable

from compiler.dialects.functions import find_function, functions
from compiler.dialects.upstream.walk import ops_in
from compiler.support.errors import InputError


def is_main(function: FuncOp) -> bool:
    """Whether a function calls others; such a function has no computes or loops."""
    return any(isinstance(op, CallOp) for block in function.body.blocks for op in block.ops)


def called(call: CallOp) -> FuncOp:
    """The callee of a call. Raises InputError if the module does not define it."""
    callee = SymbolTable.lookup_symbol(call, call.callee)
    if not isinstance(callee, FuncOp):
        raise InputError(f"there is no function @{call.callee.string_value()}")
    return callee


def calls(function: FuncOp) -> list[CallOp]:
    """The calls in a function, in order."""
    return [op for op in ops_in(function) if isinstance(op, CallOp)]


def callees(function: FuncOp) -> list[FuncOp]:
    """The functions that a function calls, each once, in the order of their first calls. Raises InputError for one that
    the module does not define."""
    first: dict[str, CallOp] = {}
    for call in calls(function):
        first.setdefault(call.callee.string_value(), call)
    return [called(call) for call in first.values()]


def recursive(module: ModuleOp) -> FuncOp | None:
    """Find the first function of a module that calls itself, directly or through others; None if there is none. Calls
    of functions that the module does not define are ignored."""
    callees = {f.sym_name.data: {c.callee.string_value() for c in calls(f)} for f in functions(module)}
    for function in functions(module):
        reached, waiting = set[str](), [function.sym_name.data]
        while waiting:
            new = callees.get(waiting.pop(), set()) - reached
            reached |= new
            waiting += new
        if function.sym_name.data in reached:
            return function
    return None


def alone(module: ModuleOp, name: str | None = None) -> ModuleOp:
    """Copy a module with one function, by its name or, for None, its only one or only public one, and the functions
    that it calls; other ops stay. Raises InputError if no function or several fit. Calls of functions that the module
    does not define are ignored."""
    copy = module.clone()
    by_name = {f.sym_name.data: f for f in functions(copy)}
    needed, open_names = set[str](), [find_function(copy, name).sym_name.data]
    while open_names:
        callee = open_names.pop()
        if callee in by_name and callee not in needed:
            needed.add(callee)
            open_names += [op.callee.string_value() for op in calls(by_name[callee])]
    for function in by_name.values():
        if function.sym_name.data not in needed:
            function.detach()
    return copy
