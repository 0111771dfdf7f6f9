"""`BuildOrigin`: the program of a kernel and the arguments of its build, by which it can be built again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from weakref import ref

from xdsl.dialects.builtin import ModuleOp

from compiler.dialects.dense import constants_in


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
