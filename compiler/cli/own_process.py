"""Calls in a process of their own, whose death is a sentence."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import TypeVar, TypeVarTuple

from compiler.support.errors import StrataError, TargetError

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")


def in_own_process(what: str, function: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
    """What a function gives in a process of its own; function, arguments and result must pickle.

    Raises the StrataError or MemoryError of the function, and TargetError, which names `what` ran, where the process
    ends before.
    """
    spawn = multiprocessing.get_context("spawn")
    receiver, sender = spawn.Pipe(duplex=False)
    process = spawn.Process(target=_send, args=(sender, function, arguments), daemon=True)
    process.start()
    sender.close()
    try:
        answer = receiver.recv()
    except EOFError:
        process.join()
        raise TargetError(f"{what} {_end(process.exitcode)}") from None
    process.join()
    if isinstance(answer, StrataError | MemoryError):
        raise answer
    return answer  # type: ignore[no-any-return]


def _send(sender: Connection, function: Callable[[*Arguments], object], arguments: tuple[*Arguments]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the process that waits for this one says that it was interrupted
    try:
        answer = function(*arguments)
    except (StrataError, MemoryError) as error:
        answer = error
    sender.send(answer)


def _end(status: int | None) -> str:
    """How a process ended, in words."""
    if status is None or status >= 0:
        return f"ended with status {status} while it ran"
    name = signal.Signals(-status).name
    return f"died of {name} while it ran ({signal.strsignal(-status)})"
