"""Which element of a tile of mma.sync each thread of a warp holds, in which register.

The tables of the PTX ISA ("Matrix Fragments for mma.m16n8k8" and the following) as one formula. A register of 32 bits
has `each` elements. Of A, thread t has in register r the row t / 4 + 8 (r % 2) and the columns from
4 each (r / 2) + each (t % 4) on; of B the column t / 4 and the rows from 4 each r + each (t % 4) on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from compiler.targets.ptx.shadow import WARP
from compiler.targets.ptx.values import Array, bits_of

_ROWS, _COLUMNS = 16, 8
SHAPES: Mapping[str, tuple[str, ...]] = {
    "m16n8k4": ("tf32",),
    "m16n8k8": ("f16", "bf16", "tf32"),
    "m16n8k16": ("f16", "bf16", "s8", "u8"),
    "m16n8k32": ("s8", "u8"),
}
"""The types of A and B that a shape has."""


@dataclass(frozen=True)
class FragmentLayout:
    """The distribution of a matrix over a warp's registers: the matrix's `shape`, and the row and the column, each (32,
    elements), of every element of each thread, in the order of its registers."""

    shape: tuple[int, int]
    rows: Array
    columns: Array


def left(type_: str, depth: int) -> FragmentLayout:
    """Return the layout of the left operand A of an MMA, of 16 rows and `depth` columns of a type of SHAPES."""
    each = 32 // bits_of(type_ if type_ != "tf32" else "b32")
    thread, element = np.meshgrid(np.arange(WARP), np.arange(_ROWS * depth // WARP), indexing="ij")
    register, place = element // each, element % each
    rows = thread // 4 + 8 * (register % 2)
    return FragmentLayout((_ROWS, depth), rows, thread % 4 * each + place + 4 * each * (register // 2))


def right(type_: str, depth: int) -> FragmentLayout:
    """Return the layout of the right operand B of an MMA, of `depth` rows and 8 columns of a type of SHAPES."""
    each = 32 // bits_of(type_ if type_ != "tf32" else "b32")
    thread, element = np.meshgrid(np.arange(WARP), np.arange(depth * _COLUMNS // WARP), indexing="ij")
    register, place = element // each, element % each
    return FragmentLayout((depth, _COLUMNS), thread % 4 * each + place + 4 * each * register, thread // 4)


def accumulator() -> FragmentLayout:
    """Return the layout of an MMA's C and D, of 16 rows and 8 columns, with four 32-bit elements a thread."""
    thread, element = np.meshgrid(np.arange(WARP), np.arange(4), indexing="ij")
    return FragmentLayout((_ROWS, _COLUMNS), thread // 4 + 8 * (element // 2), thread % 4 * 2 + element % 2)
