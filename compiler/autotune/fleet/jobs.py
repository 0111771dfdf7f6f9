"""Functions that a scheduler calls on workers; dask sends them by their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from compiler.autotune.fleet import facts
from compiler.autotune.fleet.station import Station
from compiler.autotune.measure.builder import Built
from compiler.database.outcome import Outcome
from compiler.driver.reference.subject import Subject
from compiler.support.worker import Refused, Unable, answered

BUILDERS = 0
"""How many candidates this worker builds at once; 0 is as many as cores. `strata worker` sets it."""


@dataclass(frozen=True)
class Answer:
    """What came of a job, and on which worker: a value, or why a worker can do no job of the subject. `builder` is the
    worker that has built what is timed."""

    worker: str
    value: Any
    builder: str = ""

    @property
    def refusal(self) -> str | None:
        """Why the worker can do no job of the subject; None where it can."""
        return str(self.value) if isinstance(self.value, Refused | Unable) else None


@cache
def station() -> Station:
    """The station of this process."""
    return Station()


def facts_of_worker() -> dict[str, object]:
    """What this worker is."""
    return facts.own_facts(BUILDERS or None)


def build(subject: Subject, script: str, machine: str) -> Answer:
    """Build a candidate for a machine, whose facts are stated: Built, or the outcome that says why not."""
    return Answer(_worker(), answered(lambda: station().build(subject, script, machine)))


def time(built: Answer, subject: Subject) -> Answer:
    """Check and time what was built; an outcome that says why it was not built, or a refusal, is passed on."""
    if not isinstance(built.value, Built):
        return Answer(_worker() if built.refusal is None else built.worker, built.value, built.worker)
    return Answer(_worker(), answered(lambda: station().time(subject, built.value)), built.worker)


def compare(candidates: Sequence[Answer], subject: Subject, rounds: int) -> Answer:
    """Time candidates in turns; the outcomes that say why some were not built are passed on."""
    refused = next((built for built in candidates if built.refusal is not None), None)
    if refused is not None:
        return refused
    ready = [built.value for built in candidates if isinstance(built.value, Built)]
    timed = answered(lambda: station().compare(subject, ready, rounds))
    if isinstance(timed, Refused | Unable):
        return Answer(_worker(), timed)
    outcomes = iter(timed)
    value: list[Outcome] = [next(outcomes) if isinstance(c.value, Built) else c.value for c in candidates]
    return Answer(_worker(), value)


def _worker() -> str:
    """The address of this worker."""
    from distributed import get_worker

    return str(get_worker().address)
