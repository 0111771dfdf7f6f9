"""`BlockOrder`: the order that fences and atomic updates give to accesses of different blocks.

A block releases its accesses by a fence behind a barrier, then an atomic update of a word; a block that updates the
word later and passes a fence has seen them, its other threads behind their next barrier. Source: PTX ISA, memory
consistency model, release and acquire patterns.
"""

from __future__ import annotations

import numpy as np

from compiler.targets.ptx.values import Array

_NEVER = -1
Word = tuple[int, int]
"""The memory of a word, by its identity, and the byte offset in it."""


class BlockOrder:
    """The order of accesses by different blocks of a launch, from their atomics and fences: which accesses of
    another block a fence has made visible. An epoch is the number of barriers that a block has passed."""

    def __init__(self) -> None:
        self._released: dict[Word, dict[int, int]] = {}
        self._seen: dict[tuple[int, int], tuple[int, int, int]] = {}

    def update(self, word: Word, block: int, epoch: int) -> dict[int, int]:
        """Record an atomic update of a word by a block whose accesses before `epoch` are released, none for -1. Return
        the released accesses that it observes: the epoch of each block."""
        released = self._released.setdefault(word, {})
        observed = {other: at for other, at in released.items() if other != block}
        if epoch != _NEVER:
            released[block] = max(epoch, released.get(block, _NEVER))
        return observed

    def see(self, block: int, observed: dict[int, int], epoch: int, thread: int) -> None:
        """Record that a thread, by its number in the grid, passed a fence at an epoch of its block after it observed
        released accesses of other blocks."""
        for other, released in observed.items():
            self._seen[block, other] = (released, epoch, thread)

    def ordered(self, former: Array, then: Array, me: Array, now: Array, per_block: int) -> Array:
        """Return the mask of accesses by threads `former` at epochs `then` that come before accesses by the threads
        `me` of other blocks at the epochs `now`; all are of one shape. per_block: the threads of a block."""
        result = np.zeros(former.shape, np.bool_)
        if not self._seen:
            return result
        pairs = np.stack([me // per_block, former // per_block], axis=-1)
        for block, other in {(int(a), int(b)) for a, b in np.unique(pairs.reshape(-1, 2), axis=0)} & self._seen.keys():
            released, epoch, thread = self._seen[block, other]
            here = (pairs[..., 0] == block) & (pairs[..., 1] == other)
            result |= here & (then < released) & ((now > epoch) | (me == thread))
        return result
