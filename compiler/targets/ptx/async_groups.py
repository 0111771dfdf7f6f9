"""`AsyncGroups`: the asynchronous copies that threads have begun and not waited for.

A copy's bytes are pending from its issue on. They arrive when its thread waits for its group, and are then written at
that moment: other threads see them behind the next barrier.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compiler.targets.ptx.memory import PtxAccess, PtxMemory
from compiler.targets.ptx.values import Array


@dataclass
class PendingCopy:
    """The unfinished copies of one instruction, one for each of n threads. memory, parts, offsets: the destination,
    with a part number and a byte offset a thread. values: (n, words), uint32. groups: the number of the group that each
    copy belongs to, counted for each lane from 0."""

    access: PtxAccess
    memory: PtxMemory
    parts: Array
    offsets: Array
    values: Array
    groups: Array


class AsyncGroups:
    """The unfinished asynchronous copies of all lanes; `committed` counts each lane's committed groups."""

    def __init__(self, lanes: int) -> None:
        self.committed = np.zeros(lanes, np.int64)
        self._pending: list[PendingCopy] = []

    def begin(self, access: PtxAccess, memory: PtxMemory, parts: Array, offsets: Array, values: Array) -> None:
        """Add copies, one for each lane of the access, to the lane's open group. memory, parts, offsets: the
        destination, with a part number and a byte offset (n,) for each lane. values: (n, words), uint32."""
        groups = self.committed[access.lanes]
        self._pending.append(PendingCopy(access, memory, parts, offsets, values, groups))

    def commit(self, lanes: Array) -> None:
        """Close the open group of each of some lanes, by their numbers; later copies belong to the next group."""
        self.committed[lanes] += 1

    def wait(self, lanes: Array, pending: int, moments: Array) -> None:
        """Complete the copies of some lanes in all committed groups except the `pending` latest of each lane, by their
        numbers `lanes`: they are stored at the `moments` (all lanes,) of their lanes."""
        is_waiting = np.zeros(len(self.committed), np.bool_)
        is_waiting[lanes] = True
        left = []
        for copy in self._pending:
            of = copy.access.lanes
            arrives = is_waiting[of] & (copy.groups < self.committed[of] - pending)
            if arrives.any():
                now = PtxAccess(of[arrives], copy.access.threads[arrives], moments[of[arrives]], copy.access.add)
                copy.memory.store(now, copy.parts[arrives], copy.offsets[arrives], copy.values[arrives])
            if not arrives.all():
                stays = ~arrives
                left.append(
                    PendingCopy(
                        copy.access.some(stays),
                        copy.memory,
                        copy.parts[stays],
                        copy.offsets[stays],
                        copy.values[stays],
                        copy.groups[stays],
                    )
                )
        self._pending = left
