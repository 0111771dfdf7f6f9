"""Features of a program scheduled for a CPU, the input of the cost model, and reasons not to build a candidate.

The same function reads a concrete program, whose extents are integers, and a traced one, whose extents represent those
of all candidates of a sketch (see trace.py). Features are ratios to the machine's vectors, registers and caches
and to the work, so that they mean the same for other programs; all sketches have the same columns:

    program   padded work, copies, those under guards, scalar work and allocations, parallel iterations
    block     of the blocks with the most work: register tile, loads and stores, strides, loops around the tile,
              footprint around each, traffic from each cache

Source: the features of Ansor (Zheng et al., OSDI 2020) and of Halide's autoscheduler (Adams et al., 2019); traffic by
the outermost loop whose footprint fits a cache, as in analytical models of tiling (Renganarayana and Rajopadhye 2008).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from compiler.affine import linear as lin
from compiler.affine.linear import Linear
from compiler.analysis.cost import flops
from compiler.program.tree import Alloc, Block, Loop, Program, blocks_in, walk
from compiler.space.candidates import LATER
from compiler.space.trace import Number, traced_comparison, traced_max, traced_min
from compiler.types.elements import element_bytes
from compiler.types.machines import Machine

BLOCKS = 2
"""The number of blocks with separate features, those with the most work."""
DEPTHS = 5
"""The number of loops around a register tile with separate features, the innermost ones."""
REASONS = ("", "registers", "cache", "waste", "code", "script", LATER)
"""The reasons not to build a candidate: its tile spills, its temporaries in loops exceed L2, most of its work is
padding, unrolled loops fill the instruction cache, its script does not apply; or the space defers it."""
SLACK = 1
"""Registers beyond the machine's that a tile may use: one spill an iteration costs nothing measurable."""
MOST_WASTE = 3.0
MOST_INSTRUCTIONS = 1024


@dataclass(frozen=True)
class Touch:
    """An access of a block to a buffer: `index` is over the loops, `shape` the buffer's, `weight` the bytes of an
    element; `is_write`: a write, else a read."""

    buffer: str
    index: tuple[Linear, ...]
    shape: tuple[Number, ...]
    weight: int
    is_write: bool

    @cached_property
    def loops(self) -> set[int]:
        """The numbers of the loops that the index depends on."""
        return set().union(*(form.variables() for form in self.index))

    def bytes(self, free: set[int], ranges: lin.Ranges) -> Number:
        """The bytes of the footprint while the loops of the numbers `free` run and all others are fixed. ranges: of the
        program's loops, by number."""
        # A[4 * i + j, k] of f32 and shape (64, 32), j in 0..3, k in 0..31: 4 * 4 * 32 = 512 for free j and k.
        size: Number = self.weight
        for form, extent in zip(self.index, self.shape, strict=True):
            moving = {n: ranges[n] if n in free else (0, 0) for n in form.variables()}
            low, high = lin.bounds(form, moving)
            size = size * traced_min(high - low + 1, extent)
        return size

    def stride(self, loop: int) -> int:
        """The class of the stride along the loop of a number: 0 if the index does not depend on it, 1 for one element,
        2 for any other stride, also one that varies."""
        if loop not in self.loops:
            return 0
        step: Number = 0
        inner: Number = 1
        for form, extent in reversed(list(zip(self.index, self.shape, strict=True))):
            factor = form.coefficient(loop)
            if factor is None:
                return 2
            step, inner = step + factor * inner, inner * extent
        return 1 if step == 1 else 2


