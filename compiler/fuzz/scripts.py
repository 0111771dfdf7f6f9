"""Random steps over all primitives, with arguments that are often, but not always, accepted."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from typing import Any

from xdsl.ir import Operation

from compiler.program.tree import Alloc, Loop, blocks_in
from compiler.schedule import Handle, Schedule
from compiler.support.errors import ScheduleError

SCOPES = ("local", "shared", "global")
INTRINSICS = ("dot.i32.u8i8x4", "mma.f32.f16", "no such")
LOOKING = ("sched.get_", "sched.sample_", "sched.multiple", "sched.product")
"""The prefixes of the names of ops that change no program."""
THREADS = ("block_x", "block_y", "thread_x", "thread_y", "vthread")


@dataclass
class Walker:
    """A random walk over the primitives of the schedule `s`. accepted, refused: the numbers of steps by primitive.
    last: the primitive that was tried last."""

    s: Schedule
    rng: random.Random
    accepted: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    last: str = ""

    def step(self) -> None:
        """Try one random primitive and count the result, unless the chosen block has no loops. Raises AssertionError if
        a refusal has changed the program or the script; one step in ten also compares the text of the module."""
        name, make = self.rng.choice(STEPS)
        self.last = name
        handles = self._handles()
        if handles is None:
            return
        program, script = self.s.program, self._script()
        thorough = self.rng.random() < 0.1
        module = str(self.s.module) if thorough else ""
        try:
            make(self, *handles)
        except ScheduleError as error:
            assert str(error)
            self.refused[name] += 1
            assert self.s.program is program, f"{name} was refused and changed the payload"
            assert not thorough or str(self.s.module) == module
            assert self._script() == script, f"{name} was refused and changed the script"
        else:
            self.accepted[name] += 1

    def _script(self) -> list[Operation]:
        """The ops of the script without look-ups of blocks and loops, choices and sizes."""
        ops = [op for op in self.s.script.walk() if op.name.startswith("sched.")]
        return [
            op
            for op in ops
            if not op.name.startswith(("sched.get_", "sched.sample_", "sched.multiple", "sched.product"))
        ]

    def _handles(self) -> tuple[Handle, list[Handle]] | None:
        block = self.s.get_block(self.rng.choice(list(self.s.program.blocks)))
        loops = self.s.get_loops(block)
        return (block, loops) if loops else None

    def buffer(self, block: Handle) -> str:
        """A buffer, mostly one of the block."""
        node = self.s.program.blocks[self.s.label(block)]
        own = [*node.sources, *(a.buffer for a in node.writes)]
        return self.rng.choice(own if self.rng.random() < 0.8 else list(self.s.program.buffers))

    def temporary(self, block: Handle, inner: bool = False) -> tuple[Handle, str]:
        """A block and a buffer: mostly a temporary that the block writes; with `inner`, one that lives in a loop.
        Without such a one, and sometimes otherwise, `block` and a buffer by `buffer`."""
        p = self.s.program
        collected = [
            (label, a.buffer)
            for label, node in p.blocks.items()
            for a in node.writes
            if a.buffer in p.allocs and (not inner or p.enclosing((a.buffer,)))
        ]
        if not collected or self.rng.random() < 0.1:
            return block, self.buffer(block)
        label, buffer = self.rng.choice(collected)
        return self.s.get_block(label), buffer

    def moved(self, block: Handle, loops: list[Handle], producer: bool) -> tuple[Handle, Handle]:
        """A block to move, and the loop to move it to: mostly a producer and a loop of its consumer, or with `producer`
        False a consumer and a loop of its producer."""
        p = self.s.program
        pairs = [(w.label, r.label) for n in p.allocs for w in p.writers[n] for r in p.readers[n] if w is not r]
        if not pairs or self.rng.random() < 0.1:
            return self.s.get_block(self.rng.choice(list(p.blocks))), self.rng.choice(loops)
        pair = self.rng.choice(pairs)
        mover, host = (self.s.get_block(label) for label in (pair if producer else reversed(pair)))
        return mover, self.rng.choice(self.s.get_loops(host) or loops)

    def siblings(self) -> tuple[Handle, Handle] | None:
        """Handles of two loops, the second just behind the first in the same body; None if there are none."""
        p = self.s.program
        bodies = [p.body, *(loop.body for loop in p.loops.values())]
        pairs = []
        for nodes in bodies:
            remaining = [n for n in nodes if not isinstance(n, Alloc)]
            pairs += [(a, b) for a, b in pairwise(remaining) if isinstance(a, Loop) and isinstance(b, Loop)]
        if not pairs:
            return None
        first, second = self.rng.choice(pairs)
        return self.handle(first), self.handle(second)

    def handle(self, loop: Loop) -> Handle:
        """A handle on a loop, which contains a block."""
        block = self.s.get_block(blocks_in(loop)[0].label)
        return self.s.get_loops(block)[len(self.s.program.enclosing(loop.number))]


Make = Callable[[Walker, Handle, list[Handle]], Any]


def _split(w: Walker, block: Handle, loops: list[Handle]) -> None:
    if w.rng.random() < 0.5:
        loops = w.s.get_loops(w.temporary(block)[0]) or loops
    factors: list[int | None] = w.rng.choice(
        [[None, w.rng.randint(1, 4)], [w.rng.randint(1, 3), None], [None, 2, 2], [3, 3]]
    )
    w.s.split(w.rng.choice(loops), factors, w.rng.choice(["guard", "partition", "pad", "pad"]))


def _fuse(w: Walker, block: Handle, loops: list[Handle]) -> None:
    start = w.rng.randrange(len(loops))
    w.s.fuse(*loops[start : start + w.rng.randint(2, 3)])


def _reorder(w: Walker, block: Handle, loops: list[Handle]) -> None:
    w.s.reorder(*w.rng.sample(loops, min(len(loops), w.rng.randint(2, 4))))


def _merge(w: Walker, block: Handle, loops: list[Handle]) -> None:
    pair = w.siblings()
    if pair is not None:
        w.s.merge(*pair, shift=w.rng.choice([0, 0, 0, 1, 2]))


def _lift(w: Walker, block: Handle, loops: list[Handle]) -> None:
    block, buffer = w.temporary(block, inner=True)
    w.s.lift_alloc(buffer, w.rng.choice([None, w.rng.choice(w.s.get_loops(block) or loops)]))


def _double_buffer(w: Walker, block: Handle, loops: list[Handle]) -> None:
    w.s.double_buffer(w.temporary(block, inner=True)[0])


def _pad(w: Walker, block: Handle, loops: list[Handle]) -> None:
    reads = [(b.label, a.buffer) for b in w.s.program.blocks.values() for a in b.reads if a.where]
    label, buffer = w.rng.choice(reads) if reads else (w.s.label(block), w.buffer(block))
    w.s.pad(w.s.get_block(label), buffer)


def _layout(w: Walker, block: Handle, loops: list[Handle]) -> None:
    n = w.rng.randint(1, 4)
    block, name = w.temporary(block)
    shape = w.s.program.buffers[name].shape or (1,)
    forms: list[Callable[..., Any]] = [
        lambda *d: (d[-1] // n, *d[:-1], d[-1] % n),
        lambda *d: tuple(reversed(d)),
        lambda *d: (d[0] % n, *d[1:]),
        lambda *d: (*d[:-1], d[-1] % n),
        lambda *d: (*d[:-1], (d[0] + d[-1]) % shape[-1]),
        lambda *d: (*d[:-1], (n * d[-1] + 1) % shape[-1]),
        lambda *d: (shape[0] - 1 - d[0], *d[1:]),
        lambda *d: (sum((x * prod(shape[i + 1 :]) for i, x in enumerate(d[1:], 1)), d[0] * prod(shape[1:])),),
    ]
    w.s.transform_layout(block, name, w.rng.choice(forms))


def _stage(w: Walker, block: Handle, loops: list[Handle]) -> None:
    w.s.stage(w.rng.choice(loops), w.buffer(block), w.rng.choice(SCOPES))


def _pack(w: Walker, block: Handle, loops: list[Handle]) -> None:
    name = w.buffer(block)
    tiles = [w.rng.randint(1, 3) for _ in w.s.program.buffers[name].shape]
    rank = len(tiles) + sum(t > 1 for t in tiles)
    order = w.rng.sample(range(rank), rank) if w.rng.random() < 0.5 else []
    w.s.pack(block, name, tiles, order)


def _pipeline(w: Walker, block: Handle, loops: list[Handle]) -> None:
    loop = w.rng.choice(loops)
    node = next(n for n in w.s.program.loops.values() if n.label == w.s.label(loop) and n in _around(w, block))
    parts = sum(not isinstance(n, Alloc) for n in node.body)
    w.s.software_pipeline(loop, [w.rng.randint(0, 2) for _ in range(parts)])


def _around(w: Walker, block: Handle) -> tuple[Loop, ...]:
    return w.s.program.enclosing(w.s.label(block))


def _located(w: Walker, block: Handle, loops: list[Handle]) -> None:
    w.s.compute_at(block, w.s.sample_location(block))


def _sampled_tile(w: Walker, block: Handle, loops: list[Handle]) -> None:
    loop = w.rng.choice(loops)
    w.s.split(loop, w.s.sample_perfect_tile(loop, w.rng.randint(2, 3), 8))


def _sampled_factor(w: Walker, block: Handle, loops: list[Handle]) -> None:
    w.s.split(w.rng.choice(loops), [w.s.sample_categorical([3, 5]), w.s.sample_categorical([2, 3], [0.25, 0.75])])


def _computed_factor(w: Walker, block: Handle, loops: list[Handle]) -> None:
    small = w.s.sample_categorical([1, 2], [0.5, 0.5])
    w.s.split(w.rng.choice(loops), [None, w.s.multiple(w.s.product(small, w.s.sample_categorical([1, 3])), 2)])


_ONCE: dict[str, Make] = {
    "get_block": lambda w, b, ls: w.s.get_block(w.rng.choice([*w.s.program.blocks, "nowhere"])),
    "get_loops": lambda w, b, ls: w.s.get_loops(w.rng.choice([b, ls[0]])),
    "get_producers": lambda w, b, ls: w.s.get_producers(b),
    "get_consumers": lambda w, b, ls: w.s.get_consumers(b),
    "auto": lambda w, b, ls: w.s.auto(b),
    "add_unit_loop": lambda w, b, ls: w.s.add_unit_loop(w.rng.choice(ls)),
    "reverse": lambda w, b, ls: w.s.reverse(w.rng.choice(ls)),
    "multiple": _computed_factor,
    "product": _computed_factor,
    "partition": lambda w, b, ls: w.s.partition(w.rng.choice(ls), w.rng.randint(1, 4)),
    "trim": lambda w, b, ls: w.s.trim(w.rng.choice(ls)),
    "fuse": _fuse,
    "join_axes": lambda w, b, ls: w.s.join_axes(b),
    "distribute": lambda w, b, ls: w.s.distribute(w.rng.choice(ls), b),
    "unroll": lambda w, b, ls: w.s.unroll(w.rng.choice(ls)),
    "vectorize": lambda w, b, ls: w.s.vectorize(w.rng.choice(ls)),
    "parallel": lambda w, b, ls: w.s.parallel(w.rng.choice(ls)),
    "bind": lambda w, b, ls: w.s.bind(w.rng.choice(ls), w.rng.choice(THREADS)),
    "tensorize": lambda w, b, ls: w.s.tensorize(w.rng.choice(ls), w.rng.choice(INTRINSICS)),
    "annotate": lambda w, b, ls: w.s.annotate(w.rng.choice(ls), "hint", w.rng.randint(1, 9)),
    "inline": lambda w, b, ls: w.s.inline(b),
    "reverse_inline": lambda w, b, ls: w.s.reverse_inline(b),
    "decompose_reduction": lambda w, b, ls: w.s.decompose_reduction(b, w.rng.choice(ls)),
    "rfactor": lambda w, b, ls: w.s.rfactor(b, w.rng.choice(ls)),
    "cache_read": lambda w, b, ls: w.s.cache_read(b, w.buffer(b), w.rng.choice(SCOPES)),
    "cache_write": lambda w, b, ls: w.s.cache_write(b, w.rng.choice(SCOPES)),
    "lift_alloc": _lift,
    "set_scope": lambda w, b, ls: w.s.set_scope(b, w.rng.choice(SCOPES)),
    "pack": _pack,
    "pad": _pad,
    "reindex": lambda w, b, ls: w.s.reindex(b, w.buffer(b)),
    "storage_align": lambda w, b, ls: w.s.storage_align(w.temporary(b)[0], w.rng.randint(0, 1), 4, w.rng.randint(0, 3)),
    "swizzle": lambda w, b, ls: w.s.swizzle(w.temporary(b)[0], w.rng.choice([1, 2, 4])),
    "prefetch": lambda w, b, ls: w.s.prefetch(w.rng.choice(ls), w.buffer(b), 2, w.rng.choice([None, *ls])),
    "sample_location": _located,
    "sample_perfect_tile": _sampled_tile,
    "sample_categorical": _sampled_factor,
}
_TWICE: dict[str, Make] = {
    "split": _split,
    "stage": _stage,
    "double_buffer": _double_buffer,
    "transform_layout": _layout,
    "software_pipeline": _pipeline,
    "reorder": _reorder,
    "merge": _merge,
    "compute_at": lambda w, b, ls: w.s.compute_at(*w.moved(b, ls, producer=True)),
    "reverse_compute_at": lambda w, b, ls: w.s.reverse_compute_at(*w.moved(b, ls, producer=False)),
}
STEPS: list[tuple[str, Make]] = [*_ONCE.items(), *_TWICE.items(), *_TWICE.items()]
