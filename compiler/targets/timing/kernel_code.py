"""`kernel_code`: the code of a kernel from its IR, as a compiler would leave it.

The IR is evaluated for all threads of a few blocks at once, loops at a few iterations: that tells which warps execute
an instruction, and which addresses they access. What a compiler does is counted, not done:

- equal expressions and loads are computed once, before the loops on which they do not depend, and loads of neighbours
  in shared memory together;
- index arithmetic is a linear form: one instruction a term, none for constants, which addresses take;
- loops that the text marks, or of at most FULL ops in all, are unrolled; others by UNROLL;
- local buffers at constant indices are registers; products are fused into sums;
- a condition is a comparison and a jump; both sides run if their threads are in one warp.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects import arith, gpu, memref, scf, vector
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType
from xdsl.ir import Block, Operation

from compiler.dialects.grid import ArriveOp
from compiler.dialects.upstream import nvgpu
from compiler.dialects.upstream.gpu import ShuffleOp
from compiler.interpret.scalar import function
from compiler.targets.cuda.unrolling import is_unrolled
from compiler.targets.launches import SIDES, KernelLaunch, allocated_bytes, is_shared
from compiler.targets.timing.code import BARRIER, CONTROL, COPY, GLOBAL, INTEGER, SHARED, Code, Repeat, WarpInstruction
from compiler.targets.timing.counts import UNKNOWN_TRIPS, elements, is_fused, kinds, op_count
from compiler.targets.timing.memory import MemoryReader
from compiler.targets.timing.values import Lanes, LinearValue, added, number, register, times

FULL, UNROLL, PARTIAL = 160, 4, 40
"""Loops of at most FULL ops in all iterations are unrolled, others of at most PARTIAL ops in one by UNROLL."""
SECTOR = 32.0
"""The bytes that an update of a counter moves."""
DEEP = 3
"""From this depth of loops on one iteration is sampled."""


class KernelReader(MemoryReader):
    """An evaluator of a kernel's body for sampled blocks of threads, which collects the kernel's code. After `read`,
    `last_code` is the additional code of the last block to arrive, of every `arrivals` blocks."""

    def __init__(self, launch: KernelLaunch) -> None:
        super().__init__(launch)
        self.last_code: list[Code] = []
        self.arrivals = 1

    def read(self) -> list[Code]:
        """Evaluate the kernel's body; return the instructions that all blocks execute, in order, a loop that is not
        unrolled as up to three `Repeat`s. Raises InputError for an op on integers without an evaluation."""
        body = self.launch.kernel.body.block
        for argument, operand in zip(body.args, self.launch.operands, strict=True):
            self.buffers[argument] = operand
        with np.errstate(all="ignore"):
            self.run(body, self.masks[0])
        return self.code[0]

    def run(self, body: Block, active: Any) -> list[LinearValue]:
        """Evaluate the ops of a block for the `active` threads; return the values that it yields."""
        for op in body.ops:
            if isinstance(op, scf.YieldOp):
                return [self.values[v] for v in op.operands]
            handler = _OPS.get(type(op), KernelReader.scalar)
            handler(self, op, active)
        return []

    def constant(self, op: arith.ConstantOp, active: Any) -> None:
        """Evaluate a constant, which costs no instruction, whichever threads are `active`."""
        value = op.value
        self.values[op.result] = number(value.value.data) if isinstance(value, IntegerAttr) else LinearValue(())

    def position(self, op: Any, active: Any) -> None:
        """Evaluate the index of threads or blocks, or their number, along a dimension, whichever threads are
        `active`."""
        side = SIDES.index(op.dimension.data.value)
        if isinstance(op, gpu.BlockDimOp | gpu.GridDimOp):
            extents = self.launch.block if isinstance(op, gpu.BlockDimOp) else self.launch.grid
            self.values[op.results[0]] = number(extents[side])
            return
        is_thread = isinstance(op, gpu.ThreadIdOp)
        extents = self.launch.block if is_thread else self.launch.grid
        lanes = (self.thread if is_thread else self.block) // prod(extents[:side]) % extents[side]
        key = ("thread" if is_thread else "block", side)
        if extents[side] == 1:
            self.values[op.results[0]] = number(0)
            return
        self.values[op.results[0]] = self.named(self.pure(key, [INTEGER], ()), lanes)

    def scalar(self, op: Operation, active: Any) -> None:
        """Evaluate an op without effects: as a number if its operands are constants, as a sum of registers if it is
        linear or fused into its user, else as a new register that all its results share."""
        if not op.results:
            return
        operands = [self.values.get(v) or LinearValue(()) for v in op.operands]
        linear = self._linear(op, operands)
        if linear is not None:
            self.values[op.results[0]] = linear
            return
        lanes = self._lanes(op, operands)
        if operands and all(v.is_constant for v in operands) and isinstance(lanes, int | bool | np.integer | np.bool_):
            self.values[op.results[0]] = number(int(lanes))
            return
        if is_fused(op):
            self.values[op.results[0]] = LinearValue(tuple((r, 1) for r in dict.fromkeys(self.regs(operands))))
            return
        sources = tuple(r for v in operands for r in self._sources(v))
        constants = tuple(v.constant for v in operands)
        key = (op.name, str(op.properties.get("predicate", "")), sources, constants)
        width = elements(op.results[0])
        register_ = self.pure(key, kinds(op, operands) * width, sources)
        self.numbers[register_] = self._guessed(op, operands) if lanes is None else lanes
        computed = register(register_, lanes)
        for result in op.results:
            self.values[result] = computed

    def _guessed(self, op: Operation, operands: Sequence[LinearValue]) -> Lanes:
        """Return arbitrary integers for an integer result that depends on loaded ones: those of the first operand that
        does; None for other results."""
        if not isinstance(op.results[0].type, IndexType | IntegerType):
            return None
        return next((self.guess(v) for v in operands if v.terms and v.lanes is None), None)

    def _linear(self, op: Operation, operands: Sequence[LinearValue]) -> LinearValue | None:
        if not op.results or not isinstance(op.results[0].type, IndexType | IntegerType):
            return None
        if isinstance(op, arith.AddiOp):
            return added(operands[0], operands[1])
        if isinstance(op, arith.SubiOp):
            return added(operands[0], operands[1], -1)
        if isinstance(op, arith.MuliOp):
            a, b = operands
            if b.is_constant:
                return times(a, b.constant)
            return times(b, a.constant) if a.is_constant else None
        if op.name in ("arith.index_cast", "arith.extsi", "arith.extui", "arith.trunci"):
            return operands[0]
        return None

    def _lanes(self, op: Operation, operands: Sequence[LinearValue]) -> Lanes:
        """Return the integers of an op's result in the sampled threads; None for a result of another type, for an op
        without operands or of another dialect than arith, and if the integers of an operand are unknown."""
        if not isinstance(op.results[0].type, IndexType | IntegerType):
            return None
        lanes: list[Any] = [v.lanes for v in operands]
        if not lanes or any(part is None for part in lanes):
            return None
        if isinstance(op, arith.SelectOp):
            selected: Lanes = np.where(lanes[0], lanes[1], lanes[2])
            return selected
        if not op.name.startswith("arith."):
            return None
        return function(op)(*[np.asarray(part) for part in lanes])  # type: ignore[no-any-return]

    def barrier(self, op: Operation, active: Any) -> None:
        """Emit a barrier, after which loads from shared memory are repeated."""
        self.emit(BARRIER, active, None, ())
        for name in self.buffers.values():
            if isinstance(name, tuple) and name[0] == SHARED:
                self.version[name] = self.version.get(name, 0) + 1

    def arrive(self, op: ArriveOp, active: Any) -> None:
        """Emit the arrival of a block: a fence, an update of the counter and another fence, by the first thread between
        barriers."""
        first = active & (self.thread == 0)
        self.barrier(op, active)
        counted: tuple[Hashable, ...] = ()
        for _ in range(3):
            key = self.fresh()
            self.emit(GLOBAL, first, key, counted, rounds=1.0, bytes=SECTOR, is_load=True)
            counted = (key,)
        self.emit(CONTROL, first, None, counted)
        self.barrier(op, active)
        self.values[op.last] = register(self.fresh())

    def branch(self, op: scf.IfOp, active: Any) -> None:
        """Evaluate what the last block to arrive executes as code of its own, or what a condition guards."""
        if not isinstance(op.cond.owner, ArriveOp):
            self._branch(op, active)
            return
        self.arrivals = op.cond.owner.count.value.data
        before, self.code[0] = self.code[0], []
        self.loaded.append({})
        self.run(op.true_region.block, active)
        self.loaded.pop()
        self.last_code, self.code[0] = self.code[0], before

    def _branch(self, op: scf.IfOp, active: Any) -> None:
        """Evaluate the regions that active threads execute, both if the condition is unknown, and merge their results;
        a constant condition costs nothing. active: the mask of the sampled threads."""
        condition = self.values[op.cond]
        lanes = condition.lanes
        truth = (
            np.ones(len(active), np.bool_)
            if lanes is None
            else np.broadcast_to(np.asarray(lanes, np.bool_), active.shape)
        )
        no = truth if lanes is None else ~truth
        if not condition.is_constant:
            self.emit(CONTROL, active, None, self.regs([condition]))
        sides = []
        for region, mask in ((op.true_region, truth), (op.false_region, no)):
            taken = active if mask.all() else active & mask
            yielded: list[LinearValue] = []
            if region.blocks and taken.any():
                self.loaded.append({})
                yielded = self.run(region.block, taken)
                self.loaded.pop()
            sides.append(yielded)
        for n, result in enumerate(op.results):
            arms = [side[n] for side in sides if side]
            if len(arms) == 1 or (len(arms) == 2 and arms[0] == arms[1]):
                self.values[result] = arms[0]
                continue
            key = self.fresh()
            self.emit(COPY, active, key, self.regs(arms))
            known = lanes is not None and len(arms) == 2 and all(arm.lanes is not None for arm in arms)
            self.values[result] = register(key, np.where(truth, arms[0].lanes, arms[1].lanes) if known else None)  # type: ignore[arg-type]

    def loop(self, op: scf.ForOp, active: Any) -> None:
        """Evaluate a loop: all its iterations if there is at most one, if it `is_unrolled` or if they have at most FULL
        ops in all, else samples of them."""
        bounds = [self.values[v] for v in (op.lb, op.ub, op.step)]
        carried = [self.values[v] for v in op.iter_args]
        numbers = [_number(v) for v in bounds]
        if any(n is None for n in numbers):
            carried = self._sampled(op, active, carried, None)
        else:
            iterations = range(*numbers)  # type: ignore[arg-type]
            size = op_count(op.body.block)
            if len(iterations) <= 1 or is_unrolled(op) or size * len(iterations) <= FULL:
                for step in iterations:
                    carried = self._iteration(op, active, number(step), carried, step)
            else:
                carried = self._sampled(op, active, carried, iterations)
        self.values.update(zip(op.results, carried, strict=True))

    def _iteration(
        self, op: scf.ForOp, active: Any, index: LinearValue, carried: Sequence[LinearValue], step: Hashable
    ) -> list[LinearValue]:
        body = op.body.block
        self.values[body.args[0]] = index
        self.values.update(zip(body.args[1:], carried, strict=True))
        former, self.path = self.path, (*self.path, step)
        yielded = self.run(body, active)
        self.path = former
        return yielded

    def _sampled(
        self, op: scf.ForOp, active: Any, carried: Sequence[LinearValue], iterations: range | None
    ) -> list[LinearValue]:
        """Evaluate two neighbouring rounds in the middle of a loop and the last one, the second standing for all
        others; of fewer than 3 rounds, and at a depth above DEEP, only the first, standing for all. A round is UNROLL
        iterations if their number is a multiple of it and a body has at most PARTIAL ops, else one. Return the loop's
        results. `iterations` is None for bounds that are not constant, which count as UNKNOWN_TRIPS."""
        count = UNKNOWN_TRIPS if iterations is None else len(iterations)
        unroll = UNROLL if iterations is not None and count % UNROLL == 0 and op_count(op.body.block) <= PARTIAL else 1
        rounds = count // unroll
        samples = (
            {0: rounds}
            if rounds < 3 or len(self.code) > DEEP
            else {rounds // 2 - 1: 1, rounds // 2: rounds - 2, rounds - 1: 1}
        )
        for at, weight in samples.items():
            self.code.append([])
            self.masks.append(active)
            self.available.append({})
            self.loaded.append({})
            key = self.fresh()
            start = dict(self.local)
            entries = [register(self.fresh()) for _ in carried]
            first = entries
            for u in range(unroll):
                lanes = None if iterations is None else iterations[at * unroll + u]
                step = 0 if iterations is None else iterations.step
                self.numbers[key] = None if lanes is None else lanes - u * step
                entries = self._iteration(op, active, LinearValue(((key, 1),), u * step, lanes), entries, u)
            self._close(start, first, entries, key, active)
            body = self.code.pop()
            self.masks.pop()
            self.available.pop()
            self.loaded.pop()
            for value, before in zip(first, carried, strict=True):
                self.emit(COPY, active, value.terms[0][0], self.regs([before]))
            self.code[-1].append(Repeat(weight, body))
            carried = entries
        for name in self.version:
            self.version[name] += 1
        return [register(self._after(value)) for value in carried]

    def _after(self, value: LinearValue) -> Hashable:
        found = self.reg(value)
        key = self.fresh()
        self.depth[key] = len(self.code) - 1
        self.code[-1].append(WarpInstruction(COPY, key, () if found is None else (found,)))
        return key

    def _close(
        self,
        start: Mapping[Any, Hashable],
        first: Sequence[LinearValue],
        entries: Sequence[LinearValue],
        key: Hashable,
        active: Any,
    ) -> None:
        """End the body of a loop with copies of the registers that it carries, the counter's update and the jump back.
        start: the registers of local elements before the body. first, entries: the loop-carried values before and after
        it. key: the counter's register. active: the threads that run the loop."""
        for place, register_ in list(self.local.items()):
            before = start.get(place, ("local", *place))
            if register_ != before:
                self.emit(COPY, active, before, (register_,))
                self.local[place] = before
        for value, new in zip(first, entries, strict=True):
            self.emit(COPY, active, value.terms[0][0], self.regs([new]))
        self.emit(INTEGER, active, key, (key,))
        test = self.fresh()
        self.emit(INTEGER, active, test, (key,))
        self.emit(CONTROL, active, None, (test,))


