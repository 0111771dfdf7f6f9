"""The memory of a kernel under test: what it holds, and who touched each element since when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.interpret.numbers import DType

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Values = NDArray[Any]
NOBODY = -1
WARP = 32
"""Threads that run together."""
BANKS, BANK = 32, 4
"""The banks of shared memory, and the bytes of each that are moved at once."""
SECTOR = 32
"""The bytes of global memory that are moved at once."""


@dataclass(frozen=True)
class Access:
    """Who touches memory at a moment: the op's words, the block's number, the threads (n,) that are active, and the
    moment, a number that each barrier of each block makes larger. `counted` says whether transactions count."""

    op: str
    block: int
    active: Bools
    moment: int
    counted: bool = False


@dataclass(frozen=True)
class Fault:
    """Something that a kernel does wrong, at its first place. `threads` are one or two threads of a block; where two
    blocks meet, `blocks` are both."""

    kind: str
    op: str
    memory: str
    address: tuple[int, ...]
    blocks: tuple[int, ...]
    threads: tuple[int, ...]

    def __str__(self) -> str:
        place = f"{self.memory}[{', '.join(map(str, self.address))}]" if self.memory else ""
        who = "threads" if len(self.threads) > 1 else "thread"
        where = f"block {self.blocks[0]}" if len(self.blocks) == 1 else f"blocks {self.blocks[0]} and {self.blocks[1]}"
        at = f" at {place}" if place else ""
        return f"{self.kind}{at}: {where}, {who} {' and '.join(map(str, self.threads))}, in {self.op}"


Report = Callable[[Fault], None]


@dataclass
class Memory:
    """One buffer: global to the grid, shared by a block, or (n, elements) local to each of n threads.

    Two threads race for an element where one of them writes it and no barrier is between them, whichever comes first;
    threads of two blocks race whatever is between them.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType
    space: str
    threads: int
    report: Report
    data: Values = field(init=False)
    known: Bools = field(init=False)
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        size = prod(self.shape)
        whole = (self.threads, size) if self.space == "local" else (size,)
        self.data, self.known = np.zeros(whole, self.dtype), np.zeros(whole, np.bool_)
        if self.space != "local":
            self._written, self._writer = np.full(size, NOBODY), np.full(size, NOBODY)
            self._read, self._reader = np.full(size, NOBODY), np.full(size, NOBODY)
            self._readers = np.zeros(size, np.bool_)
            self._writing_block, self._reading_block = np.full(size, NOBODY), np.full(size, NOBODY)
            self._reading_blocks = np.zeros(size, np.bool_)

    def forget(self) -> None:
        """A kernel begins: who touched what before it is past."""
        self.counts = Counter()
        for seen in (self._written, self._writer, self._read, self._reader, self._writing_block, self._reading_block):
            seen[...] = NOBODY
        self._readers[...] = self._reading_blocks[...] = False

    def fill(self, array: Values) -> None:
        """Set all elements, as the host does before the kernel begins."""
        self.data[...] = np.asarray(array, self.dtype).reshape(-1)
        self.known[...] = True

    def read(self, index: Sequence[Ints], access: Access) -> Values:
        """The elements at an index, each part (n,) or (n, lanes); zero where a thread is not active."""
        flat, active = self._place(index, access, "read")
        self._count(flat, active, access)
        mine = self._mine(flat)
        unknown = active & ~self.known[mine]
        self._say("uninitialised read", unknown, flat, access)
        if self.space != "local":
            self._check_read(flat, active, access)
        values = self.data[mine]
        return np.where(active, values, np.zeros((), self.dtype))

    def write(self, index: Sequence[Ints], values: Values, access: Access) -> None:
        """Set the elements at an index."""
        flat, active = self._place(index, access, "write")
        self._count(flat, active, access)
        if self.space != "local":
            self._check_write(flat, active, access)
        values = np.broadcast_to(values, flat.shape)
        if self.space == "local":
            rows = np.broadcast_to(np.arange(self.threads).reshape((-1,) + (1,) * (flat.ndim - 1)), flat.shape)
            self.data[rows[active], flat[active]] = values[active]
            self.known[rows[active], flat[active]] = True
        else:
            self.data[flat[active]] = values[active]
            self.known[flat[active]] = True

    def _mine(self, flat: Ints) -> tuple[Ints, ...]:
        if self.space != "local":
            return (flat,)
        rows = np.arange(self.threads).reshape((-1,) + (1,) * (flat.ndim - 1))
        return np.broadcast_to(rows, flat.shape), flat

    def _place(self, index: Sequence[Ints], access: Access, what: str) -> tuple[Ints, Bools]:
        """Offsets, and which threads access them: those inside the shape."""
        count = len(access.active)
        lanes = max((part.shape[1] for part in index if part.ndim == 2), default=0)
        full = (count, lanes) if lanes else (count,)
        active = np.broadcast_to(access.active[:, None] if lanes else access.active, full).copy()
        flat = np.zeros(full, np.int64)
        for part, size in zip(index, self.shape, strict=True):
            part = np.broadcast_to(part[:, None] if lanes and part.ndim == 1 else part, full)
            outside = active & ((part < 0) | (part >= size))
            if outside.any():
                thread = int(np.argwhere(outside)[0][0])
                address = tuple(int(np.broadcast_to(p, full)[tuple(np.argwhere(outside)[0])]) for p in index)
                self.report(Fault(f"out-of-bounds {what}", access.op, self.name, address, (access.block,), (thread,)))
                active &= ~outside
            flat = flat * size + np.clip(part, 0, size - 1)
        return flat, active

    def _count(self, flat: Ints, active: Bools, access: Access) -> None:
        """Count what the hardware does for an access: global memory in sectors, shared memory in rounds of its banks.

        A vector counts as one access; of shared memory each quarter or half of a warp that moves 128 bytes does.
        """
        if not access.counted or self.space == "local":
            return
        lanes = flat.shape[1] if flat.ndim == 2 else 1
        at_once = max(1, WARP // lanes) if self.space == "shared" else WARP
        for start in range(0, len(flat), at_once):
            mine = active[start : start + at_once]
            touched = flat[start : start + at_once][mine] * self.dtype.itemsize
            if not len(touched):
                continue
            if self.space == "global":
                self.counts["accesses"] += 1
                self.counts["sectors"] += len(np.unique(touched // SECTOR))
                self.counts["bytes"] += touched.size * self.dtype.itemsize
            else:
                words = np.unique(touched // BANK)
                rounds = int(np.bincount(words % BANKS).max())
                self.counts["accesses"] += 1
                self.counts["rounds"] += rounds
                self.counts["conflicts"] += rounds - 1

    def _say(self, kind: str, wrong: Bools, flat: Ints, access: Access, others: Ints | None = None) -> None:
        """Report the first element of which something is wrong; with others, by whom else it was touched."""
        if not wrong.any():
            return
        at = tuple(np.argwhere(wrong)[0])
        threads: tuple[int, ...] = (int(at[0]),)
        if others is not None:
            threads = (int(others[at]), *threads)
        address = tuple(int(n) for n in np.unravel_index(int(flat[at]), self.shape)) if self.shape else ()
        self.report(Fault(kind, access.op, self.name, address, (access.block,), threads))

    def _check_read(self, flat: Ints, active: Bools, access: Access) -> None:
        me = np.broadcast_to(_column(np.arange(len(access.active)), flat), flat.shape)
        raced = active & (self._written[flat] == access.moment) & (self._writer[flat] != me)
        self._say("race of a read with a write", raced, flat, access, self._writer[flat])
        self._check_blocks("race of a read with a write", flat, active, access, self._writing_block)
        at, who = flat[active], me[active]
        others = (self._read[at] == access.moment) & (self._reader[at] != who)
        self._readers[at] = np.where(self._read[at] == access.moment, self._readers[at] | others, False)
        self._read[at], self._reader[at] = access.moment, who
        self._readers[at[self._reader[at] != who]] = True  # several threads of this very op
        self._reading_blocks[at] |= (self._reading_block[at] != NOBODY) & (self._reading_block[at] != access.block)
        self._reading_block[at] = access.block

    def _check_write(self, flat: Ints, active: Bools, access: Access) -> None:
        me = np.broadcast_to(_column(np.arange(len(access.active)), flat), flat.shape)
        raced = active & (self._written[flat] == access.moment) & (self._writer[flat] != me)
        self._say("race of two writes", raced, flat, access, self._writer[flat])
        read = active & (self._read[flat] == access.moment)
        raced = read & ((self._reader[flat] != me) | self._readers[flat])
        self._say("race of a write with a read", raced, flat, access, self._reader[flat])
        for seen in (self._writing_block, self._reading_block):
            self._check_blocks("race of blocks", flat, active, access, seen)
        self._check_blocks("race of blocks", flat, active & self._reading_blocks[flat], access, None)
        at, who = flat[active], me[active]
        self._written[at], self._writer[at] = access.moment, who
        twice = active & (self._writer[flat] != me)
        self._say("race of two writes", twice, flat, access, self._writer[flat])
        self._writing_block[at] = access.block

    def _check_blocks(self, kind: str, flat: Ints, active: Bools, access: Access, seen: Ints | None) -> None:
        if self.space != "global":
            return
        other = active if seen is None else active & (seen[flat] != NOBODY) & (seen[flat] != access.block)
        if other.any():
            at = tuple(np.argwhere(other)[0])
            address = tuple(int(n) for n in np.unravel_index(int(flat[at]), self.shape)) if self.shape else ()
            blocks = (int(seen[flat][at]) if seen is not None else access.block, access.block)
            self.report(Fault(kind, access.op, self.name, address, blocks, (int(at[0]),)))


def _column(numbers: Ints, like: Ints) -> Ints:
    return numbers[:, None] if like.ndim == 2 else numbers
