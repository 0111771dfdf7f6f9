"""`PtxMemory`: the bytes of a buffer or a state space, with bounds, alignment and shadow; `PtxAccess`: the threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from compiler.targets.ptx.shadow import PENDING, SET, OwnShadow, Shadow
from compiler.targets.ptx.values import POISON, Array


@dataclass(frozen=True)
class PtxAccess:
    """The threads of one access, n of them: lanes, thread numbers in the grid, and moments, each (n,).

    add: a function that logs a fault, from its kind, lane, place, and a second thread's number or None.
    """

    lanes: Array
    threads: Array
    moments: Array
    add: Callable[[str, int, str, int | None], None]

    def some(self, mask: Array) -> PtxAccess:
        """Return the access of the threads that a mask or an array of positions selects."""
        return PtxAccess(self.lanes[mask], self.threads[mask], self.moments[mask], self.add)

    def report(self, kind: str, wrong: Array, place: Callable[[int], str], others: Array | None = None) -> None:
        """Log the first fault of a mask (n,) or (n, k), if any is set; the others are not logged. `place` returns the
        text of a position in the flattened mask; `others` has the number of the second thread for each."""
        if wrong.any():
            first = int(np.argmax(wrong.reshape(-1)))
            thread = first // (wrong.size // len(wrong))
            other = None if others is None else int(others.reshape(-1)[first])
            self.add(kind, int(self.lanes[thread]), place(first), other)


@dataclass
class PtxMemory:
    """A memory that is accessed by byte offsets. size: the bytes of a part: a buffer is one part, shared memory has one
    for each block, local memory one for each thread. data: the bytes of all parts, `stride` bytes apart. granule: the
    bytes that one entry of `shadow` describes; without a shadow all bytes count as set, and races are not looked for.
    is_constant: a store is a fault. is_cached: a `.nc` load has read it: a later store is a fault. layout: byte offset
    and name of each variable."""

    name: str
    size: int
    data: Array
    stride: int = 0
    granule: int = 1
    shadow: Shadow | OwnShadow | None = None
    is_constant: bool = False
    is_cached: bool = False
    layout: list[tuple[int, str]] = field(default_factory=list)

    def load(self, access: PtxAccess, part: Array | int, offsets: Array, width: int, count: int) -> Array:
        """Return (n, count) unsigned integers of `width` bytes, in the parts `part` at byte offsets (n,). Accesses out
        of bounds or not aligned to width * count bytes are reported, and read as all ones; reads of unset memory and
        races are reported."""
        good = self._checked(access, offsets, width * count)
        if good is not None:
            values = np.full((len(offsets), count), (1 << 8 * width) - 1, f"u{width}")
            if good.any():
                parts = part if isinstance(part, int) else part[good]
                values[good] = self.load(access.some(good), parts, offsets[good], width, count)
            return values
        flat = offsets + part * self.stride
        if self.shadow is not None:
            self.shadow.read(
                self._granules(flat, width * count), access.threads, access.moments, self._reporter(access, offsets)
            )
        return self.data.view(f"u{width}")[(flat // width)[:, None] + np.arange(count)]

    def store(self, access: PtxAccess, part: Array | int, offsets: Array, values: Array, state: int = SET) -> None:
        """Store (n, count) unsigned integers in the parts `part` at byte offsets (n,), and set the state of their
        granules; PENDING stores all ones instead of the values. Accesses out of bounds or misaligned, and all to
        constant memory, are reported and store nothing; races, and a store to memory that `.nc` reads, are reported
        and stored."""
        count, width = values.shape[1], values.itemsize
        good = self._checked(access, offsets, width * count)
        every = np.ones(len(offsets), np.bool_)
        if self.is_constant:
            access.report("store to constant memory", every, lambda n: self.place(int(offsets[n])))
            return
        if self.is_cached:
            access.report("store to memory that ld.global.nc reads", every, lambda n: self.place(int(offsets[n])))
        if good is not None:
            if good.any():
                parts = part if isinstance(part, int) else part[good]
                self.store(access.some(good), parts, offsets[good], values[good], state)
            return
        flat = offsets + part * self.stride
        if self.shadow is not None:
            granules = self._granules(flat, width * count)
            self.shadow.write(granules, access.threads, access.moments, self._reporter(access, offsets), state)
        poison = np.full_like(values, (1 << 8 * width) - 1)
        self.data.view(f"u{width}")[(flat // width)[:, None] + np.arange(count)] = (
            poison if state == PENDING else values
        )

    def update(
        self, access: PtxAccess, part: Array | int, offsets: Array, width: int, updated: Callable[[Array], Array]
    ) -> None:
        """Replace the unsigned integer of `width` bytes at the offset of one thread by `updated` of it, as an atomic:
        races are not checked. An access out of bounds or misaligned is reported and changes nothing; the update of
        unset memory is reported, and its bytes count as set."""
        if self._checked(access, offsets, width) is not None:
            return
        flat = offsets + part * self.stride
        if self.shadow is not None:
            granules = self._granules(flat, width)
            unset = self.shadow.state[granules] != SET
            self._reporter(access, offsets)("read of memory that nobody has set", unset, granules)
            self.shadow.state[granules] = SET
        words = self.data.view(f"u{width}")
        words[flat // width] = updated(words[flat // width])

    def place(self, offset: int) -> str:
        """Return a byte's variable and the offset in it, such as `A_shared+64`; without a variable the memory's name
        and the byte's offset."""
        start, name = max((entry for entry in self.layout if entry[0] <= offset), default=(0, self.name))
        return f"{name}{offset - start:+d}"

    def _checked(self, access: PtxAccess, offsets: Array, size: int) -> Array | None:
        """Return the mask of the accesses of `size` bytes in bounds and aligned, None if all are; report the others."""
        outside = (offsets < 0) | (offsets > self.size - size)
        misaligned = offsets % size != 0
        wrong = outside | misaligned
        if not wrong.any():
            return None
        access.report("access outside of memory", outside, lambda n: self.place(int(offsets[n])))
        access.report("misaligned access", misaligned & ~outside, lambda n: self.place(int(offsets[n])))
        good: Array = ~wrong
        return good

    def _granules(self, flat: Array, size: int) -> Array:
        return (flat // self.granule)[:, None] + np.arange(size // self.granule)

    def _reporter(self, access: PtxAccess, offsets: Array) -> Callable[[str, Array, Array], None]:
        def report(kind: str, wrong: Array, others: Array) -> None:
            of_race = others if kind.startswith("race") else None
            count = wrong.shape[1]
            access.report(
                kind, wrong, lambda n: self.place(int(offsets[n // count]) + n % count * self.granule), of_race
            )

        return report


def poisoned(size: int) -> Array:
    """Return `size` bytes of poison, rounded up to a multiple of 16: the content of memory that nobody has set."""
    return np.full(-(-size // 16) * 16, POISON, np.uint8)
