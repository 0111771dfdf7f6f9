"""The builder process: from a script to an artefact, or to the outcome of a failure."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeAlias

from xdsl.ir import Operation
from xdsl.utils.exceptions import ParseError, VerifyException

from compiler.database.outcome import Outcome
from compiler.dialects.dominance import last_sentence
from compiler.driver import build_unit
from compiler.driver.reference.cases import ReferenceJob, write_reference
from compiler.driver.reference.subject import Subject
from compiler.driver.units.unit import Unit
from compiler.pipeline.source import parse
from compiler.schedule import Schedule
from compiler.support.errors import InputError, ScheduleError, StrataError
from compiler.support.gc import paused
from compiler.support.worker import Reply, try_call, unlimited_memory
from compiler.targets.gpus import GpuKernel


@dataclass(frozen=True)
class GpuArtefact:
    """A simulated candidate for a GPU: its kernels, and their estimated seconds."""

    kernel: GpuKernel
    estimate: float


TargetArtefact: TypeAlias = Any  # a Unit for a CPU, a GpuArtefact for a GPU: builder and runner are of one target


@dataclass(frozen=True)
class Built:
    """A proved and compiled candidate, and the seconds that proof and compilation took."""

    artefact: TargetArtefact
    seconds: float


BuildScript: TypeAlias = Callable[[str], Built | Outcome]
"""A function that builds the candidate of a script; returns Built, or the outcome of a failure."""


def cpu_building(subject: Subject) -> BuildScript:
    """Return the function that builds the scripts of a subject for a CPU."""

    def compiled(schedule: Schedule) -> Unit:
        return build_unit(schedule, subject.threads, subject.policy, subject.name)

    return lambda script: build_candidate(subject, script, compiled)


@dataclass(frozen=True)
class BuilderSetup:
    """The setup of a builder process.

    A job is the text of a script; its reply is Built or an Outcome. A job may also be a ReferenceJob, which is exempt
    from the limit of memory; its reply is None, Refused or Unable. building: makes the function that builds the scripts
    of a subject.
    """

    subject: Subject
    memory_bytes: int
    building: Callable[[Subject], BuildScript] = cpu_building

    def start(self) -> Callable[[str | ReferenceJob], Reply]:
        """Parse the program, and return the function that does jobs. Raises InputError for a malformed program."""
        with _sentences():
            unscheduled(self.subject)
        build = self.building(self.subject)

        def do(job: str | ReferenceJob) -> Reply:
            if isinstance(job, str):
                return build(job)
            with unlimited_memory():
                return try_call(lambda: _write_reference(self.subject, job))

        return do


def _write_reference(subject: Subject, job: ReferenceJob) -> None:
    with _sentences():
        write_reference(subject, job)


Compile = Callable[[Schedule], TargetArtefact | Outcome]
"""A function that compiles a proved schedule to an artefact, or returns the outcome of its failure."""


def build_candidate(subject: Subject, script: str, compile: Compile) -> Built | Outcome:
    """Apply a script to the program, prove the schedule, compile it. A failure is an Outcome."""
    start = time.perf_counter()
    with paused():
        artefact = _artefact(subject, script, compile)
    seconds = time.perf_counter() - start
    return replace(artefact, build_seconds=seconds) if isinstance(artefact, Outcome) else Built(artefact, seconds)


def _artefact(subject: Subject, script: str, compile: Compile) -> TargetArtefact | Outcome:
    try:
        schedule = _proved(subject, script)
        return schedule if isinstance(schedule, Outcome) else compile(schedule)
    except StrataError as error:
        return Outcome("build", reason=str(error))
    except MemoryError:
        return Outcome("memory", reason="it needs more memory to be built than it is allowed")


def _proved(subject: Subject, script: str) -> Schedule | Outcome:
    """Apply a script and prove the result as a whole; if that fails, judge step by step to name the illegal one: the
    Outcome is `refused`, or `unproved` if each step is legal."""
    schedule = apply_script(subject, script, judged=False)
    verdict = None if isinstance(schedule, Outcome) else schedule.verify()
    if verdict:
        return schedule
    schedule = apply_script(subject, script)
    return schedule if isinstance(schedule, Outcome) else Outcome("unproved", reason=str(verdict))


def apply_script(subject: Subject, script: str, judged: bool = True) -> Schedule | Outcome:
    """Apply a script to the subject's program. A refused step, or a text that does not parse, is an Outcome `refused`
    with the reason. Without `judged` the legality of steps is not checked."""
    try:
        return unscheduled(subject).fork()[0].apply(parse(script, "the script"), judged)
    except ScheduleError as error:
        return Outcome("refused", reason=_step(error) + str(error))
    except (StrataError, ParseError, VerifyException) as error:
        return Outcome("refused", reason=f"the script cannot be read: {_sentence(error)}")


@contextmanager
def _sentences() -> Iterator[None]:
    """Convert errors of parsing and verification inside the block to InputError, with one sentence."""
    try:
        yield
    except StrataError:  # some derive from VerifyException
        raise
    except (ParseError, VerifyException) as error:
        raise InputError(_sentence(error)) from error


def _sentence(error: Exception) -> str:
    """The last sentence of an error of parsing or verification, without its location."""
    return last_sentence(error.msg if isinstance(error, ParseError) else str(error))


@lru_cache(maxsize=1)
def unscheduled(subject: Subject) -> Schedule:
    """The unscheduled program of a subject; each candidate's schedule is a fork of it."""
    return Schedule(subject.module, subject.name)


def _step(error: ScheduleError) -> str:
    """The prefix `step N: ` of a refusal, N the position of the refused op in its script, from 1; else empty."""
    op = error.op
    if not isinstance(op, Operation) or (block := op.parent_block()) is None:
        return ""
    return f"step {list(block.ops).index(op) + 1}: "
