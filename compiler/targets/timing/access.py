"""The cost of a warp's access to memory: sectors of global memory, rounds of shared memory."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
BANKS, BANK, SECTOR, ROUND = 32, 4, 32, 128
"""The banks of shared memory, the bytes of a bank's word, of a sector, and of what moves in a cycle."""


def sectors(addresses: Ints, bytes: int) -> list[Ints]:
    """Return for each warp the numbers of the sectors that it accesses. addresses: in bytes, (warps, lanes), negative
    for inactive lanes. bytes: of a lane's access, which does not begin inside a sector unless it ends there."""
    first = addresses // SECTOR
    touched = [first + step for step in range(max(1, bytes // SECTOR))]
    rows = np.concatenate([np.where(addresses >= 0, part, -1) for part in touched], axis=1)
    return [np.unique(row[row >= 0]) for row in rows]


def rounds(addresses: Ints, bytes: int) -> Ints:
    """Return for each warp the cycles in which shared memory serves it: the most words of a bank, for each part of the
    warp whose lanes have 128 bytes together. addresses: in bytes, (warps, lanes), negative for inactive lanes. bytes:
    of a lane's access. 0 for a warp without active lanes."""
    active = addresses >= 0
    first = int(addresses[active].min()) if active.any() else 0
    relative = np.where(active, addresses - first, -1)  # all banks shifted alike: as many rounds
    shape = (len(addresses), addresses.shape[1])
    return np.array(_rounds(relative.astype(np.int64).tobytes(), shape, bytes), np.int64)


@lru_cache(maxsize=512)
def _rounds(data: bytes, shape: tuple[int, int], size: int) -> tuple[int, ...]:
    """Return, cached, for each warp the cycles in which shared memory serves it. `data` are the bytes of an int64 array
    of addresses of the shape (warps, lanes), from the lowest active one on, negative for inactive lanes; `size` are the
    bytes of a lane's access."""
    addresses = np.frombuffer(data, np.int64).reshape(shape)
    group = max(1, min(shape[1], ROUND // max(BANK, size)))
    total = [0] * shape[0]
    words = max(1, size // BANK)
    for start in range(0, shape[1], group):
        for row, lanes in enumerate(addresses[:, start : start + group]):
            active = lanes[lanes >= 0]
            if len(active):
                word = np.unique((active[:, None] // BANK + np.arange(words)).reshape(-1))
                total[row] += int(np.bincount(word % BANKS).max())
    return tuple(total)
