"""Two whole programs run in turns, timed call by call."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import Protocol

from compiler.autotune.measure.network import random_call
from compiler.database.outcome import MEASURED, Outcome
from compiler.dialects.numbers import Array
from compiler.lowering.low_to_llvm.marks import CLOCK, PROFILE, profile_at
from compiler.targets.cpu import Kernel
from compiler.targets.cpu.presence import MIN_PRESENT_SECONDS, time_calls

LEAST, MOST = 7, 50
"""The minimum and the maximum number of rounds."""


@dataclass(frozen=True)
class RunTimes:
    """Seconds of one run of a whole program and of its calls in order; `is_clean` if its thread was not preempted."""

    whole: float
    calls: Array
    is_clean: bool = True


class Runnable(Protocol):
    """A whole program that can be timed."""

    def run(self) -> RunTimes:
        """Run the program once, and return its times."""


class ProfiledProgram:
    """The kernel of a whole program on random inputs, built with a profile, which counts the ticks of each call."""

    def __init__(self, kernel: Kernel, calls: int) -> None:
        self._call, self._threads = random_call(kernel)[0], kernel.threads or 1
        self._profile = profile_at(kernel.library.address(PROFILE), calls)
        self._clock = ctypes.CFUNCTYPE(ctypes.c_int64)(kernel.library.address(CLOCK))
        self._began, self._ticked = time.perf_counter(), self._clock()

    def run(self) -> RunTimes:
        """Run the kernel once. The seconds of calls are wall-clock time: a preempted thread lengthens one call only."""
        self._profile[:] = 0
        sample = time_calls(self._call, 1, self._threads)
        tick = (time.perf_counter() - self._began) / max(1, self._clock() - self._ticked)
        return RunTimes(sample.present, self._profile[1:, 0] * tick, sample.is_clean)


@dataclass(frozen=True)
class TurnTimes:
    """Seconds of two programs, default and tuned, or of a group's calls in them, run in turns: a pair each round."""

    default: tuple[float, ...]
    tuned: tuple[float, ...]

    @cached_property
    def ratio(self) -> float:
        """The time `tuned` over `default`: the median over the rounds, since a slow moment slows both."""
        return self.outcome(self.tuned).cost

    @property
    def seconds(self) -> tuple[float, float]:
        """The median time of `default`, and for `tuned` that time multiplied by the ratio."""
        first = median(self.default)
        return first, first * self.ratio

    def outcome(self, seconds: tuple[float, ...]) -> Outcome:
        """Return the outcome with the times `seconds`, `default` or `tuned`; its cost is relative to `default`, whose
        cost is 1."""
        return Outcome(MEASURED, seconds, tuple(1 / beside for beside in self.default))


@dataclass(frozen=True)
class Turns:
    """The runs of two programs, default and tuned, that took turns: a pair each round."""

    default: Sequence[RunTimes]
    tuned: Sequence[RunTimes]

    @property
    def whole(self) -> TurnTimes:
        """The times of the whole programs."""
        default, tuned = (
            tuple(max(run.whole, MIN_PRESENT_SECONDS) for run in runs) for runs in (self.default, self.tuned)
        )
        return TurnTimes(default, tuned)

    def of(self, calls: Sequence[int], tuned: Sequence[int] | None = None) -> TurnTimes:
        """The summed times of the calls at positions `calls`, in the second program at `tuned` unless that is None."""
        return TurnTimes(_together(self.default, calls), _together(self.tuned, calls if tuned is None else tuned))


def _together(runs: Sequence[RunTimes], calls: Sequence[int]) -> tuple[float, ...]:
    """The summed seconds of some calls, run by run."""
    return tuple(max(float(run.calls[list(calls)].sum()), MIN_PRESENT_SECONDS) for run in runs)


def run_in_turns(default: Runnable, tuned: Runnable, seconds: float) -> Turns:
    """Run two programs in turns, A B B A A B ..., after one run of each, for `seconds`, between LEAST and MOST rounds.
    Rounds with a disturbed run are dropped if at least LEAST rounds remain."""
    for program in (default, tuned):
        program.run()
    begun, rounds = time.perf_counter(), list[tuple[RunTimes, RunTimes]]()
    while len(rounds) < MOST and (len(rounds) < LEAST or time.perf_counter() - begun < seconds):
        if len(rounds) % 2:
            second = tuned.run()
            rounds.append((default.run(), second))
        else:
            rounds.append((default.run(), tuned.run()))
    clean = [pair for pair in rounds if all(run.is_clean for run in pair)]
    used_rounds = clean if len(clean) >= LEAST else rounds
    return Turns([first for first, _ in used_rounds], [second for _, second in used_rounds])
