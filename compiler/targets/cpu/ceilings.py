"""Probes of the machine's current rates: a register-only FMA loop for arithmetic, a non-temporal triad for bandwidth.

A plain store first reads the cache line that it overwrites, so that a plain triad moves four arrays and counts three:
kernels with non-temporal stores would exceed its rate.

The clock and the free bandwidth of a shared machine change within seconds, so each measurement has a probe of equal
length beside it. A probe whose threads were preempted is repeated.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from threading import Barrier
from time import perf_counter
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from compiler.targets.cpu.compile import Library, compile_llvm
from compiler.targets.cpu.presence import Disturbance, Sample, sample_undisturbed, time_calls
from compiler.types.machines import Machine, host

MIN_SECONDS, MAX_SECONDS = 2e-3, 0.25
"""The limits of a probe in seconds: a shorter one under-reads the ceiling, a longer one is no more precise."""
STREAM_BYTES = 64 << 20
"""The bytes of each of the triad's three arrays, all threads together: larger than the caches."""


@dataclass(frozen=True)
class ProbeReading:
    """The result of a probe: the rate in floating-point operations or bytes per second, and its disturbance."""

    rate: float
    disturbance: Disturbance


class Ceiling(Protocol):
    """A probe of the machine's rate for one kind of work; `what` is a phrase that names its loop."""

    what: str

    def probe(self, seconds: float) -> ProbeReading:
        """Measure operations or bytes per second over about `seconds`."""


def plausible_share(share: float | None) -> float | None:
    """Return the reached share of a ceiling; None for None, and above 100% (rounded to two digits): then the probe was
    wrong."""
    return None if share is None or round(share, 2) > 1 else share


class _ProbeLoop:
    """A timed loop on each of several threads, which start together after a barrier. `units`: operations or bytes of a
    round of all threads; `speed`: a guess of the rounds a second, which each probe replaces by its own."""

    def __init__(self, threads: int, units: int, speed: float) -> None:
        self._threads, self._units = threads, units
        self._speed = speed  # rounds per second, corrected by every probe
        self._executor = ThreadPoolExecutor(threads) if threads > 1 else None

    def run(self, thread: int, rounds: int) -> None:
        """Run `rounds` rounds of the subclass's loop as thread number `thread`, from 0, with the GIL released."""
        raise NotImplementedError

    def probe(self, seconds: float) -> ProbeReading:
        """Measure operations or bytes per second over about `seconds`, from MIN_SECONDS to MAX_SECONDS."""
        length = min(max(seconds, MIN_SECONDS), MAX_SECONDS)
        result = sample_undisturbed(lambda repeat: self._sample(max(MIN_SECONDS, length / 2**repeat)))
        self._speed = 1 / result.sample.present
        return ProbeReading(self._units * self._speed, result.disturbance)

    def _sample(self, seconds: float) -> Sample:
        rounds = max(1, round(self._speed * seconds))
        if self._executor is None:
            return replace(time_calls(lambda: self.run(0, rounds)), calls=rounds)
        barrier = Barrier(self._threads)

        def time_thread(thread: int) -> tuple[float, Sample]:
            barrier.wait()
            start = perf_counter()
            return start, time_calls(lambda: self.run(thread, rounds))

        return replace(_merge_thread_samples(list(self._executor.map(time_thread, range(self._threads)))), calls=rounds)


def _merge_thread_samples(samples: Sequence[tuple[float, Sample]]) -> Sample:
    """Merge the samples of threads that ran together, each with its start time: a late start counts as time away from
    the processor."""
    earliest, latest = min(start for start, _ in samples), max(start + sample.seconds for start, sample in samples)
    away = max(start - earliest + sample.away for start, sample in samples)
    return Sample(
        latest - earliest,
        away,
        max(sample.switches for _, sample in samples),
        max(sample.stolen for _, sample in samples),
    )


class Arithmetic(_ProbeLoop):
    """Floating-point operations per second, of all threads together, of a loop of float32 FMA in registers."""

    what = "FMA in registers"

    def __init__(self, threads: int) -> None:
        machine = host()
        super().__init__(threads, 2 * _accumulators(machine) * _lanes(machine) * threads, 1e8)
        self._loop = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)(library().address("arithmetic"))
        self._sums = np.empty((threads, 16), np.float32)

    def run(self, thread: int, rounds: int) -> None:
        """Run rounds on a thread: a round is one multiply-add of each accumulator."""
        self._loop(rounds, self._sums[thread].ctypes.data)


