"""`CodeEmitter`: the code of a kernel while it is read, and registers for values."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import prod
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from compiler.targets.launches import KernelLaunch
from compiler.targets.timing.code import COPY, INTEGER, Code, WarpInstruction, Warps
from compiler.targets.timing.values import Lanes, LinearValue, register

WARP = 32
BLOCKS = 3
"""The sampled blocks of a grid."""


class CodeEmitter:
    """An evaluator of a kernel's body for sampled blocks of threads, which collects the kernel's code."""

    def __init__(self, launch: KernelLaunch) -> None:
        self.launch = launch
        self.threads = prod(launch.block)
        self.padded = -(-self.threads // WARP) * WARP
        total = prod(launch.grid)
        count = min(BLOCKS, total)
        self.blocks = [(2 * n + 1) * total // (2 * count) for n in range(count)]
        lanes = np.arange(self.padded)
        self.thread = np.tile(np.where(lanes < self.threads, lanes, 0), count)
        self.block = np.repeat(np.array(self.blocks, np.int64), self.padded)
        self.values: dict[SSAValue, LinearValue] = {}
        self.buffers: dict[SSAValue, Hashable] = {}
        self.local: dict[tuple[Hashable, int], Hashable] = {}
        self.version: dict[Hashable, int] = {}
        self.code: list[list[Code]] = [[]]
        """The code of each open loop, outermost first."""
        self.masks = [np.tile(lanes < self.threads, count)]
        """The mask of threads at the beginning of each open loop."""
        self.depth: dict[Hashable, int] = {}
        self.numbers: dict[Hashable, Lanes] = {}
        self.available: list[dict[Hashable, Hashable]] = [{}]
        """Pure values by key, for each open loop."""
        self.loaded: list[dict[Hashable, Hashable]] = [{}]
        """Loaded values by key, for each open condition."""
        self.touched: dict[Hashable, Any] = {}
        self.last: dict[Hashable, Any] = {}
        self.path: tuple[Hashable, ...] = ()
        self.loads: dict[tuple[Any, ...], tuple[int, Any]] = {}
        """Loads from shared memory: their positions in the code, and the elements of the threads."""
        self._warps: dict[int, tuple[Any, Warps]] = {}
        self._fresh = 0

    def fresh(self) -> int:
        """Return a new register of the innermost open loop."""
        self._fresh += 1
        self.depth[self._fresh] = len(self.code) - 1
        return self._fresh

    def warps(self, active: Any) -> Warps:
        """Return the mask of the sampled warps with an active thread, for a mask of the sampled threads."""
        known = self._warps.get(id(active))
        if known is None or known[0] is not active:
            known = self._warps[id(active)] = (active, active.reshape(-1, WARP).any(axis=1))
        return known[1]

    def emit(self, kind: str, active: Any, target: Hashable | None, sources: Sequence[Hashable], **facts: Any) -> None:
        """Append an instruction of a `kind` of the warps with an `active` thread to the innermost open loop. target,
        sources: the values that it sets, if any, and reads; `facts` are its other fields."""
        self.code[-1].append(WarpInstruction(kind, target, tuple(sources), self.warps(active), **facts))

    def pure(self, key: Hashable, kinds: Sequence[str], sources: Sequence[Hashable]) -> Hashable:
        """Return the register of the value `key`. Its first use appends a chain of instructions of `kinds` (a copy if
        there are none) that compute it from `sources`, to the outermost open loop in which all sources are defined; it
        runs for the threads that were active at the beginning of that loop."""
        for scope in self.available:
            if key in scope:
                return scope[key]
        level = min(max((self.depth.get(source, 0) for source in sources), default=0), len(self.code) - 1)
        mask, register_ = self.warps(self.masks[level]), self.fresh()
        for step, kind in enumerate(kinds or (COPY,)):
            inputs = tuple(sources) if step == 0 else (register_, *sources[step + 1 : step + 2])
            self.code[level].append(WarpInstruction(kind, register_, inputs, mask))
        self.depth[register_] = level
        self.available[level][key] = register_
        return register_

    def reg(self, value: LinearValue) -> Hashable | None:
        """Return the register of a value minus its constant, which is computed at its first use; None for a
        constant."""
        if not value.terms:
            return None
        if len(value.terms) == 1 and value.terms[0][1] == 1:
            return value.terms[0][0]
        count = len(value.terms) - any(abs(factor) == 1 for _, factor in value.terms)
        sources = [key for key, _ in value.terms]
        return self.pure(("linear", value.terms), [INTEGER] * max(1, count), sources)

    def named(self, key: Hashable, lanes: Lanes) -> LinearValue:
        """Return the value of the register `key`, and record its integers in the sampled threads, `lanes`."""
        self.numbers[key] = lanes
        return register(key, lanes)

    def guess(self, value: LinearValue) -> Lanes:
        """Return the integers of a value in the sampled threads. A loaded integer counts as an arbitrary number, the
        same for threads that load the same element. None if the value depends on another unknown register."""
        total: Any = value.constant
        for key, factor in value.terms:
            lanes: Any = self.numbers.get(key)
            if lanes is None:
                return None
            total = total + factor * lanes
        return total  # type: ignore[no-any-return]

    def regs(self, values: Sequence[LinearValue]) -> tuple[Hashable, ...]:
        """Return the registers of values that are no constants, in order; each is computed at its first use."""
        return tuple(r for r in map(self.reg, values) if r is not None)

    def _sources(self, value: LinearValue) -> tuple[Hashable, ...]:
        """Return the registers of an operand: those of its factors if the operand is a fused product, none for a
        constant."""
        if len(value.terms) > 1 and all(factor == 1 for _, factor in value.terms) and value.lanes is None:
            return tuple(key for key, _ in value.terms)
        found = self.reg(value)
        return () if found is None else (found,)
