"""Arrays between pages that no one may touch: a read or write outside one ends the process."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def memory(size: int, at_end: bool) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """`size` bytes that end where a forbidden page begins, or begin where one ends. The pages stay forbidden."""
    page = mmap.PAGESIZE
    body = -(-max(size, 1) // page) * page
    pages = np.frombuffer(mmap.mmap(-1, body + 2 * page), np.uint8)
    for forbidden in (pages.ctypes.data, pages.ctypes.data + page + body):
        if _LIBC.mprotect(forbidden, page, 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    start = page + body - size if at_end else page
    return pages[start : start + size]


def guarded(array: Array, at_end: bool) -> Array:
    copy: Array = np.ndarray(array.shape, array.dtype, memory(array.nbytes, at_end))
    copy[...] = array
    return copy


def workspace(size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """What a kernel's `arena` gives, in such memory and full of NaN."""
    actual = memory(-(-size // 64) * 64, True)
    actual[:] = 0xFF
    return actual
