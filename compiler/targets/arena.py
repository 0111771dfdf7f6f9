"""Memory for workspaces: on large pages where the system has them, since packed panels are walked page by page."""

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
"""The size of a large page, in bytes; smaller workspaces stay on small ones."""

SPARE = 8
"""Arenas whose size is not known yet have one part in so many to spare, which takes no memory unless it is used."""

Allocate: TypeAlias = Callable[[int], NDArray[np.uint8]]
"""A function from a size to an arena of that size."""


def arena(size: int) -> NDArray[np.uint8]:
    """At least `size` bytes of memory, uint8, aligned to 64 bytes."""
    if size < LARGE_PAGE // 4 or not hasattr(mmap, "MADV_HUGEPAGE"):
        return _aligned(np.empty(size + SLOT_ALIGNMENT, np.uint8), SLOT_ALIGNMENT)
    rounded = -(-size // LARGE_PAGE) * LARGE_PAGE
    # Shared memory, which is the default, gets large pages on few systems only, and forked children would write to it.
    memory = mmap.mmap(-1, rounded + LARGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    return _aligned(np.frombuffer(memory, np.uint8), LARGE_PAGE)[:rounded]


def arena_ahead(size: int) -> Allocate:
    """Start to make an arena of about that size; the result gives it, once its actual size is known.

    The system clears each page when it is first touched, of hundreds of megabytes for half a second and more. Here a
    thread touches them while this one computes something else; it ends by itself.
    """
    if size < LARGE_PAGE:
        return arena
    memory = arena(size + size // SPARE)
    thread = Thread(target=_touch, args=(memory[:size],), daemon=True)
    thread.start()

    def allocate(actual: int) -> NDArray[np.uint8]:
        thread.join()
        return memory[:actual] if size // 2 <= actual <= len(memory) else arena(actual)

    return allocate


def _touch(memory: NDArray[np.uint8]) -> None:
    """Write all of some memory, which stays alive meanwhile, whoever else drops it; other threads run."""
    ctypes.memset(memory.ctypes.data, 0, len(memory))


def _aligned(memory: NDArray[np.uint8], to: int) -> NDArray[np.uint8]:
    return memory[-memory.ctypes.data % to :]
