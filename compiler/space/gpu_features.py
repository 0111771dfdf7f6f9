"""Features of a program scheduled for a GPU, why a candidate is not worth building, and about how long it takes.

As in features.py one function reads concrete programs and traced ones. A kernel's time is estimated by a roofline of
one multiprocessor: what its resident blocks compute, read from shared memory and get from global memory, the longest of
these, times the waves in which the blocks of the grid come.

    program   estimated time to that of perfect kernels, kernels, padded work, traffic
    kernel    of the kernels with the most time: blocks, threads, registers, shared memory, resident warps, waves,
              times of arithmetic, shared and global memory, what of these hides behind another, loads a multiplication

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
from compiler.space.cpu_features import BlockView, Descending, Extracted, ProgramView, Touch, added, product
from compiler.space.trace import Number, greatest, holds, least
from compiler.types.elements import element_bytes
from compiler.types.machines import Gpu

ESTIMATE = 0
"""The feature that is the estimated time, relative to perfect kernels."""
KERNELS = 2
"""How many kernels have features of their own."""
REASONS = ("", "threads", "registers", "shared memory", "waste", "code", "script", LATER)
"""Why a candidate is not built: a block has too many threads, a thread too many registers, a block too much shared
memory; most of the work is padding, unrolled loops fill the instruction cache, its script does not apply; or nobody has
looked at it yet."""
ADDRESSES = 20
"""Registers of a thread besides its tile: indices, pointers, what compilers move ahead."""
MOST_WASTE = 3.0
MOST_INSTRUCTIONS = 2048
SECTOR = 32
"""Bytes of global memory that are moved at once."""
WARP, UNSURE = 32, 4
"""How many threads are taken to read neighbouring elements where all do, and where their index does not tell."""
WORD = 4
"""Bytes of a register."""
LAUNCH = 3e-6
"""Seconds of a launch."""
BARRIER = 40.0
"""Cycles that a block waits at a barrier and for the first loads after it."""
LATENCY = 4
"""Cycles until the result of an operation can be used."""
SCHEDULERS = 4
"""Warps of a multiprocessor that begin an instruction in a cycle."""
SHARED_BYTES = 128
"""Bytes that a multiprocessor moves to or from shared memory in a cycle."""
L2 = 2.5
"""How many times faster than memory L2 is."""
BESIDE = 0.15
"""The share of the shorter times that does not overlap with the longest."""
AHEAD = 0.05
"""The same where operands are fetched a round ahead."""


@dataclass(frozen=True)
class KernelCost:
    """A nest at the top of a program, as features see it: sums over its statements, each a number."""

    blocks: Number
    threads: Number
    registers: Number
    shared: Number
    operations: Number
    products: Number
    rounds: Number
    moved: Number
    needed: Number
    barriers: Number
    tile: Number
    ahead: bool
    gpu: Gpu

    @cached_property
    def resident(self) -> Number:
        """Blocks that a multiprocessor holds at once, at least one."""
        gpu = self.gpu
        block_limits = [
            gpu.threads // greatest(1, self.threads),
            gpu.shared_bytes // greatest(1, self.shared),
            gpu.registers // greatest(1, self.registers * self.threads),
        ]
        return greatest(1, least(gpu.blocks, *block_limits))

    @cached_property
    def waves(self) -> Number:
        """How often the multiprocessors are filled."""
        return -(-self.blocks // (self.resident * self.gpu.multiprocessors))

    @cached_property
    def busy(self) -> Number:
        """Resident blocks of a multiprocessor, at most its share of the grid."""
        return least(self.resident, -(-self.blocks // self.gpu.multiprocessors))

    @cached_property
    def warps(self) -> Number:
        """Warps that run at once on a multiprocessor."""
        return self.busy * -(-self.threads // self.gpu.warp)

    @cached_property
    def idle(self) -> Number:
        """How many times as many threads whole warps have."""
        return -(-self.threads // self.gpu.warp) * self.gpu.warp / greatest(1, self.threads)

    def _wave(self, of_grid: Number) -> Number:
        """The part of something of the whole grid that one multiprocessor does in a wave."""
        return of_grid / greatest(1, self.blocks) * self.busy

    @cached_property
    def arithmetic(self) -> Number:
        """Seconds of the operations of all waves; too few warps with too little to do at once wait for results."""
        gpu = self.gpu
        ready = self.warps * least(self.tile, LATENCY)
        pace = least(1.0, ready / (SCHEDULERS * LATENCY))
        cycles = self.operations * self.idle / gpu.fmas + self.products / gpu.tensor_fmas
        return self.waves * self._wave(cycles) / (2 * gpu.clock) / pace

    @cached_property
    def on_chip(self) -> Number:
        """Seconds of the accesses to shared memory."""
        return self.waves * self._wave(self.rounds) * self.idle / self.gpu.clock

    @cached_property
    def off_chip(self) -> Number:
        """Seconds of traffic from L2, and of compulsory traffic from memory."""
        share = self.gpu.bandwidth * L2 / self.gpu.multiprocessors
        return greatest(self.waves * self._wave(self.moved) / share, self.needed / self.gpu.bandwidth)

    @cached_property
    def waiting(self) -> Number:
        """Seconds at barriers that no other block fills."""
        return self.waves * self.barriers * BARRIER / self.gpu.clock / self.busy

    @cached_property
    def seconds(self) -> Number:
        """About how long it takes."""
        parts = (self.arithmetic, self.on_chip, self.off_chip)
        longest = greatest(*parts)
        beside = AHEAD if self.ahead else BESIDE
        return LAUNCH + longest + beside * (added(parts) - longest) + self.waiting


def extract(program: Program, useful: float, gpu: Gpu) -> Extracted:
    """The features of a program that does `useful` operations when nothing is padded, and why not to build it."""
    view = ProgramView(program)
    kernels = [_kernel(view, node, gpu) for node in program.body if not isinstance(node, Alloc)]
    best = ideal(program, useful, gpu)
    total = added(kernel.seconds for kernel in kernels)
    operations = added(kernel.operations + kernel.products for kernel in kernels)
    values: list[Number] = [total / best, len(kernels), operations / useful, added(k.moved for k in kernels) / useful]
    for kernel in sorted(kernels, key=lambda k: Descending(k.seconds))[:KERNELS]:
        values += _of_kernel(kernel, useful, best)
    return Extracted(values + [0] * (WIDTH - len(values)), _infeasible(view, kernels, useful, gpu))


def estimate(program: Program, gpu: Gpu) -> float:
    """About how many seconds a scheduled program takes; to rank candidates where nothing can be measured."""
    view = ProgramView(program)
    return float(added(_kernel(view, node, gpu).seconds for node in program.body if not isinstance(node, Alloc)))


def ideal(program: Program, useful: float, gpu: Gpu) -> float:
    """The seconds of a perfect kernel: all units busy, each argument moved once."""
    moved = sum(float(product(b.shape)) * element_bytes(b.element) for b in program.arguments)
    is_narrow = any(isinstance(b.element, Float16Type | BFloat16Type) for b in program.arguments)
    peak = 2 * (gpu.tensor_fmas if is_narrow else gpu.fmas) * gpu.clock * gpu.multiprocessors
    return max(useful / peak, moved / gpu.bandwidth) + LAUNCH


def _kernel(view: ProgramView, node: Node, gpu: Gpu) -> KernelCost:
    program = view.program
    loops = [loop for loop in walk((node,)) if isinstance(loop, Loop)]
    inside = [view.statements[block.label] for block in blocks_in(node)]
    blocks, threads = _extents(loops, "block"), _extents(loops, "thread")
    scopes = {a.buffer.name: a.buffer for a in walk((node,)) if isinstance(a, Alloc)}
    shared = added(product(b.shape) * element_bytes(b.element) for b in scopes.values() if b.scope == "shared")
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
        registers=greatest(0, *(_registers(s, program) for s in inside)) + ADDRESSES,
        shared=shared,
        operations=added(s.count * s.work for s in inside if not _is_product(s)),
        products=added(s.count * s.work for s in inside if _is_product(s)),
        rounds=rounds,
        moved=moved,
        needed=added(product(b.shape) * element_bytes(b.element) for b in touched if b.scope == "global"),
        barriers=_barriers(program, inside),
        tile=greatest(1, *(_tile(s) for s in inside)),
        ahead=any(_is_ahead(s) for s in inside),
        gpu=gpu,
    )


def _extents(loops: Iterable[Loop], kind: str) -> Number:
    """The blocks, or threads: along each dimension the most that a loop has."""
    extent: Number = 1
    for dimension in "xyz":
        mine = [loop.extent for loop in loops if loop.kind == f"{kind}_{dimension}"]
        extent = extent * greatest(1, *mine)
    return extent


def _repeated(s: BlockView) -> list[Loop]:
    """The loops that are unrolled in each thread: operands that they do not move are loaded once."""
    return [loop for loop in s.loops if loop.kind in ("unrolled", "vthread", "vectorized")]


def _is_product(s: BlockView) -> bool:
    """Whether it runs on tensor cores."""
    names = [loop.intrinsic for loop in s.loops]
    return bool(s.block.combiners) and any(name and find(name).form == "matrix" for name in names)


def _tile(s: BlockView) -> Number:
    """The results of a thread that do not wait for each other."""
    return product(loop.extent for loop in _repeated(s)) if s.block.combiners else 1


def _loads(touch: Touch, s: BlockView) -> Number:
    """How often an access is made, by all threads: once for all written out loops that do not move it, and for a
    reduction's results once in all."""
    still = [loop for loop in _repeated(s) if loop.number not in touch.loops]
    if touch.is_write and s.block.combiners:
        still = [loop for loop in s.loops if loop.number not in touch.loops and loop.kind != "thread_x"]
    return s.count / product(loop.extent for loop in still)


