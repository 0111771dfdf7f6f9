"""`kernel_time`: the estimated time of a launch, and which unit it is bound by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from compiler.targets.timing.code import Code, length
from compiler.targets.timing.pipeline import Pipeline, totals
from compiler.types.machines import Gpu

LAUNCH = 3e-6
"""The fixed cost of a launch, in seconds."""
APART = 0.25
"""The part of the shorter of two times that blocks do not overlap: waits of one block, and work of all."""


@dataclass(frozen=True)
class KernelWork:
    """The work of a launch. blocks: of the grid. threads: of a block. registers: of a thread. shared_bytes: of a
    block. argument_bytes: of all arrays that the kernel accesses. code: of a warp. last: the additional code of a
    warp in the last blocks to arrive, `last_blocks` in number; empty without arrivals. All sizes but `blocks`,
    `threads` and `registers` are in bytes."""

    name: str
    blocks: int
    threads: int
    registers: int
    shared_bytes: int
    argument_bytes: int
    code: Sequence[Code]
    last: Sequence[Code] = ()
    last_blocks: int = 0


@dataclass(frozen=True)
class KernelTime:
    """The estimated time of a launch: `seconds` with the launch itself, and in cycles of the busiest multiprocessor

    issue       schedulers, of which a warp takes one, that begin an instruction in a cycle
    arithmetic  the busiest unit: float32, float64, integers, functions, fragments
    load_store  the load/store unit: rounds of shared memory with bank conflicts, sectors of L1
    traffic     bytes from and to L2 or memory, at a multiprocessor's share of the bandwidth
    latency     the rest of the time: waits for loads, results and barriers that no other warp fills
    fetch       the first fetch of the code

    resident_warps, bytes_in_flight: the most of a multiprocessor at a time. waves: in which the busiest one runs its
    blocks.
    """

    name: str
    seconds: float
    cycles: float
    issue: float
    arithmetic: float
    load_store: float
    traffic: float
    latency: float
    fetch: float
    resident_warps: int
    waves: int
    bytes_in_flight: float

    @property
    def bound(self) -> str:
        """The name of the largest term."""
        terms = ("issue", "arithmetic", "load_store", "traffic", "latency", "fetch")
        return max(terms, key=lambda term: float(getattr(self, term)))

    def __str__(self) -> str:
        terms = ", ".join(f"{f.name} {getattr(self, f.name):.0f}" for f in fields(self)[3:9])
        return (
            f"{self.name}: {self.seconds * 1e6:.3g} us, {self.cycles:.0f} cycles ({terms}), bound by {self.bound}; "
            f"{self.resident_warps} warps in {self.waves} waves, {self.bytes_in_flight:.0f} bytes in flight"
        )


def resident_blocks(work: KernelWork, gpu: Gpu) -> int:
    """Return the number of blocks that a multiprocessor runs at once, at least 1, even if one exceeds its limits.
    Source: CUDA's occupancy calculator."""
    warps = -(-work.threads // gpu.warp)
    of_registers = gpu.registers // max(1, work.registers * warps * gpu.warp)
    of_shared = gpu.shared_bytes // max(1, work.shared_bytes)
    return max(1, min(gpu.blocks, gpu.threads // (warps * gpu.warp), of_registers, of_shared))


@dataclass(frozen=True)
class _Block:
    """The cycles of a block that is alone on a multiprocessor, and the cycles in which each unit is busy meanwhile."""

    alone: float
    issue: float
    arithmetic: float
    load_store: float
    traffic: float

    @property
    def busy(self) -> float:
        """The cycles of the busiest unit."""
        return max(self.issue, self.arithmetic, self.load_store, self.traffic)

    def together(self, blocks: int) -> float:
        """Return the cycles of `blocks`, at least 1, at once: the longer of one block alone and the busiest unit's work
        for all, plus the share APART of the shorter, times (blocks - 1) / blocks, for waits that are not filled."""
        busy = blocks * self.busy
        return max(self.alone, busy) + APART * min(self.alone, busy) * (blocks - 1) / blocks


def kernel_time(work: KernelWork, gpu: Gpu) -> KernelTime:
    """Estimate the time of a launch on a GPU.

    The busiest multiprocessor runs its blocks in waves of `resident_blocks`; a `Pipeline` executes the code of one
    block, whose waits other blocks fill. Arrays that fit L2 together are read from there. What the blocks that arrive
    last execute follows, as a grid of these.
    """
    time = _grid_time(work, gpu)
    if not work.last:
        return time
    last = _grid_time(replace(work, code=work.last, blocks=work.last_blocks), gpu)
    names = ("cycles", "issue", "arithmetic", "load_store", "traffic", "latency", "fetch")
    sums = {name: getattr(time, name) + getattr(last, name) for name in names}
    seconds = time.seconds + last.seconds - LAUNCH
    return replace(time, seconds=seconds, bytes_in_flight=max(time.bytes_in_flight, last.bytes_in_flight), **sums)


def _grid_time(work: KernelWork, gpu: Gpu) -> KernelTime:
    """Estimate the time of the blocks of a launch that execute `work.code`."""
    of_busiest = -(-work.blocks // gpu.multiprocessors)
    resident = min(resident_blocks(work, gpu), of_busiest)
    waves, rest = divmod(of_busiest, resident)
    warps = -(-work.threads // gpu.warp)
    active = min(gpu.multiprocessors, work.blocks)
    is_in_l2 = work.argument_bytes <= gpu.l2_bytes
    latency = gpu.l2_latency if is_in_l2 else gpu.memory_latency
    whole = gpu.l2_bandwidth if is_in_l2 else gpu.bandwidth
    bandwidth = min(gpu.port_bytes, whole / gpu.clock / active)
    each = totals(work.code, gpu)
    schedulers = min(gpu.schedulers, warps * resident)
    pipeline = Pipeline(gpu, warps, latency, bandwidth)
    pipeline.run(work.code)
    block = _Block(
        pipeline.end,
        each.issue * warps / schedulers,
        each.arithmetic * warps / schedulers,
        each.load_store * warps,
        each.bytes * warps / bandwidth,
    )
    cycles = waves * block.together(resident) + (block.together(rest) if rest else 0.0)
    fetch = length(work.code) * gpu.fetch_cycles
    cycles += fetch
    return KernelTime(
        name=work.name,
        seconds=LAUNCH + cycles / gpu.clock,
        cycles=cycles,
        issue=of_busiest * block.issue,
        arithmetic=of_busiest * block.arithmetic,
        load_store=of_busiest * block.load_store,
        traffic=of_busiest * block.traffic,
        latency=max(0.0, cycles - fetch - of_busiest * block.busy),
        fetch=fetch,
        resident_warps=resident * warps,
        waves=waves + (rest > 0),
        bytes_in_flight=pipeline.most_in_flight * resident,
    )


def total_seconds(times: Sequence[KernelTime]) -> float:
    """Return the sum of the seconds of launches, which run one after the other; 0 without any."""
    return sum(time.seconds for time in times)
