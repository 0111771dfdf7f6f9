"""`Cluster`: the workers of a scheduler, those that are trusted, jobs and what came of them.

The tuner decides which worker does what: so it knows whom it waits for, and how long. The scheduler carries jobs and
results, and knows who is there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

from compiler.autotune.fleet import jobs
from compiler.autotune.fleet.address import checked
from compiler.autotune.fleet.facts import WorkerFacts, difference, own_facts, read_facts
from compiler.support.errors import InputError, TargetError
from compiler.types.machines import Machine

BUILD, TIME = "build", "time"
"""The resources of a worker: how many candidates it builds at once, and 1 where it times, one at a time."""
LOOK = 1.0
"""Seconds between two looks at which workers there are."""
STRIKES = 3
"""After so many faults a worker is asked no more."""
AHEAD = 1
"""Jobs that wait at a worker beside those it can do at once: they hide the way there."""


@dataclass(eq=False)
class Job:
    """A call on a worker: of which resource, since when, and whether its value is fetched when it has ended."""

    worker: str
    kind: str
    fetched: bool
    begun: float = field(default_factory=time.monotonic)
    future: Any = None


@dataclass(frozen=True)
class Ended:
    """A job that has ended: its value if it was to be fetched, or why it is lost."""

    job: Job
    value: Any = None
    lost: str | None = None


@dataclass(eq=False)
class Member:
    """A worker of the scheduler. `facts` are None until it has told them; it is asked while `refusal` is None."""

    address: str
    resources: dict[str, float]
    facts: WorkerFacts | None = None
    refusal: str | None = "it has not answered yet"
    strikes: int = 0

    @property
    def name(self) -> str:
        """Itself, for people."""
        return self.address if self.facts is None else f"{self.address} on {self.facts.host}"


class Cluster:
    """The workers of the scheduler at an address, asked by one tuner; `patience` is how many seconds a job may take.

    `notes` has a sentence for each worker that joined, left or failed. Raises InputError where dask is missing or the
    address is none, TargetError where nobody answers there for as long as the patience lasts.
    """

    def __init__(self, address: str, patience: float) -> None:
        self.address, self.patience = address, patience
        self.notes: list[str] = []
        self.members: dict[str, Member] = {}
        self._ours = read_facts(own_facts())
        self._jobs: set[Job] = set()
        self._probes: dict[Job, Member] = {}
        self._ended: SimpleQueue[Job] = SimpleQueue()
        self._lost: list[Ended] = []
        self._looked = 0.0
        self._client = self._connected()
        self.look()

    # --- workers ----------------------------------------------------------------------------------------------------

    @property
    def trusted(self) -> list[Member]:
        """The workers that may be asked."""
        return [member for member in self.members.values() if member.refusal is None]

    @property
    def awaited(self) -> bool:
        """Whether a worker is being asked who it is."""
        return bool(self._probes)

    def free(self, member: Member, kind: str) -> int:
        """How many more jobs of a kind a worker takes now."""
        most = int(member.resources.get(kind, 0))
        return most and most + AHEAD - sum(job.worker == member.address and job.kind == kind for job in self._jobs)

    def strike(self, member: Member, why: str, ends: bool = False) -> None:
        """Note a worker's fault; after some, or one that `ends` it, it is asked no more."""
        member.strikes += STRIKES if ends else 1
        self.note(f"worker {member.name}: {why}")
        if member.strikes >= STRIKES and member.refusal is None:
            self._refuse(member, why)

    def note(self, sentence: str) -> None:
        """Keep a sentence for people."""
        self.notes.append(sentence)

    def _refuse(self, member: Member, why: str) -> None:
        member.refusal = why
        self.note(f"worker {member.name} is asked no more: {why}")
        self._lose([job for job in self._jobs if job.worker == member.address], why)

    # --- jobs -------------------------------------------------------------------------------------------------------

    def submit(self, member: Member, kind: str, function: Callable[..., object], *given: object) -> Job:
        """Let a worker do a job of a kind; what it gives is fetched unless it is a build, which stays there."""
        job = Job(member.address, kind, kind != BUILD)
        resources = {kind: 1} if kind in (BUILD, TIME) else {}
        self._jobs.add(job)
        try:
            job.future = self._client.submit(
                function, *given, workers=[member.address], resources=resources, pure=False, retries=0
            )
            job.future.add_done_callback(lambda _: self._ended.put(job))
        except Exception as error:  # whatever a lost connection is to dask: the job is asked again
            self._lose([job], f"it could not be sent: {_sentence(error)}")
        return job

    def cancel(self, dropped: Iterable[Job]) -> None:
        """Forget jobs."""
        for job in dropped:
            if job in self._jobs:
                self._forget(job)

    def wait(self) -> Iterator[Ended]:
        """What has ended, after waiting until something has or a look is due."""
        if time.monotonic() - self._looked >= LOOK:
            self.look()
        lost, self._lost = self._lost, []
        yield from lost
        with suppress(Empty):
            job = self._ended.get(timeout=0.01 if lost else LOOK)
            while True:
                if job in self._jobs:
                    yield from self._taken(job)
                job = self._ended.get_nowait()

    def _taken(self, job: Job) -> Iterator[Ended]:
        """A job that has ended, if it was no probe."""
        self._jobs.discard(job)
        ended = _value(job)
        member = self._probes.pop(job, None)
        if member is None:
            yield ended
        elif self.members.get(member.address) is member:
            self._met(member, ended)

    def _forget(self, job: Job) -> None:
        self._jobs.discard(job)
        self._probes.pop(job, None)
        if job.future is not None:
            with suppress(Exception):
                job.future.cancel()

    def _lose(self, lost: Iterable[Job], why: str) -> None:
        for job in lost:
            is_probe = job in self._probes
            self._forget(job)
            if not is_probe:
                self._lost.append(Ended(job, lost=why))

    # --- who is there -----------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Find who came and who left, and who takes too long. A scheduler that is lost is waited for."""
        self._looked = time.monotonic()
        present = self._present()
        for address in [address for address in self.members if address not in present]:
            member = self.members.pop(address)
            self.note(f"worker {member.name} has left")
            self._lose([job for job in self._jobs if job.worker == address], "its worker has left")
        for address, resources in present.items():
            if address not in self.members:
                self._ask(self.members.setdefault(address, Member(address, resources)))
        self._look_for_late()

    def _look_for_late(self) -> None:
        late = {job.worker for job in self._jobs if time.monotonic() - job.begun > self.patience}
        for address in late:
            member = self.members[address]
            why = f"it has not answered for {self.patience:g} s"
            self._lose([job for job in self._jobs if job.worker == address], why)
            self.strike(member, why)
            if member.strikes < STRIKES:
                member.refusal = why
                self._ask(member)

    def _present(self) -> dict[str, dict[str, float]]:
        """The addresses of the workers, and their resources."""
        deadline = time.monotonic() + self.patience
        while True:
            try:
                if self._client.status == "running":
                    workers = self._client.sync(self._client.scheduler.identity, n_workers=-1, callback_timeout=10)
                    return {address: worker["resources"] for address, worker in workers["workers"].items()}
            except Exception as error:  # whatever a lost connection is to dask: it is made again
                self.note(f"the scheduler at {self.address} does not answer: {_sentence(error)}")
            self._reconnect(deadline)

    def _reconnect(self, deadline: float) -> None:
        """A new connection, whose workers are asked anew; jobs that the old one had are lost."""
        self.note(f"the connection to the scheduler at {self.address} is lost: connecting again")
        with suppress(Exception):
            self._client.close(timeout=1)
        self.members.clear()
        self._lose(list(self._jobs), "the scheduler was lost")
        self._client = self._connected(deadline)

    def _connected(self, deadline: float | None = None) -> Any:
        checked(self.address)
        from distributed import Client

        deadline = time.monotonic() + self.patience if deadline is None else deadline
        while True:
            try:
                return Client(self.address, timeout=max(1.0, min(10.0, self.patience)), set_as_default=False)
            except (OSError, TimeoutError) as error:
                if time.monotonic() > deadline:
                    raise TargetError(f"no scheduler answers at {self.address}: {_sentence(error)}") from error
                time.sleep(LOOK / 2)
            except (ValueError, RuntimeError, TypeError) as error:
                raise InputError(f"no scheduler at {self.address}: {_sentence(error)}") from error

    def _ask(self, member: Member) -> None:
        """Let a worker tell what it is."""
        if not {BUILD, TIME} & member.resources.keys():
            self._declined(member, "it has neither of the resources build and time: start it with `strata worker`")
            return
        self._probes[self.submit(member, "facts", jobs.facts_of_worker)] = member

    def _met(self, member: Member, ended: Ended) -> None:
        if ended.lost is not None:
            member.strikes += 1
            self._declined(member, ended.lost)
            if member.strikes < STRIKES:
                self._ask(member)
            return
        member.facts = read_facts(ended.value)
        if member.facts is None:
            self._declined(member, "what it says of itself cannot be read: it is of another version")
            return
        assert self._ours is not None
        differs = difference(member.facts, self._ours)
        if differs is not None:
            self._declined(member, differs)
            return
        member.refusal = None
        self.note(f"worker {member.name}: {member.facts.machine.name}, {member.facts.builders} builders")

    def _declined(self, member: Member, why: str) -> None:
        member.refusal = why
        self.note(f"worker {member.name} cannot be asked: {why}")

    def close(self) -> None:
        """Forget all jobs, and the connection."""
        self.cancel(list(self._jobs))
        with suppress(Exception):
            self._client.close(timeout=2)


def machines_of(address: str, patience: float) -> list[Machine]:
    """The machine models that the workers of a scheduler time for, each once, in the order of their names; raises what
    `Cluster` does, and TargetError where nobody has come for as long as the patience lasts."""
    deadline = time.monotonic() + patience
    with closing(Cluster(address, patience)) as cluster:
        while cluster.awaited or not cluster.trusted:
            for _ in cluster.wait():
                continue
            if time.monotonic() > deadline:
                why = "; ".join(cluster.notes) or "it has none"
                raise TargetError(f"no worker of {address} measures: {why}")
        timing = [member.facts for member in cluster.trusted if TIME in member.resources]
        return sorted({facts.machine for facts in timing if facts is not None}, key=lambda machine: machine.name)


def _value(job: Job) -> Ended:
    """What came of a job."""
    try:
        if job.future.status == "finished":
            return Ended(job, job.future.result(timeout=30) if job.fetched else None)
        why = _sentence(job.future.exception(timeout=1)) if job.future.status == "error" else "it was lost on the way"
    except Exception as error:  # of the job or of the way here: either costs the job, which is asked again
        why = _sentence(error)
    return Ended(job, lost=why)


def _sentence(error: object) -> str:
    """The first line of what an error says."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__
