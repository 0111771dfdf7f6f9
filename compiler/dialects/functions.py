"""Functions at the loop and low level: buffers as arguments, the last `outputs` of them results."""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, ModuleOp
from xdsl.dialects.func import CallOp, FuncOp

from compiler.errors import InputError

SLOT_ALIGNMENT = 64
"""The alignment in bytes of the workspace, of each slot in it, and of arguments that the attribute `aligned` lists."""


def functions(module: ModuleOp) -> list[FuncOp]:
    """All functions of a module, in order."""
    return [op for op in module.ops if isinstance(op, FuncOp)]


def find_function(module: ModuleOp, name: str | None = None) -> FuncOp:
    """The function of that name; without one, the only function, or the only one that is not private.

    Private functions are groups: what another function of the module calls. Raises InputError if there is no such
    function or, without a name, more than one.
    """
    named = [f for f in functions(module) if name is None or f.sym_name.data == name]
    if name is None and len(named) > 1:
        named = [f for f in named if not is_private(f)] or named
    if len(named) == 1:
        return named[0]
    names = ", ".join(f.sym_name.data for f in functions(module)) or "none"
    if not named:
        raise InputError(f"the module has no function {f'@{name}' if name else 'at all'} (it has {names})")
    raise InputError(f"the module has several functions ({names}); name the one to use")


def is_private(function: FuncOp) -> bool:
    """Whether only functions of its module can call a function."""
    return function.sym_visibility is not None and function.sym_visibility.data == "private"


def alone(module: ModuleOp, name: str | None = None) -> ModuleOp:
    """A copy of a module with one function, found as by `find_function`, and the functions that it calls; what is no
    function stays. Raises InputError."""
    copy = module.clone()
    by_name = {f.sym_name.data: f for f in functions(copy)}
    wanted, open_names = set[str](), [find_function(copy, name).sym_name.data]
    while open_names:
        called = open_names.pop()
        if called in by_name and called not in wanted:
            wanted.add(called)
            calls = [op for op in by_name[called].walk() if isinstance(op, CallOp)]
            open_names += [op.callee.string_value() for op in calls]
    for function in by_name.values():
        if function.sym_name.data not in wanted:
            function.detach()
    return copy


def outputs(function: FuncOp) -> int:
    """How many trailing arguments are results."""
    attribute = function.attributes.get("outputs")
    if attribute is None:
        return 0
    if not isinstance(attribute, IntegerAttr) or not 0 <= attribute.value.data <= len(function.args):
        raise InputError(f"the attribute 'outputs' of @{function.sym_name.data} is not a count of its arguments")
    return int(attribute.value.data)


def positions(function: FuncOp, attribute: str) -> set[int]:
    """The positions of the arguments that an attribute of a function lists; none where it has no such attribute.

    `unsigned` lists those whose integers have no sign, `aligned` those that are aligned to 64 bytes, `constants` those
    that are the same in all calls.
    """
    found = function.attributes.get(attribute)
    listed = found.get_values() if isinstance(found, DenseArrayBase) else () if found is None else (-1,)
    if not all(isinstance(n, int) and 0 <= n < len(function.args) for n in listed):
        raise InputError(f"the attribute '{attribute}' of @{function.sym_name.data} does not list its arguments")
    return {int(n) for n in listed}
