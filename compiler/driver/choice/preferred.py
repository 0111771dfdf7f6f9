"""The preferred schedule of a program: the first sketch of the rules, its sizes chosen by a forest."""

from __future__ import annotations

from math import prod
from typing import cast

import numpy as np
from numpy.typing import NDArray

from compiler.analysis.cost import total_flops
from compiler.driver.choice.estimate import gains_nothing
from compiler.driver.choice.forest import Forest, shipped_forest
from compiler.driver.parts.partition import Schedulable
from compiler.program.tree import Program
from compiler.schedule import Schedule
from compiler.space.derivation import preferred
from compiler.space.sketch import Sketch
from compiler.space.space import SketchSpace
from compiler.types.elements import element_bytes
from compiler.types.machines import Machine

FLOPS, BYTES = 50e9, 10e9
"""The approximate rates of a core with good code, in operations and bytes per second; lower limits."""
PAYS = 50e-6
"""The least seconds of work for further threads: to wake and to join them takes some microseconds."""
CANDIDATES = 192
"""The number of candidates that the forest predicts; their features take some tens of milliseconds."""
MARGIN = 0.1
"""The least predicted gain (log time) for which the forest's sizes replace the rules'."""


def preferred_schedule(task: Schedulable, judged: bool = True) -> Schedule | None:
    """The schedule that the rules of a task prefer; None for the program as written, if the rules change nothing or if
    their schedule gains nothing on one thread.

    It uses the task's threads if the program takes more than PAYS seconds, else one. The shipped forest chooses the
    sizes if its preference is clear and its training data covers the machine. Without `judged` the legality of the
    steps is not checked: the caller proves the schedule.
    """
    program = task.schedule.program
    threads = task.threads if scheduled_seconds(program) > PAYS else 1
    schedule = preferred(task.schedule, task.rules, task.machine, threads, judged).draft.schedule
    machine = cast("Machine", task.machine)  # units are compiled for CPUs only
    if schedule.program is program:
        return None
    if threads == 1 and gains_nothing(task.schedule, schedule.program, machine):
        return None
    forest = shipped_forest()
    if forest is None or not forest.covers(machine):
        return schedule
    return with_predicted_choices(task.schedule, schedule, machine, forest, judged)


def with_predicted_choices(
    original: Schedule, schedule: Schedule, machine: Machine, forest: Forest, judged: bool = True
) -> Schedule:
    """A schedule of `original` with the decisions that a forest prefers by MARGIN to those of `schedule`; `schedule`
    itself if it prefers none. Without `judged` the legality of the steps is not checked."""
    sketch = Sketch.of("preferred", original.program, schedule)
    positions = best_positions(sketch, machine, forest)
    if positions == sketch.recorded_positions:
        return schedule
    return original.fork()[0].apply(sketch.decided(positions), judged)


def best_positions(sketch: Sketch, machine: Machine, forest: Forest) -> tuple[int, ...]:
    """The decisions, as an option's index for each choice of a sketch, that a forest prefers to the recorded ones by
    MARGIN; else the recorded ones, also if these are infeasible."""
    if not sketch.choices:
        return sketch.recorded_positions
    positions = candidate_positions(sketch)
    features = SketchSpace([sketch], machine).features(0, positions)
    feasible = np.flatnonzero(features.reasons == 0)
    if 0 not in feasible:
        return sketch.recorded_positions
    log_times = forest.predict(features.values[feasible])
    best = int(np.argmin(log_times))
    better = log_times[0] - log_times[best] > MARGIN
    return tuple(int(n) for n in positions[feasible[best]]) if better else sketch.recorded_positions


def candidate_positions(sketch: Sketch) -> NDArray[np.int64]:
    """Rows of decisions (n, choices), n at most CANDIDATES: first the recorded decisions, then rows that differ from
    these in one choice, then random rows of a fixed seed; no row twice."""
    rows = [sketch.recorded_positions]
    for choice, size in enumerate(sketch.sizes):
        around = [n for n in range(size) if n != sketch.recorded_positions[choice]]
        rows += [(*sketch.recorded_positions[:choice], n, *sketch.recorded_positions[choice + 1 :]) for n in around]
    random = np.random.default_rng(0)
    drawn = random.integers(0, sketch.sizes, (CANDIDATES, len(sketch.sizes)))
    unique = dict.fromkeys([*rows[: CANDIDATES // 2], *(tuple(int(n) for n in row) for row in drawn)])
    return np.array(list(unique)[:CANDIDATES], np.int64)


def scheduled_seconds(program: Program) -> float:
    """The approximate seconds of a program on one thread under a good schedule."""
    moved = sum(prod(buffer.shape) * element_bytes(buffer.element) for buffer in program.arguments)
    return max(total_flops(program, program.body) / FLOPS, moved / BYTES)
