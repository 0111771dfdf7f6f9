"""Calls in a process of their own, whose death is a sentence."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import TypeVar, TypeVarTuple

from compiler.support.errors import StrataError, TargetError
from compiler.support.processes import Death
from compiler.support.worker import Calls
from compiler.support.worker_pool import WorkerPool

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")


def in_own_process(what: str, function: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
    """What a function gives in a process of its own; function, arguments and result must pickle.

    Raises the StrataError or MemoryError of the function, and TargetError, which names `what` ran, where the process
    ends before.
    """
    with closing(WorkerPool(Calls(), 1, task="run it")) as pool:
        ((_, answer),) = pool.map([partial(_result, function, *arguments)])
    if isinstance(answer, Death):
        raise TargetError(f"{what} {_end(answer)}")
    if isinstance(answer, StrataError | MemoryError):
        raise answer
    return answer  # type: ignore[no-any-return]


def _result(function: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result | StrataError | MemoryError:
    try:
        return function(*arguments)
    except (StrataError, MemoryError) as error:
        return error


def _end(death: Death) -> str:
    """How a process ended, in words."""
    if death.status >= 0:
        return f"ended with status {death.status} while it ran"
    name = signal.Signals(-death.status).name
    return f"died of {name} while it ran ({signal.strsignal(-death.status)})"
