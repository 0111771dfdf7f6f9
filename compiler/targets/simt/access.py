"""`LaneAccess`: the lanes that touch memory at a moment; `Fault`: a wrong access."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Values = NDArray[Any]  # of whatever dtype a buffer has


@dataclass(slots=True)
class LaneAccess:
    """Who touches memory at a moment: the op's words, the block's number, the threads (n,) that are active, and the
    moment, a number that each barrier of each block makes larger. `counted` says whether transactions count, `whole`
    that all threads are active."""

    op: str
    block: int
    active: Bools
    moment: int
    counted: bool = False
    whole: bool = False


@dataclass(frozen=True)
class Fault:
    """Something that a kernel does wrong, at its first place. `threads` are one or two threads of a block, if they are
    known; where two blocks meet, `blocks` are both; what nobody does has none."""

    kind: str
    op: str
    memory: str
    address: tuple[int, ...]
    blocks: tuple[int, ...]
    threads: tuple[int, ...]

    def __str__(self) -> str:
        place = f"{self.memory}[{', '.join(map(str, self.address))}]" if self.memory else ""
        at = f" at {place}" if place else ""
        if not self.blocks:
            return f"{self.kind}{at}: no block writes it"
        where = f"block {self.blocks[0]}" if len(self.blocks) == 1 else f"blocks {self.blocks[0]} and {self.blocks[1]}"
        if self.threads:
            where += f", thread{'s' * (len(self.threads) > 1)} {' and '.join(map(str, self.threads))}"
        return f"{self.kind}{at}: {where}, in {self.op}"


Report = Callable[[Fault], None]
