"""What the machine can do at that moment: a register-only FMA loop for arithmetic, a non-temporal triad for bytes.

The triad stores past the caches. A plain store reads the line that it overwrites first, so that a plain triad moves
four arrays and counts three: results that go past the caches would stand above it.

A shared machine's clock and memory move within seconds, so a probe runs beside each measurement, for as long. A probe
whose threads were off their processors is repeated.
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
from compiler.targets.cpu.presence import Disturbance, Taken, timed, undisturbed
from compiler.types.machines import Machine, host

SHORTEST, LONGEST = 2e-3, 0.25
"""Seconds of a probe: a shorter one under-reads the ceiling, a longer one tells nothing more."""
STREAM_BYTES = 64 << 20
"""Bytes of each of the triad's three arrays, for all threads together: more than the caches hold."""


@dataclass(frozen=True)
class Reading:
    """What a probe found: units per second, and how it was disturbed."""

    rate: float
    disturbance: Disturbance


class Ceiling(Protocol):
    """A probe of the machine: units per second, measured over about that many seconds; `what` names the unit."""

    what: str

    def probe(self, seconds: float) -> Reading:
        """Units per second, now."""


def credible(share: float | None) -> float | None:
    """The share of a ceiling that was reached; None for one that rounds to more than 100%: its probe was broken."""
    return None if share is None or round(share, 2) > 1 else share


class _Loop:
    """A loop on each of the threads, with as many rounds as last some seconds; `units` are counted over one round of
    all threads.

    With several threads each is woken before the time begins, and waits for the others.
    """

    def __init__(self, threads: int, units: int, speed: float) -> None:
        self._threads, self._units = threads, units
        self._speed = speed  # rounds per second, corrected by every probe
        self._executor = ThreadPoolExecutor(threads) if threads > 1 else None

    def run(self, thread: int, rounds: int) -> None:
        """So many rounds on a thread; it releases the interpreter lock meanwhile."""
        raise NotImplementedError

    def probe(self, seconds: float) -> Reading:
        """Units per second, now."""
        length = min(max(seconds, SHORTEST), LONGEST)
        sampled = undisturbed(lambda repeat: self._taken(max(SHORTEST, length / 2**repeat)))
        self._speed = 1 / sampled.taken.present
        return Reading(self._units * self._speed, sampled.disturbance)

    def _taken(self, seconds: float) -> Taken:
        rounds = max(1, round(self._speed * seconds))
        if self._executor is None:
            return replace(timed(lambda: self.run(0, rounds)), calls=rounds)
        barrier = Barrier(self._threads)

        def one(thread: int) -> tuple[float, Taken]:
            barrier.wait()
            start = perf_counter()
            return start, timed(lambda: self.run(thread, rounds))

        return replace(_together(list(self._executor.map(one, range(self._threads)))), calls=rounds)


def _together(samples: Sequence[tuple[float, Taken]]) -> Taken:
    """What threads took that worked at once, each with the moment at which it began: one that began later than the
    first had to wait for its processor until then."""
    first, last = min(start for start, _ in samples), max(start + taken.seconds for start, taken in samples)
    away = max(start - first + taken.away for start, taken in samples)
    return Taken(
        last - first, away, max(taken.switches for _, taken in samples), max(taken.stolen for _, taken in samples)
    )


class Arithmetic(_Loop):
    """Floating-point operations per second of a loop that does nothing but float32 FMA, on each of the threads."""

    what = "FMA in registers"

    def __init__(self, threads: int) -> None:
        machine = host()
        super().__init__(threads, 2 * _accumulators(machine) * _lanes(machine) * threads, 1e8)
        self._loop = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)(library().address("arithmetic"))
        self._sums = np.empty((threads, 16), np.float32)

    def run(self, thread: int, rounds: int) -> None:
        """See `_Loop`; a round is a multiply-add of each accumulator."""
        self._loop(rounds, self._sums[thread].ctypes.data)


class Bandwidth(_Loop):
    """Bytes per second of a[i] = b[i] + s * c[i] over arrays beyond the caches, cut among the threads.

    Stores are non-temporal, in whole aligned vectors, with a fence at the end of each pass. Source: STREAM (McCalpin).
    """

    what = "non-temporal triad"

    def __init__(self, threads: int) -> None:
        lanes = _lanes(host())
        self._elements = STREAM_BYTES // 4 // threads // lanes * lanes
        self._arrays = _aligned(4 * lanes, (threads, 3, self._elements))
        super().__init__(threads, self._arrays.nbytes, 100.0)
        self._triad = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * 3)(library().address("triad"))

    def run(self, thread: int, rounds: int) -> None:
        """See `_Loop`; a round is a pass over the arrays."""
        addresses = [array.ctypes.data for array in self._arrays[thread]]
        for _ in range(rounds):
            self._triad(self._elements, *addresses)


def _aligned(size: int, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Ones, float32, that begin at a multiple of that many bytes."""
    flat = np.ones(prod(shape) + size // 4, np.float32)
    start = -flat.ctypes.data % size // 4
    return flat[start : start + prod(shape)].reshape(shape)


def _lanes(machine: Machine) -> int:
    return machine.vector_bits // 32


def _accumulators(machine: Machine) -> int:
    """As many as hide the latency of FMA and leave registers for the two factors: 24 of 32, or 12 of 16."""
    return 3 * machine.registers // 4


@cache
def library() -> Library:
    """The compiled loops, `arithmetic` and `triad`."""
    machine = host()
    return compile_llvm(llvm_text(_lanes(machine), _accumulators(machine)), machine)


def llvm_text(lanes: int, accumulators: int) -> str:
    """The two loops as LLVM IR, for vectors of that many float32.

    Accumulators start apart, or LLVM would keep one for all; they converge to 1 and stay finite.
    """
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