def _bytes(touch: Touch, s: BlockView) -> Number:
    """The bytes that are moved for one element of an access to global memory: neighbours in a warp share sectors."""
    thread = next((loop for loop in s.loops if loop.kind == "thread_x"), None)
    if thread is None:
        return touch.weight
    run = _run(touch, thread)
    vector = next((loop.extent for loop in s.loops if loop.kind == "vectorized"), 1)
    together = least(SECTOR, touch.weight * greatest(1, run) * vector)
    return touch.weight * (SECTOR / together)


def _run(touch: Touch, thread: Loop) -> Number:
    """How many threads in a row read elements in a row; one where each is elsewhere, a warp where all read the same."""
    if thread.number not in touch.loops:
        return WARP
    last = touch.index[-1]
    direct = last.coefficient(thread.number)
    if direct is not None and direct != 0:
        return WARP if direct == 1 else 1
    cut = _moduli(last, thread.number)
    if cut:
        return least(*cut)
    return 1 if thread.number not in last.variables() else UNSURE


def _moduli(form: Linear, variable: int) -> list[Number]:
    """The divisors of the remainders of a variable that step by one."""
    return [
        atom.divisor
        for atom, factor in form.terms
        if isinstance(atom, Quotient) and atom.is_mod and factor == 1 and atom.form.coefficient(variable) in (1, None)
        if variable in atom.form.variables()
    ]


