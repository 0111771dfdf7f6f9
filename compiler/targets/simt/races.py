"""The last accesses of each element since a barrier: two threads race if nothing orders their accesses."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from compiler.targets.simt.access import Bools, Ints, LaneAccess, Values

NOBODY = -1
Say = Callable[[str, Bools, Ints, LaneAccess, "Ints | None", "Ints | None"], None]
"""Reports what is wrong, where, at which offsets, by whom; and which other threads, or other blocks, were there."""


class Races:
    """The accesses to one buffer that threads of a block share, or that is global to the grid.

    Two threads of a block race for an element where one of them writes it and no barrier is between them, whichever
    comes first; threads of two blocks race whatever is between them. Reads count when something is written at the same
    moment: until then they are kept as they come.
    """

    def __init__(self, size: int, is_global: bool, say: Say) -> None:
        self._size, self._is_global, self._say = size, is_global, say
        self.begin()

    def begin(self) -> None:
        """A kernel begins: who touched what before it is past."""
        self._written, self._writer = _nobody(self._size), _nobody(self._size)
        self._read, self._reader = _nobody(self._size), _nobody(self._size)
        self._readers = np.zeros(self._size, np.bool_)
        self._last_write = self._kept_at = NOBODY
        self._kept: list[tuple[Ints, Bools]] = []
        if self._is_global:
            self._writing_block, self._reading_block = _nobody(self._size), _nobody(self._size)
            self._other_block = _nobody(self._size)

    def read(self, flat: Ints, active: Bools, access: LaneAccess) -> None:
        """Threads read elements at a moment."""
        kind = "race of a read with a write"
        if self._last_write == access.moment:
            raced = active & (self._written[flat] == access.moment) & (self._writer[flat] != _threads(flat.shape))
            self._say(kind, raced, flat, access, self._writer[flat], None)
        if self._is_global:
            self._against_blocks(kind, self._writing_block, flat, active, access)
            at = flat[active]
            before = self._reading_block[at]
            self._other_block[at] = np.where(
                (before != NOBODY) & (before != access.block), before, self._other_block[at]
            )
            self._reading_block[at] = access.block
        if self._kept_at != access.moment:
            self._kept, self._kept_at = [], access.moment
        self._kept.append((flat, active))

    def write(self, flat: Ints, active: Bools, access: LaneAccess) -> None:
        """Threads write elements at a moment."""
        if self._kept_at == access.moment:
            for earlier, reading in self._kept:
                self._note_read(earlier, reading, access.moment)
            self._kept = []
        who = _threads(flat.shape)
        raced = active & (self._written[flat] == access.moment) & (self._writer[flat] != who)
        self._say("race of two writes", raced, flat, access, self._writer[flat], None)
        read = active & (self._read[flat] == access.moment)
        raced = read & ((self._reader[flat] != who) | self._readers[flat])
        self._say("race of a write with a read", raced, flat, access, self._reader[flat], None)
        if self._is_global:
            self._against_blocks("race of two writes", self._writing_block, flat, active, access)
            self._against_blocks("race of a write with a read", self._reading_block, flat, active, access)
            self._against_blocks("race of a write with a read", self._other_block, flat, active, access)
            self._writing_block[flat[active]] = access.block
        self._written[flat[active]], self._writer[flat[active]] = access.moment, who[active]
        self._last_write = access.moment
        twice = active & (self._writer[flat] != who)  # several threads of this very op
        self._say("race of two writes", twice, flat, access, self._writer[flat], None)

    def _note_read(self, flat: Ints, active: Bools, moment: int) -> None:
        at, who = flat[active], _threads(flat.shape)[active]
        same = self._read[at] == moment
        self._readers[at] = same & (self._readers[at] | (self._reader[at] != who))
        self._read[at], self._reader[at] = moment, who
        self._readers[at[self._reader[at] != who]] = True  # several threads of one op

    def _against_blocks(self, kind: str, seen: Ints, flat: Ints, active: Bools, access: LaneAccess) -> None:
        blocks_before = seen[flat]
        self._say(
            kind,
            active & (blocks_before != NOBODY) & (blocks_before != access.block),
            flat,
            access,
            None,
            blocks_before,
        )


def _nobody(size: int) -> Values:
    return np.full(size, NOBODY, np.int32)


@lru_cache(maxsize=64)
def _threads(shape: tuple[int, ...]) -> Ints:
    """The thread of each access."""
    return np.broadcast_to(np.arange(shape[0]).reshape((-1,) + (1,) * (len(shape) - 1)), shape)
