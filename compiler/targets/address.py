"""The address of an array's first element, in a tenth of the time of numpy's own `ctypes.data`."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

HEADER = object.__basicsize__
"""The offset of the data pointer in an array object, in bytes: the first field of `PyArrayObject`."""

WORD = ctypes.sizeof(ctypes.c_size_t)


def numpy_address(array: NDArray[Any]) -> int:
    """Return the address of an array's first element, by numpy's own attribute."""
    return array.ctypes.data


def address_reader(offset: int = HEADER) -> Callable[[NDArray[Any]], int]:
    """Return a function from an array to the address of its first element, which it reads at a byte offset of the array
    object; `numpy_address` if the offset is no multiple of WORD inside the object, or a sample array shows that it is
    wrong."""
    memory = (ctypes.c_size_t * (sys.maxsize // WORD)).from_address(0)  # indexing makes no object of ctypes
    word_offset = offset // WORD

    def read(array: NDArray[Any]) -> int:
        return memory[id(array) // WORD + word_offset]

    is_word = offset % WORD == 0 and offset + WORD <= np.ndarray.__basicsize__
    return read if is_word and all(read(sample) == numpy_address(sample) for sample in _samples()) else numpy_address


def _samples() -> list[NDArray[Any]]:
    """Return sample arrays: owners of memory, views, read-only arrays, empty arrays and scalars."""
    array = np.zeros((4, 6), np.float32)
    frozen = array[1:].view()
    frozen.flags.writeable = False
    return [array, frozen, array.T, array[::-1, 2:], np.zeros(()), np.zeros(0), np.arange(5, dtype=np.int8)[3:]]


address = address_reader()
