"""Units from the cache; the others compiled in this process and, where that pays, in others beside it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from threading import Thread

from compiler.driver.cache import entries
from compiler.driver.units.compile import Job, compile_unit
from compiler.driver.units.unit import Unit
from compiler.support.errors import StrataError, TargetError
from compiler.support.worker import Calls
from compiler.support.worker_pool import WorkerPool
from compiler.targets.cpu.openmp import cores

PAYS = 2.0
"""Seconds of work left from which on a further process pays: one takes about a second to start."""
LEAST = 0.1
"""Seconds that a unit takes at least, on average; what is left is judged by it until one has been timed."""


def compiled(jobs: Sequence[Job], most: int | None = None) -> list[Unit]:
    """The units of jobs, in their order, compiled in at most so many processes; None is as many as there are cores.

    What the cache has took no second. What is compiled is kept there, whoever compiled it.
    Others start as soon as that pays, as many as it pays for: at once where there are many units, else when the time of
    what is left can be told from the time of what is done. What they give is what this process would; what one does not
    give, because it died or because the unit is refused, this process compiles itself.
    """
    work = _Work(jobs)
    limit = cores() if most is None else most
    helpers: list[_Helper] = []
    try:
        while True:
            while len(helpers) + 1 < limit and work.seconds_left() > PAYS * (len(helpers) + 1):
                helpers.append(_Helper(work))
            number = work.take()
            if number is None:
                break
            work.done(number, compile_unit(jobs[number]))
        for helper in helpers:
            helper.thread.join()
    finally:
        for helper in helpers:
            helper.end()
    return [work.units.get(n) or compile_unit(job) for n, job in enumerate(jobs)]


class _Work:
    """The jobs that nobody has taken and the cache has not, the largest first, and the units that are done."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.jobs = jobs
        self.units = {n: unit for n, job in enumerate(jobs) if (unit := _kept(job)) is not None}
        self._sizes = [len(job.key.text) + len(job.key.script or "") for job in jobs]
        left = set(range(len(jobs))) - self.units.keys()
        self._left = deque(sorted(left, key=lambda n: -self._sizes[n]))
        self._finished = 0

    def take(self) -> int | None:
        """The number of a job that nobody has taken; None where all are."""
        try:
            return self._left.popleft()
        except IndexError:
            return None

    def done(self, number: int, unit: Unit) -> None:
        """Keep a unit, in the cache as well."""
        self.units[number] = unit
        self._finished += self._sizes[number]
        entries.put(unit, [self.jobs[number].key])

    def seconds_left(self) -> float:
        """What the jobs that nobody has taken would take here, judged by the lengths of their texts."""
        if not self._finished:
            return LEAST * len(self._left)
        spent = sum(unit.seconds for unit in list(self.units.values()))
        return spent * sum(self._sizes[n] for n in list(self._left)) / self._finished


def _kept(job: Job) -> Unit | None:
    """The unit of a job that the cache has."""
    unit = entries.get(Unit, [job.key])
    return None if unit is None else replace(unit.named(job.name), seconds=0.0)


def _unit_or_none(job: Job) -> Unit | None:
    """The unit; None for what the parent has to refuse itself, with the place."""
    try:
        return compile_unit(job)
    except StrataError:
        return None


class _Helper:
    """Another process that compiles, and the thread that gives it jobs."""

    def __init__(self, work: _Work) -> None:
        self._pool = WorkerPool(Calls(), 1, task="compile")
        self._work = work
        self.thread = Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        """Give jobs while there are some; none to a process that cannot start."""
        with suppress(TargetError, OSError):
            while (number := self._work.take()) is not None:
                for _, reply in self._pool.map([partial(_unit_or_none, self._work.jobs[number])]):
                    if isinstance(reply, Unit):
                        self._work.done(number, reply)

    def end(self) -> None:
        """End the process, whatever it compiles."""
        self._pool.interrupt()
        self.thread.join()
        self._pool.close()
