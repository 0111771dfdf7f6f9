"""Features of a program scheduled for a GPU, reasons not to build a candidate, and an estimate of its time.

As in cpu_features.py one function reads concrete programs and traced ones. A kernel's time is estimated by a roofline
of one multiprocessor with latencies: the longest of the times in which its resident blocks compute, access shared
memory, access global memory and issue instructions, or in which one block waits for its loads, times the number of
waves of the grid. The terms are those of targets/timing, which has the kernel's instructions and takes a lowering.

    program   estimated time over that of perfect kernels, kernels, padded work, traffic
    kernel    of the kernels with the most time: blocks, threads, registers, shared memory, resident warps, waves,
              times of arithmetic, shared and global memory, barriers, issue and latency, prefetch, padding, loads for a
              multiplication

Source: roofline (Williams et al., CACM 2009), occupancy and waves as in Hong and Kim (ISCA 2009); features of Ansor
(Zheng et al., OSDI 2020).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import BFloat16Type, Float16Type

from compiler.affine.linear import Linear, Quotient
from compiler.analysis.barriers import ASYNC
from compiler.intrinsics import find
from compiler.program.tree import Alloc, Loop, Node, Program, blocks_in, walk
from compiler.space.candidates import LATER
from compiler.space.cpu_features import (
    BlockView,
    Descending,
    ExtractedFeatures,
    ProgramView,
    Touch,
    float_product,
    float_sum,
)
from compiler.space.trace import Number, traced_comparison, traced_max, traced_min
from compiler.types.elements import element_bytes
from compiler.types.machines import Gpu

ESTIMATE = 0
"""The column of the feature that is the estimated time, relative to perfect kernels."""
KERNELS = 2
"""The number of kernels with separate features, those with the most time."""
REASONS = ("", "threads", "registers", "shared memory", "waste", "code", "script", LATER)
"""The reasons not to build a candidate: a block has too many threads, a thread too many registers, a block too much
shared memory; most of the work is padding, unrolled loops fill the instruction cache, its script does not apply; or the
space defers it."""
ADDRESSES = 20
"""Registers of a thread besides its tile: indices, pointers, loads that compilers hoist."""
MOST_WASTE = 3.0
MOST_INSTRUCTIONS = 2048
SECTOR = 32
"""Bytes of global memory that are moved at once."""
WARP, UNSURE = 32, 4
"""The threads assumed to read consecutive elements: if a whole warp does, and if the index is not linear in the
thread."""
WORD = 4
"""Bytes of a register."""
LAUNCH = 3e-6
"""The fixed cost of a launch, in seconds."""
BARRIER = 40.0
"""Cycles that a block waits at a barrier and for the first loads after it."""
LATENCY = 4
"""Cycles until the result of an operation can be used."""
SCHEDULERS = 4
"""Warps of a multiprocessor that begin an instruction in a cycle."""
SHARED_BYTES = 128
"""Bytes that a multiprocessor moves to or from shared memory in a cycle."""
L2 = 2.5
"""The bandwidth of L2 relative to that of memory."""
APART = 0.25
"""The share of the shorter of two times, work of all blocks and waits of one, that does not overlap with the longer."""
STEPS = 2
"""Instructions of an iteration beside its operations and accesses: addresses, counters."""
BESIDE = 0.15
"""The share of the shorter of three times (arithmetic, on chip, off chip) that does not overlap with the longest."""
AHEAD = 0.05
"""This share instead of BESIDE if operands are prefetched a round ahead."""


@dataclass(frozen=True)
class KernelCost:
    """The cost of a kernel, a nest at the top of a program.

    blocks: of the grid. threads: of a block. registers: of a thread. shared: bytes of shared memory of a block.
    operations, products: of the grid, floating-point, outside of and on tensor cores. rounds: cycles of access to
    shared memory, of the grid. l2_bytes: bytes from L2. compulsory_bytes: the fewest bytes from memory. barriers: of a
    block. tile: independent results of a thread. issued: instructions of all threads. waits: cycles that a block alone
    waits. is_pipelined: whether operands are prefetched.
    """

    blocks: Number
    threads: Number
    registers: Number
    shared: Number
    operations: Number
    products: Number
    rounds: Number
    l2_bytes: Number
    compulsory_bytes: Number
    barriers: Number
    tile: Number
    issued: Number
    waits: Number
    is_pipelined: bool
    gpu: Gpu

    @cached_property
    def resident(self) -> Number:
        """The number of blocks resident on a multiprocessor at once, at least one."""
        gpu = self.gpu
        block_limits = [
            gpu.threads // traced_max(1, self.threads),
            gpu.shared_bytes // traced_max(1, self.shared),
            gpu.registers // traced_max(1, self.registers * self.threads),
        ]
        return traced_max(1, traced_min(gpu.blocks, *block_limits))

    @cached_property
    def waves(self) -> Number:
        """The number of waves of resident blocks over all multiprocessors, at least 1."""
        return -(-self.blocks // (self.resident * self.gpu.multiprocessors))

    @cached_property
    def busy(self) -> Number:
        """Resident blocks of a multiprocessor, at most the grid's blocks over the multiprocessors."""
        return traced_min(self.resident, -(-self.blocks // self.gpu.multiprocessors))

    @cached_property
    def warps(self) -> Number:
        """The resident warps of a multiprocessor."""
        return self.busy * -(-self.threads // self.gpu.warp)

    @cached_property
    def idle(self) -> Number:
        """The threads of a block rounded up to whole warps, divided by the threads of the block."""
        return -(-self.threads // self.gpu.warp) * self.gpu.warp / traced_max(1, self.threads)

    def _wave(self, of_grid: Number) -> Number:
        """Return the share of a number, stated for the whole grid, of one multiprocessor in one wave."""
        return of_grid / traced_max(1, self.blocks) * self.busy

    @cached_property
    def arithmetic(self) -> Number:
        """Seconds of the operations of all waves; warps with too few independent operations wait for results."""
        gpu = self.gpu
        ready = self.warps * traced_min(self.tile, LATENCY)
        pace = traced_min(1.0, ready / (SCHEDULERS * LATENCY))
        cycles = self.operations * self.idle / gpu.fmas + self.products / gpu.tensor_fmas
        return self.waves * self._wave(cycles) / (2 * gpu.clock) / pace

    @cached_property
    def on_chip(self) -> Number:
        """Seconds of the accesses to shared memory."""
        return self.waves * self._wave(self.rounds) * self.idle / self.gpu.clock

    @cached_property
    def off_chip(self) -> Number:
        """The larger of the seconds of traffic from L2, and of compulsory traffic from memory."""
        share = self.gpu.bandwidth * L2 / self.gpu.multiprocessors
        return traced_max(self.waves * self._wave(self.l2_bytes) / share, self.compulsory_bytes / self.gpu.bandwidth)

    @cached_property
    def waiting(self) -> Number:
        """Seconds at barriers, divided by the resident blocks, which run during each other's waits."""
        return self.waves * self.barriers * BARRIER / self.gpu.clock / self.busy

    @cached_property
    def issue(self) -> Number:
        """Seconds in which the schedulers begin instructions of all waves; a scheduler needs a warp."""
        schedulers = traced_min(SCHEDULERS, self.warps)
        return self.waves * self._wave(self.issued) * self.idle / self.gpu.warp / schedulers / self.gpu.clock

    @cached_property
    def latency(self) -> Number:
        """Seconds that a block alone waits for loads and for results, times the waves."""
        return self.waves * self.waits / self.gpu.clock

    @cached_property
    def seconds(self) -> Number:
        """The estimated seconds of a launch of the kernel: the longest of its terms, and shares of the others."""
        terms = (self.arithmetic, self.on_chip, self.off_chip, self.issue)
        longest = traced_max(*terms)
        beside = AHEAD if self.is_pipelined else BESIDE
        busy = longest + beside * (float_sum(terms) - longest) + self.waiting
        alone = self.latency
        return LAUNCH + traced_max(busy, alone) + APART * traced_min(busy, alone)


def extract(program: Program, useful: float, gpu: Gpu) -> ExtractedFeatures:
    """Extract the features of a program and the reasons not to build it; `useful`: its operations without padding."""
    view = ProgramView(program)
    kernels = [_kernel(view, node, gpu) for node in program.body if not isinstance(node, Alloc)]
    best = ideal(program, useful, gpu)
    total = float_sum(kernel.seconds for kernel in kernels)
    operations = float_sum(kernel.operations + kernel.products for kernel in kernels)
    values: list[Number] = [
        total / best,
        len(kernels),
        operations / useful,
        float_sum(k.l2_bytes for k in kernels) / useful,
    ]
    for kernel in sorted(kernels, key=lambda k: Descending(k.seconds))[:KERNELS]:
        values += _of_kernel(kernel, useful, best)
    return ExtractedFeatures(values + [0] * (WIDTH - len(values)), _infeasible(view, kernels, useful, gpu))


def estimate(program: Program, gpu: Gpu) -> float:
    """Estimate the seconds of a scheduled program, the sum over its kernels, to rank candidates where nothing can be
    measured."""
    view = ProgramView(program)
    return float(float_sum(_kernel(view, node, gpu).seconds for node in program.body if not isinstance(node, Alloc)))


def ideal(program: Program, useful: float, gpu: Gpu) -> float:
    """The seconds of a perfect kernel for `useful` operations: all units busy, those of tensor cores if an argument is
    f16 or bf16, each argument moved once, one launch."""
    moved = sum(float(float_product(b.shape)) * element_bytes(b.element) for b in program.arguments)
    is_narrow = any(isinstance(b.element, Float16Type | BFloat16Type) for b in program.arguments)
    peak = 2 * (gpu.tensor_fmas if is_narrow else gpu.fmas) * gpu.clock * gpu.multiprocessors
    return max(useful / peak, moved / gpu.bandwidth) + LAUNCH


def _kernel(view: ProgramView, node: Node, gpu: Gpu) -> KernelCost:
    program = view.program
    loops = [loop for loop in walk((node,)) if isinstance(loop, Loop)]
    inside = [view.statements[block.label] for block in blocks_in(node)]
    blocks, threads = _extents(loops, "block"), _extents(loops, "thread")
    scopes = {a.buffer.name: a.buffer for a in walk((node,)) if isinstance(a, Alloc)}
    shared = float_sum(
        float_product(b.shape) * element_bytes(b.element) for b in scopes.values() if b.scope == "shared"
    )
    touched = [program.buffers[name] for name in dict.fromkeys(t.buffer for s in inside for t in s.touches)]
    rounds: Number = 0.0
    moved: Number = 0.0
    for s in inside:
        for touch in s.touches:
            scope = program.buffers[touch.buffer].scope
            if scope == "shared":
                rounds = rounds + _loads(touch, s) * touch.weight / SHARED_BYTES
            elif scope == "global":
                moved = moved + _loads(touch, s) * _bytes(touch, s)
    return KernelCost(
        blocks=blocks,
        threads=threads,
        registers=traced_max(0, *(_registers(s, program) for s in inside)) + ADDRESSES,
        shared=shared,
        operations=float_sum(s.count * s.work for s in inside if not _is_product(s)),
        products=float_sum(s.count * s.work for s in inside if _is_product(s)),
        rounds=rounds,
        l2_bytes=moved,
        compulsory_bytes=float_sum(
            float_product(b.shape) * element_bytes(b.element) for b in touched if b.scope == "global"
        ),
        barriers=_barriers(program, inside),
        tile=traced_max(1, *(_tile(s) for s in inside)),
        issued=float_sum(_issued(s, program) for s in inside),
        waits=float_sum(_waits(s, program, gpu) for s in inside),
        is_pipelined=any(_is_ahead(s) for s in inside),
        gpu=gpu,
    )


def _extents(loops: Iterable[Loop], kind: str) -> Number:
    """The number of blocks or threads (`kind`) of a kernel: the product of the largest extents along x, y and z."""
    extent: Number = 1
    for dimension in "xyz":
        mine = [loop.extent for loop in loops if loop.kind == f"{kind}_{dimension}"]
        extent = extent * traced_max(1, *mine)
    return extent


def _repeated(s: BlockView) -> list[Loop]:
    """The loops that are unrolled in each thread: an operand that does not depend on them is loaded once."""
    return [loop for loop in s.loops if loop.kind in ("unrolled", "vthread", "vectorized")]


def _is_product(s: BlockView) -> bool:
    """Whether a statement is a reduction on tensor cores."""
    names = [loop.intrinsic for loop in s.loops]
    return bool(s.block.combiners) and any(name and find(name).form == "matrix" for name in names)


def _issued(s: BlockView, program: Program) -> Number:
    """The instructions of all threads for a statement: its operations, two of a multiply-add being one, its accesses to
    shared and global memory, and STEPS of each iteration of its loops that are not unrolled."""
    scopes = ("shared", "global")
    accesses = float_sum(_loads(t, s) for t in s.touches if program.buffers[t.buffer].scope in scopes)
    steps = s.count / float_product(loop.extent for loop in _repeated(s))
    operations: Number = 0.0 if _is_product(s) else s.count * max(1, s.work // 2)
    return operations + accesses + STEPS * steps


def _waits(s: BlockView, program: Program, gpu: Gpu) -> Number:
    """The cycles that a thread waits for a statement if nothing else runs: for each iteration of its loops that are not
    unrolled the latency of its slowest load, or of an operation. Unrolled iterations with conditions of their own wait
    one after another; asynchronous copies are complete when a later round needs them."""
    scopes = {program.buffers[t.buffer].scope for t in s.touches if not t.is_write}
    wait = gpu.l2_latency if "global" in scopes else gpu.shared_latency if "shared" in scopes else gpu.alu_latency
    guards = set[int]().union(*(condition.form.variables() for condition in s.block.guard))
    for axis in {axis for a in s.block.reads for condition in a.where for axis in condition.form.variables()}:
        guards |= s.block.bindings[axis].variables()
    serial = (loop for loop in s.loops if loop.kind == "serial" or (loop in _repeated(s) and loop.number in guards))
    return (gpu.alu_latency if _is_ahead(s) else wait) * float_product(loop.extent for loop in serial)


def _tile(s: BlockView) -> Number:
    """The number of accumulators of a thread in a reduction; 1 for other statements."""
    return float_product(loop.extent for loop in _repeated(s)) if s.block.combiners else 1


def _loads(touch: Touch, s: BlockView) -> Number:
    """The number of executions of an access by all threads. Unrolled loops that its index does not depend on do not
    repeat it; a reduction stores each result once."""
    invariant = [loop for loop in _repeated(s) if loop.number not in touch.loops]
    if touch.is_write and s.block.combiners:
        invariant = [loop for loop in s.loops if loop.number not in touch.loops and loop.kind != "thread_x"]
    return s.count / float_product(loop.extent for loop in invariant)


def _bytes(touch: Touch, s: BlockView) -> Number:
    """The bytes moved for one element of an access to global memory: neighbouring threads share SECTOR bytes. Without a
    loop over threads along x: the element's own bytes."""
    thread = next((loop for loop in s.loops if loop.kind == "thread_x"), None)
    if thread is None:
        return touch.weight
    run = _run(touch, thread)
    vector = next((loop.extent for loop in s.loops if loop.kind == "vectorized"), 1)
    together = traced_min(SECTOR, touch.weight * traced_max(1, run) * vector)
    return touch.weight * (SECTOR / together)


def _run(touch: Touch, thread: Loop) -> Number:
    """The number of consecutive threads that read consecutive elements: 1 if scattered, WARP if all read the same,
    UNSURE if the index is not linear in the thread."""
    if thread.number not in touch.loops:
        return WARP
    # The index t mod 16 of thread t in 0..31: runs of 16, since threads 16 to 31 read the same elements again.
    last = touch.index[-1]
    step = last.coefficient(thread.number)
    if step is not None and step != 0:
        return WARP if step == 1 else 1
    divisors = _moduli(last, thread.number)
    if divisors:
        return traced_min(*divisors)
    return 1 if thread.number not in last.variables() else UNSURE


def _moduli(form: Linear, variable: int) -> list[Number]:
    """The divisors d of the terms `(v + ...) mod d` in a form, v a variable: such a term steps by one with v."""
    return [
        atom.divisor
        for atom, factor in form.terms
        if isinstance(atom, Quotient) and atom.is_mod and factor == 1 and atom.form.coefficient(variable) in (1, None)
        if variable in atom.form.variables()
    ]


def _registers(s: BlockView, program: Program) -> Number:
    """Return the registers of a thread for a statement's tile: its results, and the operands that several results
    share; of a fragment, the thread's share. Return 1 without a reduction. `program` is not used."""
    loops, copies = _repeated(s), 1.0
    if _is_product(s):
        loops, copies = [*loops, *(loop for loop in s.loops if loop.kind == "tensorized")], WARP * WORD
    moving = [
        float_product(l.extent for l in loops if l.number in t.loops) * (1 if copies == 1 else t.weight) / copies
        for t in s.touches
    ]
    writes = [n for n, t in zip(moving, s.touches, strict=True) if t.is_write]
    reads = [n for n, t in zip(moving, s.touches, strict=True) if not t.is_write]
    if not s.block.combiners:
        return 1
    return traced_max(*writes) + float_sum(reads)


def _barriers(program: Program, inside: Sequence[BlockView]) -> Number:
    """The number of barriers: two for each copy into shared memory, one for an asynchronous copy, times the
    iterations of the serial loops around the copy and its readers."""
    waits: Number = 0.0
    for s in inside:
        stored = {t.buffer for t in s.touches if t.is_write and program.buffers[t.buffer].scope == "shared"}
        readers = [r for r in inside if r is not s and any(not t.is_write and t.buffer in stored for t in r.touches)]
        shared = {loop.number for reader in readers for loop in reader.loops}
        if stored:
            around = [loop.extent for loop in s.serial if loop.kind == "serial" and loop.number in shared]
            waits = waits + (1 if _is_ahead(s) else 2) * float_product(around)
    return waits


def _is_ahead(s: BlockView) -> bool:
    """Whether a statement is an asynchronous copy: a loop around it has the attribute for that."""
    return any(ASYNC in dict(loop.attributes) for loop in s.loops)


def _of_kernel(kernel: KernelCost, useful: float, best: float) -> list[Number]:
    gpu = kernel.gpu
    return [
        kernel.seconds / best,
        kernel.blocks / gpu.multiprocessors,
        kernel.threads / gpu.warp,
        kernel.registers / gpu.most_registers,
        kernel.shared / gpu.block_shared_bytes,
        kernel.warps,
        kernel.waves,
        kernel.blocks / (kernel.waves * kernel.resident * gpu.multiprocessors),
        kernel.tile,
        kernel.arithmetic / best,
        kernel.on_chip / best,
        kernel.off_chip / best,
        kernel.waiting / best,
        kernel.issue / best,
        kernel.latency / best,
        int(kernel.is_pipelined),
        (kernel.operations + kernel.products) / useful,
        kernel.rounds * SHARED_BYTES / traced_max(1.0, kernel.operations + kernel.products),
        kernel.l2_bytes / traced_max(1.0, kernel.operations + kernel.products),
    ]


WIDTH = 4 + KERNELS * 19
"""The number of features of a program and its KERNELS kernels."""


def _infeasible(view: ProgramView, kernels: Sequence[KernelCost], useful: float, gpu: Gpu) -> list[Number]:
    tiles = [float_product(loop.extent for loop in _repeated(s)) for s in view.statements.values()]
    return [
        traced_comparison("lt", gpu.block_threads, traced_max(0, *(k.threads for k in kernels))),
        traced_comparison("lt", gpu.most_registers, traced_max(0, *(k.registers for k in kernels))),
        traced_comparison("lt", gpu.block_shared_bytes, traced_max(0, *(k.shared for k in kernels))),
        traced_comparison("lt", MOST_WASTE * useful, float_sum(k.operations + k.products for k in kernels)),
        traced_comparison("lt", MOST_INSTRUCTIONS, traced_max(0, *tiles)),
    ]