def _registers(s: BlockView, program: Program) -> Number:
    """The registers of a thread for a statement's tile: results, and operands that several of them share; of what a
    warp holds together its part."""
    loops, parts = _repeated(s), 1.0
    if _is_product(s):
        loops, parts = [*loops, *(loop for loop in s.loops if loop.kind == "tensorized")], WARP * WORD
    moving = [
        product(l.extent for l in loops if l.number in t.loops) * (1 if parts == 1 else t.weight) / parts
        for t in s.touches
    ]
    writes = [n for n, t in zip(moving, s.touches, strict=True) if t.is_write]
    reads = [n for n, t in zip(moving, s.touches, strict=True) if not t.is_write]
    if not s.block.combiners:
        return 1
    return greatest(*writes) + added(reads)


def _barriers(program: Program, inside: Sequence[BlockView]) -> Number:
    """How often threads wait: twice for each fetch into shared memory; once if it is fetched a round ahead. Counted
    over the iterations of the loops around the fetch and its readers."""
    waits: Number = 0.0
    for s in inside:
        put = {t.buffer for t in s.touches if t.is_write and program.buffers[t.buffer].scope == "shared"}
        readers = [r for r in inside if r is not s and any(not t.is_write and t.buffer in put for t in r.touches)]
        shared = {loop.number for reader in readers for loop in reader.loops}
        if put:
            around = [loop.extent for loop in s.serial if loop.kind == "serial" and loop.number in shared]
            waits = waits + (1 if _is_ahead(s) else 2) * product(around)
    return waits


def _is_ahead(s: BlockView) -> bool:
    """Whether it is an asynchronous copy."""
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
        int(kernel.ahead),
        (kernel.operations + kernel.products) / useful,
        kernel.rounds * SHARED_BYTES / greatest(1.0, kernel.operations + kernel.products),
        kernel.moved / greatest(1.0, kernel.operations + kernel.products),
    ]


WIDTH = 4 + KERNELS * 17
"""How many features a program has in all."""


def _infeasible(view: ProgramView, kernels: Sequence[KernelCost], useful: float, gpu: Gpu) -> list[Number]:
    tiles = [product(loop.extent for loop in _repeated(s)) for s in view.statements.values()]
    return [
        holds("lt", gpu.block_threads, greatest(0, *(k.threads for k in kernels))),
        holds("lt", gpu.most_registers, greatest(0, *(k.registers for k in kernels))),
        holds("lt", gpu.block_shared_bytes, greatest(0, *(k.shared for k in kernels))),
        holds("lt", MOST_WASTE * useful, added(k.operations + k.products for k in kernels)),
        holds("lt", MOST_INSTRUCTIONS, greatest(0, *tiles)),
    ]
