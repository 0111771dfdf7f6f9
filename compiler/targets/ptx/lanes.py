"""`PtxLanes`: the registers, memories and special registers of the threads of some blocks, which run as lanes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TypeAlias

import numpy as np

from compiler.targets.launches import Extents
from compiler.targets.ptx.addresses import SHIFT, SPACES, WINDOWS
from compiler.targets.ptx.async_groups import AsyncGroups
from compiler.targets.ptx.block_order import BlockOrder, Word
from compiler.targets.ptx.faults import FaultLog
from compiler.targets.ptx.link import LinkedFunction, LinkedKernel, plain_name
from compiler.targets.ptx.memory import PtxAccess, PtxMemory, poisoned
from compiler.targets.ptx.shadow import EPOCH, SET, UNSET, WARP, OwnShadow, Shadow
from compiler.targets.ptx.syntax import (
    MemoryOperand,
    PtxInstruction,
    PtxLiteral,
    PtxOperand,
    RegisterName,
    VariableName,
)
from compiler.targets.ptx.values import Array, Mask, literal_value, raw_bits, raw_dtype, typed

HALF = 1 << SHIFT - 1
"""The offset of a buffer in its range of addresses, so that what lies before it has no other buffer's addresses."""
CALL_DEPTH = 80
"""The most calls inside of each other; integer powers of 64 bits take 64."""


Activation: TypeAlias = "tuple[LinkedFunction, int, dict[str, Array], dict[str, Array]]"
"""A function that calls another one, the base of its frame, its registers, and the lanes that have not set them."""
Resolved: TypeAlias = "tuple[Array | slice, PtxMemory, Array | int, Array]"
"""The accesses to one memory: their positions among the addresses, the memory, the number of its part (a block's or a
thread's) and the offsets in bytes."""


