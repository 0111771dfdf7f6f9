"""`LlvmProcess`: LLVM's part of units, done by another process while this one lowers the following units.

It is a process and not a thread, since llvmlite releases the interpreter lock at each of its calls, about 90 a unit. A
thread that reacquires it as often takes twice as long, or delays the lowering thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import wait

from compiler.driver.units.compile import LoweredUnit
from compiler.driver.units.unit import Unit
from compiler.support.gc import collect_young
from compiler.support.processes import Death, Worker
from compiler.support.worker import Calls, Refused, Reply, Unable, try_call
from compiler.targets.cpu.compile import object_codes
from compiler.types.machines import host

AHEAD = 3
"""The most units sent to the process at a time; this process does waiting ones itself once it has lowered all."""
LOOK = 1.0
"""Seconds between two checks whether the process was stopped."""


@dataclass(frozen=True)
class _Task:
    """A lowered unit, the callback for the compiled unit, and its future."""

    lowered: LoweredUnit
    done: Callable[[Unit], object]
    future: Future[Unit] = field(default_factory=Future)

    def do(self) -> None:
        """Run LLVM in this process, and finish with the unit. Raises TargetError if LLVM refuses it."""
        self.finish(self.lowered.compiled())

    def finish(self, unit: Unit) -> None:
        """Pass the compiled unit to the callback and the future."""
        self.done(unit)
        self.future.set_result(unit)


class LlvmProcess:
    """A process that imports only LLVM, which takes 0.1 s. Units are sent and replies received in calls of `add` and
    `wait`, without a thread. If the process dies or is stopped, or refuses a unit, this process compiles the unit."""

    def __init__(self) -> None:
        self._worker: Worker | None = Worker(Calls())
        self._worker.send(partial(try_call, partial(object_codes, ("",), host())))
        self._silent = 2
        """The outstanding replies that belong to no unit: that the process is ready, and that it has imported LLVM."""
        self._sent, self._waiting = deque[_Task](), deque[_Task]()

    def add(self, lowered: LoweredUnit, done: Callable[[Unit], object]) -> Future[Unit]:
        """Queue a unit; return its future. A later `add` or `wait` calls `done` with the compiled unit."""
        task = _Task(lowered, done)
        self._waiting.append(task)
        self.exchange(0.0)
        return task.future

    def wait(self) -> None:
        """Wait for all units, compiling queued ones in this process and freeing the garbage of lowering meanwhile.
        Raises TargetError if LLVM refuses a unit."""
        if self._sent:
            collect_young()
        while self._waiting or self._sent:
            if self._waiting:
                self._waiting.popleft().do()
            self.exchange(0.0 if self._waiting else LOOK)

    def exchange(self, seconds: float) -> None:
        """Wait at most `seconds` for a reply, receive all that have arrived, and send queued units; kill a process that
        a signal has stopped. Raises TargetError if LLVM refuses a unit."""
        if self._worker is not None and self._worker.is_stopped:
            self.end()
        self._send()
        while self._worker is not None and wait([self._worker.connection], seconds):
            self._receive(self._worker.receive())
            self._send()
            seconds = 0.0

    @property
    def is_starting(self) -> bool:
        """Whether the process is not ready yet."""
        return self._worker is not None and self._silent > 0

    def end(self) -> None:
        """Kill the process, and queue its unfinished units again for this process."""
        self._waiting.extendleft(reversed(self._sent))
        self._sent.clear()
        if self._worker is not None:
            self._worker.kill()
        self._worker = None

    def _send(self) -> None:
        while self._worker and self._waiting and not self.is_starting and len(self._sent) < AHEAD:
            self._sent.append(self._waiting.popleft())
            self._worker.send(partial(try_call, partial(object_codes, self._sent[-1].lowered.texts, host())))

    def _receive(self, reply: Reply) -> None:
        if isinstance(reply, (Death, Unable)):
            self.end()
        elif self.is_starting:
            self._silent -= 1
        elif isinstance(reply, Refused):
            self._sent.popleft().do()
        else:
            task = self._sent.popleft()
            task.finish(task.lowered.with_objects(reply))
