"""`Cluster`: the workers of a scheduler, which of them are trusted, and their jobs.

dask assigns jobs to workers, repeats the jobs of lost workers, and reconnects to the scheduler. The tuner restricts the
workers of a job, and limits its time.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from contextlib import closing, suppress
from dataclasses import dataclass
from threading import Thread
from typing import Any, TypeVar

from compiler.autotune.fleet import jobs
from compiler.autotune.fleet.facts import WorkerFacts, difference, own_facts, read_facts
from compiler.support.errors import InputError, TargetError
from compiler.types.machines import Machine

BUILD, TIME = "build", "time"
"""The dask resources of a worker: `build`, the number of candidates that it builds at once; `time`, 1 if it times."""
LOOK = 1.0
"""Seconds between two queries of the list of workers."""
STRIKES = 3
"""The number of faults after which a worker gets no more jobs."""
RETRIES = 1
"""The number of times that dask repeats a job that ended with an error."""
Result = TypeVar("Result")
DaskFuture = Any


class JobLost(Exception):
    """Raised if a job has no result, with a sentence about the reason; the job may be repeated."""


@dataclass(eq=False)
class Member:
    """A worker of the scheduler. facts: None until the worker has reported them. resources: the amounts of its dask
    resources, by name. refusal: the reason for which it gets no jobs; None while it is trusted. strikes: the number of
    its faults. meeting: the future of the request for its facts; None before the request."""

    address: str
    resources: dict[str, float]
    facts: WorkerFacts | None = None
    refusal: str | None = "it has not answered yet"
    strikes: int = 0
    meeting: Future[None] | None = None

    @property
    def name(self) -> str:
        """The address, with the host name once it is reported, for messages."""
        return self.address if self.facts is None else f"{self.address} on {self.facts.host}"


@dataclass(eq=False)
class FleetJob:
    """A job in flight. `allowed_workers` maps the dask key of the job, and of each job that it waits for, to the
    workers that may run it."""

    future: DaskFuture
    allowed_workers: dict[str, Sequence[Member]]


class Cluster:
    """The workers of the scheduler at an address, for one tuner. `patience` is the seconds that a job may take.

    `notes` has a sentence for each worker that joined, left or failed. All methods but `begin` and `close` run in the
    cluster's thread. Raises InputError where dask is missing or the address is malformed, TargetError if no scheduler
    answers within `patience`.
    """

    def __init__(self, address: str, patience: float) -> None:
        self.address, self.patience = checked(address), patience
        self.notes: list[str] = []
        self.members: dict[str, Member] = {}
        self._ours = read_facts(own_facts())
        self._asked: set[FleetJob] = set()
        self._begun: set[Future[Any]] = set()
        self._loop = asyncio.new_event_loop()
        Thread(target=self._loop.run_forever, daemon=True).start()
        try:
            self.begin(self._connect()).result()
        except BaseException:
            self.close()
            raise
        self.begin(self._watch())

    async def _connect(self) -> None:
        from distributed import Client

        try:
            self._client = Client(
                self.address, timeout=max(1.0, self.patience), set_as_default=False, asynchronous=True
            )
            await self._client
        except (OSError, TimeoutError) as error:
            raise TargetError(f"no scheduler answers at {self.address}: {_sentence(error)}") from error
        except (ValueError, RuntimeError, TypeError) as error:
            raise InputError(f"no scheduler at {self.address}: {_sentence(error)}") from error

    def begin(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Start a coroutine in the cluster's thread, and return its future."""
        begun = asyncio.run_coroutine_threadsafe(work, self._loop)
        self._begun.add(begun)
        begun.add_done_callback(self._begun.discard)
        return begun

    def close(self) -> None:
        """Cancel all coroutines, close the connection within about a second, also if it is lost, and stop the event
        loop."""
        for begun in list(self._begun):
            begun.cancel()
        log = logging.getLogger("distributed.client")
        level = log.level
        log.setLevel(logging.CRITICAL)  # dask logs as an error that a lost connection is not made again
        with suppress(Exception):  # dask raises various errors for a lost connection
            self.begin(self._client.close(timeout=1)).result(timeout=1.5)
        log.setLevel(level)
        self._loop.call_soon_threadsafe(self._loop.stop)

    @property
    def is_connected(self) -> bool:
        """Whether the scheduler is connected. Raises TargetError once dask has given up reconnecting."""
        if self._client.status in ("closing", "closed"):
            raise TargetError(f"no scheduler answers at {self.address}: it was there and has gone")
        return bool(self._client.status == "running")

    # --- workers ----------------------------------------------------------------------------------------------------

    @property
    def trusted(self) -> list[Member]:
        """The workers that may run jobs: those without a refusal."""
        return [member for member in self.members.values() if member.refusal is None]

    @property
    def awaits_facts(self) -> bool:
        """Whether a request for the facts of a worker is pending."""
        return any(member.meeting is not None and not member.meeting.done() for member in self.members.values())

    def strike(self, member: Member, why: str, ends: bool = False) -> None:
        """Count a fault of a worker, with the reason `why`. After STRIKES faults, or one with `ends`, the worker is no
        longer trusted."""
        member.strikes += STRIKES if ends else 1
        self.notes.append(f"worker {member.name}: {why}")
        if member.strikes >= STRIKES and member.refusal is None:
            member.refusal = why
            self.notes.append(f"worker {member.name} is asked no more: {why}")

    async def _watch(self) -> None:
        """Update the members once in LOOK seconds, and cancel the jobs that no trusted worker can do any more."""
        was_connected = True
        while True:
            if was_connected and self._client.status == "connecting":
                self.notes.append(f"the connection to the scheduler at {self.address} is lost: connecting again")
            was_connected = self._client.status != "connecting"
            await self._look()
            trusted = set(self.trusted)
            await self._lose(
                [job for job in self._asked if any(trusted.isdisjoint(m) for m in job.allowed_workers.values())]
            )
            await asyncio.sleep(LOOK)

    async def _look(self) -> None:
        try:
            workers = await asyncio.wait_for(self._client.scheduler.identity(n_workers=-1), 10)
        except Exception as error:  # dask raises various errors for a lost connection, and reconnects
            if self._client.status == "running":
                self.notes.append(f"the scheduler at {self.address} does not answer: {_sentence(error)}")
            return
        present = {address: worker["resources"] for address, worker in workers["workers"].items()}
        for address in self.members.keys() - present.keys():
            member = self.members.pop(address)
            if member.meeting is not None:
                member.meeting.cancel()
            self.notes.append(f"worker {member.name} has left")
        for address in present.keys() - self.members.keys():
            member = self.members[address] = Member(address, present[address])
            member.meeting = self.begin(self._meet(member))

    async def _meet(self, member: Member) -> None:
        """Request the facts of a worker, up to STRIKES times, and trust it if its versions are those of this process.
        Else set its refusal."""
        if not {BUILD, TIME} & member.resources.keys():
            return self._decline(
                member, "it has neither of the resources build and time: start it with `strata worker`"
            )
        while True:
            asked = self._client.submit(jobs.facts_of_worker, workers=[member.address], pure=False)
            try:
                plain = await asked.result(timeout=self.patience)
                break
            except Exception as error:  # of the worker or of the network: the request is repeated
                member.strikes += 1
                self._decline(member, _sentence(error))
                if member.strikes >= STRIKES:
                    return None
        member.facts = read_facts(plain)
        if member.facts is None:
            return self._decline(member, "what it says of itself cannot be read: it is of another version")
        assert self._ours is not None
        differs = difference(member.facts, self._ours)
        if differs is not None:
            return self._decline(member, differs)
        member.refusal = None
        self.notes.append(f"worker {member.name}: {member.facts.machine.name}, {member.facts.builders} builders")

    def _decline(self, member: Member, why: str) -> None:
        member.refusal = why
        self.notes.append(f"worker {member.name} cannot be asked: {why}")

    # --- jobs -------------------------------------------------------------------------------------------------------

    def submit(
        self, kind: str, able: Sequence[Member], function: Any, *given: Any, after: Sequence[FleetJob] = ()
    ) -> FleetJob:
        """Submit the call of `function` on `given` to one of the workers `able`, where it uses one unit of the resource
        `kind` (BUILD or TIME). After an error dask repeats it, at most RETRIES times. It runs after the jobs `after`,
        whose futures in `given` are replaced by their results."""
        future = self._client.submit(
            function,
            *given,
            workers=[member.address for member in able],
            resources={kind: 1},
            retries=RETRIES,
            pure=False,
        )
        return FleetJob(
            future, {future.key: able} | {key: workers for job in after for key, workers in job.allowed_workers.items()}
        )

    async def result(self, job: FleetJob, more: float = 0.0) -> Any:
        """Wait for the result of a job, at most `more` seconds beyond the patience. Raises JobLost without a result;
        the worker of a late job is struck."""
        self._asked.add(job)
        try:
            return await job.future.result(timeout=self.patience + more)
        except TimeoutError as error:
            await self._strike_late(job)
            raise JobLost(f"there was no answer for {self.patience:g} s") from error
        except Exception as error:  # of the job or of the network: the job is lost, and may be repeated
            raise JobLost(_sentence(error)) from error
        finally:
            self._asked.discard(job)
            await self._lose([job])

    async def _strike_late(self, late: FleetJob) -> None:
        """Strike the worker that has a late job, request its facts again, and cancel all its jobs."""
        why = f"it has not answered for {self.patience:g} s"
        with suppress(OSError, TimeoutError):
            keys_by_worker = await asyncio.wait_for(self._client.scheduler.processing(workers=None), 10)
            for member in self.trusted:
                keys = keys_by_worker.get(member.address, ())
                if late.allowed_workers.keys().isdisjoint(keys):
                    continue
                self.strike(member, why)
                if member.strikes < STRIKES:
                    member.refusal = why
                    member.meeting = self.begin(self._meet(member))
                await self._lose([job for job in self._asked if not job.allowed_workers.keys().isdisjoint(keys)])

    async def _lose(self, lost: Sequence[FleetJob]) -> None:
        """Cancel jobs; coroutines that await their results get an error."""
        with suppress(Exception):  # a closed client has cancelled them
            await self._client.cancel([job.future for job in lost], msg="its worker has left, or is asked no more")


