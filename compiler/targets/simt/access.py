"""`LaneAccess`: the lanes of a memory access; `Fault`: a wrong access."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Values = NDArray[Any]  # of whatever dtype a buffer has


def behind(block: int) -> int:
    """Return the number that stands for a block behind its arrival, in records of races; -1 is nobody."""
    return -2 - block


def block_of(numbers: Ints) -> Ints:
    """Return the blocks that numbers in records of races stand for."""
    return np.where(numbers < -1, -2 - numbers, numbers)


@dataclass(slots=True)
class LaneAccess:
    """One op's access to memory by the threads of a block. op: in words. block: its number. active: mask (n,) of
    threads. moment: the number of the interval between two barriers. is_counted: whether to count transactions.
    is_full: whether all threads are active. writer: the number that stands for the block in records of races, another
    one behind an arrival. seen: such numbers whose accesses came before, by an arrival."""

    op: str
    block: int
    active: Bools
    moment: int
    is_counted: bool = False
    is_full: bool = False
    writer: int = 0
    seen: Ints | None = None


@dataclass(frozen=True)
class Fault:
    """A fault that simt finds in a kernel. kind: such as "divergent barrier". op: the text of the op; "" for an
    unwritten element. memory, address: the buffer and the index of the first wrong element; "" and () for a barrier or
    warp that diverges. blocks: the block; two for a race between blocks; none for an element that no block writes.
    threads: one thread, or two, the earlier one first; none if unknown."""

    kind: str
    op: str
    memory: str
    address: tuple[int, ...]
    blocks: tuple[int, ...]
    threads: tuple[int, ...]

    def __str__(self) -> str:
        element = f"{self.memory}[{', '.join(map(str, self.address))}]" if self.memory else ""
        at_element = f" at {element}" if element else ""
        if not self.blocks:
            return f"{self.kind}{at_element}: no block writes it"
        location = (
            f"block {self.blocks[0]}" if len(self.blocks) == 1 else f"blocks {self.blocks[0]} and {self.blocks[1]}"
        )
        if self.threads:
            location += f", thread{'s' * (len(self.threads) > 1)} {' and '.join(map(str, self.threads))}"
        return f"{self.kind}{at_element}: {location}, in {self.op}"


FaultReporter = Callable[[Fault], None]
