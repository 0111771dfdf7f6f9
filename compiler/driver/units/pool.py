"""`Team`: the calls of a build, shared by this process and, if that pays, others; `compiled`: units by such calls."""

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
"""The least seconds of remaining work for a further process, which takes about a second to start."""
LLVM_PAYS = 0.5
"""The least seconds of work for a process for LLVM's part, which starts in 0.1 s."""
HELPED = 3
"""The least cores for processes that take whole calls; on two, a process for LLVM's part alone saves more."""
LEAST = 0.1
"""The estimated seconds of a call until one has been timed."""

Result = TypeVar("Result")


def compiled(jobs: Iterable[CompileJob], team: Team) -> list[Unit]:
    """The units of jobs, in order, from the cache with `seconds` 0, or compiled and then cached."""
    return _one_by_one(jobs, team.llvm) if team.is_single else _largest_first(list(jobs), team)


def _one_by_one(jobs: Iterable[CompileJob], llvm: LlvmProcess | None) -> list[Unit]:
    """The units of jobs, in order: from the cache, else lowered as soon as the job is generated, and compiled by LLVM
    in the process `llvm` while the next job is generated; if that is None here, before the next job."""
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
    """The units of jobs, compiled by a team of processes, those with the longest texts first."""
    units = {n: unit for n, job in enumerate(jobs) if (unit := _kept(job)) is not None}
    missing = [n for n in range(len(jobs)) if n not in units]
    sizes = [len(jobs[n].key.text) + len(jobs[n].key.script or "") for n in missing]

    def done(position: int, unit: Unit) -> None:
        _keep(jobs[missing[position]], unit)

    new_units = team.map([partial(compile_unit, jobs[n]) for n in missing], sizes, done)
    units |= zip(missing, new_units, strict=True)
    return [units[n] for n in range(len(jobs))]


def _keep(job: CompileJob, unit: Unit) -> None:
    entries.put(unit, [job.key])


def _kept(job: CompileJob) -> Unit | None:
    """The cached unit of a job, under the job's name and with `seconds` 0; None for a miss."""
    unit = entries.get(Unit, [job.key])
    return None if unit is None else replace(unit.named(job.name), seconds=0.0)


class Team:
    """At most `most` processes, this one included, that share calls; None is one a core.

    In a team of fewer than `helped`, by default HELPED, the other process only runs LLVM, and so starts in a tenth of
    the time. In a larger team all take whole calls. Processes start when the estimated remaining work pays for them: at
    once for many calls, else once some calls have been timed.

    They stay for further calls. Results do not depend on the process. If a process dies or refuses a call, this process
    makes the call itself.
    """

    def __init__(self, most: int | None = None, helped: int = HELPED) -> None:
        """helped: the fewest processes of a team in which the others take whole calls."""
        self._limit, self._helped = cores() if most is None else most, helped
        self._helpers: list[_Helper] = []
        self.llvm: LlvmProcess | None = None
        """The process that does LLVM's part of units, if there is one."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        """End the other processes; later work, such as the texts of a kernel, is done by this one."""
        self._limit = 1
        while self._helpers:
            self._helpers.pop().end()
        if self.llvm is not None:
            self.llvm.end()
            self.llvm = None

    def expect(self, seconds: float) -> None:
        """Start the processes that pay off for `seconds` of future work, while this process still prepares that
        work."""
        if self.is_single and self._limit > 1 and seconds > LLVM_PAYS and self.llvm is None:
            self.llvm = LlvmProcess()
        while self._pays(seconds):
            self._helpers.append(_Helper(_Work([_ready], [1])))

    @property
    def is_single(self) -> bool:
        """Whether no other process takes whole calls, since the team may have too few processes."""
        return self._limit < self._helped

    def _pays(self, seconds: float) -> bool:
        """Whether a further process pays for `seconds` of remaining work. PAYS = 2, no helper so far, 4 cores: 5 s pay
        for a first (5 > 2) and a second helper (5 > 4), not for a third."""
        count = len(self._helpers)
        return not self.is_single and count + 1 < self._limit and seconds > PAYS * (count + 1)

    def map(
        self,
        calls: Sequence[Callable[[], Result]],
        sizes: Sequence[int],
        done: Callable[[int, Result], object] = lambda position, result: None,
    ) -> list[Result]:
        """Run calls, which must pickle, the largest `sizes` first, and return their results in the order of `calls`.
        `done` receives the position and the result of each call as it finishes, perhaps in another thread. A call that
        fails in another process is repeated in this one, which raises its exception.
        """
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
    """A queue of calls shared by threads, the largest first, and the results of finished ones."""

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
        """Remove the largest remaining call from the queue; return its position, or None if the queue is empty."""
        try:
            return self._left.popleft()
        except IndexError:
            return None

    def lend(self) -> int | None:
        """Remove a call from the queue for a helper, which must call `returned` afterwards; return its position, or
        None if the queue is empty."""
        with self._change:
            position = self.take()
            self._lent |= set() if position is None else {position}
        return position

    def returned(self, position: int) -> None:
        """Mark a lent call as no longer lent, whether or not its helper has completed it."""
        with self._change:
            self._lent.discard(position)
            self._change.notify_all()

    def wait(self) -> None:
        """Wait until no call is lent to a helper."""
        with self._change:
            self._change.wait_for(lambda: not self._lent)

    def do(self, position: int) -> None:
        """Run a call in this process, and store its result."""
        start = perf_counter()
        result = self.calls[position]()
        self.finish(position, result, perf_counter() - start)

    def finish(self, position: int, result: Result, seconds: float) -> None:
        """Store the result of a call and the seconds that it took, and call `done`."""
        self.results[position] = result
        self._finished += self._sizes[position]
        self._seconds += seconds
        self._done(position, result)

    def seconds_left(self) -> float:
        """The estimated seconds of the calls not yet taken, by the seconds per size of finished ones; LEAST a call if
        none has finished. Sizes 4 done in 2 s, 3 and 1 left: 2 * (3 + 1) / 4 = 2 s."""
        if not self._finished:
            return LEAST * len(self._left)
        return self._seconds * sum(self._sizes[n] for n in list(self._left)) / self._finished


def _ready() -> bool:
    """Import the compiler, as the first call of a helper process; return True."""
    return bool(import_module("compiler.driver.building"))


def _tried(call: Callable[[], Result]) -> tuple[Result, ...]:
    """The result of a call in a tuple; empty for a StrataError: the parent repeats the call and raises it itself."""
    try:
        return (call(),)
    except StrataError:
        return ()


class _Helper:
    """Another process, and the thread that sends it the calls of the queue `works`."""

    def __init__(self, work: _Work[Any]) -> None:
        self._pool = WorkerPool(Calls(), 1, task="compile")
        self.works = SimpleQueue[_Work[Any] | None]()
        self.works.put(work)
        self._thread = Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        """Send calls until `works` has None, or the process cannot start."""
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
        """End the process, interrupting its call."""
        self.works.put(None)
        self._pool.interrupt()
        self._thread.join()
        self._pool.close()