class PtxLanes:
    """The state of the threads of several blocks of a launch: one lane a thread, block after block. registers: each
    register of the running function that was written, by name, as unsigned bits (lanes,), predicates as bool. slots:
    the position of each lane's block among `blocks`. threads: each lane's thread number in the grid. moments: a counter
    for each lane, which grows at barriers; the shadow orders accesses by it."""

    def __init__(
        self,
        kernel: LinkedKernel,
        grid: Extents,
        block: Extents,
        blocks: Sequence[int],
        buffers: Mapping[int, PtxMemory],
        symbols: Mapping[str, int],
        dynamic_bytes: int,
        log: FaultLog,
        order: BlockOrder,
    ) -> None:
        self.kernel, self.log, self.order = kernel, log, order
        self.per_block = prod(block)
        self.count = len(blocks) * self.per_block
        lane = np.arange(self.count)
        self.slots, self.thread = lane // self.per_block, lane % self.per_block
        self.blocks = np.asarray(blocks)[self.slots]
        self.threads = self.blocks * self.per_block + self.thread
        self.warps = self.slots * -(-self.per_block // WARP) + self.thread // WARP
        self.moments = np.zeros(self.count, np.int64)
        self.fenced = np.full(self.count, -1, np.int64)
        """The epoch of each lane's last fence of the grid; -1 before the first."""
        self._observed: dict[int, dict[int, int]] = {}
        self.specials = _specials(grid, block, self.blocks, self.thread)
        self.buffers, self._symbols = buffers, symbols
        self.shared = self._shared_memory(len(blocks), kernel.shared_size + dynamic_bytes)
        self.stack = self._stack()
        self.copies = AsyncGroups(self.count)
        self.carry = np.zeros(self.count, np.bool_)
        self._literals: dict[tuple[str, str], Array] = {}
        self.registers: dict[str, Array] = {}
        self.unset: dict[str, Array] = {}
        self.function, self.base = kernel.main, 0

    def _shared_memory(self, blocks: int, size: int) -> PtxMemory:
        stride, granule = -(-size // 16) * 16, self.kernel.granules["shared"]
        shadow = Shadow(-(-blocks * stride // granule), UNSET, self.per_block)
        layout = sorted((offset, plain_name(name)) for name, offset in self.kernel.shared.items())
        return PtxMemory("shared memory", size, poisoned(blocks * stride), stride, granule, shadow, layout=layout)

    def _stack(self) -> PtxMemory:
        """Allocate local memory: each thread's frames of the kernel and, if it calls functions, of CALL_DEPTH calls."""
        has_calls = any(instruction.parts[0] == "call" for instruction in self.kernel.main.function.body)
        called = max((-(-function.frame_size // 16) * 16 for function in self.kernel.functions.values()), default=0)
        size = -(-self.kernel.main.frame_size // 16) * 16 + has_calls * CALL_DEPTH * called
        shadow = OwnShadow(self.count * size)
        layout = sorted((offset, name) for name, offset in self.kernel.main.offsets.items())
        return PtxMemory("local memory", size, poisoned(self.count * size), size, shadow=shadow, layout=layout)

    def set_parameter(self, offset: int, value: int) -> None:
        """Set the 8 bytes at `offset` in every thread's frame to a kernel argument, an unsigned integer below 2^64,
        little-endian."""
        assert isinstance(self.stack.shadow, OwnShadow)
        places = np.arange(self.count)[:, None] * self.stack.stride + offset + np.arange(8)
        self.stack.data[places] = np.frombuffer(value.to_bytes(8, "little"), np.uint8)
        self.stack.shadow.state[places] = SET

    def entered(self, function: LinkedFunction, base: int) -> Activation:
        """Enter a function with fresh registers and its frame at byte `base`; return the caller's state, for `left`."""
        former = self.function, self.base, self.registers, self.unset
        self.function, self.base, self.registers, self.unset = function, base, {}, {}
        return former

    def left(self, former: Activation) -> None:
        """Restore the caller's state that `entered` returned."""
        self.function, self.base, self.registers, self.unset = former

    def read(self, operand: PtxOperand, type_: str, mask: Mask, instruction: PtxInstruction) -> Array:
        """Return the values (lanes,) of a register, literal or variable's address as a type; report a register that a
        thread of the mask has not set. mask: None for all. Raises PtxError for other operands, and for a register that
        the function does not declare."""
        if isinstance(operand, RegisterName):
            if operand.name in self.unset or operand.name not in self.registers:
                self._check_set(operand.name, mask, instruction)
            return typed(self.bits(operand.name, instruction), type_)
        if isinstance(operand, PtxLiteral):
            key = operand.text, type_
            if key not in self._literals:
                of_register = "b32" if type_.endswith("x2") else type_
                values = np.full(self.count, literal_value(operand.text, of_register))
                self._literals[key] = typed(values, type_) if type_ != of_register else values
            return self._literals[key]
        if isinstance(operand, VariableName):
            return typed(np.full(self.count, self.address(operand.name, instruction), np.uint64), type_)
        raise instruction.refused("an operand of this kind")

    def bits(self, name: str, instruction: PtxInstruction) -> Array:
        """Return the unsigned bits (lanes,) of a register or special register; lanes that have not set it get all ones,
        of a predicate false. Raises PtxError for a register that the function does not declare."""
        if name in self.registers:
            return self.registers[name]
        if name in self.specials:
            return self.specials[name]
        if name not in self.function.function.registers:
            raise instruction.refused(f"the register {name}")
        dtype = raw_dtype(self.function.function.registers[name])
        return np.full(self.count, False if dtype == np.bool_ else np.iinfo(dtype).max, dtype)

    def _check_set(self, name: str, mask: Mask, instruction: PtxInstruction) -> None:
        if name in self.specials:
            return
        wrong = self.unset[name] if name in self.unset else np.ones(self.count, np.bool_)
        if mask is not None:
            wrong = wrong & mask
        if wrong.any():
            self.report(
                "use of a register that nobody has set", int(np.argmax(wrong)), name.split("#")[0], None, instruction
            )

    def write(self, operand: PtxOperand, values: Array, type_: str, mask: Mask) -> None:
        """Set a register in the threads of a mask (None: all) to values (lanes,) of a type; `_` discards them. A lane
        outside the mask keeps its bits, or counts as unset."""
        assert isinstance(operand, RegisterName)
        name = operand.name
        if name == "_":
            return
        dtype = raw_dtype(self.function.function.registers[name])
        bits = raw_bits(values, type_, dtype)
        if mask is None:
            self.registers[name] = bits
            self.unset.pop(name, None)
            return
        former = self.registers.get(name)
        if former is None:
            former = np.full(self.count, False if dtype == np.bool_ else np.iinfo(dtype).max, dtype)
            self.unset[name] = ~mask
        elif name in self.unset:
            self.unset[name] = self.unset[name] & ~mask
        self.registers[name] = np.where(mask, bits, former)

    def unset_lanes(self, name: str) -> Array | None:
        """Return the mask of the lanes that have not set a register, None if all lanes have; special registers are
        always set."""
        if name in self.registers or name in self.specials:
            return self.unset.get(name)
        return np.ones(self.count, np.bool_)

    def note_unset(self, name: str, unset: Array | None, mask: Mask) -> None:
        """Mark a register as unset in the lanes of both `unset` and the mask (None: all), after a copy of a register
        that these lanes have not set; if `unset` is None, mark no lane."""
        if unset is not None:
            unset = unset if mask is None else unset & mask
            if unset.any():
                self.unset[name] = unset | self.unset.get(name, np.False_)

    def address(self, name: str, instruction: PtxInstruction) -> int:
        """Return the address of a variable: an offset in shared memory or in the thread's frame, or an address in
        global memory. Raises PtxError for an unknown variable."""
        if name in self.kernel.shared:
            return self.kernel.shared[name]
        if name in self.function.offsets:
            return self.base + self.function.offsets[name]
        if name in self._symbols:
            return self._symbols[name]
        raise instruction.refused(f"the variable '{name}'")

    def addresses(self, operand: PtxOperand, mask: Mask, instruction: PtxInstruction) -> Array:
        """Return the addresses of a memory operand in bytes, as int64 (lanes,); a base register that a thread of the
        mask has not set is reported. Raises PtxError for an operand of another kind."""
        if not isinstance(operand, MemoryOperand):
            raise instruction.refused("its address is in brackets")
        if isinstance(operand.base, RegisterName):
            bits = self.read(
                operand.base, f"u{8 * self.bits(operand.base.name, instruction).itemsize}", mask, instruction
            )
            return bits.astype(np.int64) + operand.offset
        base = (
            int(operand.base.text, 0)
            if isinstance(operand.base, PtxLiteral)
            else self.address(operand.base.name, instruction)
        )
        return np.full(self.count, base + operand.offset, np.int64)

    def access(self, lanes: Array, instruction: PtxInstruction) -> PtxAccess:
        """Return an access of lanes, by their numbers (n,), whose faults are logged with the instruction."""

        def add(kind: str, lane: int, place: str, other: int | None) -> None:
            self.report(kind, lane, place, other, instruction)

        return PtxAccess(lanes, self.threads[lanes], self.moments[lanes], add)

    def report(self, kind: str, lane: int, place: str, other: int | None, instruction: PtxInstruction) -> None:
        """Log a fault of a lane at an instruction. `place`: the byte, or "". `other`: a second thread, by its number in
        the grid; None or -1 without one."""
        block, thread = int(self.blocks[lane]), int(self.thread[lane])
        threads: tuple[int, ...] = (thread,)
        if other is not None and other >= 0:
            if other // self.per_block != block:
                kind = f"{kind} of block {other // self.per_block}"
            threads = (other % self.per_block, thread)
        self.log.add(kind, self.kernel.main.function.name, instruction, place, block, threads)

    def resolved(self, space: str, addresses: Array, access: PtxAccess) -> list[Resolved]:
        """Resolve the addresses (n,) of an access in a state space; "" and global are generic. Return one entry for
        each memory that an address is in: the positions among the n (all: a slice), the memory, the parts, and offsets
        in bytes. An address in no buffer is in an empty memory, so that the access is out of bounds."""
        if space in ("shared", "local", "param"):
            memory, part = (self.shared, self.slots) if space == "shared" else (self.stack, np.arange(self.count))
            return [(slice(None), memory, part[access.lanes], addresses)]
        ranges = addresses >> SHIFT
        collected: list[Resolved] = []
        for number in (ranges[:1] if (ranges == ranges[0]).all() else np.unique(ranges)).tolist():
            positions: Array | slice = slice(None) if (ranges == number).all() else np.flatnonzero(ranges == number)
            if number in SPACES:
                offsets = addresses[positions] - WINDOWS[SPACES[number]]
                (inner,) = self.resolved(SPACES[number], offsets, access.some(np.arange(len(ranges))[positions]))
                collected.append((positions, *inner[1:]))
                continue
            memory = self.buffers.get(number) or PtxMemory("no buffer", 0, np.zeros(0, np.uint8))
            collected.append((positions, memory, 0, (addresses[positions] & (1 << SHIFT) - 1) - HALF))
        return collected

    def copy_frame(self, lanes: Array, start: int, to: int, size: int) -> None:
        """Copy `size` bytes from `start` to `to`, byte offsets in the stack, for each of some lanes, by their numbers,
        with the states that record which bytes are set."""
        assert isinstance(self.stack.shadow, OwnShadow)
        places = lanes[:, None] * self.stack.stride + np.arange(size)
        for array in (self.stack.data, self.stack.shadow.state):
            array[places + to] = array[places + start]

    def lanes_of(self, mask: Mask) -> Array:
        """Return the numbers of the lanes that a mask selects; all for None."""
        return np.arange(self.count) if mask is None else np.flatnonzero(mask)

    def pass_barrier(self, lanes: Mask) -> None:
        """Advance the moment of the lanes of a mask (None: all) to the next epoch, the start of the next multiple of
        EPOCH: they have passed a barrier of their block. If all have, reads of shared memory are forgotten."""
        if lanes is None:
            self.moments = (self.moments // EPOCH + 1) * EPOCH
            assert isinstance(self.shared.shadow, Shadow)
            self.shared.shadow.forget_reads()
        else:
            self.moments = np.where(lanes, (self.moments // EPOCH + 1) * EPOCH, self.moments)

    def pass_fence(self, lanes: Array) -> None:
        """Record that lanes, by their numbers (n,), have passed a fence of the grid: their blocks have seen what the
        atomic updates of these lanes observed."""
        self.fenced[lanes] = self.moments[lanes] // EPOCH
        for lane in lanes.tolist():
            observed = self._observed.pop(lane, {})
            self.order.see(int(self.blocks[lane]), observed, int(self.fenced[lane]), int(self.threads[lane]))

    def observe(self, lane: int, word: Word) -> None:
        """Record an atomic update of a word by a lane: it releases what a fence before it covers, and observes what
        earlier updates have released."""
        observed = self.order.update(word, int(self.blocks[lane]), int(self.fenced[lane]))
        self._observed[lane] = self._observed.get(lane, {}) | observed

    def pass_warp_barrier(self, lanes: Mask) -> None:
        """Advance the moment of the lanes of a mask (None: all) by one, since they have passed a barrier of their
        warp."""
        self.moments = self.moments + (1 if lanes is None else lanes.astype(np.int64))


def _specials(grid: Extents, block: Extents, blocks: Array, thread: Array) -> dict[str, Array]:
    collected: dict[str, Array] = {}
    for prefix, extents, number in (("ctaid", grid, blocks), ("tid", block, thread)):
        for side, extent in zip("xyz", extents, strict=True):
            collected[f"%{prefix}.{side}"] = (number % extent).astype(np.uint32)
            collected[f"%n{prefix}.{side}"] = np.full(len(thread), extent, np.uint32)
            number = number // extent
    lane = thread % WARP
    collected |= {"%laneid": lane.astype(np.uint32), "%warpid": (thread // WARP).astype(np.uint32)}
    collected |= {"WARP_SZ": np.full(len(thread), WARP, np.uint32)}
    one = np.ones(len(thread), np.uint64)
    below, own = (one << lane.astype(np.uint64)) - one, one << lane.astype(np.uint64)
    masks = {"lt": below, "le": below | own, "eq": own, "ge": ~below, "gt": ~(below | own)}
    return collected | {f"%lanemask_{name}": mask.astype(np.uint32) for name, mask in masks.items()}
