"""`WarpInstruction`, `Repeat`: the code of a kernel as its warps execute it, read from the IR or from machine code."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

INTEGER, FLOAT, DOUBLE, SPECIAL, TENSOR = "integer", "float", "double", "special", "tensor"
"""Kinds by unit: integers and comparisons, float32, float64, functions such as exp2, fragments."""
SHARED, GLOBAL, SPILL = "shared", "global", "spill"
"""Accesses to shared memory, to global memory, and to the memory of a thread."""
CONTROL, BARRIER, WAIT, COPY = "control", "barrier", "wait", "copy"
"""Jumps, barriers of a block, waits for asynchronous copies, and renamings of registers, which cost nothing."""
MEMORY = (SHARED, GLOBAL, SPILL)

Warps: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class WarpInstruction:
    """An instruction of a warp. target: the register that it writes, None for none. sources: the registers that it
    reads. warps: mask of the sampled warps that execute it, None for all. rounds: cycles of the load/store unit for a
    warp; of a product of fragments its multiply-adds. bytes: moved from or to L2 for a warp. is_load: whether its
    result comes from memory."""

    kind: str
    target: Hashable | None = None
    sources: tuple[Hashable, ...] = ()
    warps: Warps | None = None
    rounds: float = 0.0
    bytes: float = 0.0
    is_load: bool = False


@dataclass(frozen=True, slots=True)
class Repeat:
    """A loop: `body` runs `trips` times."""

    trips: float
    body: Sequence[Code]


Code: TypeAlias = WarpInstruction | Repeat


def weighted(code: Sequence[Code], times: float = 1.0) -> Iterator[tuple[WarpInstruction, float]]:
    """Yield each instruction and its number of executions: `times`, multiplied by the trip counts of its loops."""
    for item in code:
        if isinstance(item, Repeat):
            yield from weighted(item.body, times * item.trips)
        else:
            yield item, times


def length(code: Sequence[Code]) -> int:
    """Return the number of instructions in the text of code: loop bodies count once, copies of registers not at all."""
    return sum(length(item.body) if isinstance(item, Repeat) else item.kind != COPY for item in code)