@dataclass(frozen=True)
class BlockView:
    """A block, the loops around it outermost first, and its accesses, `touches`: reads, then writes."""

    block: Block
    loops: tuple[Loop, ...]
    touches: tuple[Touch, ...]

    @cached_property
    def serial(self) -> tuple[Loop, ...]:
        """The loops around the block outside the register tile, outermost first."""
        return self.loops[: len(self.loops) - len(self.tile)]

    @cached_property
    def tile(self) -> tuple[Loop, ...]:
        """The unrolled and vectorized loops innermost in the nest, outermost first; empty if the innermost loop is
        neither."""
        innermost: list[Loop] = []
        for loop in reversed(self.loops):
            if loop.kind not in ("unrolled", "vectorized"):
                break
            innermost.insert(0, loop)
        return tuple(innermost)

    @property
    def vector(self) -> Loop | None:
        """The outermost vectorized loop, whose iterations are lanes; None without one."""
        return next((loop for loop in self.loops if loop.kind == "vectorized"), None)

    @cached_property
    def count(self) -> Number:
        """The number of executions; a partial register tile counts as a full one, a partial larger tile does not."""
        bound = [form.variables() for form in self.block.bindings]
        total: Number = float_product(l.extent for l in self.loops if not any(l.number in b for b in bound))
        for position, (axis, numbers) in enumerate(zip(self.block.axes, bound, strict=True)):
            axis_loops = [
                l for l in self.loops if l.number in numbers and not any(l.number in b for b in bound[:position])
            ]
            shared = any(l.number in b for l in axis_loops for b in bound[position + 1 :])
            runs = float_product(l.extent for l in axis_loops)
            tile = float_product(l.extent for l in axis_loops if l in self.tile)
            padded = -(-axis.size // tile) * tile if not shared else runs
            total = total * traced_min(runs, padded)
        return total

    @cached_property
    def work(self) -> int:
        """The floating-point operations of one instance, at least one for a reduction."""
        return max(flops(self.block), int(bool(self.block.combiners)))


def float_product(numbers: Iterable[Number]) -> Number:
    """The product as a float, since work and traffic exceed 64 bits; traced if a factor is; 1.0 without factors."""
    total: Number = 1.0
    for number in numbers:
        total = total * (number / 1)
    return total


class ProgramView:
    """A program's statements (BlockView by label), and the footprint of each loop, computed once."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.statements = {
            label: BlockView(block, program.enclosing(label), tuple(_touches(program, block)))
            for label, block in program.blocks.items()
        }
        self._touched: dict[int, dict[str, Number]] = {}

    def blocks_in(self, loop: Loop) -> list[BlockView]:
        """The statements inside a loop."""
        return [self.statements[block.label] for block in blocks_in(loop)]

    def touched(self, loop: Loop) -> dict[str, Number]:
        """Return by buffer the bytes that one run of a loop touches, including all loops inside; of several accesses to
        a buffer the largest footprint."""
        sizes = self._touched.get(loop.number)
        if sizes is None:
            sizes = self._touched[loop.number] = {}
            free = {node.number for node in walk((loop,)) if isinstance(node, Loop)}
            for touch in (t for s in self.blocks_in(loop) for t in s.touches):
                size = touch.bytes(free, self.program.ranges)
                most_so_far = sizes.get(touch.buffer)
                sizes[touch.buffer] = size if most_so_far is None else traced_max(most_so_far, size)
        return sizes


def _touches(program: Program, block: Block) -> Iterator[Touch]:
    for accesses, is_write in ((block.reads, False), (block.writes, True)):
        for access in accesses:
            buffer = program.buffers[access.buffer]
            index = tuple(block.at(form, program.ranges) for form in access.index)
            yield Touch(access.buffer, index, buffer.shape, element_bytes(buffer.element), is_write)


@dataclass(frozen=True)
class ExtractedFeatures:
    """The features of a program; and for each reason not to build it, in the order of REASONS from 1 on, 1 if it
    applies, else 0. The reasons `script` and LATER, which a space adds, are left out."""

    features: list[Number]
    infeasible: list[Number]


def extract(program: Program, useful: float, machine: Machine) -> ExtractedFeatures:
    """Extract the features of a program and the reasons not to build it; `useful`: its operations without padding."""
    view = ProgramView(program)
    statements = list(view.statements.values())
    heavy = sorted((s for s in statements if s.work), key=lambda s: Descending(s.count * s.work))[:BLOCKS]
    features = _of_program(program, statements, useful, machine)
    for s in heavy:
        features += _of_block(view, s, useful, machine)
    return ExtractedFeatures(
        features + [0] * (WIDTH - len(features)), _infeasible(program, statements, useful, machine)
    )


@dataclass(frozen=True)
class Descending:
    """A sort key that orders large numbers first; comparing traced numbers adds a guard to the trace."""

    value: Number

    def __lt__(self, other: Descending) -> bool:
        return bool(other.value < self.value)


PROGRAM = 10
"""The number of features of a program as a whole."""


def _of_program(program: Program, statements: Sequence[BlockView], useful: float, machine: Machine) -> list[Number]:
    padded = float_sum(s.count * s.work for s in statements)
    lanes = machine.vector_bits // 32
    copies = float_sum(s.count for s in statements if not s.work)
    guarded = float_sum(s.count for s in statements if not s.work and s.block.guard)
    scalar = float_sum(s.count * max(1, s.work) for s in statements if s.vector is None)
    strided = float_sum(s.count * _strided(s) for s in statements if s.vector is not None)
    inner, outer = _allocated(program)
    parallel = [float_product(l.extent for l in s.loops if l.kind == "parallel") for s in statements]
    return [
        padded / useful,
        copies / useful,
        guarded / useful,
        scalar * lanes / useful,
        strided / useful,
        inner / machine.l2_bytes,
        outer / machine.l3_bytes,
        len(statements),
        traced_max(*parallel) if parallel else 1,
        useful,
    ]


def float_sum(numbers: Iterable[Number]) -> Number:
    """The sum as a float; traced if a summand is; 0.0 without summands."""
    total: Number = 0.0
    for number in numbers:
        total = total + number
    return total


def _strided(s: BlockView) -> int:
    """The number of accesses of a vectorized block that are gathers or scatters; 0 for another block."""
    vector = s.vector
    return sum(t.stride(vector.number) == 2 for t in s.touches) if vector is not None else 0


def _allocated(program: Program) -> tuple[Number, Number]:
    """The bytes of temporaries: of those inside loops, and of those outside of all loops."""
    bytes_allocated: list[Number] = [0.0, 0.0]
    for node in walk(program.body):
        if isinstance(node, Alloc):
            inside = bool(program.enclosing((node.buffer.name,)))
            bytes_allocated[0 if inside else 1] += float_product(node.buffer.shape) * element_bytes(node.buffer.element)
    return bytes_allocated[0], bytes_allocated[1]


def _of_block(view: ProgramView, s: BlockView, useful: float, machine: Machine) -> list[Number]:
    tile = float_product(loop.extent for loop in s.tile)
    loads = float_sum(_vectors(t, s) for t in s.touches if not t.is_write)
    lanes: Number = s.vector.extent if s.vector is not None else 1
    strides = [t.stride(s.vector.number) if s.vector is not None else 0 for t in s.touches]
    return [
        s.count * s.work / useful,
        lanes * 32 / machine.vector_bits,
        tile / lanes,
        registers(s) / machine.registers,
        loads * lanes / tile,
        *(strides.count(kind) for kind in range(3)),
        int(bool(s.block.guard)),
        int(s.block.has_init),
        *_around(view, s, machine),
        *(_traffic(view, s, size) * 4 / (s.count * s.work) for size in _caches(machine)),
    ]


def _caches(machine: Machine) -> tuple[int, ...]:
    return machine.l1_bytes, machine.l2_bytes, machine.l3_bytes


def _vectors(touch: Touch, s: BlockView) -> Number:
    """Return the loads or stores of an access in a register tile: a vector, or a broadcast, serves all lanes; a gather
    or scatter needs one for each lane."""
    vector = s.vector
    if vector is not None and touch.stride(vector.number) == 2:
        return float_product(loop.extent for loop in s.tile if loop.number in touch.loops)
    moving = [l.extent for l in s.tile if l.number in touch.loops and (vector is None or l.number != vector.number)]
    return float_product(moving)


def registers(s: BlockView) -> Number:
    """Return the vector registers of a block's tile: its accumulators, the vectors of an operand that several rows
    share, and one for operands that are broadcast or read once. Return 1 for a block that is not vectorized."""
    written = [_vectors(t, s) for t in s.touches if t.is_write]
    vector = s.vector
    if vector is None or not written:
        return 1
    moving = [t for t in s.touches if not t.is_write and t.stride(vector.number) == 1]
    peak = traced_max(*written)
    shared = [read * traced_comparison("lt", read, peak) for read in (_vectors(t, s) for t in moving)]
    return peak + (traced_min(*shared) if shared else 0) + 1


def _around(view: ProgramView, s: BlockView, machine: Machine) -> list[Number]:
    """The features of the DEPTHS innermost loops outside the register tile, innermost first: the extent, whether it
    reduces, and the footprint in units of L1 and of L2; 0 for missing loops."""
    reducing = s.block.loops_of(True)
    features: list[Number] = []
    for loop in list(reversed(s.serial))[:DEPTHS]:
        inside = float_sum(view.touched(loop).values())
        features += [loop.extent, int(loop.number in reducing), inside / machine.l1_bytes, inside / machine.l2_bytes]
    return features + [0] * (4 * DEPTHS - len(features))


BLOCK = 10 + 4 * DEPTHS + 3
"""The number of features of a block."""
WIDTH = PROGRAM + BLOCKS * BLOCK
"""The number of features of a program and its BLOCKS blocks."""


def _traffic(view: ProgramView, s: BlockView, size: int) -> Number:
    """The bytes that a block's loops fetch from beyond a cache of `size` bytes.

    The footprint of the outermost loop that fits stays in the cache. A step of the loop around it fetches the buffers
    again that depend on that loop; a step of a loop further out fetches all of them again.
    """
    total: Number = 0.0
    fits_outside: Number = 0
    outer: list[Loop] = []
    for position, loop in enumerate(s.serial):
        footprints = view.touched(loop)
        fits = traced_comparison("le", float_sum(footprints.values()), size)
        last = position == len(s.serial) - 1
        weight = (fits if not last else 1) - fits_outside
        total = total + weight * _fetched(view, loop, footprints, outer)
        fits_outside = fits
        outer.append(loop)
    return total


def _fetched(view: ProgramView, loop: Loop, footprints: dict[str, Number], outer: Sequence[Loop]) -> Number:
    if not outer:
        return float_sum(footprints.values())
    around = float_product(l.extent for l in outer[:-1])
    step = outer[-1]
    moved = {t.buffer for inner in view.blocks_in(loop) for t in inner.touches if step.number in t.loops}
    return around * float_sum(size * (step.extent if name in moved else 1) for name, size in footprints.items())


def _infeasible(program: Program, statements: Sequence[BlockView], useful: float, machine: Machine) -> list[Number]:
    needed = [registers(s) for s in statements if s.block.combiners and s.vector is not None]
    unrolled = [float_product(l.extent for l in s.tile if l.kind == "unrolled") for s in statements]
    inner, _ = _allocated(program)
    padded = float_sum(s.count * s.work for s in statements)
    return [
        traced_comparison("lt", machine.registers + SLACK, traced_max(*needed)) if needed else 0,
        traced_comparison("lt", machine.l2_bytes, inner),
        traced_comparison("lt", MOST_WASTE * useful, padded),
        traced_comparison("lt", MOST_INSTRUCTIONS, traced_max(*unrolled)) if unrolled else 0,
    ]
