"""Memory for workspaces, on huge pages where the system has them: packed panels are read across many pages."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from threading import Thread
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from compiler.dialects.functions import SLOT_ALIGNMENT

LARGE_PAGE = 2 << 20
"""The size of a huge page, in bytes; workspaces below a quarter of it use small pages."""

SPARE = 8
"""An arena of estimated size is larger by 1 / SPARE; pages that are not touched cost no memory."""

Allocate: TypeAlias = Callable[[int], NDArray[np.uint8]]
"""A function from a size in bytes to an arena of at least that size."""


def arena(size: int) -> NDArray[np.uint8]:
    """Allocate an array of at least `size` bytes, 0 or more, aligned to 64 bytes, whose contents are undefined. From
    LARGE_PAGE / 4 on, on systems that have huge pages, the size is rounded up to a multiple of LARGE_PAGE, and huge
    pages are requested."""
    if size < LARGE_PAGE // 4 or not hasattr(mmap, "MADV_HUGEPAGE"):
        return _aligned(np.empty(size + SLOT_ALIGNMENT, np.uint8), SLOT_ALIGNMENT)
    rounded = -(-size // LARGE_PAGE) * LARGE_PAGE
    # The default, shared memory, gets huge pages on few systems only, and forked children would write to it.
    memory = mmap.mmap(-1, rounded + LARGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    return _aligned(np.frombuffer(memory, np.uint8), LARGE_PAGE)[:rounded]


def prefault_arena(estimated_size: int) -> Allocate:
    """Allocate an arena of an estimated size in bytes, and fault its pages in on a daemon thread while the caller goes
    on: the system clears each page at its first access, half a second for hundreds of megabytes. Return a function from
    the actual size: it waits for the thread and returns this arena, or a new one if the size is below half of the
    estimate or above 9/8 of it. For an estimate below LARGE_PAGE, allocate nothing and return `arena` itself."""
    if estimated_size < LARGE_PAGE:
        return arena
    memory = arena(estimated_size + estimated_size // SPARE)
    thread = Thread(target=_touch, args=(memory[:estimated_size],), daemon=True)
    thread.start()

    def allocate(actual_size: int) -> NDArray[np.uint8]:
        thread.join()
        return memory[:actual_size] if estimated_size // 2 <= actual_size <= len(memory) else arena(actual_size)

    return allocate


def _touch(memory: NDArray[np.uint8]) -> None:
    """Zero the memory to fault its pages in, with the GIL released; the argument keeps the memory alive."""
    ctypes.memset(memory.ctypes.data, 0, len(memory))


def _aligned(memory: NDArray[np.uint8], to: int) -> NDArray[np.uint8]:
    return memory[-memory.ctypes.data % to :]
