"""`Races`: the last accesses of each element since a barrier; two threads race if no barrier orders their accesses."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from compiler.targets.simt.access import Bools, Ints, LaneAccess, Values, block_of

NOBODY = -1
RaceReporter = Callable[[str, Bools, Ints, LaneAccess, "Ints | None", "Ints | None"], None]
"""Report a fault: kind, mask of wrong accesses, offsets, access, and the threads or blocks of the earlier access."""


class Races:
    """The accesses to a shared or global buffer of `size` elements. Two threads of a block race for an element if one
    of them writes it and no barrier is between the accesses; threads of two blocks race even with barriers, unless one
    has seen the other's arrival. Reads are recorded lazily, at the first write of the same moment. `flat` and `active`
    are the offsets and the mask of an access, by thread."""

    def __init__(self, size: int, is_global: bool, report: RaceReporter) -> None:
        self._size, self._is_global, self._report = size, is_global, report
        self.begin()

    def begin(self) -> None:
        """Begin a kernel: forget former accesses."""
        self._write_moment, self._writer = _nobody(self._size), _nobody(self._size)
        self._read_moment, self._reader = _nobody(self._size), _nobody(self._size)
        self._has_two_readers = np.zeros(self._size, np.bool_)
        self._last_write = self._pending_moment = NOBODY
        self._pending_reads: list[tuple[Ints, Bools]] = []
        if self._is_global:
            self._writing_block, self._reading_block = _nobody(self._size), _nobody(self._size)
            self._other_reading_block = _nobody(self._size)

    def read(self, flat: Ints, active: Bools, access: LaneAccess) -> None:
        """Record the reads of the elements `flat` by the active threads in an access, and report races with earlier
        writes of other threads."""
        kind = "race of a read with a write"
        if self._last_write == access.moment:
            raced = active & (self._write_moment[flat] == access.moment) & (self._writer[flat] != _threads(flat.shape))
            self._report(kind, raced, flat, access, self._writer[flat], None)
        if self._is_global:
            self._report_other_blocks(kind, self._writing_block, flat, active, access)
            offsets = flat[active]
            former_block = self._reading_block[offsets]
            self._other_reading_block[offsets] = np.where(
                (former_block != NOBODY) & (former_block != access.writer),
                former_block,
                self._other_reading_block[offsets],
            )
            self._reading_block[offsets] = access.writer
        if self._pending_moment != access.moment:
            self._pending_reads, self._pending_moment = [], access.moment
        self._pending_reads.append((flat, active))

    def write(self, flat: Ints, active: Bools, access: LaneAccess) -> None:
        """Record the writes of the elements `flat` by the active threads in an access, and report races with earlier
        reads and writes of other threads, those of the same op included."""
        if self._pending_moment == access.moment:
            for read_offsets, read_active in self._pending_reads:
                self._note_read(read_offsets, read_active, access.moment)
            self._pending_reads = []
        threads = _threads(flat.shape)
        raced = active & (self._write_moment[flat] == access.moment) & (self._writer[flat] != threads)
        self._report("race of two writes", raced, flat, access, self._writer[flat], None)
        was_read = active & (self._read_moment[flat] == access.moment)
        raced = was_read & ((self._reader[flat] != threads) | self._has_two_readers[flat])
        self._report("race of a write with a read", raced, flat, access, self._reader[flat], None)
        if self._is_global:
            self._report_other_blocks("race of two writes", self._writing_block, flat, active, access)
            self._report_other_blocks("race of a write with a read", self._reading_block, flat, active, access)
            self._report_other_blocks("race of a write with a read", self._other_reading_block, flat, active, access)
            self._writing_block[flat[active]] = access.writer
        self._write_moment[flat[active]], self._writer[flat[active]] = access.moment, threads[active]
        self._last_write = access.moment
        doubly_written = active & (self._writer[flat] != threads)  # several threads of this op
        self._report("race of two writes", doubly_written, flat, access, self._writer[flat], None)

    def _note_read(self, flat: Ints, active: Bools, moment: int) -> None:
        offsets, threads = flat[active], _threads(flat.shape)[active]
        is_same_moment = self._read_moment[offsets] == moment
        self._has_two_readers[offsets] = is_same_moment & (
            self._has_two_readers[offsets] | (self._reader[offsets] != threads)
        )
        self._read_moment[offsets], self._reader[offsets] = moment, threads
        self._has_two_readers[offsets[self._reader[offsets] != threads]] = True  # several threads of one op

    def _report_other_blocks(
        self, kind: str, former_blocks_of: Ints, flat: Ints, active: Bools, access: LaneAccess
    ) -> None:
        former = former_blocks_of[flat]
        raced = active & (former != NOBODY) & (former != access.writer)
        if access.seen is not None:
            raced &= ~np.isin(former, access.seen)
        self._report(kind, raced, flat, access, None, block_of(former))


def _nobody(size: int) -> Values:
    return np.full(size, NOBODY, np.int32)


@lru_cache(maxsize=64)
def _threads(shape: tuple[int, ...]) -> Ints:
    return np.broadcast_to(np.arange(shape[0]).reshape((-1,) + (1,) * (len(shape) - 1)), shape)
