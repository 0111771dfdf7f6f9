"""A kernel run on numpy: all threads of a block at once, op by op, under masks where they part."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects import arith, gpu, memref, scf, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, MemRefType, VectorType
from xdsl.ir import Block, Operation, SSAValue

from compiler.dialects.numbers import array_of, constant, dtype_of
from compiler.dialects.upstream import nvgpu
from compiler.dialects.upstream.gpu import ShuffleOp
from compiler.interpret.scalar import combiner, function
from compiler.targets.launches import SIDES, elements_of
from compiler.targets.simt import warps
from compiler.targets.simt.access import Bools, Fault, Ints, Values
from compiler.targets.simt.buffers import Memory
from compiler.targets.simt.threads import Threads, sides_of
from compiler.types.scopes import SCOPES, space_of

SPACES = {SCOPES[scope]: scope for scope in ("global", "shared", "local")}
"""The spaces of memory by their numbers."""


@dataclass(frozen=True)
class Sample:
    """Which blocks of a grid run: the first, its neighbour along each dimension and the last; others until there are so
    many `blocks`, but none after so many ops of a kernel."""

    blocks: int
    steps: int


class _Step:
    """The handling of an op, looked up once: its handler or its function, its operands and its result."""

    __slots__ = ("function", "handler", "op", "operands", "result")

    def __init__(self, op: Operation) -> None:
        self.op, self.operands = op, tuple(op.operands)
        self.handler = _OPS.get(type(op))
        if self.handler is None:
            self.function = _selected if isinstance(op, arith.SelectOp) else function(op)
            self.result = op.results[0]


def _selected(truth: Values, yes: Values, no: Values) -> Values:
    """Of each thread one of two values, a number or a vector."""
    return np.where(truth[..., None] if yes.ndim > truth.ndim else truth, yes, no)


@dataclass
class ThreadLanes(Threads):
    """The threads of a block, run op by op."""

    on_chip: dict[SSAValue, Memory] = field(default_factory=dict)
    constants: dict[SSAValue, Memory] = field(default_factory=dict)
    _under_way: list[tuple[Memory, Ints, Bools]] = field(default_factory=list)
    _steps: int = 0
    _code: dict[Block, tuple[list[_Step], tuple[SSAValue, ...]]] = field(default_factory=dict)
    _read: dict[Operation, tuple[SSAValue, ...]] = field(default_factory=dict)

    def run(self, body: Block, sample: Sample | None = None) -> None:
        """Run the blocks of the grid, or a sample of them, one after another."""
        given = dict(self.memories)
        with np.errstate(all="ignore"):
            self._run(body, given, sample)

    def _run(self, body: Block, given: dict[SSAValue, Memory], sample: Sample | None) -> None:
        first = corners(self.call.grid)
        for number in _chosen(self.call.grid, sample):
            if sample is not None and self._steps > sample.steps and number not in first:
                return
            self.at = sides_of(number, self.call.grid)
            self.values, self.memories, self._under_way = {}, dict(given), []
            self.moment += 1
            self.everyone = np.ones(self.count, np.bool_)
            self._block(body, self.everyone)

    def _block(self, body: Block, active: Bools) -> Sequence[Values]:
        """Run the ops of a body; the values it yields."""
        code = self._code.get(body)
        if code is None:
            code = self._code[body] = _code_of(body)
        steps, yielded = code
        self._steps += len(steps)
        values = self.values
        for step in steps:
            if step.handler is not None:
                step.handler(self, step.op, active)
            else:
                values[step.result] = np.asarray(step.function(*[values[value] for value in step.operands]))
        return [values[value] for value in yielded]

    def _operands(self, op: Operation) -> tuple[SSAValue, ...]:
        operands = self._read.get(op)
        if operands is None:
            operands = self._read[op] = tuple(op.operands)
        return operands

    # --- values ---------------------------------------------------------------------------------------------------

    def constant(self, op: arith.ConstantOp, active: Bools) -> None:
        """A number, or one a lane."""
        value = op.value
        if isinstance(value, DenseIntOrFPElementsAttr):
            type_ = op.result.type
            assert isinstance(type_, VectorType)
            numbers = np.array(value.get_values(), dtype_of(type_.element_type))
            self.values[op.result] = np.broadcast_to(numbers, (prod(type_.get_shape()),))
        else:
            self.values[op.result] = np.asarray(constant(value))

    def position(self, op: gpu.ThreadIdOp | gpu.BlockIdOp | gpu.BlockDimOp | gpu.GridDimOp, active: Bools) -> None:
        """A hardware index or extent."""
        side = SIDES.index(op.dimension.data.value)
        if isinstance(op, gpu.ThreadIdOp):
            places = sides_of(np.arange(self.count), self.call.block)[side]
        elif isinstance(op, gpu.BlockIdOp):
            places = np.asarray(np.int64(self.at[side]))
        else:
            extents = self.call.block if isinstance(op, gpu.BlockDimOp) else self.call.grid
            places = np.asarray(np.int64(extents[side]))
        self.values[op.results[0]] = places

    def broadcast(self, op: vector.BroadcastOp, active: Bools) -> None:
        """A number in all lanes."""
        type_ = op.results[0].type
        assert isinstance(type_, VectorType)
        source = self.values[op.source]
        self.values[op.results[0]] = np.repeat(source[..., None], type_.get_shape()[0], axis=-1)

    def extract(self, op: vector.ExtractOp, active: Bools) -> None:
        """One lane, or register of a small matrix."""
        (lane,) = op.static_position.get_values()
        lanes_there, type_ = self.values[op.vector], op.result.type
        if isinstance(type_, VectorType):
            (size,) = type_.get_shape()
            self.values[op.result] = lanes_there[..., lane * size : (lane + 1) * size]
        else:
            self.values[op.result] = lanes_there[..., lane]

    def insert(self, op: vector.InsertOp, active: Bools) -> None:
        """A vector with one other lane."""
        (lane,) = op.static_position.get_values()
        source, dest = self.values[op.source], self.values[op.dest]
        made = np.broadcast_to(dest, (*np.broadcast_shapes(source.shape, dest.shape[:-1]), dest.shape[-1])).copy()
        made[..., lane] = source
        self.values[op.result] = made

    def fma(self, op: vector.FMAOp, active: Bools) -> None:
        """a * b + c, rounded once."""
        a, b, c = (self.values[value] for value in (op.lhs, op.rhs, op.acc))
        self.values[op.res] = (a.astype(np.float64) * b + c).astype(a.dtype)

    def reduction(self, op: vector.ReductionOp, active: Bools) -> None:
        """All lanes combined."""
        kind = op.kind.data.value
        name = {"maximumf": "max", "minimumf": "min", "maxsi": "max", "minsi": "min"}.get(kind, kind)
        source = self.values[op.vector]
        self.values[op.dest] = combiner(name, source.dtype).reduce(source, axis=-1)

    # --- memory ---------------------------------------------------------------------------------------------------

    def alloca(self, op: memref.AllocaOp, active: Bools) -> None:
        """A buffer on the chip: anew in each block, and where it is allocated again nothing is known of it."""
        memory = self.on_chip.get(op.memref)
        type_ = op.memref.type
        assert isinstance(type_, MemRefType)
        space = SPACES[space_of(type_)]
        if memory is None or (op.memref not in self.memories):
            name = op.memref.name_hint or "buffer"
            counts = memory.counts if memory is not None else None
            shape, element = type_.get_shape(), type_.element_type
            if isinstance(element, VectorType):
                shape, element = (*shape, prod(element.get_shape())), element.element_type
            memory = Memory(name, shape, dtype_of(element), space, self.count, self.report)
            memory.counts = counts if counts is not None else memory.counts
            self.on_chip[op.memref] = memory
        memory.lose_all()
        self.memories[op.memref] = memory

    def get_global(self, op: memref.GetGlobalOp, active: Bools) -> None:
        """A constant of the module."""
        if op.memref not in self.constants:
            elements = array_of(elements_of(op).data)
            name = op.memref.name_hint or "constant"
            memory = Memory(name, elements.shape, elements.dtype, "global", 1, self.report)
            memory.fill(elements)
            self.constants[op.memref] = memory
        self.memories[op.memref] = self.constants[op.memref]

    def load(self, op: memref.LoadOp, active: Bools) -> None:
        """An element a thread."""
        buffer, *indices = self._operands(op)
        places = self._places(buffer, indices)
        self.values[op.results[0]] = self.memories[buffer].read(places, self.access(op, active))

    def store(self, op: memref.StoreOp, active: Bools) -> None:
        """An element a thread."""
        value, buffer, *indices = self._operands(op)
        self.memories[buffer].write(self._places(buffer, indices), self.values[value], self.access(op, active))

    def _places(self, buffer: SSAValue, indices: Sequence[SSAValue]) -> list[Ints]:
        """The indices of an element, which may be what a thread holds of a small matrix: then (n, elements)."""
        places, memory = [self.values[v] for v in indices], self.memories[buffer]
        if len(memory.shape) > len(places):
            places.append(np.arange(memory.shape[-1])[None])
        return places

    def load_vector(self, op: vector.LoadOp, active: Bools) -> None:
        """Elements side by side, at an address that is a multiple of their size."""
        memory, type_ = self.memories[op.base], op.result.type
        assert isinstance(type_, VectorType)
        index = self.side_by_side(op, memory, op.indices, type_.get_shape()[0], active)
        self.values[op.result] = memory.read(index, self.access(op, active))

    def store_vector(self, op: vector.StoreOp, active: Bools) -> None:
        """Elements side by side, at an address that is a multiple of their size."""
        memory, value = self.memories[op.base], self.values[op.vector]
        lanes = value.shape[-1]
        index = self.side_by_side(op, memory, op.indices, lanes, active)
        memory.write(index, np.broadcast_to(value, (self.count, lanes)), self.access(op, active))

    def copy(self, op: nvgpu.CopyOp, active: Bools) -> None:
        """Elements side by side, at addresses that are multiples of their size, to shared memory; unknown there until
        the threads have waited."""
        lanes, access = op.count.value.data, self.access(op, active)
        source, target = self.memories[op.src], self.memories[op.dst]
        values = source.read(self.side_by_side(op, source, op.src_indices, lanes, active), access)
        index = self.side_by_side(op, target, op.dst_indices, lanes, active)
        self._under_way.append((target, *target.begin_copy(index, values, access)))
        self.values[op.token] = np.asarray(0)

    def group(self, op: nvgpu.GroupOp, active: Bools) -> None:
        """All copies that were begun are waited for together."""
        self.values[op.token] = np.asarray(0)

    def wait(self, op: nvgpu.WaitOp, active: Bools) -> None:
        """What the threads have copied is there."""
        left = []
        for memory, places, who in self._under_way:
            mine = active[:, None] if who.ndim == 2 else active
            memory.arrive(places, who & mine, self.access(op, active))
            if (who & ~mine).any():
                left.append((memory, places, who & ~mine))
        self._under_way = left

    # --- control --------------------------------------------------------------------------------------------------

    def barrier(self, op: gpu.BarrierOp, active: Bools) -> None:
        """All threads of the block wait for each other: that all come is checked."""
        if not active.all():
            waiting, missing = int(np.argmax(active)), int(np.argmin(active))
            self.report(Fault("divergent barrier", self.words(op), "", (), (self.number,), (waiting, missing)))
        self.moment += 1

    def branch(self, op: scf.IfOp, active: Bools) -> None:
        """Both sides, each for its threads."""
        truth = np.broadcast_to(self.values[op.cond], (self.count,))
        sides = []
        for region, mine in ((op.true_region, active & truth), (op.false_region, active & ~truth)):
            values: Sequence[Values] = []
            if region.blocks and mine.any():
                values = self._block(region.block, mine)
            sides.append(values)
        for number, value in enumerate(op.results):
            yes, no = (side[number] if side else None for side in sides)
            if yes is None or no is None:
                self.values[value] = yes if yes is not None else no  # type: ignore[assignment]
                continue
            self.values[value] = np.where(_mask(truth, value), yes, no)

    def loop(self, op: scf.ForOp, active: Bools) -> None:
        """The iterations of all threads together; finished threads wait for the others."""
        body = op.body.block
        lower, upper, step = (self.values[last] for last in (op.lb, op.ub, op.step))
        carried = [self.values[last] for last in op.iter_args]
        if lower.ndim == upper.ndim == step.ndim == 0:
            for number in range(int(lower), int(upper), int(step)):
                self.values[body.args[0]] = np.asarray(number)
                self.values.update(zip(body.args[1:], carried, strict=True))
                carried = list(self._block(body, active))
            self.values.update(zip(op.results, carried, strict=True))
            return
        at = lower
        while True:
            mine = active & np.broadcast_to(at < upper, (self.count,))
            if not mine.any():
                break
            self.values[body.args[0]] = at
            self.values.update(zip(body.args[1:], carried, strict=True))
            yielded = self._block(body, mine)
            kept = zip(yielded, carried, op.results, strict=True)
            carried = [new if mine.all() else np.where(_mask(mine, value), new, old) for new, old, value in kept]
            at = at + step
        self.values.update(zip(op.results, carried, strict=True))


def _code_of(body: Block) -> tuple[list[_Step], tuple[SSAValue, ...]]:
    """The steps of a body, and the values it yields."""
    *ops, last = body.ops
    if isinstance(last, scf.YieldOp | gpu.ReturnOp):
        return [_Step(op) for op in ops], tuple(last.operands)
    return [_Step(op) for op in body.ops], ()


def corners(grid: tuple[int, int, int]) -> list[int]:
    """The numbers of the first block, of its neighbours along the dimensions, and of the last."""
    strides = (1, grid[0], grid[0] * grid[1])
    beside = [stride for stride, extent in zip(strides, grid, strict=True) if extent > 1]
    return list(dict.fromkeys([0, *beside, prod(grid) - 1]))


def _chosen(grid: tuple[int, int, int], sample: Sample | None) -> Sequence[int]:
    """The numbers of the blocks that run: the first with its neighbours, the last, then some between."""
    count = prod(grid)
    if sample is None or sample.blocks >= count:
        return range(count)
    first = corners(grid)
    more = max(0, sample.blocks - len(first))
    return list(dict.fromkeys([*first, *((part + 1) * (count - 1) // (more + 1) for part in range(more))]))


def _mask(active: Bools, value: SSAValue) -> Bools:
    """Who is active, for values of one element or several a thread."""
    return active[:, None] if isinstance(value.type, VectorType) else active


Handler = Callable[[ThreadLanes, Any, Bools], None]  # each takes the ops of its own class

_OPS: Mapping[type[Operation], Handler] = {
    arith.ConstantOp: ThreadLanes.constant,
    gpu.ThreadIdOp: ThreadLanes.position,
    gpu.BlockIdOp: ThreadLanes.position,
    gpu.BlockDimOp: ThreadLanes.position,
    gpu.GridDimOp: ThreadLanes.position,
    gpu.BarrierOp: ThreadLanes.barrier,
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
    vector.FMAOp: ThreadLanes.fma,
    vector.ReductionOp: ThreadLanes.reduction,
    scf.IfOp: ThreadLanes.branch,
    scf.ForOp: ThreadLanes.loop,
}
