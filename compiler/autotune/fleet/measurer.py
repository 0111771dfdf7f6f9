"""`Fleet`: a measurer that builds and times candidates on the workers of a scheduler."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Generator, Sequence
from concurrent.futures import Future, as_completed
from dataclasses import dataclass

from compiler.autotune.fleet import jobs
from compiler.autotune.fleet.cluster import BUILD, TIME, Cluster, FleetJob, JobLost, Member
from compiler.autotune.fleet.judge import AgreedOutcome, Judge, WorkerClaim, implausibility
from compiler.autotune.measure.measurer import Say, ignore_step
from compiler.database.outcome import Outcome
from compiler.driver.reference.subject import Subject
from compiler.support.errors import InputError, TargetError
from compiler.types.machines import Machine, machine_facts

LOSSES = 8
"""The number of lost jobs that one candidate may have before its outcome is `crash`, and of tries of a comparison."""
PAUSE = 0.05
"""Seconds between two polls for a free worker."""


@dataclass(frozen=True)
class _Crew:
    """The workers that may build a candidate, and those that may time it."""

    builders: Sequence[Member]
    timers: Sequence[Member]


class Fleet:
    """Measures candidates of one machine model on the workers of a scheduler; has the methods of `Measurer`.

    Any worker builds candidates; workers of the model time them. `measure` begins at once: its candidates are in flight
    while others are chosen, each a coroutine in the cluster's thread. Outcomes are judged, see judge.py. A worker that
    leaves, hangs or computes wrongly costs time only, and has a sentence in `notes`. cluster: the connection, by which
    `address` and `patience` are ignored; None connects to the scheduler at `address`. Methods raise TargetError if no
    worker is trusted for `patience` seconds, InputError for a program that cannot be compiled.
    """

    def __init__(self, address: str, machine: Machine, patience: float, cluster: Cluster | None = None) -> None:
        self.cluster = cluster or Cluster(address, patience)
        self.machine = machine
        self._stated = machine_facts(machine)
        self._judge = Judge()
        self._subject: Subject | None = None
        self._first = asyncio.Lock()
        self._flying = 0

    @property
    def notes(self) -> list[str]:
        """Sentences about the workers, in order."""
        return self.cluster.notes

    @property
    def places(self) -> int:
        """The number of candidates that the workers hold at once: those being built, and one waiting at each worker."""
        return sum(int(member.resources.get(BUILD, 0)) + 1 for member in self.cluster.trusted)

    def switch_subject(self, subject: Subject) -> None:
        """Switch to candidates of another subject."""
        self._subject = subject
        _ = subject.program  # computed here: the cached property is used in another thread

    def measure(self, scripts: Sequence[str], say: Say = ignore_step) -> Generator[tuple[int, Outcome]]:
        """Begin all scripts now; yield the position of each and its outcome as they finish. `say` is not called."""
        assert self._subject is not None
        begun = [self.cluster.begin(self._placed(self._subject, script)) for script in scripts]
        return _outcomes({future: position for position, future in enumerate(begun)})

    def calibrate(self, script: str, cost: float) -> None:
        """Set the best cost of the subject, unless it is lower already; a lower one must be confirmed by a second
        worker. `script` is not used."""
        assert self._subject is not None
        self._judge.record_cost(self._subject, cost)

    def compare(self, scripts: Sequence[str], rounds: int) -> list[Outcome]:
        """Time a few scripts in turns on one worker, each once a round, and return their outcomes in order. A lost job
        is repeated, up to LOSSES tries; then TargetError is raised."""
        assert self._subject is not None
        return self.cluster.begin(self._compared(self._subject, scripts, rounds)).result()

    def close(self) -> None:
        """Cancel all jobs, and close the connection."""
        self.cluster.close()

    # --- candidates -------------------------------------------------------------------------------------------------

    async def _placed(self, subject: Subject, script: str) -> Outcome:
        """The outcome of a candidate, begun once fewer than `places` are in flight, first come, first served: a late
        job is then the fault of its worker, not of a queue."""
        async with self._first:
            while self._flying >= max(1, self.places):
                await asyncio.sleep(PAUSE)
            self._flying += 1
        try:
            return await self._measured(subject, script)
        finally:
            self._flying -= 1

    async def _measured(self, subject: Subject, script: str) -> Outcome:
        """Build and time a candidate, and have further workers confirm a doubted outcome; return the agreed one."""
        claims: list[WorkerClaim] = []
        losses: list[str] = []
        built: FleetJob | None = None
        while len(losses) <= LOSSES:
            crew = await self._crew({claim.worker for claim in claims} | {claim.blamed for claim in claims})
            built = built or self._build(crew, subject, script)
            try:
                reply = await self._timed(crew, built, subject)
            except JobLost as loss:
                losses.append(str(loss))
                built = None
                continue
            claims.append(WorkerClaim(reply.worker, reply.builder, reply.value))
            verdict = self._judged(subject, claims)
            if verdict is not None:
                return verdict.outcome
            built = built if reply.value.ok else None
        return Outcome("crash", reason=f"it was lost {LOSSES} times: {losses[-1]}")

    def _build(self, crew: _Crew, subject: Subject, script: str) -> FleetJob:
        return self.cluster.submit(BUILD, crew.builders, jobs.build, subject, script, self._stated)

    async def _timed(self, crew: _Crew, built: FleetJob, subject: Subject) -> jobs.Answer:
        """Have a worker time a built candidate; return its answer. Raises JobLost for a lost job or impossible time."""
        job = self.cluster.submit(TIME, crew.timers, jobs.time, built.future, subject, after=[built])
        reply = self._believed(await self.cluster.result(job))
        member = self.cluster.members.get(reply.worker)
        lie = implausibility(reply.value, subject, self.machine)
        if lie is not None:
            if member is not None:
                self.cluster.strike(member, lie, ends=True)
            raise JobLost(lie)
        return reply

    def _believed(self, reply: jobs.Answer) -> jobs.Answer:
        """Return a reply, unless it is a refusal or its worker is no longer trusted: then raise JobLost. A refusal
        counts as a strike against the worker, and raises InputError if no trusted worker is left."""
        member = self.cluster.members.get(reply.worker)
        if reply.refusal is not None:
            if member is not None:
                self.cluster.strike(member, reply.refusal)
            if not self.cluster.trusted:
                raise InputError(reply.refusal)
            raise JobLost(reply.refusal)
        if member is not None and member.refusal is not None:
            raise JobLost(member.refusal)
        return reply

    def _judged(self, subject: Subject, claims: Sequence[WorkerClaim]) -> AgreedOutcome | None:
        """Return the valid outcome by claims about a candidate, None if another worker must confirm it. An accused
        worker gets a strike; a liar is no longer trusted."""
        avoided = {claim.worker for claim in claims} | {claim.blamed for claim in claims}
        unasked = [member for member in self.cluster.trusted if member.address not in avoided and self._times(member)]
        verdict = self._judge.verdict(subject, claims, bool(unasked))
        if verdict is not None:
            for blamed, ends in ((verdict.liars, True), (verdict.accused, False)):
                for address, why in blamed.items():
                    if (accused := self.cluster.members.get(address)) is not None:
                        self.cluster.strike(accused, why, ends)
        return verdict

    async def _compared(self, subject: Subject, scripts: Sequence[str], rounds: int) -> list[Outcome]:
        for _ in range(LOSSES):
            crew = await self._crew()
            built = [self._build(crew, subject, script) for script in scripts]
            futures = [job.future for job in built]
            last = self.cluster.submit(TIME, crew.timers, jobs.compare, futures, subject, rounds, after=built)
            try:
                return list(self._believed(await self.cluster.result(last, more=rounds * len(scripts))).value)
            except JobLost:
                continue
        raise TargetError(f"no worker of {self.cluster.address} has compared the candidates: {self._why()}")

    # --- workers ----------------------------------------------------------------------------------------------------

    async def _crew(self, avoided: Collection[str] = ()) -> _Crew:
        """Wait for the trusted workers that may build and time, without the addresses `avoided` unless there are no
        others. Raises TargetError after `patience` seconds without any."""
        begun = time.monotonic()
        while True:
            builders = [member for member in self.cluster.trusted if BUILD in member.resources]
            timers = [member for member in self.cluster.trusted if self._times(member)]
            if not self.cluster.is_connected:
                begun = time.monotonic()
            elif builders and timers:
                return _Crew(_but(avoided, builders), _but(avoided, timers))
            elif time.monotonic() - begun > self.cluster.patience:
                raise TargetError(
                    f"no worker of {self.cluster.address} measures for {self.machine.name}: {self._why()}"
                )
            await asyncio.sleep(PAUSE)

    def _times(self, member: Member) -> bool:
        """Whether a worker times candidates and has the machine model of this fleet."""
        return TIME in member.resources and member.facts is not None and member.facts.machine == self.machine

    def _why(self) -> str:
        """The reasons for which workers get no jobs, and the machine models of the trusted ones, as text."""
        refused = [
            f"{member.name}: {member.refusal}" for member in self.cluster.members.values() if member.refusal is not None
        ]
        models = {member.facts.machine.name for member in self.cluster.trusted if member.facts is not None}
        explanations = [f"there are workers of {', '.join(sorted(models))}"] if models else []
        return "; ".join(refused + explanations) or "it has none"


def _but(avoided: Collection[str], members: Sequence[Member]) -> Sequence[Member]:
    return [member for member in members if member.address not in avoided] or members


def _outcomes(begun: dict[Future[Outcome], int]) -> Generator[tuple[int, Outcome]]:
    """The positions and outcomes of candidates, as they finish; closing the generator cancels the others."""
    try:
        for future in as_completed(begun):
            yield begun[future], future.result()
    finally:
        for future in begun:
            future.cancel()
