"""Lines of the user's program: the locations that JAX prints behind ops."""

from __future__ import annotations

from pathlib import Path

from xdsl.dialects.builtin import FileLineColLoc, ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Operation

from compiler.support.origins import components

OURS = str(Path(__file__).parents[2])
"""The folder whose files are not the user's."""


def source_line(op: Operation) -> str | None:
    """Return the innermost line of the user's files, such as `model.py:12`, in the location of an op; without one, that
    of a call of the function around the op; None without any."""
    scope: Operation | None = op
    visited: set[Operation] = set()
    while scope is not None and scope not in visited:
        visited.add(scope)
        line = user_line(scope.location)
        if line is not None:
            return line
        scope = _caller(scope)
    return None


def user_line(location: Attribute) -> str | None:
    """Return the innermost line of the user's files in a location; None without one."""
    for part in components(location):
        if isinstance(part, FileLineColLoc) and not part.filename.data.startswith((OURS, "<")):
            return f"{part.filename.data}:{part.line.data}"
    return None


def _caller(op: Operation) -> Operation | None:
    """The first call, in the module, of the function around an op; None for an op in no function, and without a
    call."""
    function: Operation | None = op
    while function is not None and not isinstance(function, FuncOp):
        function = function.parent_op()
    module = None if function is None else function.parent_op()
    if not isinstance(function, FuncOp) or not isinstance(module, ModuleOp):
        return None
    calls = (inner for inner in module.walk() if isinstance(inner, CallOp))
    return next((call for call in calls if call.callee.string_value() == function.sym_name.data), None)
