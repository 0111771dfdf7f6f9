"""Seconds by loop: a build with clock reads around the outer loops, run on random inputs."""

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

MAX_OVERHEAD = 0.02
"""The largest share of a call's time that clock reads may take."""
CLOCK_SECONDS = 50e-9
"""The estimated seconds of one measurement: two clock reads and an addition."""
CALIBRATION_SECONDS = 0.05
"""The minimum seconds over which the clock's ticks are calibrated by the system's clock."""


PeakProbe = Callable[[float], float]
"""A function that measures the machine's peak in floating-point operations per second, over some seconds."""


@dataclass(frozen=True)
class LoopTime:
    """The seconds that all runs of a loop take in one call, and the number of runs."""

    seconds: float
    runs: int


@dataclass(frozen=True)
class Profile:
    """Median seconds of a call, `plain` without clock reads and `profiled` with them, and the time of loops by number.

    peak: median operations per second of the probes beside the calls; None without a probe.
    """

    plain: float
    profiled: float
    loops: dict[int, LoopTime]
    peak: float | None = None


def profile(
    b: Builds, loop_nests: Sequence[LoopNest], inputs: Sequence[Array], calls: int, probe: PeakProbe | None = None
) -> Profile:
    """Time `calls` calls, at least one, on one thread without and with clock reads, each pair with a probe, if any,
    beside it, and return the medians. The times of loops are those in the call of median duration. A loop is measured
    if all loops around it are, and if the clock reads of all measured loops cost at most MAX_OVERHEAD of a call; the
    outermost loops are always measured."""
    expected = b.kernel.time(*inputs, repeats=3, threads=1).minimum
    chosen = choose_loops(loop_nests, int(expected * MAX_OVERHEAD / CLOCK_SECONDS))
    kernel = b.with_timed_loops(chosen)
    profile = profile_at(kernel.library.address(PROFILE), len(loops_of(b.module)))
    clock = ctypes.CFUNCTYPE(ctypes.c_int64)(kernel.library.address(CLOCK))
    out = [np.empty(a.shape, a.dtype) for a in kernel.arguments[len(inputs) :]] or None
    without, within = (bare.bound(*inputs, out=out, threads=1) for bare in (b.kernel, kernel))
    within()
    plain, profiled, profiles, peaks = [], [], [], []
    start_seconds, start_ticks = time.perf_counter(), clock()
    for _ in range(calls):
        without()  # the former probe may have left the caches cold
        plain.append(_seconds(without))
        profile[:] = 0
        profiled.append(_seconds(within))
        profiles.append(profile.copy())
        peaks += [probe(profiled[-1])] if probe is not None else []
    time.sleep(max(0.0, start_seconds + CALIBRATION_SECONDS - time.perf_counter()))
    tick = (time.perf_counter() - start_seconds) / max(1, clock() - start_ticks)
    median_profile = profiles[sorted(range(calls), key=profiled.__getitem__)[(calls - 1) // 2]]
    loops = {
        number: LoopTime(float(median_profile[number, 0]) * tick, int(median_profile[number, 1]))
        for number in sorted(chosen)
    }
    return Profile(median(plain), median(profiled), loops, median(peaks) if peaks else None)


def _seconds(call: Callable[[], None]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def choose_loops(loop_nests: Sequence[LoopNest], budget: int) -> set[int]:
    """Choose the loops to measure and return their numbers: level by level, and by fewest runs within a level, as long
    as the sum of their runs in a call is at most `budget`. The outermost loops are always chosen, those inside a loop
    that is not chosen, or of unknown trip count, never."""
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
    """Return the pairs of a loop and its runs with the fewest runs, as many as have at most `budget` runs together."""
    affordable, remaining = list[tuple[LoopNest, int]](), budget
    for nest, count in sorted(level, key=lambda pair: pair[1]):
        if count <= remaining:
            affordable.append((nest, count))
            remaining -= count
    return affordable