class Bandwidth(_ProbeLoop):
    """Bytes per second of a[i] = b[i] + s * c[i] over arrays larger than the caches, divided among the threads. Stores
    are non-temporal, in whole aligned vectors, with a fence at the end of each pass. Source: STREAM (McCalpin)."""

    what = "non-temporal triad"

    def __init__(self, threads: int) -> None:
        lanes = _lanes(host())
        self._elements = STREAM_BYTES // 4 // threads // lanes * lanes
        self._arrays = _aligned(4 * lanes, (threads, 3, self._elements))
        super().__init__(threads, self._arrays.nbytes, 100.0)
        self._triad = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * 3)(library().address("triad"))

    def run(self, thread: int, rounds: int) -> None:
        """Run rounds on a thread: a round is one pass over the arrays."""
        addresses = [array.ctypes.data for array in self._arrays[thread]]
        for _ in range(rounds):
            self._triad(self._elements, *addresses)


def _aligned(size: int, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Return float32 ones that begin at a multiple of `size` bytes."""
    flat = np.ones(prod(shape) + size // 4, np.float32)
    start = -flat.ctypes.data % size // 4
    return flat[start : start + prod(shape)].reshape(shape)


def _lanes(machine: Machine) -> int:
    return machine.vector_bits // 32


def _accumulators(machine: Machine) -> int:
    """Return the number of registers for accumulators, enough to hide the latency of FMA: three quarters of the
    registers, 24 of 32 or 12 of 16."""
    return 3 * machine.registers // 4


@cache
def library() -> Library:
    """Compile the loops `arithmetic` and `triad` for the host, once in a process."""
    machine = host()
    return compile_llvm(llvm_text(_lanes(machine), _accumulators(machine)), machine)


def llvm_text(lanes: int, accumulators: int) -> str:
    """Write the probes as LLVM IR: a loop of FMAs on `accumulators` vectors, at least one, of `lanes` float32, and a
    non-temporal triad on such vectors. The accumulators start with different values, or LLVM would merge them; they
    converge to 1 and stay finite."""
    vector = f"<{lanes} x float>"
    return "\n".join(
        [
            f"declare {vector} @llvm.fma.v{lanes}f32({vector}, {vector}, {vector})",
            *_arithmetic(vector, lanes, accumulators),
            *_triad(vector, lanes),
            "!0 = !{i32 1}",
            "",
        ]
    )


def _arithmetic(vector: str, lanes: int, accumulators: int) -> list[str]:
    numbers = range(accumulators)
    half = f"{vector} splat (float 0.5)"
    start = [f"{vector} splat (float {float(i)})".removeprefix(f"{vector} ") for i in numbers]
    fma = f"call {vector} @llvm.fma.v{lanes}f32"
    sums = [f"  %s{i} = fadd {vector} %s{i - 1}, %n{i}" for i in numbers if i]
    return [
        "define void @arithmetic(i64 %count, ptr %out) {",
        "entry:",
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]",
        *(f"  %a{i} = phi {vector} [ {start[i]}, %entry ], [ %n{i}, %loop ]" for i in numbers),
        *(f"  %n{i} = {fma}({vector} %a{i}, {half}, {half})" for i in numbers),
        "  %next = add nuw nsw i64 %i, 1",
        "  %more = icmp slt i64 %next, %count",
        "  br i1 %more, label %loop, label %done",
        "done:",
        f"  %s0 = fadd {vector} %n0, zeroinitializer",
        *sums,
        f"  store {vector} %s{accumulators - 1}, ptr %out, align 4",
        "  ret void",
        "}",
    ]


def _triad(vector: str, lanes: int) -> list[str]:
    def at(name: str) -> str:
        return f"  %p{name} = getelementptr inbounds float, ptr %{name}, i64 %i"

    size = 4 * lanes
    return [
        "define void @triad(i64 %count, ptr noalias %a, ptr noalias %b, ptr noalias %c) {",
        "entry:",
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]",
        *(at(name) for name in "abc"),
        f"  %x = load {vector}, ptr %pb, align {size}",
        f"  %y = load {vector}, ptr %pc, align {size}",
        f"  %z = call {vector} @llvm.fma.v{lanes}f32({vector} %y, {vector} splat (float 0.5), {vector} %x)",
        f"  store {vector} %z, ptr %pa, align {size}, !nontemporal !0",
        f"  %next = add nuw nsw i64 %i, {lanes}",
        "  %more = icmp slt i64 %next, %count",
        "  br i1 %more, label %loop, label %done",
        "done:",
        "  fence seq_cst",
        "  ret void",
        "}",
    ]
