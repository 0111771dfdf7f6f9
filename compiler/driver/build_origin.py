"""`BuildOrigin`: the program of a kernel and the arguments of its build, by which it can be built again; `labels_of`:
the parts of the model that its groups compute, in short."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from weakref import ref

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp
from xdsl.ir import Operation

from compiler.dialects.dense import constants_in
from compiler.dialects.functions import find_function
from compiler.support.origins import origins


@dataclass(frozen=True)
class BuildOrigin:
    """The arguments of a build. program: returns the caller's program, None if it is no longer in memory. constants:
    the names of the constant inputs. The others are those of `build`."""

    program: Callable[[], object]
    constants: tuple[str, ...]
    threads: int | None
    policy: str
    name: str | None
    schedule: object
    error: float | None


def held(program: object) -> Callable[[], object]:
    """Return a function that returns a program. A program with large constants is not kept in memory: the function
    then returns None once the caller has dropped it."""
    module = program if isinstance(program, ModuleOp) else getattr(program, "module", None)
    if isinstance(module, ModuleOp) and not all(constant.is_inline for constant in constants_in(module)):
        return ref(program)
    return lambda: program


def labels_of(module: ModuleOp, name: str | None = None) -> dict[str, str]:
    """Map the names of groups that the function `name` of a module (None: its only public one) calls, or the name of
    the function itself, to the part of the model that the first call computes: a module, node or line; `+2` after it
    for two further calls. A program without origins has none."""
    function = find_function(module, name)
    calls: dict[str, list[str]] = {}
    for op in function.walk():
        if isinstance(op, CallOp):
            calls.setdefault(op.callee.string_value(), []).append(_label(op))
    calls = calls or {function.sym_name.data: [next(filter(None, map(_label, function.body.walk())), "")]}
    return {
        name: f"{labels[0]}+{len(labels) - 1}" if len(labels) > 1 else labels[0]
        for name, labels in calls.items()
        if labels[0]
    }


def _label(op: Operation) -> str:
    """The name, or else the line, of the first origin of an op; "" without one."""
    return next((origin.name or origin.place for origin in origins(op.location)), "")
