"""The functions that a scheduler calls on workers; dask pickles them by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from compiler.autotune.fleet import facts
from compiler.autotune.fleet.processes import WorkerProcesses
from compiler.autotune.measure.builder import Built
from compiler.database.outcome import Outcome
from compiler.driver.reference.subject import Subject
from compiler.support.worker import Refused, Unable, try_call

BUILDERS = 0
"""The number of candidates that this worker builds at once; 0 is one a core. `strata worker` sets it."""


@dataclass(frozen=True)
class Answer:
    """The result of a job. value: of the function, or the reason for which the worker cannot do jobs of the subject.
    worker: its address. builder: the address of the worker that built the timed candidate; empty for other jobs."""

    worker: str
    value: Any
    builder: str = ""

    @property
    def refusal(self) -> str | None:
        """The reason for which the worker cannot do jobs of the subject; None if it can."""
        return str(self.value) if isinstance(self.value, Refused | Unable) else None


@cache
def worker_processes() -> WorkerProcesses:
    """The builder and runner processes of this worker, made once."""
    return WorkerProcesses()


def facts_of_worker() -> dict[str, object]:
    """The facts of this worker as plain data, as of `own_facts`."""
    return facts.own_facts(BUILDERS or None)


def build(subject: Subject, script: str, machine: str) -> Answer:
    """Build a candidate for a machine, whose facts are a text. The Answer's value is Built, a failure's Outcome, or a
    refusal."""
    return Answer(_worker(), try_call(lambda: worker_processes().build(subject, script, machine)))


def time(built: Answer, subject: Subject) -> Answer:
    """Check and time a built candidate. The Answer's value is the outcome; a failed build or a refusal is passed on."""
    if not isinstance(built.value, Built):
        return Answer(_worker() if built.refusal is None else built.worker, built.value, built.worker)
    return Answer(_worker(), try_call(lambda: worker_processes().time(subject, built.value)), built.worker)


def compare(candidates: Sequence[Answer], subject: Subject, rounds: int) -> Answer:
    """Time candidates in turns, each once a round. The Answer's value is the list of their outcomes, those of failed
    builds passed on; a refusal is returned as is."""
    refused = next((built for built in candidates if built.refusal is not None), None)
    if refused is not None:
        return refused
    ready = [built.value for built in candidates if isinstance(built.value, Built)]
    timed = try_call(lambda: worker_processes().compare(subject, ready, rounds))
    if isinstance(timed, Refused | Unable):
        return Answer(_worker(), timed)
    outcomes = iter(timed)
    value: list[Outcome] = [next(outcomes) if isinstance(c.value, Built) else c.value for c in candidates]
    return Answer(_worker(), value)


def _worker() -> str:
    """The address of this worker."""
    from distributed import get_worker

    return str(get_worker().address)
