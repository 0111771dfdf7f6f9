"""`Shadow`: for each granule of a memory whether it is set, who wrote it last and who read it, and when.

Two threads of a block race for a granule if one of them writes it and no barrier is between the accesses; threads of
two blocks race even with barriers, unless fences and an atomic update order them (`block_order.py`). A moment is EPOCH
times the number of barriers that a thread has passed, plus the number of barriers of its warp.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compiler.targets.ptx.block_order import BlockOrder
from compiler.targets.ptx.values import Array

UNSET, SET, PENDING = 0, 1, 2
"""The states of a granule; a pending one is the target of an asynchronous copy."""
EPOCH = 1 << 16
"""The difference between the moments before and behind a barrier of the block."""
WARP = 32
NOBODY = -1
_SEVERAL = -2
_MAX_READS = 256
ShadowReporter = Callable[[str, Array, Array], None]
"""Report a fault: its kind, the mask (n, k) of wrong granules, and the numbers of the other threads."""


class Shadow:
    """A record of the last accesses to a memory of `size` granules, all in the state `initial` (UNSET, PENDING or
    SET) at first. Methods take granule numbers (n, k) of n threads, the threads' numbers in the grid (n,), and their
    moments (n,). Reads are collected, and compared with the next write; the last read of a granule counts. order: of
    the accesses of different blocks, None if nothing orders them."""

    def __init__(self, size: int, initial: int, threads_per_block: int, order: BlockOrder | None = None) -> None:
        self._order = order
        self.state = np.full(size, initial, np.uint8)
        self._size = size
        self.begin(threads_per_block)

    def begin(self, threads_per_block: int) -> None:
        """Begin a kernel of blocks of `threads_per_block` threads: discard the recorded accesses; the states of
        granules stay."""
        self._per_block = threads_per_block
        self._writer, self._written_at = np.full(self._size, NOBODY, np.int64), np.zeros(self._size, np.int64)
        self._reader, self._read_at = np.full(self._size, NOBODY, np.int64), np.zeros(self._size, np.int64)
        self._reads: list[tuple[Array, Array, Array]] = []

    def forget_reads(self) -> None:
        """Discard the reads since the last write. Correct only if all threads have passed a barrier since, and no other
        block has access."""
        self._reads = []

    def read(self, granules: Array, threads: Array, moments: Array, report: ShadowReporter) -> None:
        """Record reads: row t of `granules`, of shape (threads, n), has the numbers of the granules that the thread
        `threads[t]` reads at the moment `moments[t]`. Report, by `report`, granules that are unset or pending, and
        races with writes of other threads."""
        state, writer = self.state[granules], self._writer[granules]
        me, now = threads[:, None], moments[:, None]
        if (state != SET).any():
            report("read of memory that nobody has set", state == UNSET, writer)
            report("read of an asynchronous copy that nobody has waited for", state == PENDING, writer)
        raced = (writer != me) & (writer != NOBODY) & (state == SET)
        if raced.any():
            raced &= self._is_unordered(writer, me, self._written_at[granules], now)
            report("race of a read with a write", raced, writer)
        self._reads.append((granules, me, now))
        if len(self._reads) > _MAX_READS:
            self._note_reads()

    def write(self, granules: Array, threads: Array, moments: Array, report: ShadowReporter, state: int = SET) -> None:
        """Record writes of granules (threads, n) by threads, each at its moment, after which the granules have `state`.
        Report, by `report`, races with reads and writes of other threads, those of the same instruction included."""
        self._note_reads()
        me, now = threads[:, None], moments[:, None]
        writer, reader = self._writer[granules], self._reader[granules]
        raced = (writer != me) & (writer != NOBODY)
        if raced.any():
            is_pending = self.state[granules] == PENDING
            raced &= is_pending | self._is_unordered(writer, me, self._written_at[granules], now)
            report("race of two writes", raced, writer)
        raced = (reader != me) & (reader != NOBODY)
        if raced.any():
            raced &= self._is_unordered(reader, me, self._read_at[granules], now)
            report("race of a write with a read", raced, reader)
        self._writer[granules], self._written_at[granules] = me, now
        self.state[granules] = state
        last = self._writer[granules]
        report("race of two writes", last != me, last)  # by several threads of this instruction

    def _is_unordered(self, former: Array, me: Array, then: Array, now: Array) -> Array:
        """Whether accesses by the threads `former` at the moments `then` are not ordered before accesses by the threads
        `me` at the moments `now`: of another block, or in the same epoch without a barrier of their common warp between
        them. A negative `former`, for several threads, counts as one of the block."""
        is_one = former >= 0
        other_block = is_one & (former // self._per_block != me // self._per_block)
        other_warp = is_one & (former % self._per_block // WARP != me % self._per_block // WARP)
        if self._order is not None and other_block.any():
            former_, then_, me_, now_ = np.broadcast_arrays(former, then // EPOCH, me, now // EPOCH)
            other_block &= ~self._order.ordered(former_, then_, me_, now_, self._per_block)
        same_epoch = then // EPOCH == now // EPOCH
        unordered: Array = other_block | (same_epoch & ((then == now) | other_warp))
        return unordered

    def _note_reads(self) -> None:
        for granules, me, now in self._reads:
            former = self._reader[granules]
            is_other = (former != NOBODY) & (former != me) & (self._read_at[granules] == now)
            self._reader[granules] = np.where(is_other, _SEVERAL, me)
            self._read_at[granules] = now
            last = self._reader[granules]
            self._reader[granules[(last != me) & (last != _SEVERAL)]] = _SEVERAL  # several threads at once
        self._reads = []


class OwnShadow:
    """A record, for memory of which each thread has a part, of whether each of `size` bytes is set, at first none;
    races are impossible."""

    def __init__(self, size: int) -> None:
        self.state = np.full(size, UNSET, np.uint8)

    def read(self, granules: Array, threads: Array, moments: Array, report: ShadowReporter) -> None:
        """Report, by `report`, bytes that are read but not set; threads and moments are ignored."""
        report("read of memory that nobody has set", self.state[granules] == UNSET, granules)

    def write(self, granules: Array, threads: Array, moments: Array, report: ShadowReporter, state: int = SET) -> None:
        """Set the state of the bytes `granules`; reports nothing, and ignores threads and moments."""
        self.state[granules] = state
