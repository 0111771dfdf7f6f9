"""The program counters: threads run the instruction that is first in the text, so that those that diverged meet again.

Threads that reach a barrier wait for their block; those that reach an instruction of a whole warp wait for their warp.
Where nobody can run on and some wait, the divergence is a fault and ends the launch.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from compiler.targets.ptx.faults import DivergenceError
from compiler.targets.ptx.lanes import CALL_DEPTH, PtxLanes
from compiler.targets.ptx.prepare import PreparedFunction
from compiler.targets.ptx.shadow import WARP
from compiler.targets.ptx.syntax import PtxInstruction, RegisterList, RegisterName, VariableName
from compiler.targets.ptx.values import Array, Mask

RUNS, AT_BARRIER, AT_WARP, IS_DONE = range(4)
"""The states of a thread."""
MAX_STEPS = 1_000_000
"""The number of jumps of some blocks after which a kernel is taken not to end."""
_COLLECTIVE = {"shfl": 4, "vote": 2, "mma": None, "ldmatrix": None, "movmatrix": None}
"""The instructions of a whole warp, and the operand that names the threads that take part; None for all."""


@dataclass
class PtxScheduler:
    """The execution of a kernel by some lanes; `functions` are the device functions by name. `steps` counts the jumps
    and the straight runs of instructions so far."""

    lanes: PtxLanes
    main: PreparedFunction
    functions: dict[str, PreparedFunction]
    steps: int = 0
    _depth: int = field(default=0)

    def run(self) -> None:
        """Run all lanes until they return. Raises DivergenceError, after a logged fault, if lanes wait forever or
        MAX_STEPS is exceeded; PtxError for a call or an operand that is not implemented."""
        _Run(self, self.main, np.ones(self.lanes.count, np.bool_)).to_the_end()

    def count_steps(self) -> None:
        """Count a jump or a run of instructions without branches. Logs a fault and raises DivergenceError above
        MAX_STEPS."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            self.lanes.report("the kernel does not end", 0, "", None, self.main.linked.function.body[-1])
            raise DivergenceError

    def call(self, instruction: PtxInstruction, mask: Mask) -> None:
        """Run a device function in the lanes of a mask (None: all), until all of them have returned: copy its
        parameters into its frame, and its results back. Raises PtxError for an unknown function, more than CALL_DEPTH
        nested calls, or another number of arguments."""
        lanes = self.lanes
        lists = [operand.items for operand in instruction.operands if isinstance(operand, RegisterList)]
        names = [operand.name for operand in instruction.operands if isinstance(operand, VariableName)]
        if len(names) != 1 or names[0] not in self.functions or self._depth >= CALL_DEPTH:
            raise instruction.refused("a call of no function of the text, or too deep a recursion")
        function = self.functions[names[0]]
        formal, caller, base = function.linked, lanes.function, lanes.base
        inside = base + -(-caller.frame_size // 16) * 16
        actual = [item.name for items in lists for item in items if isinstance(item, VariableName)]
        variables = [*formal.function.results, *formal.function.parameters]
        if len(actual) != len(variables):
            raise instruction.refused("its arguments are variables of the state space param")
        count = len(formal.function.results)
        pairs = [
            (base + caller.offsets[name], inside + formal.offsets[variable.name], variable.size)
            for name, variable in zip(actual, variables, strict=True)
        ]
        active = lanes.lanes_of(mask)
        for outer, inner, size in pairs[count:]:
            lanes.copy_frame(active, outer, inner, size)
        self._depth += 1
        former = lanes.entered(formal, inside)
        _Run(self, function, np.ones(lanes.count, np.bool_) if mask is None else mask).to_the_end()
        lanes.left(former)
        self._depth -= 1
        for outer, inner, size in pairs[:count]:
            lanes.copy_frame(active, inner, outer, size)


class _Run:
    """One activation of a function by the lanes of a mask: the program counter and the state of each lane."""

    def __init__(self, scheduler: PtxScheduler, function: PreparedFunction, mask: Array) -> None:
        self._scheduler, self._lanes, self._function = scheduler, scheduler.lanes, function
        self._code = function.linked.function.body
        self._counter = np.zeros(len(mask), np.int64)
        self._state = np.where(mask, RUNS, IS_DONE)

    def to_the_end(self) -> None:
        """Run until all lanes have returned; those with the lowest program counter, the position of the next
        instruction, run first. Raises DivergenceError, after a logged fault, if all lanes that have not returned
        wait forever, or the scheduler exceeds MAX_STEPS."""
        while True:
            runs = self._state == RUNS
            if not runs.any():
                if (self._state == IS_DONE).all():
                    return
                self._deadlock()
            counters = self._counter[runs]
            first = int(counters.min())
            others = counters[counters > first]
            mask = runs if len(others) or not runs.all() else None
            if mask is not None:
                mask = runs & (self._counter == first)
            self._straight(first, int(others.min()) if len(others) else len(self._code), mask)

    def _straight(self, counter: int, end: int, mask: Mask) -> None:
        """Run the lanes of a mask from the position `counter` up to `end`, the next position with lanes, or until they
        diverge or wait; update their counters."""
        lanes, code, steps = self._lanes, self._code, self._function.steps
        while counter < end:
            instruction, step = code[counter], steps[counter]
            active = self._guarded(instruction, mask)
            if active is not None and not active.any():
                counter += 1
            elif step is None:
                counter, mask = self._control(instruction, counter, end, mask, active)
            else:
                if instruction.parts[0] in _COLLECTIVE or instruction.parts[:2] == ("bar", "warp"):
                    mask, active = self._met(instruction, counter, mask, active)
                if active is None or active.any():
                    step(lanes, active)
                counter += 1
            if mask is not None and not mask.any():
                return
        self._scheduler.count_steps()
        self._counter[slice(None) if mask is None else mask] = counter
        if counter >= len(code):
            self._state[slice(None) if mask is None else mask] = IS_DONE

    def _guarded(self, instruction: PtxInstruction, mask: Mask) -> Mask:
        if not instruction.guard:
            return mask
        holds = self._lanes.read(RegisterName(instruction.guard), "pred", mask, instruction)
        holds = ~holds if instruction.negated else holds
        if mask is not None:
            return holds & mask
        return None if holds.all() else holds

    def _control(
        self, instruction: PtxInstruction, counter: int, end: int, mask: Mask, active: Mask
    ) -> tuple[int, Mask]:
        """Run a branch, barrier, return or call at position `counter` in the lanes of `active`. Return the next
        counter, and the mask of the lanes of `mask` that continue there: none after a jump that diverges, or of some
        lanes to `end` or beyond."""
        name = instruction.parts[0]
        if name == "call":
            self._scheduler.call(instruction, active)
            return counter + 1, mask
        if name == "bra":
            return self._jumped(self._function.linked.targets[counter], counter, end, mask, active)
        if active is None and name in ("bar", "barrier"):
            self._lanes.pass_barrier(None)
            return counter + 1, mask
        chosen = np.ones(self._lanes.count, np.bool_) if active is None else active
        self._state[chosen] = IS_DONE if name in ("ret", "exit") else AT_BARRIER
        self._counter[chosen] = counter
        if name in ("bar", "barrier"):
            self._release_blocks()
        rest = ~chosen if mask is None else mask & ~chosen
        return counter + 1, rest

    def _jumped(self, target: int, counter: int, end: int, mask: Mask, active: Mask) -> tuple[int, Mask]:
        self._scheduler.count_steps()
        if active is mask or (active is not None and mask is not None and np.array_equal(active, mask)):
            if mask is None or target < end:
                return target, mask
            self._counter[mask] = target
            return target, np.zeros(self._lanes.count, np.bool_)
        assert active is not None
        self._counter[active] = target
        rest = ~active if mask is None else mask & ~active
        self._counter[rest] = counter + 1
        return counter, np.zeros(self._lanes.count, np.bool_)

    def _met(self, instruction: PtxInstruction, counter: int, mask: Mask, active: Mask) -> tuple[Mask, Mask]:
        """Park the active lanes at a warp-wide instruction until all members of their warps arrive. Return the mask of
        the lanes that continue, and the mask of those that run the instruction."""
        if active is None:
            return mask, active
        lanes = self._lanes
        parked = (self._state == AT_WARP) & (self._counter == counter)
        active = active | parked
        mask = parked | (True if mask is None else mask)
        self._state[parked] = RUNS
        missing = self._members(instruction, active) & ~active
        torn = np.isin(lanes.warps, np.unique(lanes.warps[missing])) & active
        self._state[torn], self._counter[torn] = AT_WARP, counter
        return mask & ~torn, active & ~torn

    def _members(self, instruction: PtxInstruction, active: Array) -> Array:
        """Return the mask of the lanes that a warp-wide instruction names: by an operand, joined over the active lanes
        of a warp, or all lanes of the warps with an active one."""
        lanes = self._lanes
        present = np.isin(lanes.warps, np.unique(lanes.warps[active]))
        position = _COLLECTIVE.get(instruction.parts[0], 0)
        if position is None:
            return present
        words = np.where(active, lanes.read(instruction.operands[position], "u32", active, instruction), np.uint32(0))
        members = np.zeros(int(lanes.warps[-1]) + 1, np.uint32)
        np.bitwise_or.at(members, lanes.warps, words)
        bits = members[lanes.warps] >> (lanes.thread % WARP).astype(np.uint32)
        named: Array = present & (bits & np.uint32(1) != 0)
        return named

    def _release_blocks(self) -> None:
        """Let the lanes of a block continue if all of them wait at the same barrier instruction; lanes that have
        returned keep the others waiting."""
        lanes = self._lanes
        waits = (self._state == AT_BARRIER).reshape(-1, lanes.per_block)
        counters = self._counter.reshape(-1, lanes.per_block)
        passes = np.repeat(waits.all(axis=1) & (counters == counters[:, :1]).all(axis=1), lanes.per_block)
        self._state[passes] = RUNS
        self._counter[passes] += 1
        lanes.pass_barrier(passes)

    def _deadlock(self) -> None:
        """Log the first lane waiting at a warp-wide instruction, and at a barrier, as faults; raise DivergenceError."""
        lanes = self._lanes
        for state, kind in ((AT_WARP, "divergent warp"), (AT_BARRIER, "divergent barrier")):
            waiting = np.flatnonzero(self._state == state)
            if len(waiting):
                lane = int(waiting[0])
                same = lanes.warps == lanes.warps[lane] if state == AT_WARP else lanes.slots == lanes.slots[lane]
                elsewhere = same & ((self._state != state) | (self._counter != self._counter[lane]))
                other = int(lanes.threads[np.argmax(elsewhere)]) if elsewhere.any() else None
                lanes.report(kind, lane, "", other, self._code[int(self._counter[lane])])
        raise DivergenceError
