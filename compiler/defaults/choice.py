"""The preferred schedule of a program: what the rules begin a search with, without the search."""

from __future__ import annotations

from math import prod

from compiler.analysis.cost import total_flops
from compiler.autotune.space.rules.derive import preferred
from compiler.autotune.task import SearchTask
from compiler.elements import element_bytes
from compiler.program.tree import Program
from compiler.schedule import Schedule

FLOPS, BYTES = 50e9, 10e9
"""What a core does in a second at least, roughly, where code is good."""
PAYS = 50e-6
"""Seconds of work from which on a second thread pays: to wake and to await one takes some microseconds."""


def preferred_schedule(task: SearchTask) -> Schedule | None:
    """The schedule that the rules of a task prefer; None where they leave the program as it is written.

    It runs on the task's threads where the whole program is long enough for that.
    """
    program = task.schedule.program
    threads = task.threads if seconds(program) > PAYS else 1
    found = preferred(task.schedule, task.rules, task.machine, threads).draft.schedule
    return None if found.program is program else found


def seconds(program: Program) -> float:
    """What an unscheduled program takes on one thread, roughly, when it is done well."""
    moved = sum(prod(buffer.shape) * element_bytes(buffer.element) for buffer in program.arguments)
    return max(total_flops(program, program.body) / FLOPS, moved / BYTES)
