"""Seconds by loop: a build that reads the clock around the outer loops, run on random inputs."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from compiler.explain.builds import Builds
from compiler.explain.nests import LoopNest
from compiler.lowering.low_to_llvm.marks import CLOCK, PROFILE, loops_of, profile_at
from compiler.targets.arguments import Array

OVERHEAD = 0.02
"""The part of a call that reading the clock may take."""
READING = 50e-9
"""Seconds that reading the clock twice takes, and adding up."""
CALIBRATION = 0.05
"""Seconds over which the clock is compared with the system's, at least."""


Probe = Callable[[float], float]
"""Measures the peak of the machine, in floating-point operations per second, for so many seconds."""


@dataclass(frozen=True)
class Spent:
    """The seconds that one call spends in all runs of a loop, and the number of runs."""

    seconds: float
    runs: int


@dataclass(frozen=True)
class Profile:
    """Seconds of a call: `plain` without the clock, `profiled` with it (medians); by number what each loop takes.

    peak: operations per second of which the machine was capable meanwhile; None where it was not asked.
    """

    plain: float
    profiled: float
    loops: dict[int, Spent]
    peak: float | None = None


def profile(
    b: Builds, loop_nests: Sequence[LoopNest], inputs: Sequence[Array], calls: int, probe: Probe | None = None
) -> Profile:
    """Measure the loops that run seldom enough, in the call of the median duration, all on one thread, whose clock
    tells which loop it is in; probe the machine beside each.

    A loop is measured if all those around it are, and if the runs of all loops that are measured cost no more than
    `OVERHEAD`; the outermost are always.
    """
    expected = b.kernel.time(*inputs, repeats=3, threads=1).minimum
    chosen = choose(loop_nests, int(expected * OVERHEAD / READING))
    kernel = b.timed(chosen)
    profile = profile_at(kernel.library.address(PROFILE), len(loops_of(b.module)))
    clock = ctypes.CFUNCTYPE(ctypes.c_int64)(kernel.library.address(CLOCK))
    out = [np.empty(a.shape, a.dtype) for a in kernel.arguments[len(inputs) :]] or None
    without, within = (bare.bound(*inputs, out=out, threads=1) for bare in (b.kernel, kernel))
    within()
    plain, profiled, spent, peaks = [], [], [], []
    began, ticked = time.perf_counter(), clock()
    for _ in range(calls):
        without()  # the probe before may have left the caches cold
        plain.append(_seconds(without))
        profile[:] = 0
        profiled.append(_seconds(within))
        spent.append(profile.copy())
        peaks += [probe(profiled[-1])] if probe is not None else []
    time.sleep(max(0.0, began + CALIBRATION - time.perf_counter()))
    tick = (time.perf_counter() - began) / max(1, clock() - ticked)
    middle = spent[sorted(range(calls), key=profiled.__getitem__)[(calls - 1) // 2]]
    loops = {number: Spent(float(middle[number, 0]) * tick, int(middle[number, 1])) for number in sorted(chosen)}
    return Profile(median(plain), median(profiled), loops, median(peaks) if peaks else None)


def _seconds(call: Callable[[], None]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def choose(loop_nests: Sequence[LoopNest], budget: int) -> set[int]:
    """The loops to measure: level by level, as long as their runs add up to no more than the budget."""
    chosen: set[int] = set()
    level = [(nest, 1) for nest in loop_nests]
    while level:
        runs = sum(count for _, count in level)
        if chosen and runs > budget:
            level = _affordable(level, budget)
            runs = sum(count for _, count in level)
        budget -= runs
        chosen |= {nest.number for nest, _ in level}
        level = [(inner, count * nest.trips) for nest, count in level if nest.trips is not None for inner in nest.inner]
    return chosen


def _affordable(level: Sequence[tuple[LoopNest, int]], budget: int) -> list[tuple[LoopNest, int]]:
    """The loops of a level that run least, as many as the budget allows."""
    kept, left = list[tuple[LoopNest, int]](), budget
    for nest, count in sorted(level, key=lambda pair: pair[1]):
        if count <= left:
            kept.append((nest, count))
            left -= count
    return kept
