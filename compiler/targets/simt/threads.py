"""The threads of a block that runs: their values, their memories, and how they touch them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TypeVar

import numpy as np
from xdsl.ir import Operation, SSAValue

from compiler.targets.launches import Extents, KernelLaunch
from compiler.targets.simt.access import Bools, Fault, Ints, LaneAccess, Report, Values
from compiler.targets.simt.buffers import Memory

Number = TypeVar("Number", int, Values)


@dataclass
class Threads:
    """The threads of one block: a value is (n,), or (n, lanes) for vectors, or lacks the first dimension where it is
    the same for all."""

    call: KernelLaunch
    report: Report
    counts: bool = True
    at: tuple[int, int, int] = (0, 0, 0)
    moment: int = 0
    values: dict[SSAValue, Values] = field(default_factory=dict)
    memories: dict[SSAValue, Memory] = field(default_factory=dict)
    everyone: Bools | None = None
    _said: dict[Operation, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Threads of a block."""
        return prod(self.call.block)

    @property
    def number(self) -> int:
        """The number of the block that runs."""
        x, y, z = self.at
        return x + self.call.grid[0] * (y + self.call.grid[1] * z)

    def words(self, op: Operation) -> str:
        """An op as a report names it."""
        words = self._said.get(op)
        if words is None:
            words = self._said[op] = words_of(op)
        return words

    def access(self, op: Operation, active: Bools) -> LaneAccess:
        """An op that touches memory now."""
        is_counted, is_whole = self.counts and self.number == 0, active is self.everyone or bool(active.all())
        return LaneAccess(self.words(op), self.number, active, self.moment, is_counted, is_whole)

    def side_by_side(
        self, op: Operation, memory: Memory, indices: Sequence[SSAValue], lanes: int, active: Bools
    ) -> list[Ints]:
        """The indices of elements in a row, (n, lanes) each; that they begin at a multiple of the lanes is checked."""
        places = [np.broadcast_to(self.values[value], (self.count,)) for value in indices]
        offset: Ints = np.zeros(self.count, np.int64)
        for part, size in zip(places, memory.shape, strict=True):
            offset = offset * size + part
        wrong = active & (offset % lanes != 0)
        if wrong.any():
            thread = int(np.argmax(wrong))
            address = tuple(int(part[thread]) for part in places)
            fault = Fault("misaligned vector", self.words(op), memory.name, address, (self.number,), (thread,))
            self.report(fault)
        within = offset[:, None] + np.arange(lanes)  # a vector may cross into the next row
        index: list[Ints] = []
        for size in reversed(memory.shape[1:]):
            index.insert(0, within % size)
            within = within // size
        return [within, *index]


def sides_of(numbers: Number, extents: Extents) -> tuple[Number, Number, Number]:
    """The places of blocks or threads by their numbers, along x, y and z."""
    x, y, _ = extents
    return numbers % x, numbers // x % y, numbers // (x * y)


def words_of(op: Operation) -> str:
    """An op in a report: its name, and the buffer that it reads or writes."""
    named = [value.name_hint for value in (*op.results, *op.operands) if value.name_hint]
    return f"{op.name} ({', '.join(named[:2])})" if named else op.name
