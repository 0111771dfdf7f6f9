"""The preferred schedule of a program: what the rules begin a search with, its sizes chosen by a forest."""

from __future__ import annotations

from math import prod
from typing import cast

import numpy as np
from numpy.typing import NDArray

from compiler.analysis.cost import total_flops
from compiler.driver.choice.estimate import gains_nothing
from compiler.driver.choice.forest import Forest, shipped
from compiler.driver.parts.partition import Schedulable
from compiler.program.tree import Program
from compiler.schedule import Schedule
from compiler.space.derivation import preferred
from compiler.space.sketch import Sketch
from compiler.space.space import SketchSpace
from compiler.types.elements import element_bytes
from compiler.types.machines import Machine

FLOPS, BYTES = 50e9, 10e9
"""What a core does in a second at least, roughly, where code is good."""
PAYS = 50e-6
"""Seconds of work from which on a second thread pays: to wake and to await one takes some microseconds."""
CANDIDATES = 192
"""Candidates that a forest is asked about: their features take some tens of milliseconds."""
MARGIN = 0.1
"""By how much (log time) a forest must prefer other sizes than the rules'."""


def preferred_schedule(task: Schedulable, judged: bool = True) -> Schedule | None:
    """The schedule that the rules of a task prefer; None where they leave the program as it is written, and where
    nothing is to be gained on one thread. Without `judged` its steps are not judged: the caller proves it.

    It runs on the task's threads if the whole program is long enough for that. The shipped forest chooses open sizes if
    its preference is clear and it knows such machines.
    """
    program = task.schedule.program
    threads = task.threads if seconds(program) > PAYS else 1
    schedule = preferred(task.schedule, task.rules, task.machine, threads, judged).draft.schedule
    machine = cast("Machine", task.machine)  # what is compiled in units is for CPUs
    if schedule.program is program:
        return None
    if threads == 1 and gains_nothing(task.schedule, schedule.program, machine):
        return None
    forest = shipped()
    if forest is None or not forest.knows(machine):
        return schedule
    return filled(task.schedule, schedule, machine, forest, judged)


def filled(original: Schedule, schedule: Schedule, machine: Machine, forest: Forest, judged: bool = True) -> Schedule:
    """A schedule with the open choices that a forest clearly prefers; unchanged if those are its own."""
    sketch = Sketch.of("preferred", original.program, schedule)
    positions = best_positions(sketch, machine, forest)
    if positions == sketch.recorded:
        return schedule
    return original.fork()[0].apply(sketch.decided(positions), judged)


def best_positions(sketch: Sketch, machine: Machine, forest: Forest) -> tuple[int, ...]:
    """The positions at the choices of a sketch that a forest prefers by MARGIN, else those recorded."""
    if not sketch.choices:
        return sketch.recorded
    positions = candidates(sketch)
    features = SketchSpace([sketch], machine).features(0, positions)
    feasible = np.flatnonzero(features.reasons == 0)
    if 0 not in feasible:
        return sketch.recorded
    said = forest.predict(features.values[feasible])
    best = int(np.argmin(said))
    better = said[0] - said[best] > MARGIN
    return tuple(int(n) for n in positions[feasible[best]]) if better else sketch.recorded


def candidates(sketch: Sketch) -> NDArray[np.int64]:
    """Positions (n, choices) to be compared, at most CANDIDATES: those recorded, what differs from them in one choice,
    and others at random, always the same."""
    rows = [sketch.recorded]
    for place, size in enumerate(sketch.sizes):
        around = [n for n in range(size) if n != sketch.recorded[place]]
        rows += [(*sketch.recorded[:place], n, *sketch.recorded[place + 1 :]) for n in around]
    random = np.random.default_rng(0)
    drawn = random.integers(0, sketch.sizes, (CANDIDATES, len(sketch.sizes)))
    every = dict.fromkeys([*rows[: CANDIDATES // 2], *(tuple(int(n) for n in row) for row in drawn)])
    return np.array(list(every)[:CANDIDATES], np.int64)


def seconds(program: Program) -> float:
    """What an unscheduled program takes on one thread, roughly, when it is done well."""
    moved = sum(prod(buffer.shape) * element_bytes(buffer.element) for buffer in program.arguments)
    return max(total_flops(program, program.body) / FLOPS, moved / BYTES)
