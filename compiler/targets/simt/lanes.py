"""Run a kernel on numpy: all threads of a block at once, op by op, under masks where they diverge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects import arith, gpu, memref, scf, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, MemRefType, VectorType
from xdsl.ir import Block, Operation, SSAValue

from compiler.dialects.grid import ArriveOp
from compiler.dialects.numbers import array_of, constant, dtype_of
from compiler.dialects.upstream import nvgpu
from compiler.dialects.upstream.gpu import ShuffleOp
from compiler.interpret.scalar import combiner, function
from compiler.targets.launches import SIDES, constant_elements
from compiler.targets.simt import warps
from compiler.targets.simt.access import Bools, Fault, Ints, Values
from compiler.targets.simt.arrivals import with_those_awaited
from compiler.targets.simt.buffers import CheckedBuffer
from compiler.targets.simt.threads import Threads, sides_of
from compiler.types.scopes import SCOPES, space_of

SPACES = {SCOPES[scope]: scope for scope in ("global", "shared", "local")}
"""The names of memory spaces by their numbers."""


@dataclass(frozen=True)
class BlockSample:
    """The blocks of a grid to run: the first, its neighbour along each dimension and the last, all of them always; then
    evenly spaced ones, up to `blocks` in total and until `steps` ops of the kernel have run."""

    blocks: int
    steps: int


class _Step:
    """An op, prepared for running: its handler or scalar function, its operands and its result."""

    __slots__ = ("function", "handler", "op", "operands", "result")

    def __init__(self, op: Operation) -> None:
        self.op, self.operands = op, tuple(op.operands)
        self.handler = _OPS.get(type(op))
        if self.handler is None:
            self.function = _selected if isinstance(op, arith.SelectOp) else function(op)
            self.result = op.results[0]


def _selected(truth: Values, yes: Values, no: Values) -> Values:
    return np.where(truth[..., None] if yes.ndim > truth.ndim else truth, yes, no)


@dataclass
class ThreadLanes(Threads):
    """Interpreter of a kernel: it runs each op for all threads of a block at once, on numpy arrays. on_chip: the shared
    and local buffers. constants: the buffers of the module's constants. The method of an op takes the op and the mask
    (n,) of active threads, and sets the op's results in `values`."""

    on_chip: dict[SSAValue, CheckedBuffer] = field(default_factory=dict)
    constants: dict[SSAValue, CheckedBuffer] = field(default_factory=dict)
    _copies_in_flight: list[tuple[CheckedBuffer, Ints, Bools, Ints]] = field(default_factory=list)
    _groups: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    _arrived: dict[tuple[SSAValue, int], list[int]] = field(default_factory=dict)
    _step_count: int = 0
    _code_of_block: dict[Block, tuple[list[_Step], tuple[SSAValue, ...]]] = field(default_factory=dict)
    _operands_of: dict[Operation, tuple[SSAValue, ...]] = field(default_factory=dict)

    def run(self, body: Block, sample: BlockSample | None = None) -> None:
        """Run a kernel's body for the blocks of the grid in order, or for the blocks of a sample, with uninitialised
        shared and local buffers for each block. Raises InputError for an op without an implementation."""
        buffers = dict(self.memories)
        with np.errstate(all="ignore"):
            self._run(body, buffers, sample)

    def _run(self, body: Block, buffers: dict[SSAValue, CheckedBuffer], sample: BlockSample | None) -> None:
        corner_blocks = with_those_awaited(self.call, corners(self.call.grid))
        for block in with_those_awaited(self.call, _sampled_blocks(self.call.grid, sample)):
            if sample is not None and self._step_count > sample.steps and block not in corner_blocks:
                return
            self.block_index = sides_of(block, self.call.grid)
            self.values, self.memories, self._copies_in_flight = {}, dict(buffers), []
            self._groups, self.seen = np.zeros(self.count, np.int64), None
            self.moment += 1
            self.full_mask = np.ones(self.count, np.bool_)
            self._block(body, self.full_mask)

    def _block(self, body: Block, active: Bools) -> Sequence[Values]:
        """Run the ops of a body under a mask of threads; return the yielded values, none for a body without a yield."""
        code = self._code_of_block.get(body)
        if code is None:
            code = self._code_of_block[body] = _code_of(body)
        steps, yielded = code
        self._step_count += len(steps)
        values = self.values
        for step in steps:
            if step.handler is not None:
                step.handler(self, step.op, active)
            else:
                values[step.result] = np.asarray(step.function(*[values[value] for value in step.operands]))
        return [values[value] for value in yielded]

    def _operands(self, op: Operation) -> tuple[SSAValue, ...]:
        operands = self._operands_of.get(op)
        if operands is None:
            operands = self._operands_of[op] = tuple(op.operands)
        return operands

    # --- values ---------------------------------------------------------------------------------------------------

    def constant(self, op: arith.ConstantOp, active: Bools) -> None:
        """Evaluate a scalar or vector constant, whichever threads are `active`."""
        value = op.value
        if isinstance(value, DenseIntOrFPElementsAttr):
            type_ = op.result.type
            assert isinstance(type_, VectorType)
            numbers = np.array(value.get_values(), dtype_of(type_.element_type))
            self.values[op.result] = np.broadcast_to(numbers, (prod(type_.get_shape()),))
        else:
            self.values[op.result] = np.asarray(constant(value))

    def position(self, op: gpu.ThreadIdOp | gpu.BlockIdOp | gpu.BlockDimOp | gpu.GridDimOp, active: Bools) -> None:
        """Evaluate the index of threads or blocks, or their number, along a dimension, whichever threads are
        `active`."""
        side = SIDES.index(op.dimension.data.value)
        if isinstance(op, gpu.ThreadIdOp):
            indices = sides_of(np.arange(self.count), self.call.block)[side]
        elif isinstance(op, gpu.BlockIdOp):
            indices = np.asarray(np.int64(self.block_index[side]))
        else:
            extents = self.call.block if isinstance(op, gpu.BlockDimOp) else self.call.grid
            indices = np.asarray(np.int64(extents[side]))
        self.values[op.results[0]] = indices

    def broadcast(self, op: vector.BroadcastOp, active: Bools) -> None:
        """Evaluate a broadcast of a scalar to all lanes of a vector of rank 1, whichever threads are `active`."""
        type_ = op.results[0].type
        assert isinstance(type_, VectorType)
        source = self.values[op.source]
        self.values[op.results[0]] = np.repeat(source[..., None], type_.get_shape()[0], axis=-1)

    def extract(self, op: vector.ExtractOp, active: Bools) -> None:
        """Extract the lane of a vector, or the register of a fragment, at the op's constant position, whichever threads
        are `active`."""
        (lane,) = op.static_position.get_values()
        lanes, type_ = self.values[op.vector], op.result.type
        if isinstance(type_, VectorType):
            (size,) = type_.get_shape()
            self.values[op.result] = lanes[..., lane * size : (lane + 1) * size]
        else:
            self.values[op.result] = lanes[..., lane]

    def select_registers(self, op: vector.ShuffleOp, active: Bools) -> None:
        """Select registers of a fragment, whose registers are the leading dimension, whichever threads are `active`."""
        type_ = op.result.type
        assert isinstance(type_, VectorType)
        size = prod(type_.get_shape()[1:])
        registers = self.values[op.v1].reshape(self.count, -1, size)
        self.values[op.result] = registers[:, list(op.mask.get_values())].reshape(self.count, -1)

    def insert(self, op: vector.InsertOp, active: Bools) -> None:
        """Evaluate the copy of a vector with one lane, at the op's constant position, replaced by a scalar, whichever
        threads are `active`."""
        (lane,) = op.static_position.get_values()
        source, dest = self.values[op.source], self.values[op.dest]
        inserted = np.broadcast_to(dest, (*np.broadcast_shapes(source.shape, dest.shape[:-1]), dest.shape[-1])).copy()
        inserted[..., lane] = source
        self.values[op.result] = inserted

    def fma(self, op: vector.FMAOp, active: Bools) -> None:
        """Evaluate a * b + c in f64, rounded to the type of a, whichever threads are `active`."""
        a, b, c = (self.values[value] for value in (op.lhs, op.rhs, op.acc))
        self.values[op.res] = (a.astype(np.float64) * b + c).astype(a.dtype)

    def reduction(self, op: vector.ReductionOp, active: Bools) -> None:
        """Combine all lanes of each thread's vector; an accumulator of the op is ignored, and so is which threads are
        `active`."""
        kind = op.kind.data.value
        name = {"maximumf": "max", "minimumf": "min", "maxsi": "max", "minsi": "min"}.get(kind, kind)
        source = self.values[op.vector]
        self.values[op.dest] = combiner(name, source.dtype).reduce(source, axis=-1)

    # --- memory ---------------------------------------------------------------------------------------------------

    def alloca(self, op: memref.AllocaOp, active: Bools) -> None:
        """Allocate a shared or local buffer; allocated again, in a loop or in the next block, it is uninitialised and
        its counts of accesses go on. It does not matter which threads are `active`."""
        memory = self.on_chip.get(op.memref)
        type_ = op.memref.type
        assert isinstance(type_, MemRefType)
        space = SPACES[space_of(type_)]
        if memory is None or (op.memref not in self.memories):
            name = op.memref.name_hint or "buffer"
            former_counts = memory.counts if memory is not None else None
            shape, element = type_.get_shape(), type_.element_type
            if isinstance(element, VectorType):
                shape, element = (*shape, prod(element.get_shape())), element.element_type
            memory = CheckedBuffer(name, shape, dtype_of(element), space, self.count, self.report)
            memory.counts = former_counts if former_counts is not None else memory.counts
            self.on_chip[op.memref] = memory
        memory.reset()
        self.memories[op.memref] = memory

    def get_global(self, op: memref.GetGlobalOp, active: Bools) -> None:
        """Set the buffer of a constant of the module, which is filled at the first use, whichever threads are
        `active`."""
        if op.memref not in self.constants:
            elements = array_of(constant_elements(op).data)
            name = op.memref.name_hint or "constant"
            memory = CheckedBuffer(name, elements.shape, elements.dtype, "global", 1, self.report)
            memory.fill(elements)
            self.constants[op.memref] = memory
        self.memories[op.memref] = self.constants[op.memref]

    def load(self, op: memref.LoadOp, active: Bools) -> None:
        """Load an element for each active thread; the others get 0."""
        buffer, *indices = self._operands(op)
        values_ = self._indices(buffer, indices)
        self.values[op.results[0]] = self.memories[buffer].read(values_, self.access(op, active))

    def store(self, op: memref.StoreOp, active: Bools) -> None:
        """Store an element of each active thread."""
        value, buffer, *indices = self._operands(op)
        self.memories[buffer].write(self._indices(buffer, indices), self.values[value], self.access(op, active))

    def _indices(self, buffer: SSAValue, indices: Sequence[SSAValue]) -> list[Ints]:
        """Return the values of `indices`, by thread. For a fragment, whose memory has one more dimension, add an index
        of shape (1, elements) that selects all its elements."""
        values, memory = [self.values[v] for v in indices], self.memories[buffer]
        if len(memory.shape) > len(values):
            values.append(np.arange(memory.shape[-1])[None])
        return values

    def load_vector(self, op: vector.LoadOp, active: Bools) -> None:
        """Load consecutive elements for each active thread; inactive threads get zeros. Reports offsets that are no
        multiples of the vector's elements."""
        memory, type_ = self.memories[op.base], op.result.type
        assert isinstance(type_, VectorType)
        index = self.consecutive(op, memory, op.indices, prod(type_.get_shape()), active)
        self.values[op.result] = memory.read(index, self.access(op, active))

    def store_vector(self, op: vector.StoreOp, active: Bools) -> None:
        """Store consecutive elements of each active thread; reports offsets that are no multiples of the vector's
        elements."""
        memory, value = self.memories[op.base], self.values[op.vector]
        lanes = value.shape[-1]
        index = self.consecutive(op, memory, op.indices, lanes, active)
        memory.write(index, np.broadcast_to(value, (self.count, lanes)), self.access(op, active))

    def copy(self, op: nvgpu.CopyOp, active: Bools) -> None:
        """Start an asynchronous copy of each active thread; its target is uninitialised until that thread's wait.
        Reports offsets that are no multiples of the copied elements."""
        lanes, access = op.count.value.data, self.access(op, active)
        source, target = self.memories[op.src], self.memories[op.dst]
        values = self._source_of(op, source, lanes, active)
        index = self.consecutive(op, target, op.dst_indices, lanes, active)
        self._copies_in_flight.append((target, *target.begin_copy(index, values, access), self._groups.copy()))
        self.values[op.token] = np.asarray(0)

    def _source_of(self, op: nvgpu.CopyOp, source: CheckedBuffer, lanes: int, active: Bools) -> Values:
        """Return the elements that a copy reads, `lanes` for each thread; with `src_elements`, the lanes from that
        number on are zero and are not read from memory for a count of 0."""
        if op.src_elements is None:
            return source.read(self.consecutive(op, source, op.src_indices, lanes, active), self.access(op, active))
        count = np.broadcast_to(self.values[op.src_elements], (self.count,))
        reading = active & (count > 0)
        values = source.read(
            self.consecutive(op, source, op.src_indices, lanes, reading), self.access(op, reading)
        ).reshape(self.count, -1)
        return np.where(np.arange(values.shape[1]) < count[:, None], values, np.zeros((), values.dtype))

    def group(self, op: nvgpu.GroupOp, active: Bools) -> None:
        """Close the group of the copies that each active thread has begun since its last group."""
        self._groups += active
        self.values[op.token] = np.asarray(0)

    def wait(self, op: nvgpu.WaitOp, active: Bools) -> None:
        """Complete copies of the active threads: with `groups`, those of all closed groups except that many latest
        ones; without it, all copies, those in no group included."""
        remaining = []
        for memory, offsets, copying, groups in self._copies_in_flight:
            arriving = active if op.groups is None else active & (groups < self._groups - op.groups.value.data)
            waiting = arriving[:, None] if copying.ndim == 2 else arriving
            if (copying & waiting).any():
                memory.arrive(offsets, copying & waiting, self.access(op, active))
            if (copying & ~waiting).any():
                remaining.append((memory, offsets, copying & ~waiting, groups))
        self._copies_in_flight = remaining

    # --- control --------------------------------------------------------------------------------------------------

    def barrier(self, op: Operation, active: Bools) -> None:
        """Begin the next interval between barriers; report a barrier that not all threads reach."""
        if not active.all():
            waiting, missing = int(np.argmax(active)), int(np.argmin(active))
            self.report(Fault("divergent barrier", self.words(op), "", (), (self.number,), (waiting, missing)))
        self.moment += 1

    def arrive(self, op: ArriveOp, active: Bools) -> None:
        """Count the arrival of the block, as behind a barrier; the last one has seen what all others did before."""
        self.barrier(op, active)
        index, count, memory = int(self.values[op.index]), op.count.value.data, self.memories[op.counters]
        access = self.access(op, active)
        (former,) = memory.read([np.full(self.count, index)], access)[:1]
        arrived = self._arrived.setdefault((op.counters, index), [])
        is_last = int(former) == count - 1
        memory.data[index] = 0 if is_last else former + 1
        self.seen = np.array([*(arrived if is_last else ()), self.number])
        self._arrived[op.counters, index] = [] if is_last else [*arrived, self.number]
        self.values[op.last] = np.asarray(is_last)
        self.moment += 1

    def branch(self, op: scf.IfOp, active: Bools) -> None:
        """Run the branches that any active thread takes, each under its mask, and merge their results; with one branch
        taken, its results are those of all threads."""
        truth = np.broadcast_to(self.values[op.cond], (self.count,))
        sides = []
        for region, mask in ((op.true_region, active & truth), (op.false_region, active & ~truth)):
            values: Sequence[Values] = []
            if region.blocks and mask.any():
                values = self._block(region.block, mask)
            sides.append(values)
        for number, value in enumerate(op.results):
            then_value, else_value = (side[number] if side else None for side in sides)
            if then_value is None or else_value is None:
                self.values[value] = then_value if then_value is not None else else_value  # type: ignore[assignment]
                continue
            self.values[value] = np.where(_mask(truth, value), then_value, else_value)

    def loop(self, op: scf.ForOp, active: Bools) -> None:
        """Run the iterations of all threads together; threads that are done, or were inactive, are inactive. The step
        is positive."""
        body = op.body.block
        lower, upper, step = (self.values[value] for value in (op.lb, op.ub, op.step))
        carried = [self.values[value] for value in op.iter_args]
        if lower.ndim == upper.ndim == step.ndim == 0:
            for number in range(int(lower), int(upper), int(step)):
                self.values[body.args[0]] = np.asarray(number)
                self.values.update(zip(body.args[1:], carried, strict=True))
                carried = list(self._block(body, active))
            self.values.update(zip(op.results, carried, strict=True))
            return
        index = lower
        while True:
            mask = active & np.broadcast_to(index < upper, (self.count,))
            if not mask.any():
                break
            self.values[body.args[0]] = index
            self.values.update(zip(body.args[1:], carried, strict=True))
            yielded = self._block(body, mask)
            pairs = zip(yielded, carried, op.results, strict=True)
            carried = [new if mask.all() else np.where(_mask(mask, value), new, old) for new, old, value in pairs]
            index = index + step
        self.values.update(zip(op.results, carried, strict=True))


