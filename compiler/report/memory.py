"""`MemoryPlan`: offsets and lifetimes of the buffers between the calls of a whole program."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from compiler.analysis.arena import Lifetime, plan
from compiler.dialects.functions import SLOT_ALIGNMENT
from compiler.graph.main import BufferCall, Main, size


@dataclass(frozen=True)
class LiveBuffer:
    """A buffer: its shape and dtype as text, its bytes, its offset in the arena, its first and last step, from 0."""

    name: str
    type: str
    size: int
    offset: int
    first: int
    last: int


@dataclass(frozen=True)
class MemoryPlan:
    """The steps of a run, each the name of a group or a copy, the buffers, and the bytes of the arena. Results that
    groups write in place of an input are not taken into account: only machine code shows them."""

    steps: tuple[str, ...]
    buffers: tuple[LiveBuffer, ...]
    size: int

    @property
    def live(self) -> list[int]:
        """The bytes of live buffers at each step."""
        changes = [0] * (len(self.steps) + 1)
        for buffer in self.buffers:
            changes[buffer.first] += buffer.size
            changes[buffer.last + 1] -= buffer.size
        return list(accumulate(changes))[: len(self.steps)]

    @property
    def sum(self) -> int:
        """The bytes of all buffers together, as if none shared memory."""
        return sum(buffer.size for buffer in self.buffers)


def memory_of(main: Main) -> MemoryPlan:
    """Plan the offsets of the temporaries that a main function uses, as its machine code has them; temporaries without
    a use are left out."""
    used: dict[str, list[int]] = {}
    for number, step in enumerate(main.steps):
        for name in (*step.reads, *step.writes):
            used.setdefault(main.bases.get(name, name), []).append(number)
    temporaries = [buffer for buffer in main.temporaries if buffer.name in used]
    lifetimes = [Lifetime(size(b), min(used[b.name]), max(used[b.name])) for b in temporaries]
    arena = plan(lifetimes, SLOT_ALIGNMENT)
    live = (
        LiveBuffer(b.name, "x".join(map(str, (*b.shape, b.element))), life.size, offset, life.first, life.last)
        for b, life, offset in zip(temporaries, lifetimes, arena.offsets, strict=True)
    )
    steps = tuple(step.callee if isinstance(step, BufferCall) else f"copy of {step.source}" for step in main.steps)
    return MemoryPlan(steps, tuple(live), arena.size)
