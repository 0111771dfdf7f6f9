"""The writing block of each element, over the whole grid, from a kernel's index arithmetic alone.

If only a sample of the blocks runs, this detects a grid that is too small, and two blocks that write one element. It is
exact: the indices and conditions of each store to global memory are computed for every block, every thread and every
iteration of the loops that they depend on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

import numpy as np
from xdsl.dialects import arith, gpu, memref, scf, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, VectorType
from xdsl.ir import Block, Operation, SSAValue

from compiler.dialects.grid import ArriveOp
from compiler.dialects.numbers import constant
from compiler.interpret.scalar import function
from compiler.support.errors import InputError
from compiler.targets.launches import SIDES, KernelLaunch
from compiler.targets.simt.access import Fault, FaultReporter, Values
from compiler.targets.simt.arrivals import arriving_sides
from compiler.targets.simt.threads import sides_of, words_of

MAX_INDEX_LANES = 1 << 20
"""The most threads whose indices are computed together, unless a block has more."""
NOBODY = -1
Store = memref.StoreOp | vector.StoreOp


class DataDependentStore(Exception):
    """The index or condition of a store depends on loaded values."""


class BlockWriters:
    """The block of a launch that writes each element; `written` maps the buffers of the launch that have stores to flat
    arrays of block numbers, or NOBODY. names: of all buffers, for reports. Raises DataDependentStore, here or in `run`.
    """

    def __init__(self, call: KernelLaunch, names: Mapping[SSAValue, str], report: FaultReporter) -> None:
        self._call, self._report = call, report
        body = call.kernel.body.block
        arguments: dict[SSAValue, SSAValue] = dict(zip(body.args, call.operands, strict=True))
        self._stores = [op for op in body.walk() if isinstance(op, Store) and op.operands[1] in arguments]
        self._names = {argument: names[value] for argument, value in arguments.items()}
        self._needed, self._ancestors = _slice(self._stores)
        self._owner = {op.operands[1]: np.full(_size(op.operands[1]), NOBODY, np.int32) for op in self._stores}
        self.written = {arguments[buffer]: owner for buffer, owner in self._owner.items()}
        self._values: dict[SSAValue, Values] = {}
        self._numbers: Values = np.zeros((1, 1, 1), np.int64)

    def run(self) -> None:
        """Compute the writing block of each element, for at most MAX_INDEX_LANES threads of the grid at once, or one
        block. Report the first wrong element of each store: one that two blocks write, or one out of bounds."""
        threads, blocks = prod(self._call.block), prod(self._call.grid)
        blocks_at_once = max(1, MAX_INDEX_LANES // threads)
        with np.errstate(all="ignore"):
            for first in range(0, blocks, blocks_at_once):
                self._numbers = np.arange(first, min(first + blocks_at_once, blocks))[:, None, None]
                self._values = {}
                self._positions = {
                    gpu.BlockIdOp: sides_of(self._numbers, self._call.grid),
                    gpu.ThreadIdOp: sides_of(np.arange(threads)[None, :, None], self._call.block),
                }
                self._block(self._call.kernel.body.block, np.ones((1, 1, 1), np.bool_))

    def _block(self, body: Block, active: Values) -> None:
        """Run the stores of a body, and the index arithmetic that they need, under the mask `active`; values are
        (blocks, threads, lanes of a vector), or broadcast to that."""
        for op in body.ops:
            if isinstance(op, Store) and op in self._ancestors:
                self._store(op, active)
            elif isinstance(op, scf.ForOp) and op in self._ancestors:
                self._loop(op, active)
            elif isinstance(op, scf.IfOp) and op in self._ancestors:
                self._branch(op, active)
            elif op.results and op.results[0] in self._needed:
                self._values[op.results[0]] = self._value(op)

    def _value(self, op: Operation) -> Values:
        if isinstance(op, gpu.BlockIdOp | gpu.ThreadIdOp):
            return self._positions[type(op)][SIDES.index(op.dimension.data.value)]
        if isinstance(op, ArriveOp):  # the last in order: whichever it is, one block writes
            sides, grid = self._positions[gpu.BlockIdOp], self._call.grid
            last: Values = np.all([sides[side] == grid[side] - 1 for side in arriving_sides(op)], axis=0)
            return last
        if isinstance(op, arith.ConstantOp):
            if isinstance(op.value, DenseIntOrFPElementsAttr):
                raise DataDependentStore
            return np.asarray(constant(op.value))
        try:
            return np.asarray(function(op)(*(self._values[value] for value in op.operands)))
        except InputError:
            raise DataDependentStore from None

    def _loop(self, op: scf.ForOp, active: Values) -> None:
        """Run the iterations; only the first if no store depends on the loop's index. Raises DataDependentStore if the
        first index or the step differs between threads."""
        low, high, step = (self._values[value] for value in (op.lb, op.ub, op.step))
        variable = op.body.block.args[0]
        first, end = int(low.min()), int(high.max())
        if int(step.min()) != int(step.max()) or (low != first).any():
            raise DataDependentStore
        for index in range(first, end, int(step.min())):
            self._values[variable] = np.asarray(index)
            self._block(op.body.block, active & (index < high))
            if variable not in self._needed:
                return

    def _branch(self, op: scf.IfOp, active: Values) -> None:
        truth = self._values[op.cond]
        for region, mask in ((op.true_region, active & truth), (op.false_region, active & ~truth)):
            if region.blocks and mask.any():
                self._block(region.block, mask)

    def _store(self, op: Store, active: Values) -> None:
        _, buffer, *indices = op.operands
        shape = buffer.type.get_shape()  # type: ignore[attr-defined]
        flat: Values = np.zeros((1, 1, 1), np.int64)
        out_of_bounds: Values = np.zeros((1, 1, 1), np.bool_)
        for index, size in zip(indices, shape, strict=True):
            part = self._values[index]
            out_of_bounds = out_of_bounds | (part < 0) | (part >= size)
            flat = flat * size + part
        type_ = op.operands[0].type
        if isinstance(type_, VectorType):
            flat = flat + np.arange(prod(type_.get_shape()))
            out_of_bounds = out_of_bounds | (flat >= prod(shape))
        full_shape = (len(self._numbers), *np.broadcast_shapes(flat.shape, active.shape, out_of_bounds.shape)[1:])
        flat, active, out_of_bounds = (np.broadcast_to(part, full_shape) for part in (flat, active, out_of_bounds))
        if (active & out_of_bounds).any():
            self._report_first("out-of-bounds write", op, active & out_of_bounds, flat, None)
            active = active & ~out_of_bounds
        former_writer = self._record(op, flat, active)
        self._report_first(
            "race of two writes",
            op,
            active & (former_writer != NOBODY) & (former_writer != self._numbers),
            flat,
            former_writer,
        )
        latest_writer = self._owner[buffer][np.where(active, flat, 0)]
        self._report_first("race of two writes", op, active & (latest_writer != self._numbers), flat, latest_writer)

    def _record(self, op: Store, flat: Values, active: Values) -> Values:
        owner = self._owner[op.operands[1]]
        former: Values = owner[np.where(active, flat, 0)]
        owner[flat[active]] = np.broadcast_to(self._numbers, flat.shape)[active]
        return former

    def _report_first(self, kind: str, op: Store, wrong: Values, flat: Values, former: Values | None) -> None:
        if not wrong.any():
            return
        position = tuple(np.argwhere(wrong)[0])
        block, thread = int(self._numbers[position[0], 0, 0]), int(position[1])
        shape = op.operands[1].type.get_shape()  # type: ignore[attr-defined]
        address = np.unravel_index(int(flat[position]) % max(1, prod(shape)), shape) if shape else ()
        blocks, threads = (
            ((block,), (thread,)) if former is None else (tuple(sorted((int(former[position]), block))), ())
        )
        name = self._names[op.operands[1]]
        self._report(Fault(kind, words_of(op), name, tuple(map(int, address)), blocks, threads))


def _slice(stores: list[Store]) -> tuple[set[SSAValue], set[Operation]]:
    """Return the backward slice of the stores' indices and conditions, and the stores with all ops around them, the
    kernel apart. Raises DataDependentStore if one of the values is no index arithmetic."""
    ancestors: set[Operation] = set()
    queue: list[SSAValue] = []
    for store in stores:
        queue += store.operands[2:]
        op: Operation | None = store
        while op is not None and not isinstance(op, gpu.FuncOp) and op not in ancestors:
            ancestors.add(op)
            queue += _control_operands(op)
            op = op.parent_op()
    needed: set[SSAValue] = set()
    while queue:
        value = queue.pop()
        if value in needed:
            continue
        needed.add(value)
        queue += _index_operands(value)
    return needed, ancestors


def _control_operands(op: Operation) -> Iterator[SSAValue]:
    if isinstance(op, scf.ForOp):
        yield from (op.lb, op.ub, op.step)
    elif isinstance(op, scf.IfOp):
        yield op.cond


def _index_operands(value: SSAValue) -> Iterator[SSAValue]:
    owner = value.owner
    if isinstance(owner, Block):
        loop = owner.parent_op()
        if not isinstance(loop, scf.ForOp) or value is not owner.args[0]:
            raise DataDependentStore
        return
    if isinstance(owner, ArriveOp):
        return
    if owner.regions or isinstance(owner, memref.LoadOp | vector.LoadOp):
        raise DataDependentStore
    yield from owner.operands


def _size(buffer: SSAValue) -> int:
    return prod(buffer.type.get_shape())  # type: ignore[attr-defined]
