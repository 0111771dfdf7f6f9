"""`Pipeline`: a multiprocessor that executes the code of its resident warps in order.

The warps of a scheduler execute an instruction one after another (loose round robin), then the next one: it begins when
the units are free and the first warp's operands are there. What a warp waits for is hidden by the others exactly where
they have as many instructions between a load and its use as the load takes: Little's law, for each stretch of code.

Source: Hong and Kim, An analytical model for a GPU architecture (ISCA 2009); Huang et al., GPUMech (MICRO 2014).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from math import ceil

import numpy as np

from compiler.targets.timing.code import (
    BARRIER,
    CONTROL,
    COPY,
    DOUBLE,
    FLOAT,
    GLOBAL,
    INTEGER,
    MEMORY,
    SHARED,
    SPECIAL,
    TENSOR,
    WAIT,
    Code,
    Repeat,
    WarpInstruction,
    weighted,
)
from compiler.types.machines import Gpu

QUEUE = 32
"""Cycles that accesses may wait for the load/store unit while their warps go on."""
SETTLED = 3
"""The iterations of a loop that are executed; the others take as long as the last one of these."""


@dataclass
class Pipeline:
    """Executes code for `warps` resident warps of a multiprocessor. latency: cycles of global loads that L1 lacks.
    l2_bytes: bytes that a multiprocessor gets from L2 in a cycle. now: the time of the next instruction. free: the
    time at which each unit is free. ready: the time at which each register has its value. most_in_flight: the most
    bytes of loads in flight at a time. Times are cycles."""

    gpu: Gpu
    warps: float
    latency: float
    l2_bytes: float
    now: float = 0.0
    free: dict[str, float] = field(default_factory=dict)
    """The cycle from which each unit is free: the units of a scheduler, the load/store unit and the memory of the
    multiprocessor."""
    ready: dict[Hashable, float] = field(default_factory=dict)
    most_in_flight: float = 0.0
    """The most bytes of loads that the multiprocessor waits for."""
    _in_flight: list[tuple[float, float]] = field(default_factory=list)

    @property
    def end(self) -> float:
        """The cycle in which the last result is available and the last store is acknowledged."""
        return max(self.now, *self.free.values(), *self.ready.values(), 0.0)

    @property
    def schedulers(self) -> float:
        """The number of schedulers that have warps."""
        return min(self.gpu.schedulers, self.warps)

    @property
    def each(self) -> float:
        """The number of warps of a scheduler, on average."""
        return self.warps / self.schedulers

    def run(self, code: Sequence[Code]) -> None:
        """Execute code, which advances the times of the pipeline."""
        for item in code:
            if isinstance(item, Repeat):
                self._repeat(item)
            else:
                self.execute(item)

    def _repeat(self, loop: Repeat) -> None:
        """Execute at most SETTLED iterations of a loop, and advance the times by the last one's time for each other
        iteration; registers that were ready before the last one stay."""
        before = self.now
        trips = ceil(loop.trips)
        for _ in range(min(trips, SETTLED)):
            before = self.now
            self.run(loop.body)
        skipped = max(0.0, loop.trips - SETTLED) * (self.now - before)
        if skipped:
            self.now += skipped
            self.free = {unit: time + skipped for unit, time in self.free.items()}
            self.ready = {key: time + skipped for key, time in self.ready.items() if time > before}

    def execute(self, instruction: WarpInstruction) -> None:
        """Execute an instruction for the share of the warps that its mask selects: advance the time, occupy its unit,
        and record when its result is ready; a copy of a register takes no time."""
        kind = instruction.kind
        operands = max((self.ready.get(source, 0.0) for source in instruction.sources), default=0.0)
        if kind == COPY:
            self.ready[instruction.target] = operands
            return
        share = 1.0 if instruction.warps is None else float(np.mean(instruction.warps))
        warps, each = self.warps * share, self.each * share
        start = max(self.now, operands, self.free.get(kind, 0.0) if kind not in MEMORY else 0.0)
        self.now = start + max(1.0, each)
        if kind in MEMORY:
            finished = self._access(instruction, start, warps)
        else:
            self.free[kind] = start + each * self.interval(instruction)
            finished = start + self.delay(kind)
            if kind in (BARRIER, CONTROL):
                self.now = max(self.now, finished)
        if kind == GLOBAL and not instruction.is_load:
            self.free["stores"] = max(finished, self.free.get("stores", 0.0))
        if instruction.target is not None:
            former = self.ready.get(instruction.target, 0.0) if instruction.target == ("copies",) else 0.0
            self.ready[instruction.target] = max(former, finished)

    def _access(self, instruction: WarpInstruction, start: float, warps: float) -> float:
        """Occupy the load/store unit and the path to L2 by the accesses of `warps` warps from the cycle `start` on;
        return the cycle in which the last warp has its data."""
        begun = max(start, self.free.get("load/store", 0.0) - QUEUE)
        self.now = max(self.now, begun + 1.0)
        served = max(begun, self.free.get("load/store", 0.0)) + warps * instruction.rounds
        self.free["load/store"] = served
        lag = max(0.0, served - begun - max(1.0, warps / self.schedulers))
        if instruction.kind == SHARED:
            return begun + lag + self.gpu.shared_latency
        if instruction.kind != GLOBAL:
            return begun + lag + self.gpu.l1_latency
        if not instruction.bytes:
            return begun + lag + self.gpu.l1_latency
        moved = warps * instruction.bytes / self.l2_bytes
        arrived = max(begun, self.free.get("memory", 0.0)) + moved
        self.free["memory"] = arrived
        part = min(1.0, instruction.bytes / (32.0 * max(1.0, 4 * instruction.rounds)))
        wait = part * self.latency + (1 - part) * self.gpu.l1_latency
        finished = begun + max(lag, arrived - begun - max(1.0, warps / self.schedulers)) + wait
        self._count(begun, finished, warps * instruction.bytes if instruction.is_load else 0.0)
        return finished

    def _count(self, begun: float, finished: float, bytes: float) -> None:
        """Add a load of `bytes`, from cycle `begun` to `finished`, to those in flight, and update `most_in_flight`."""
        self._in_flight = [(end, size) for end, size in self._in_flight if end > begun]
        self._in_flight.append((finished, bytes))
        self.most_in_flight = max(self.most_in_flight, sum(size for _, size in self._in_flight))

    def interval(self, instruction: WarpInstruction) -> float:
        """Return the cycles for which a warp's instruction occupies a unit of its scheduler; 1 for a kind without
        arithmetic; of a product of fragments by its multiply-adds."""
        gpu, lanes = self.gpu, self.gpu.warp * self.gpu.schedulers
        match instruction.kind:
            case "float":
                return lanes / gpu.fmas
            case "integer":
                return lanes / gpu.integers
            case "double":
                return lanes / gpu.doubles
            case "special":
                return lanes / gpu.specials
            case "tensor":
                return instruction.rounds * gpu.schedulers / gpu.tensor_fmas
        return 1.0

    def delay(self, kind: str) -> float:
        """Return the cycles from the issue of an instruction of `kind` until its result can be read."""
        gpu = self.gpu
        delays = {SPECIAL: 4 * gpu.alu_latency, TENSOR: 8 * gpu.alu_latency, DOUBLE: 2 * gpu.alu_latency}
        delays |= {BARRIER: gpu.barrier_latency, CONTROL: gpu.branch_latency, WAIT: 1}
        return delays.get(kind, gpu.alu_latency)


@dataclass(frozen=True)
class Totals:
    """The use of the units by all executions of a kernel's code, for one warp on average: cycles of a scheduler (issue;
    arithmetic, of the busiest unit) or of the multiprocessor (load_store), bytes from and to L2, and counts, the
    executed instructions by kind."""

    issue: float
    arithmetic: float
    load_store: float
    bytes: float
    counts: dict[str, float]


def totals(code: Sequence[Code], gpu: Gpu) -> Totals:
    """Return the sums over all executions of the instructions of `code`, without copies of registers; the sums are for
    one warp."""
    pipeline = Pipeline(gpu, 1, 0, 1)
    counts: dict[str, float] = {}
    busy: dict[str, float] = {}
    rounds = moved = 0.0
    for instruction, times in weighted(code):
        if instruction.kind == COPY:
            continue
        executed = times * (1.0 if instruction.warps is None else float(np.mean(instruction.warps)))
        counts[instruction.kind] = counts.get(instruction.kind, 0.0) + executed
        if instruction.kind in (INTEGER, FLOAT, DOUBLE, SPECIAL, TENSOR):
            cycles = executed * pipeline.interval(instruction)
            busy[instruction.kind] = busy.get(instruction.kind, 0.0) + cycles
        if instruction.kind in MEMORY:
            rounds += executed * instruction.rounds
            moved += executed * instruction.bytes
    return Totals(sum(counts.values()), max(busy.values(), default=0.0), rounds, moved, counts)