def _code_of(body: Block) -> tuple[list[_Step], tuple[SSAValue, ...]]:
    """Prepare the ops of a body, without its terminator, and return them with the values that it yields, none without a
    terminator."""
    *ops, last = body.ops
    if isinstance(last, scf.YieldOp | gpu.ReturnOp):
        return [_Step(op) for op in ops], tuple(last.operands)
    return [_Step(op) for op in body.ops], ()


def corners(grid: tuple[int, int, int]) -> list[int]:
    """Return the numbers of the first block, of its neighbours along the dimensions of extent above 1, and of the last,
    each once."""
    strides = (1, grid[0], grid[0] * grid[1])
    neighbours = [stride for stride, extent in zip(strides, grid, strict=True) if extent > 1]
    return list(dict.fromkeys([0, *neighbours, prod(grid) - 1]))


def _sampled_blocks(grid: tuple[int, int, int], sample: BlockSample | None) -> Sequence[int]:
    count = prod(grid)
    if sample is None or sample.blocks >= count:
        return range(count)
    corner_blocks = corners(grid)
    further = max(0, sample.blocks - len(corner_blocks))
    return list(dict.fromkeys([*corner_blocks, *((n + 1) * (count - 1) // (further + 1) for n in range(further))]))


def _mask(active: Bools, value: SSAValue) -> Bools:
    """Return the mask of active threads in the rank of a value: one element or several a thread."""
    return active[:, None] if isinstance(value.type, VectorType) else active


Handler = Callable[[ThreadLanes, Any, Bools], None]  # each takes the ops of its own class

_OPS: Mapping[type[Operation], Handler] = {
    arith.ConstantOp: ThreadLanes.constant,
    gpu.ThreadIdOp: ThreadLanes.position,
    gpu.BlockIdOp: ThreadLanes.position,
    gpu.BlockDimOp: ThreadLanes.position,
    gpu.GridDimOp: ThreadLanes.position,
    gpu.BarrierOp: ThreadLanes.barrier,
    ArriveOp: ThreadLanes.arrive,
    memref.AllocaOp: ThreadLanes.alloca,
    memref.GetGlobalOp: ThreadLanes.get_global,
    memref.LoadOp: ThreadLanes.load,
    memref.StoreOp: ThreadLanes.store,
    nvgpu.CopyOp: ThreadLanes.copy,
    nvgpu.GroupOp: ThreadLanes.group,
    nvgpu.WaitOp: ThreadLanes.wait,
    nvgpu.LoadMatrixOp: warps.load_matrix,
    nvgpu.MmaOp: warps.multiply,
    ShuffleOp: warps.shuffle,
    vector.LoadOp: ThreadLanes.load_vector,
    vector.StoreOp: ThreadLanes.store_vector,
    vector.BroadcastOp: ThreadLanes.broadcast,
    vector.ExtractOp: ThreadLanes.extract,
    vector.InsertOp: ThreadLanes.insert,
    vector.ShuffleOp: ThreadLanes.select_registers,
    vector.FMAOp: ThreadLanes.fma,
    vector.ReductionOp: ThreadLanes.reduction,
    scf.IfOp: ThreadLanes.branch,
    scf.ForOp: ThreadLanes.loop,
}
