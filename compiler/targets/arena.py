"""Memory for workspaces: on large pages where the system has them, since packed panels are walked page by page."""

from __future__ import annotations

import mmap

import numpy as np
from numpy.typing import NDArray

from compiler.dialects.functions import SLOT_ALIGNMENT

LARGE_PAGE = 2 << 20
"""The size of a large page, in bytes; smaller workspaces stay on small ones."""


def arena(size: int) -> NDArray[np.uint8]:
    """At least `size` bytes of memory, uint8, aligned to 64 bytes."""
    if size < LARGE_PAGE // 4 or not hasattr(mmap, "MADV_HUGEPAGE"):
        return _aligned(np.empty(size + SLOT_ALIGNMENT, np.uint8), SLOT_ALIGNMENT)
    rounded = -(-size // LARGE_PAGE) * LARGE_PAGE
    # Shared memory, which is the default, gets large pages on few systems only, and forked children would write to it.
    memory = mmap.mmap(-1, rounded + LARGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    return _aligned(np.frombuffer(memory, np.uint8), LARGE_PAGE)[:rounded]


def _aligned(memory: NDArray[np.uint8], to: int) -> NDArray[np.uint8]:
    return memory[-memory.ctypes.data % to :]
