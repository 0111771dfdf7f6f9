"""Which block of a grid writes which element: of a kernel the index arithmetic alone, for all blocks.

Where only a sample of the blocks runs, this is what tells that a grid is too small and that two blocks write one
element. It is exact: of each store to global memory the indices are computed for every block, every thread and every
iteration of the loops that they depend on, along with the conditions around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

import numpy as np
from xdsl.dialects import arith, gpu, memref, scf, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, VectorType
from xdsl.ir import Block, Operation, SSAValue

from compiler.dialects.numbers import constant
from compiler.interpret.scalar import function
from compiler.support.errors import InputError
from compiler.targets.launches import SIDES, KernelLaunch
from compiler.targets.simt.access import Fault, Report, Values
from compiler.targets.simt.threads import sides_of, words_of

LANES = 1 << 20
"""Threads whose indices are computed at once."""
NOBODY = -1
Store = memref.StoreOp | vector.StoreOp


class DependsOnValues(Exception):
    """What a kernel writes depends on more than its indices."""


class Writers:
    """The blocks of one launch that write each element of its buffers; `written` says which elements are."""

    def __init__(self, call: KernelLaunch, names: Mapping[SSAValue, str], report: Report) -> None:
        self._call, self._report = call, report
        body = call.kernel.body.block
        arguments: dict[SSAValue, SSAValue] = dict(zip(body.args, call.operands, strict=True))
        self._stores = [op for op in body.walk() if isinstance(op, Store) and op.operands[1] in arguments]
        self._names = {argument: names[value] for argument, value in arguments.items()}
        self._needed, self._around = _slice(self._stores)
        self._owner = {op.operands[1]: np.full(_size(op.operands[1]), NOBODY, np.int32) for op in self._stores}
        self.written = {arguments[buffer]: owner for buffer, owner in self._owner.items()}
        self._values: dict[SSAValue, Values] = {}
        self._numbers: Values = np.zeros((1, 1, 1), np.int64)

    def run(self) -> None:
        """Compute what every block writes; the first element that two write, and the first outside, are reported."""
        threads, blocks = prod(self._call.block), prod(self._call.grid)
        at_once = max(1, LANES // threads)
        with np.errstate(all="ignore"):
            for first in range(0, blocks, at_once):
                self._numbers = np.arange(first, min(first + at_once, blocks))[:, None, None]
                self._values = {}
                self._positions = {
                    gpu.BlockIdOp: sides_of(self._numbers, self._call.grid),
                    gpu.ThreadIdOp: sides_of(np.arange(threads)[None, :, None], self._call.block),
                }
                self._block(self._call.kernel.body.block, np.ones((1, 1, 1), np.bool_))

    def _block(self, body: Block, active: Values) -> None:
        """The stores of a body, for active threads: values are (blocks, threads, lanes of a vector)."""
        for op in body.ops:
            if isinstance(op, Store) and op in self._around:
                self._store(op, active)
            elif isinstance(op, scf.ForOp) and op in self._around:
                self._loop(op, active)
            elif isinstance(op, scf.IfOp) and op in self._around:
                self._branch(op, active)
            elif op.results and op.results[0] in self._needed:
                self._values[op.results[0]] = self._value(op)

    def _value(self, op: Operation) -> Values:
        if isinstance(op, gpu.BlockIdOp | gpu.ThreadIdOp):
            return self._positions[type(op)][SIDES.index(op.dimension.data.value)]
        if isinstance(op, arith.ConstantOp):
            if isinstance(op.value, DenseIntOrFPElementsAttr):
                raise DependsOnValues
            return np.asarray(constant(op.value))
        try:
            return np.asarray(function(op)(*(self._values[value] for value in op.operands)))
        except InputError:
            raise DependsOnValues from None

    def _loop(self, op: scf.ForOp, active: Values) -> None:
        """The iterations; of a loop whose variable no store depends on one stands for all."""
        low, high, step = (self._values[value] for value in (op.lb, op.ub, op.step))
        variable = op.body.block.args[0]
        first, end = int(low.min()), int(high.max())
        if int(step.min()) != int(step.max()) or (low != first).any():
            raise DependsOnValues
        for at in range(first, end, int(step.min())):
            self._values[variable] = np.asarray(at)
            self._block(op.body.block, active & (at < high))
            if variable not in self._needed:
                return

    def _branch(self, op: scf.IfOp, active: Values) -> None:
        truth = self._values[op.cond]
        for region, mine in ((op.true_region, active & truth), (op.false_region, active & ~truth)):
            if region.blocks and mine.any():
                self._block(region.block, mine)

    def _store(self, op: Store, active: Values) -> None:
        """Note who writes an element, or those side by side."""
        _, buffer, *indices = op.operands
        shape = buffer.type.get_shape()  # type: ignore[attr-defined]
        flat: Values = np.zeros((1, 1, 1), np.int64)
        outside: Values = np.zeros((1, 1, 1), np.bool_)
        for index, size in zip(indices, shape, strict=True):
            part = self._values[index]
            outside = outside | (part < 0) | (part >= size)
            flat = flat * size + part
        type_ = op.operands[0].type
        if isinstance(type_, VectorType):
            flat = flat + np.arange(prod(type_.get_shape()))
            outside = outside | (flat >= prod(shape))
        full = (len(self._numbers), *np.broadcast_shapes(flat.shape, active.shape, outside.shape)[1:])
        flat, active, outside = (np.broadcast_to(part, full) for part in (flat, active, outside))
        if (active & outside).any():
            self._say("out-of-bounds write", op, active & outside, flat, None)
            active = active & ~outside
        before = self._note(op, flat, active)
        self._say("race of two writes", op, active & (before != NOBODY) & (before != self._numbers), flat, before)
        after = self._owner[buffer][np.where(active, flat, 0)]
        self._say("race of two writes", op, active & (after != self._numbers), flat, after)

    def _note(self, op: Store, flat: Values, active: Values) -> Values:
        """Write down who writes elements; who did before."""
        owner = self._owner[op.operands[1]]
        former: Values = owner[np.where(active, flat, 0)]
        owner[flat[active]] = np.broadcast_to(self._numbers, flat.shape)[active]
        return former

    def _say(self, kind: str, op: Store, wrong: Values, flat: Values, former: Values | None) -> None:
        """Report the first wrong element, with the other block that wrote it."""
        if not wrong.any():
            return
        at = tuple(np.argwhere(wrong)[0])
        block, thread = int(self._numbers[at[0], 0, 0]), int(at[1])
        shape = op.operands[1].type.get_shape()  # type: ignore[attr-defined]
        address = np.unravel_index(int(flat[at]) % max(1, prod(shape)), shape) if shape else ()
        blocks, threads = ((block,), (thread,)) if former is None else (tuple(sorted((int(former[at]), block))), ())
        name = self._names[op.operands[1]]
        self._report(Fault(kind, words_of(op), name, tuple(map(int, address)), blocks, threads))


def _slice(stores: list[Store]) -> tuple[set[SSAValue], set[Operation]]:
    """The values that decide what stores write, and the stores with the loops and branches around them.

    Raises Undecided where one of the values is no arithmetic of indices.
    """
    around: set[Operation] = set()
    queue: list[SSAValue] = []
    for store in stores:
        queue += store.operands[2:]
        op: Operation | None = store
        while op is not None and not isinstance(op, gpu.FuncOp) and op not in around:
            around.add(op)
            queue += _decide(op)
            op = op.parent_op()
    needed: set[SSAValue] = set()
    while queue:
        value = queue.pop()
        if value in needed:
            continue
        needed.add(value)
        queue += _made_of(value)
    return needed, around


def _decide(op: Operation) -> Iterator[SSAValue]:
    """What decides whether and how often the body of a loop or branch runs."""
    if isinstance(op, scf.ForOp):
        yield from (op.lb, op.ub, op.step)
    elif isinstance(op, scf.IfOp):
        yield op.cond


def _made_of(value: SSAValue) -> Iterator[SSAValue]:
    owner = value.owner
    if isinstance(owner, Block):
        loop = owner.parent_op()
        if not isinstance(loop, scf.ForOp) or value is not owner.args[0]:
            raise DependsOnValues
        return
    if owner.regions or isinstance(owner, memref.LoadOp | vector.LoadOp):
        raise DependsOnValues
    yield from owner.operands


def _size(buffer: SSAValue) -> int:
    return prod(buffer.type.get_shape())  # type: ignore[attr-defined]
