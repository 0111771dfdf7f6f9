"""Workloads by name: registered functions that build te functions, so that plain data can describe a task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature
from reprlib import repr as short

from compiler.support.errors import InputError
from compiler.te import Function

Make = Callable[..., Function]
_REGISTERED: dict[str, Make] = {}


def workload(make: Make) -> Make:
    """Register a function from numbers to a te function, under its own name; a decorator.

        @workload
        def matmul(m: int, n: int, k: int) -> te.Function: ...

        SearchTask("matmul", (1024, 1024, 1024))

    Returns the function. A second function of the same qualified name, such as a redefinition, replaces the first.
    Raises InputError for an object that is no function, and if a function of another qualified name has the name.

    >>> @workload
    ... def doubled(n: int) -> te.Function:
    ...     A = te.placeholder((n,), name="A")
    ...     return te.function("doubled", [A], A + A)
    >>> SearchTask("doubled", (16,), threads=1, machine=strata.targets.MACHINES["avx2"])
    <SearchTask doubled for avx2, 1 thread>
    """
    if not callable(make) or not hasattr(make, "__name__"):
        raise InputError(f"{short(make)} is no function: @workload stands above one that makes a te function")
    registered = _REGISTERED.setdefault(make.__name__, make)
    if registered is not make and registered.__qualname__ != make.__qualname__:
        raise InputError(f"there is a workload '{make.__name__}' already")
    _REGISTERED[make.__name__] = make
    return make


def task_program(what: object, args: Sequence[object]) -> object:
    """Return the program of a task: call `what`, a function or the name of a workload, on `args`; return any other
    `what` as is.

    A text with several lines or the suffix .mlir is a program, not a name. Raises InputError for a name that is not
    registered, arguments that the function does not take, a result that is no te function, and arguments to a `what`
    that is no function.
    """
    if isinstance(what, str) and what in _REGISTERED:
        what = _REGISTERED[what]
    if isinstance(what, str) and "\n" not in what and not what.endswith(".mlir"):
        names = ", ".join(sorted(_REGISTERED)) or "none"
        raise InputError(f"there is no registered workload {short(what)} (there are {names}), and it is no file.mlir")
    if not callable(what):
        if args:
            raise InputError("a program takes no arguments; give a function that makes it")
        return what
    name = getattr(what, "__name__", type(what).__name__)
    try:
        signature(what).bind(*args)
    except TypeError as error:
        raise InputError(f"{name}{tuple(args)}: {error}") from error
    program = what(*args)
    if not isinstance(program, Function):
        raise InputError(f"{name} gives a {type(program).__name__}, expected a te function")
    return program
