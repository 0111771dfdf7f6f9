"""`Team`: the calls of a build, made by this process and, where that pays, by others beside it; units by such calls."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from importlib import import_module
from queue import SimpleQueue
from threading import Condition, Thread
from time import perf_counter
from typing import Any, Generic, Self, TypeVar

from compiler.driver.cache import entries
from compiler.driver.units.compile import CompileJob, compile_unit, lower_unit
from compiler.driver.units.llvm import LlvmProcess
from compiler.driver.units.unit import Unit
from compiler.support.errors import StrataError, TargetError
from compiler.support.worker import Calls
from compiler.support.worker_pool import WorkerPool
from compiler.targets.cpu.openmp import cores

PAYS = 2.0
"""Seconds of work left from which on a further process pays: one takes about a second to start."""
LLVM_PAYS = 0.5
"""Seconds of work from which on a process for LLVM's part pays: it starts in 0.1 s."""
HELPED = 3
"""The cores from which on other processes take whole calls. On two, one for LLVM's part alone saves more."""
LEAST = 0.1
"""Seconds that a call takes at least, on average; what is left is judged by it until one has been timed."""

Result = TypeVar("Result")


def compiled(jobs: Iterable[CompileJob], team: Team) -> list[Unit]:
    """The units of jobs, in their order. What the cache has took no second; what is compiled is kept there."""
    return _one_by_one(jobs, team.llvm) if team.alone else _largest_first(list(jobs), team)


def _one_by_one(jobs: Iterable[CompileJob], llvm: LlvmProcess | None) -> list[Unit]:
    """The units of jobs, each of which is lowered as soon as it comes: LLVM has it while the next one is made."""
    units: list[Future[Unit]] = []
    for job in jobs:
        unit = _kept(job)
        if unit is None and llvm is not None:
            units.append(llvm.add(lower_unit(job), partial(_keep, job)))
            continue
        if unit is None:
            unit = compile_unit(job)
            _keep(job, unit)
        units.append(Future())
        units[-1].set_result(unit)
    if llvm is not None:
        llvm.wait()
    return [unit.result() for unit in units]


def _largest_first(jobs: Sequence[CompileJob], team: Team) -> list[Unit]:
    """The units of jobs, which a team of processes shares."""
    units = {n: unit for n, job in enumerate(jobs) if (unit := _kept(job)) is not None}
    left = [n for n in range(len(jobs)) if n not in units]
    sizes = [len(jobs[n].key.text) + len(jobs[n].key.script or "") for n in left]

    def done(position: int, unit: Unit) -> None:
        _keep(jobs[left[position]], unit)

    made = team.map([partial(compile_unit, jobs[n]) for n in left], sizes, done)
    units |= zip(left, made, strict=True)
    return [units[n] for n in range(len(jobs))]


def _keep(job: CompileJob, unit: Unit) -> None:
    entries.put(unit, [job.key])


def _kept(job: CompileJob) -> Unit | None:
    """The unit of a job that the cache has."""
    unit = entries.get(Unit, [job.key])
    return None if unit is None else replace(unit.named(job.name), seconds=0.0)


