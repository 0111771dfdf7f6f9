"""Functions that a scheduler calls on workers; dask sends them by their names."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from compiler.autotune.fleet import facts
from compiler.autotune.fleet.station import Station
from compiler.autotune.measure.builder import Built
from compiler.database.outcome import Outcome
from compiler.driver.reference.subject import Subject
from compiler.support.errors import StrataError

BUILDERS = 0
"""How many candidates this worker builds at once; 0 is as many as cores. `strata worker` sets it."""


class Refused(str):
    """Why a worker can do no job of a subject: the reply instead of a result."""


@cache
def station() -> Station:
    """The station of this process."""
    return Station()


def facts_of_worker() -> dict[str, object]:
    """What this worker is."""
    return facts.own_facts(BUILDERS or None)


def build(subject: Subject, script: str, machine: str) -> Built | Outcome | Refused:
    """Build a candidate for a machine, whose facts are stated."""
    try:
        return station().build(subject, script, machine)
    except StrataError as error:
        return Refused(error)


def time(built: Built | Outcome | Refused, subject: Subject) -> Outcome | Refused:
    """Check and time what was built; the outcome that says why it was not built is passed on."""
    if not isinstance(built, Built):
        return built
    try:
        return station().time(subject, built)
    except StrataError as error:
        return Refused(error)


def compare(candidates: Sequence[Built | Outcome | Refused], subject: Subject, rounds: int) -> list[Outcome] | Refused:
    """Time candidates in turns; the outcomes that say why some were not built are passed on."""
    refused = next((built for built in candidates if isinstance(built, Refused)), None)
    if refused is not None:
        return refused
    ready = [built for built in candidates if isinstance(built, Built)]
    try:
        timed = iter(station().compare(subject, ready, rounds))
    except StrataError as error:
        return Refused(error)
    return [
        next(timed) if isinstance(built, Built) else built for built in candidates if not isinstance(built, Refused)
    ]
