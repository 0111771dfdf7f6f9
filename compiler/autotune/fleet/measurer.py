"""`Fleet`: the measurer whose candidates are built and timed by the workers of a scheduler."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

from compiler.autotune.fleet import jobs
from compiler.autotune.fleet.cluster import BUILD, TIME, Cluster, Ended, Job, Member
from compiler.autotune.fleet.judge import Judge, Said, impossible
from compiler.autotune.measure.measurer import Say, silent
from compiler.database.outcome import Outcome
from compiler.driver.reference.subject import Subject
from compiler.support.errors import InputError, TargetError
from compiler.types.machines import Machine, stated

LOSSES = 8
"""So often a candidate is asked again whose job was lost; then it is to blame."""


@dataclass(eq=False)
class _Batch:
    """Candidates that were given together: the outcomes that have come, and how many are missing."""

    subject: Subject
    missing: int
    come: deque[tuple[int, Outcome]] = field(default_factory=deque)


@dataclass(eq=False)
class _Trial:
    """A candidate on its way: the job it is in, what was built of it, and what workers said of it."""

    batch: _Batch
    position: int
    script: str
    built: Job | None = None
    job: Job | None = None
    said: list[Said] = field(default_factory=list)
    losses: int = 0

    @property
    def avoided(self) -> set[str]:
        """The workers that have said something of it already."""
        return {said.worker for said in self.said} | {said.blamed for said in self.said}


class Fleet:
    """Measures candidates of one machine model on the workers of a scheduler; has the methods of `Measurer`.

    Candidates are built by any worker, timed by those of the model. `measure` begins at once: its candidates are in
    flight while others are chosen. What workers say is judged, see judge.py; one that leaves, hangs or lies costs
    nothing but time, and `notes` name it. Raises TargetError where for as long as the patience lasts no worker can be
    asked, InputError for a program that cannot be compiled.
    """

    def __init__(self, address: str, machine: Machine, patience: float, cluster: Cluster | None = None) -> None:
        self.cluster = cluster or Cluster(address, patience)
        self.machine = machine
        self._stated = stated(machine)
        self._judge = Judge()
        self._subject: Subject | None = None
        self._waiting: deque[_Trial] = deque()
        self._flying: dict[Job, _Trial] = {}
        self._alone_since: float | None = None

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def notes(self) -> list[str]:
        """What is to be said of the workers."""
        return self.cluster.notes

    @property
    def places(self) -> int:
        """How many candidates the workers can have at once, those included that wait there."""
        return sum(int(member.resources.get(BUILD, 0)) + 1 for member in self.cluster.trusted)

    def turn_to(self, subject: Subject) -> None:
        """From now on candidates are of another subject."""
        self._subject = subject

    def measure(self, scripts: Sequence[str], say: Say = silent) -> Generator[tuple[int, Outcome]]:
        """The position of each script and its outcome, as they come; all are begun now."""
        assert self._subject is not None
        batch = _Batch(self._subject, len(scripts))
        self._waiting.extend(_Trial(batch, position, script) for position, script in enumerate(scripts))
        self._assign()
        return self._outcomes(batch)

    def _outcomes(self, batch: _Batch) -> Generator[tuple[int, Outcome]]:
        try:
            while batch.missing or batch.come:
                if batch.come:
                    yield batch.come.popleft()
                else:
                    self._step()
        finally:
            self._drop(batch)

    def calibrate(self, script: str, cost: float) -> None:
        """Take note of the cost of the best that is known: what is better is confirmed."""
        assert self._subject is not None
        self._judge.known(self._subject, cost)

    def compare(self, scripts: Sequence[str], rounds: int) -> list[Outcome]:
        """The outcomes of a few scripts, in turns on one worker; on another one where that is lost."""
        assert self._subject is not None
        for _ in range(LOSSES):
            outcomes = self._compared(self._subject, scripts, rounds)
            if outcomes is not None:
                return outcomes
        raise TargetError(f"no worker of {self.cluster.address} has compared the candidates: {self._why()}")

    def close(self) -> None:
        """Forget all that was begun."""
        self.cluster.close()

    # --- steps ------------------------------------------------------------------------------------------------------

    def _step(self) -> None:
        """Take what has ended, and give what waits to workers that are free."""
        for ended in self.cluster.wait():
            self._take(ended)
        self._assign()
        self._check_workers()

    def _take(self, ended: Ended) -> None:
        trial = self._flying.pop(ended.job, None)
        if trial is None:
            return
        trial.job = None
        if ended.lost is not None or isinstance(ended.value, jobs.Refused):
            self._again(trial, ended)
        elif ended.job.kind == BUILD:
            trial.built = ended.job
            self._waiting.appendleft(trial)
        else:
            self._hear(trial, ended)

    def _again(self, trial: _Trial, ended: Ended) -> None:
        """Ask a trial again whose job was lost, or refused by its worker."""
        trial.losses += 1
        trial.built = None
        member = self.cluster.members.get(ended.job.worker)
        if ended.lost is None and member is not None:
            self.cluster.strike(member, str(ended.value))
            if len(self.cluster.trusted) == 0:
                raise InputError(str(ended.value))
        if trial.losses > LOSSES:
            why = ended.lost or str(ended.value)
            self._settle(trial, Outcome("crash", reason=f"it was lost {LOSSES} times: {why}"))
        else:
            self._waiting.appendleft(trial)

    def _hear(self, trial: _Trial, ended: Ended) -> None:
        """Judge what a worker said."""
        assert trial.built is not None
        worker, subject = ended.job.worker, trial.batch.subject
        member = self.cluster.members.get(worker)
        lie = impossible(ended.value, subject, self.machine)
        if lie is not None:
            if member is not None:
                self.cluster.strike(member, lie, ends=True)
            self._again(trial, Ended(ended.job, lost=lie))
            return
        trial.said.append(Said(worker, trial.built.worker, ended.value))
        others = [
            member for member in self.cluster.trusted if member.address not in trial.avoided and self._times(member)
        ]
        verdict = self._judge.verdict(subject, trial.said, bool(others))
        if verdict is None:
            if not ended.value.ok:
                trial.built = None
            self._waiting.appendleft(trial)
            return
        for blamed, ends in ((verdict.liars, True), (verdict.accused, False)):
            for address, why in blamed.items():
                if (accused := self.cluster.members.get(address)) is not None:
                    self.cluster.strike(accused, why, ends)
        self._settle(trial, verdict.outcome)

    def _settle(self, trial: _Trial, outcome: Outcome) -> None:
        trial.batch.missing -= 1
        trial.batch.come.append((trial.position, outcome))

    # --- who does what ----------------------------------------------------------------------------------------------

    def _assign(self) -> None:
        """Give trials to workers, those that have come farthest first."""
        kept: deque[_Trial] = deque()
        while self._waiting:
            trial = self._waiting.popleft()
            member = self._member(trial)
            if member is None:
                kept.append(trial)
                continue
            subject, submit = trial.batch.subject, self.cluster.submit
            if trial.built is None:
                trial.job = submit(member, BUILD, jobs.build, subject, trial.script, self._stated)
            else:
                trial.job = submit(member, TIME, jobs.time, trial.built.future, subject)
            self._flying[trial.job] = trial
        self._waiting = kept

    def _member(self, trial: _Trial) -> Member | None:
        """The worker that does the next job of a trial: of those with room the one with most, for a timing that which
        has built it where there is a choice."""
        kind = BUILD if trial.built is None else TIME
        able = [member for member in self.cluster.trusted if kind == BUILD or self._times(member)]
        others = [member for member in able if member.address not in trial.avoided]
        home = None if trial.built is None else trial.built.worker
        free = [member for member in others or able if self.cluster.free(member, kind) > 0]
        return max(free, key=lambda member: (self.cluster.free(member, kind), member.address == home), default=None)

    def _times(self, member: Member) -> bool:
        """Whether a worker times candidates of the model."""
        return TIME in member.resources and member.facts is not None and member.facts.machine == self.machine

    def _check_workers(self) -> None:
        """Build again what was built on workers that left, and give up where nobody has been there for as long as the
        patience lasts."""
        for trial in [*self._flying.values(), *self._waiting]:
            if trial.built is not None and trial.built.worker not in self.cluster.members:
                self._rebuild(trial)
        if any(map(self._times, self.cluster.trusted)) and any(
            BUILD in member.resources for member in self.cluster.trusted
        ):
            self._alone_since = None
            return
        now = time.monotonic()
        self._alone_since = now if self._alone_since is None else self._alone_since
        if now - self._alone_since > self.cluster.patience:
            raise TargetError(f"no worker of {self.cluster.address} measures for {self.machine.name}: {self._why()}")

    def _rebuild(self, trial: _Trial) -> None:
        """Let a trial begin again."""
        trial.built = None
        if trial.job in self._flying:
            del self._flying[trial.job]
            self.cluster.cancel([trial.job])
            self._waiting.append(trial)

    def _why(self) -> str:
        """Why no worker is asked."""
        refused = [
            f"{member.name}: {member.refusal}" for member in self.cluster.members.values() if member.refusal is not None
        ]
        models = {member.facts.machine.name for member in self.cluster.trusted if member.facts is not None}
        others = [f"there are workers of {', '.join(sorted(models))}"] if models else []
        return "; ".join(refused + others) or "it has none"

    def _drop(self, batch: _Batch) -> None:
        """Forget what is left of a batch."""
        left = [job for job, trial in self._flying.items() if trial.batch is batch]
        for job in left:
            del self._flying[job]
        self.cluster.cancel(left)
        self._waiting = deque(trial for trial in self._waiting if trial.batch is not batch)

    # --- comparisons ------------------------------------------------------------------------------------------------

    def _compared(self, subject: Subject, scripts: Sequence[str], rounds: int) -> list[Outcome] | None:
        """What a worker found of scripts in turns; None where it was lost on the way."""
        while (member := self._freest(TIME)) is None or (builder := self._freest(BUILD)) is None:
            self._step()
        begun = [self.cluster.submit(builder, BUILD, jobs.build, subject, text, self._stated) for text in scripts]
        futures = [job.future for job in begun]
        last = self.cluster.submit(member, TIME, jobs.compare, futures, subject, rounds)
        last.begun += rounds * len(scripts)
        comparison: Ended | None = None
        while comparison is None:
            for ended in self.cluster.wait():
                if ended.job is last:
                    comparison = ended
                else:
                    self._take(ended)
            self._assign()
        if comparison.lost is None and not isinstance(comparison.value, jobs.Refused):
            return list(comparison.value)
        self.cluster.cancel(begun)
        return None

    def _freest(self, kind: str) -> Member | None:
        able = [member for member in self.cluster.trusted if kind == BUILD or self._times(member)]
        return max(able, key=lambda member: self.cluster.free(member, kind), default=None)