class Team:
    """This process and others, at most so many; None is as many as there are cores.

    Of two, the other one does LLVM's part of what is compiled: it starts in a tenth of the time that one takes which
    lowers, too. Of more, all take whole calls. These start as soon as that pays, as many as it pays for: at once where
    there are many calls, else when the time of what is left can be told from the time of what is done.

    They stay for further calls. What they give is what this process would; what one does not give, because it died or
    because the call is refused, this process does itself.
    """

    def __init__(self, most: int | None = None) -> None:
        self._limit = cores() if most is None else most
        self._helpers: list[_Helper] = []
        self.llvm: LlvmProcess | None = None
        """The process that does LLVM's part of units, if there is one."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        """End the others; this process does what is asked for later, such as the texts of a kernel."""
        self._limit = 1
        while self._helpers:
            self._helpers.pop().end()
        if self.llvm is not None:
            self.llvm.end()
            self.llvm = None

    def expect(self, seconds: float) -> None:
        """Start as many others as pay for so much work that is to come, while this process still prepares it."""
        if self.alone and self._limit > 1 and seconds > LLVM_PAYS and self.llvm is None:
            self.llvm = LlvmProcess()
        while self._pays(seconds):
            self._helpers.append(_Helper(_Work([_ready], [1])))

    @property
    def alone(self) -> bool:
        """Whether no other process takes whole calls: there are too few cores for what it costs to start one."""
        return self._limit < HELPED

    def _pays(self, seconds: float) -> bool:
        """Whether a further process pays for so much work that is left."""
        count = len(self._helpers)
        return not self.alone and count + 1 < self._limit and seconds > PAYS * (count + 1)

    def map(
        self,
        calls: Sequence[Callable[[], Result]],
        sizes: Sequence[int],
        done: Callable[[int, Result], object] = lambda position, result: None,
    ) -> list[Result]:
        """The results of calls, which pickle, in their order; the largest are made first. `done` is told each, with its
        position, as soon as it is there. Raises what the calls do."""
        work = _Work(calls, sizes, done)
        for helper in self._helpers:
            helper.works.put(work)
        while True:
            while self._pays(work.seconds_left()):
                self._helpers.append(_Helper(work))
            position = work.take()
            if position is None:
                break
            work.do(position)
        work.wait()
        for position in range(len(calls)):
            if position not in work.results:
                work.do(position)
        return [work.results[position] for position in range(len(calls))]


class _Work(Generic[Result]):
    """The calls that nobody has taken, the largest first, and the results of those that are done."""

    def __init__(
        self,
        calls: Sequence[Callable[[], Result]],
        sizes: Sequence[int],
        done: Callable[[int, Result], object] = lambda position, result: None,
    ) -> None:
        self.calls = calls
        self.results: dict[int, Result] = {}
        self._sizes, self._done = sizes, done
        self._left = deque(sorted(range(len(calls)), key=lambda n: -sizes[n]))
        self._seconds, self._finished = 0.0, 0
        self._lent, self._change = set[int](), Condition()

    def take(self) -> int | None:
        """The position of a call that nobody has taken; None where all are."""
        try:
            return self._left.popleft()
        except IndexError:
            return None

    def lend(self) -> int | None:
        """The position of a call that a helper takes: `returned` follows."""
        with self._change:
            position = self.take()
            self._lent |= set() if position is None else {position}
        return position

    def returned(self, position: int) -> None:
        """A helper has made a call, or cannot."""
        with self._change:
            self._lent.discard(position)
            self._change.notify_all()

    def wait(self) -> None:
        """Wait for what helpers have taken."""
        with self._change:
            self._change.wait_for(lambda: not self._lent)

    def do(self, position: int) -> None:
        """Make a call here."""
        start = perf_counter()
        result = self.calls[position]()
        self.finish(position, result, perf_counter() - start)

    def finish(self, position: int, result: Result, seconds: float) -> None:
        """Keep a result that took so long."""
        self.results[position] = result
        self._finished += self._sizes[position]
        self._seconds += seconds
        self._done(position, result)

    def seconds_left(self) -> float:
        """What the calls that nobody has taken would take here, judged by their sizes."""
        if not self._finished:
            return LEAST * len(self._left)
        return self._seconds * sum(self._sizes[n] for n in list(self._left)) / self._finished


def _ready() -> bool:
    """Import what calls need."""
    return bool(import_module("compiler.driver.building"))


def _tried(call: Callable[[], Result]) -> tuple[Result, ...]:
    """The result; nothing for what the parent has to refuse itself, with the place."""
    try:
        return (call(),)
    except StrataError:
        return ()


class _Helper:
    """Another process, and the thread that gives it the calls of one work after the other."""

    def __init__(self, work: _Work[Any]) -> None:
        self._pool = WorkerPool(Calls(), 1, task="compile")
        self.works = SimpleQueue[_Work[Any] | None]()
        self.works.put(work)
        self._thread = Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        """Give calls until there is no further work, or the process cannot start."""
        while (work := self.works.get()) is not None:
            while (position := work.lend()) is not None:
                try:
                    self._give(work, position)
                except (TargetError, OSError):
                    return
                finally:
                    work.returned(position)

    def _give(self, work: _Work[Any], position: int) -> None:
        start = perf_counter()
        for _, reply in self._pool.map([partial(_tried, work.calls[position])]):
            if isinstance(reply, tuple) and reply:
                work.finish(position, reply[0], perf_counter() - start)

    def end(self) -> None:
        """End the process, whatever it does."""
        self.works.put(None)
        self._pool.interrupt()
        self._thread.join()
        self._pool.close()
