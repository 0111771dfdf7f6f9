"""The memory of a kernel under test: its content, which elements are defined, and the cost of accesses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import prod

import numpy as np

from compiler.dialects.numbers import DType
from compiler.targets.simt.access import Bools, Fault, Ints, LaneAccess, Report, Values
from compiler.targets.simt.races import Races

WARP = 32
"""Threads that run together."""
BANKS, BANK = 32, 4
"""The banks of shared memory, and the bytes of each that are moved at once."""
SECTOR = 32
"""The bytes of global memory that are moved at once."""


class Memory:
    """One buffer: global to the grid, shared by a block, or (n, elements) local to each of n threads."""

    def __init__(
        self, name: str, shape: tuple[int, ...], dtype: DType, space: str, threads: int, report: Report
    ) -> None:
        self.name, self.shape, self.dtype, self.space = name, shape, dtype, space
        self.counts: Counter[str] = Counter()
        self._threads, self._report = np.arange(threads), report
        full_shape = (threads, prod(shape)) if space == "local" else (prod(shape),)
        self.data, self.known = np.zeros(full_shape, dtype), np.zeros(full_shape, np.bool_)
        self.written = np.zeros(full_shape, np.bool_)
        self._coming = np.zeros(full_shape[-1:] if space == "shared" else (0,), np.bool_)
        self._all_known = False
        self._races = Races(prod(shape), space == "global", self._say) if space == "shared" else None

    def begin(self, is_written: bool) -> None:
        """A kernel begins, which writes the buffer or not: who touched it before is past."""
        self.counts = Counter()
        self._races = Races(prod(self.shape), True, self._say) if is_written else None

    def fill(self, array: Values) -> None:
        """Set all elements, as the host does before the kernel begins."""
        self.data[...] = np.asarray(array, self.dtype).reshape(-1)
        self.known[...] = self._all_known = True

    def lose_all(self) -> None:
        """A new allocation: no element is defined, and no copy is in flight."""
        self.known[...] = self._all_known = False
        self._coming[...] = False

    def begin_copy(self, index: Sequence[Ints], values: Values, access: LaneAccess) -> tuple[Ints, Bools]:
        """Elements of a shared buffer are being changed: nothing is known of them until the copy has arrived. Gives
        their offsets, and who copies."""
        flat, active = self._place(index, access, "write")
        self.write(index, values, access)
        self.known[flat[active]] = self._all_known = False
        self._coming[flat[active]] = True
        return flat, active

    def arrive(self, flat: Ints, active: Bools, access: LaneAccess) -> None:
        """The asynchronous copies have arrived, as if written now."""
        if self._races is not None:
            self._races.write(flat, active, access)
        self.known[flat[active]] = True
        self._coming[flat[active]] = False

    def read(self, index: Sequence[Ints], access: LaneAccess) -> Values:
        """The elements at an index, each part (), (n,) or (n, lanes); zero where a thread is not active."""
        column = self._column(index)
        if column is not None and (self._all_known or self.known[:, column][access.active].all()):
            values = self.data[:, column].copy()
            return values if access.whole else np.where(_wider(access.active, values), values, np.zeros((), self.dtype))
        flat, active = self._place(index, access, "read")
        self._count(flat, active, access)
        mine = self._mine(flat)
        if not self._all_known:
            self._say("uninitialised read", active & ~self.known[mine], flat, access)
        if self._races is not None:
            self._races.read(flat, active, access)
        values = self.data[mine]
        return values if access.whole and active.all() else np.where(active, values, np.zeros((), self.dtype))

    def write(self, index: Sequence[Ints], values: Values, access: LaneAccess) -> None:
        """Set the elements at an index."""
        column = self._column(index)
        if column is not None:
            who = slice(None) if access.whole else access.active
            same = access.whole or values.ndim == 0 or len(values) != len(access.active)
            self.data[who, column] = values if same else values[access.active]
            self.known[who, column] = self.written[who, column] = True
            return
        flat, active = self._place(index, access, "write")
        self._count(flat, active, access)
        if self._races is not None:
            self._races.write(flat, active, access)
        if self._coming.any():
            self._say("race of a write with a copy", active & self._coming[flat], flat, access)
        at = tuple(part[active] for part in self._mine(flat))
        self.data[at] = np.broadcast_to(values, flat.shape)[active]
        self.known[at] = self.written[at] = True

    def _column(self, index: Sequence[Ints]) -> int | slice | None:
        """Where all threads find an element of a local buffer, or several side by side, if that is one place."""
        if self.space != "local":
            return None
        flat = 0
        for part, size in zip(index, self.shape, strict=True):
            if part.ndim == 2 and part.shape == (1, size):  # all of the last dimension
                return slice(flat * size, (flat + 1) * size)
            if part.ndim or not 0 <= part < size:
                return None
            flat = flat * size + int(part)
        return flat

    def _mine(self, flat: Ints) -> tuple[Ints, ...]:
        if self.space != "local":
            return (flat,)
        rows = self._threads.reshape((-1,) + (1,) * (flat.ndim - 1))
        return np.broadcast_to(rows, flat.shape), flat

    def _place(self, index: Sequence[Ints], access: LaneAccess, what: str) -> tuple[Ints, Bools]:
        """Offsets, and which threads access them: those inside the shape."""
        lanes = max((part.shape[1] for part in index if part.ndim == 2), default=0)
        full = (len(access.active), lanes) if lanes else (len(access.active),)
        active = np.broadcast_to(access.active[:, None], full) if lanes else access.active
        flat: Ints = np.zeros((), np.int64)
        for part, size in zip(index, self.shape, strict=True):
            part = part[:, None] if lanes and part.ndim == 1 else part
            if not (0 <= part < size if part.ndim == 0 else (part.view(np.uint64) < size).all()):
                active = self._inside(np.broadcast_to(part, full), size, index, active, access, what)
                part = np.clip(part, 0, size - 1)
            flat = flat * size + part
        return flat if flat.shape == full else np.broadcast_to(flat, full), active

    def _inside(
        self, part: Ints, size: int, index: Sequence[Ints], active: Bools, access: LaneAccess, what: str
    ) -> Bools:
        """The threads whose index is within a dimension; the first that is not is reported."""
        outside = active & ((part < 0) | (part >= size))
        if outside.any():
            at = tuple(np.argwhere(outside)[0])
            address = tuple(int(p[at[: p.ndim]]) for p in index)
            fault = Fault(f"out-of-bounds {what}", access.op, self.name, address, (access.block,), (int(at[0]),))
            self._report(fault)
        return active & ~outside

    def _count(self, flat: Ints, active: Bools, access: LaneAccess) -> None:
        """Count what the hardware does for an access: global memory in sectors, shared memory in rounds of its banks.

        A vector counts as one access; of shared memory each quarter or half of a warp that moves 128 bytes does.
        """
        if not access.counted or self.space == "local":
            return
        lanes = flat.shape[1] if flat.ndim == 2 else 1
        at_once = min(WARP, max(1, BANKS * BANK // (lanes * self.dtype.itemsize))) if self.space == "shared" else WARP
        for start in range(0, len(flat), at_once):
            mine = active[start : start + at_once]
            touched = flat[start : start + at_once][mine] * self.dtype.itemsize
            if not len(touched):
                continue
            if self.space == "global":
                self.counts["accesses"] += 1
                self.counts["sectors"] += len(np.unique(touched // SECTOR))
                self.counts["bytes"] += touched.size * self.dtype.itemsize
            else:
                words = np.unique(touched // BANK)
                rounds = int(np.bincount(words % BANKS).max())
                self.counts["accesses"] += 1
                self.counts["rounds"] += rounds
                self.counts["conflicts"] += rounds - 1

    def _say(
        self,
        kind: str,
        wrong: Bools,
        flat: Ints,
        access: LaneAccess,
        former: Ints | None = None,
        blocks: Ints | None = None,
    ) -> None:
        """Report the first wrong element; `former` are the threads, or blocks, that touched it before."""
        if not wrong.any():
            return
        at = tuple(np.argwhere(wrong)[0])
        threads = (int(at[0]),) if former is None else (int(former[at]), int(at[0]))
        where = (access.block,) if blocks is None else (int(blocks[at]), access.block)
        address = tuple(int(n) for n in np.unravel_index(int(flat[at]), self.shape)) if self.shape else ()
        self._report(Fault(kind, access.op, self.name, address, where, threads))


def _wider(active: Bools, values: Values) -> Bools:
    """Who is active, for values of one element or several a thread."""
    return active if values.ndim == 1 else active[:, None]