def checked(address: str) -> str:
    """Return the address of a scheduler, such as `tcp://host:8786`, as is. Raises InputError where dask is missing, or
    for a malformed address."""
    try:
        from distributed.comm import get_address_host_port
        from distributed.comm.addressing import parse_address
        from distributed.comm.registry import get_backend
    except ImportError:
        raise InputError("a fleet needs dask: pip install 'strata-compiler[fleet]'") from None
    try:
        scheme, _ = parse_address(address, strict=True)
        get_backend(scheme)
        _, port = get_address_host_port(address, strict=True)
        if not 0 < port < 1 << 16:
            raise ValueError(f"{port} is no port")
    except (ValueError, TypeError) as error:
        raise InputError(f"no scheduler at '{address}': an address is such as tcp://host:8786 ({error})") from error
    return address


def machines_of(address: str, patience: float) -> list[Machine]:
    """The different machine models of a scheduler's trusted workers that time candidates, sorted by name; empty if none
    of the trusted ones does. Raises InputError where dask is missing or the address is malformed, TargetError if no
    scheduler answers or no worker is trusted within `patience` seconds."""
    deadline = time.monotonic() + patience
    with closing(Cluster(address, patience)) as cluster:
        while cluster.awaits_facts or not cluster.trusted:
            time.sleep(LOOK / 10)
            if time.monotonic() > deadline:
                why = "; ".join(cluster.notes) or "it has none"
                raise TargetError(f"no worker of {address} measures: {why}")
        timing = [member.facts for member in cluster.trusted if TIME in member.resources]
        return sorted({facts.machine for facts in timing if facts is not None}, key=lambda machine: machine.name)


def _sentence(error: object) -> str:
    """The first line of an error's message, else the name of its type."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__
