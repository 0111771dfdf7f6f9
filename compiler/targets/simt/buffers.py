"""`CheckedBuffer`: the elements of a buffer under test, which of them are initialised, and the cost of accesses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import prod

import numpy as np

from compiler.dialects.numbers import DType
from compiler.targets.simt.access import Bools, Fault, FaultReporter, Ints, LaneAccess, Values
from compiler.targets.simt.races import Races

WARP = 32
"""The number of threads of a warp."""
BANKS, BANK = 32, 4
"""The number of banks of shared memory, and the bytes of a bank's word."""
SECTOR = 32
"""The bytes of a sector of global memory."""


class CheckedBuffer:
    """A buffer in global memory or shared by a block, with elements (size,), or local to each of n threads, with
    elements (n, size). `counts` has the memory transactions by kind. `initialised` and `written` are masks of the
    elements that have a value, and that the kernels have written."""

    def __init__(
        self, name: str, shape: tuple[int, ...], dtype: DType, space: str, threads: int, report: FaultReporter
    ) -> None:
        self.name, self.shape, self.dtype, self.space = name, shape, dtype, space
        self.counts: Counter[str] = Counter()
        self._threads, self._report = np.arange(threads), report
        full_shape = (threads, prod(shape)) if space == "local" else (prod(shape),)
        self.data, self.initialised = np.zeros(full_shape, dtype), np.zeros(full_shape, np.bool_)
        self.written = np.zeros(full_shape, np.bool_)
        self._in_flight = np.zeros(full_shape[-1:] if space == "shared" else (0,), np.bool_)
        self._all_initialised = False
        self._races = Races(prod(shape), space == "global", self._report_first) if space == "shared" else None

    def begin(self, is_written: bool) -> None:
        """Begin a kernel, which writes the buffer if `is_written`, else only reads it: reset counts and recorded
        accesses. Races are looked for in a buffer that is written only."""
        self.counts = Counter()
        self._races = Races(prod(self.shape), True, self._report_first) if is_written else None

    def fill(self, array: Values) -> None:
        """Set all elements, as the host does before a kernel, from an array of as many, which are cast to the buffer's
        dtype."""
        self.data[...] = np.asarray(array, self.dtype).reshape(-1)
        self.initialised[...] = self._all_initialised = True

    def reset(self) -> None:
        """Reset to the state of a new allocation: no element is initialised, no copy in flight."""
        self.initialised[...] = self._all_initialised = False
        self._in_flight[...] = False

    def begin_copy(self, index: Sequence[Ints], values: Values, access: LaneAccess) -> tuple[Ints, Bools]:
        """Start an asynchronous copy of values to elements of a shared buffer, uninitialised until it arrives. Return
        their offsets, and the mask of active threads within bounds."""
        flat, active = self._offsets(index, access, "write")
        self.write(index, values, access)
        self.initialised[flat[active]] = self._all_initialised = False
        self._in_flight[flat[active]] = True
        return flat, active

    def arrive(self, flat: Ints, active: Bools, access: LaneAccess) -> None:
        """Complete the active threads' copies to the offsets `flat`: they are initialised, and recorded as writes at
        the moment of an access."""
        if self._races is not None:
            self._races.write(flat, active, access)
        self.initialised[flat[active]] = True
        self._in_flight[flat[active]] = False

    def read(self, index: Sequence[Ints], access: LaneAccess) -> Values:
        """Return the elements (n,) or (n, lanes) at an index, whose parts are (), (n,) or (n, lanes); 0 for inactive
        threads and indices out of bounds. Report uninitialised reads, races, and indices out of bounds."""
        column = self._uniform_column(index)
        if column is not None and (self._all_initialised or self.initialised[:, column][access.active].all()):
            values = self.data[:, column].copy()
            return (
                values
                if access.is_full
                else np.where(_mask_like(access.active, values), values, np.zeros((), self.dtype))
            )
        flat, active = self._offsets(index, access, "read")
        self._count(flat, active, access)
        element_index = self._element_index(flat)
        if not self._all_initialised:
            self._report_first("uninitialised read", active & ~self.initialised[element_index], flat, access)
        if self._races is not None:
            self._races.read(flat, active, access)
        values = self.data[element_index]
        return values if access.is_full and active.all() else np.where(active, values, np.zeros((), self.dtype))

    def write(self, index: Sequence[Ints], values: Values, access: LaneAccess) -> None:
        """Set the elements at an index for the active threads; those out of bounds are dropped. Reports races, also
        with copies in flight, and indices out of bounds; none for an element in bounds that each thread has in its own
        memory."""
        column = self._uniform_column(index)
        if column is not None:
            active_rows = slice(None) if access.is_full else access.active
            is_per_active_thread = access.is_full or values.ndim == 0 or len(values) != len(access.active)
            self.data[active_rows, column] = values if is_per_active_thread else values[access.active]
            self.initialised[active_rows, column] = self.written[active_rows, column] = True
            return
        flat, active = self._offsets(index, access, "write")
        self._count(flat, active, access)
        if self._races is not None:
            self._races.write(flat, active, access)
        if self._in_flight.any():
            self._report_first("race of a write with a copy", active & self._in_flight[flat], flat, access)
        element_index = tuple(part[active] for part in self._element_index(flat))
        self.data[element_index] = np.broadcast_to(values, flat.shape)[active]
        self.initialised[element_index] = self.written[element_index] = True

    def _uniform_column(self, index: Sequence[Ints]) -> int | slice | None:
        """Return the offset or slice that all threads access in their local buffers; None for any other access."""
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

    def _element_index(self, flat: Ints) -> tuple[Ints, ...]:
        if self.space != "local":
            return (flat,)
        rows = self._threads.reshape((-1,) + (1,) * (flat.ndim - 1))
        return np.broadcast_to(rows, flat.shape), flat

    def _offsets(self, index: Sequence[Ints], access: LaneAccess, access_kind: str) -> tuple[Ints, Bools]:
        """Return row-major offsets, and the mask of active threads within bounds; report the first index beyond them as
        an out-of-bounds access of a kind (read or write)."""
        lanes = max((part.shape[1] for part in index if part.ndim == 2), default=0)
        full_shape = (len(access.active), lanes) if lanes else (len(access.active),)
        active = np.broadcast_to(access.active[:, None], full_shape) if lanes else access.active
        flat: Ints = np.zeros((), np.int64)
        for part, size in zip(index, self.shape, strict=True):
            part = part[:, None] if lanes and part.ndim == 1 else part
            if not (0 <= part < size if part.ndim == 0 else (part.view(np.uint64) < size).all()):
                active = self._check_dimension(
                    np.broadcast_to(part, full_shape), size, index, active, access, access_kind
                )
                part = np.clip(part, 0, size - 1)
            flat = flat * size + part
        return flat if flat.shape == full_shape else np.broadcast_to(flat, full_shape), active

    def _check_dimension(
        self, part: Ints, size: int, index: Sequence[Ints], active: Bools, access: LaneAccess, access_kind: str
    ) -> Bools:
        """Return `active` without the threads whose index `part` is outside a dimension of `size`; report the first,
        whose whole index is in `index`, as an access of the kind `access_kind` (read or write)."""
        out_of_bounds = active & ((part < 0) | (part >= size))
        if out_of_bounds.any():
            position = tuple(np.argwhere(out_of_bounds)[0])
            address = tuple(int(p[position[: p.ndim]]) for p in index)
            fault = Fault(
                f"out-of-bounds {access_kind}", access.op, self.name, address, (access.block,), (int(position[0]),)
            )
            self._report(fault)
        return active & ~out_of_bounds

    def _count(self, flat: Ints, active: Bools, access: LaneAccess) -> None:
        """Add the memory transactions of the active threads' access to the elements `flat` to `counts`: sectors of
        global memory, rounds of shared memory's banks; none for local memory, or unless the access is counted. A warp's
        op is one access; in shared memory each part of the warp that moves up to 128 bytes is one."""
        if not access.is_counted or self.space == "local":
            return
        lanes = flat.shape[1] if flat.ndim == 2 else 1
        threads_per_access = (
            min(WARP, max(1, BANKS * BANK // (lanes * self.dtype.itemsize))) if self.space == "shared" else WARP
        )
        for start in range(0, len(flat), threads_per_access):
            active_threads = active[start : start + threads_per_access]
            byte_offsets = flat[start : start + threads_per_access][active_threads] * self.dtype.itemsize
            if not len(byte_offsets):
                continue
            if self.space == "global":
                self.counts["accesses"] += 1
                self.counts["sectors"] += len(np.unique(byte_offsets // SECTOR))
                self.counts["bytes"] += byte_offsets.size * self.dtype.itemsize
            else:
                words = np.unique(byte_offsets // BANK)
                rounds = int(np.bincount(words % BANKS).max())
                self.counts["accesses"] += 1
                self.counts["rounds"] += rounds
                self.counts["conflicts"] += rounds - 1

    def _report_first(
        self,
        kind: str,
        wrong: Bools,
        flat: Ints,
        access: LaneAccess,
        former: Ints | None = None,
        blocks: Ints | None = None,
    ) -> None:
        """Report the first element of `flat` that is `wrong`, if there is one, as a fault of a `kind`; `former` are the
        threads, and `blocks` the blocks, of the earlier access, None without one."""
        if not wrong.any():
            return
        position = tuple(np.argwhere(wrong)[0])
        threads = (int(position[0]),) if former is None else (int(former[position]), int(position[0]))
        fault_blocks = (access.block,) if blocks is None else (int(blocks[position]), access.block)
        address = tuple(int(n) for n in np.unravel_index(int(flat[position]), self.shape)) if self.shape else ()
        self._report(Fault(kind, access.op, self.name, address, fault_blocks, threads))


def _mask_like(active: Bools, values: Values) -> Bools:
    """Return the mask of active threads in the rank of the values: one element or several a thread."""
    return active if values.ndim == 1 else active[:, None]