def _number(value: LinearValue) -> int | None:
    return value.constant if value.is_constant and value.lanes is not None else None


Handler = Callable[[KernelReader, Any, Any], None]
_OPS: Mapping[type[Operation], Handler] = {
    arith.ConstantOp: KernelReader.constant,
    gpu.ThreadIdOp: KernelReader.position,
    gpu.BlockIdOp: KernelReader.position,
    gpu.BlockDimOp: KernelReader.position,
    gpu.GridDimOp: KernelReader.position,
    gpu.BarrierOp: KernelReader.barrier,
    memref.AllocaOp: KernelReader.alloca,
    memref.GetGlobalOp: KernelReader.get_global,
    memref.LoadOp: KernelReader.load,
    memref.StoreOp: KernelReader.store,
    vector.LoadOp: KernelReader.load,
    vector.StoreOp: KernelReader.store,
    nvgpu.CopyOp: KernelReader.copy,
    nvgpu.GroupOp: KernelReader.group,
    nvgpu.WaitOp: KernelReader.wait,
    nvgpu.LoadMatrixOp: KernelReader.fragment,
    nvgpu.MmaOp: KernelReader.multiply,
    ShuffleOp: KernelReader.shuffle,
    ArriveOp: KernelReader.arrive,
    scf.IfOp: KernelReader.branch,
    scf.ForOp: KernelReader.loop,
}


ADDRESSES = 20
"""Registers of a thread besides its local buffers: indices, pointers, loads under way."""


def registers_of(kernel: gpu.FuncOp) -> int:
    """Return an estimate of a thread's 32-bit registers without a compiler: those of its local buffers, each padded to
    16 bytes, and ADDRESSES."""
    local = [op for op in kernel.walk() if isinstance(op, memref.AllocaOp) and not is_shared(op)]
    return ADDRESSES + sum(-(-allocated_bytes(op) // 4) for op in local)
