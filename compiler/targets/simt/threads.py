"""`Threads`: the threads of the running block, with their values and memories, and the accesses of an op."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TypeVar

import numpy as np
from xdsl.ir import Operation, SSAValue

from compiler.targets.launches import Extents, KernelLaunch
from compiler.targets.simt.access import Bools, Fault, FaultReporter, Ints, LaneAccess, Values, behind
from compiler.targets.simt.buffers import CheckedBuffer

Number = TypeVar("Number", int, Values)


@dataclass
class Threads:
    """The threads of a block. A value is (n,), or (n, lanes) for vectors; it lacks the first dimension if all
    threads have the same value. call: the launch. report: takes each fault. counts: whether to count memory
    transactions. block_index: along x, y, z. moment: the number of the interval between two barriers. values,
    memories: of the kernel's SSA values. full_mask: of all threads. seen: behind an arrival, the numbers, in records
    of races, whose accesses came before; None before it."""

    call: KernelLaunch
    report: FaultReporter
    counts: bool = True
    block_index: tuple[int, int, int] = (0, 0, 0)
    moment: int = 0
    values: dict[SSAValue, Values] = field(default_factory=dict)
    memories: dict[SSAValue, CheckedBuffer] = field(default_factory=dict)
    full_mask: Bools | None = None
    seen: Ints | None = None
    _words: dict[Operation, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """The number of threads of a block."""
        return prod(self.call.block)

    @property
    def number(self) -> int:
        """The number of the running block in the grid; x runs fastest."""
        x, y, z = self.block_index
        return x + self.call.grid[0] * (y + self.call.grid[1] * z)

    def words(self, op: Operation) -> str:
        """Return the name of an op in reports, cached."""
        words = self._words.get(op)
        if words is None:
            words = self._words[op] = words_of(op)
        return words

    def access(self, op: Operation, active: Bools) -> LaneAccess:
        """Return the access of an op by the active threads; transactions are counted in block 0 only."""
        is_counted, is_whole = self.counts and self.number == 0, active is self.full_mask or bool(active.all())
        writer = self.number if self.seen is None else behind(self.number)
        return LaneAccess(self.words(op), self.number, active, self.moment, is_counted, is_whole, writer, self.seen)

    def consecutive(
        self, op: Operation, memory: CheckedBuffer, indices: Sequence[SSAValue], lanes: int, active: Bools
    ) -> list[Ints]:
        """Return the indices of `lanes` consecutive elements from `indices` on, an array (n, lanes) for each dimension;
        report the first active thread with an offset not divisible by `lanes`."""
        indices_ = [np.broadcast_to(self.values[value], (self.count,)) for value in indices]
        offset: Ints = np.zeros(self.count, np.int64)
        for part, size in zip(indices_, memory.shape, strict=True):
            offset = offset * size + part
        misaligned = active & (offset % lanes != 0)
        if misaligned.any():
            thread = int(np.argmax(misaligned))
            address = tuple(int(part[thread]) for part in indices_)
            fault = Fault("misaligned vector", self.words(op), memory.name, address, (self.number,), (thread,))
            self.report(fault)
        offsets = offset[:, None] + np.arange(lanes)  # a vector may cross into the next row
        index: list[Ints] = []
        for size in reversed(memory.shape[1:]):
            index.insert(0, offsets % size)
            offsets = offsets // size
        return [offsets, *index]


def sides_of(numbers: Number, extents: Extents) -> tuple[Number, Number, Number]:
    """Return the indices of blocks or threads along x, y and z, from their numbers, in which x runs fastest."""
    x, y, _ = extents
    return numbers % x, numbers // x % y, numbers // (x * y)


def words_of(op: Operation) -> str:
    """Return the text that names an op in reports: its name, and the first two name hints among its results and
    operands, if any."""
    hints = [value.name_hint for value in (*op.results, *op.operands) if value.name_hint]
    return f"{op.name} ({', '.join(hints[:2])})" if hints else op.name
