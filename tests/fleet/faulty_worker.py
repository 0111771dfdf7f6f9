"""`python -m tests.fleet.faulty_worker FAULT ADDRESS`: a worker that lies, hangs or is of another version."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace

from compiler.autotune.fleet import facts, jobs
from compiler.autotune.fleet.processes import WorkerProcesses
from compiler.autotune.fleet.serve import serve
from compiler.autotune.measure.builder import Built
from compiler.database.outcome import Outcome
from compiler.driver.reference.subject import Subject

Time = Callable[[WorkerProcesses, Subject, Built], Outcome]
RIGHT = WorkerProcesses.time


def wrong(station: WorkerProcesses, subject: Subject, built: Built) -> Outcome:
    """What a worker says whose arithmetic is broken."""
    return Outcome("wrong", reason="out[0] is 2, expected 1")


def impossible(station: WorkerProcesses, subject: Subject, built: Built) -> Outcome:
    """Times that no machine reaches."""
    return replace(RIGHT(station, subject, built), seconds=(1e-12,), rates=(1e12,))


def hang(station: WorkerProcesses, subject: Subject, built: Built) -> Outcome:
    """No answer, though the worker is there."""
    time.sleep(3600)
    raise AssertionError("nobody waits so long")


FAULTS: dict[str, Time] = {"wrong": wrong, "impossible": impossible, "hang": hang}


def main() -> None:
    fault, address = sys.argv[1:]
    if fault == "version":
        own = facts.own_facts

        def other(builders: int | None = None) -> dict[str, object]:
            known = own(builders)
            return {**known, "versions": {**known["versions"], "strata": "0.0.1"}}  # type: ignore[dict-item]

        facts.own_facts = other
    else:
        setattr(WorkerProcesses, "time", FAULTS[fault])  # noqa: B010
    assert jobs.worker_processes
    serve(address, builders=1)


if __name__ == "__main__":
    main()
