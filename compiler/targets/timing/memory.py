"""`MemoryReader`: accesses to memory as instructions, with their cost."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects import memref
from xdsl.dialects.builtin import IndexType, IntegerType, MemRefType
from xdsl.ir import Operation, SSAValue

from compiler.dialects.upstream import nvgpu
from compiler.dialects.upstream.casts import element_of
from compiler.dialects.upstream.gpu import ShuffleOp
from compiler.targets.launches import is_shared
from compiler.targets.timing import access
from compiler.targets.timing.code import COPY, GLOBAL, INTEGER, SHARED, SPILL, TENSOR, WAIT, WarpInstruction
from compiler.targets.timing.counts import elements
from compiler.targets.timing.emitter import WARP, CodeEmitter
from compiler.targets.timing.values import Lanes, LinearValue, added, number, register, times
from compiler.types.elements import element_bytes

WIDEST = 16
"""Bytes of the widest access of a thread."""
SCATTER, SPREAD = 7919, 1021
"""Loaded integers count as the position of their element times SCATTER, modulo SPREAD."""
MOST_SECTORS = 1 << 24
"""Of larger buffers each access counts as one that L1 lacks."""


class MemoryReader(CodeEmitter):
    """The emitter of loads, stores and other instructions of the load/store unit."""

    def alloca(self, op: memref.AllocaOp, active: Any) -> None:
        """Record a shared or local buffer, whichever threads are `active`."""
        self.buffers[op.memref] = (SHARED if is_shared(op) else SPILL, op)

    def get_global(self, op: memref.GetGlobalOp, active: Any) -> None:
        """Record a constant of the module, a buffer in global memory, whichever threads are `active`."""
        self.buffers[op.memref] = ("constant", op.name_.string_value())

    def load(self, op: Any, active: Any) -> None:
        """Evaluate the load of an element or a vector by the `active` threads: a register for a local buffer at a
        constant index, the former result of an equal load, if nothing was written to its buffer since, else a new
        instruction."""
        buffer, indices = op.operands[0], op.operands[1:]
        index = self._flat(buffer, indices)
        width = elements(op.results[0])
        name = self.buffers[buffer]
        if self._is_register(buffer, index):
            key = self.local.get((name, index.constant)) or ("local", name, index.constant)
            self.depth.setdefault(key, 0)
            self.values[op.results[0]] = register(key)
            return
        form = (name, self.version.get(name, 0), index.terms, index.constant, width)
        for scope in self.loaded:
            if form in scope:
                self.values[op.results[0]] = register(scope[form])
                return
        key = self.fresh()
        self.loaded[-1][form] = key
        self._access(op, buffer, index, width, active, key, ())
        self.values[op.results[0]] = register(key)
        where = self.guess(index)
        if where is not None and isinstance(op.results[0].type, IndexType | IntegerType):
            self.numbers[key] = np.asarray(where) * SCATTER % SPREAD
        if isinstance(name, tuple) and name[0] == SHARED and width == 1 and index.lanes is not None:
            self._widen(form, index, active, element_bytes(element_of(buffer.type.element_type)))

    def _widen(self, form: tuple[Any, ...], index: LinearValue, active: Any, item: int) -> None:
        """Merge the last load from shared memory with loads of its neighbours to one of two or four elements of `item`
        bytes, if they are aligned, as compilers do. form: the key of the load: buffer, version, terms and constant of
        its index, width."""
        name, version, terms, first, _ = form
        group, code = (id(self.loaded[-1]), name, version, terms), self.code[-1]
        at, size, lanes = len(code) - 1, 1, np.broadcast_to(np.asarray(index.lanes), active.shape)
        while size * item < WIDEST and all(factor % (2 * size) == 0 for _, factor in terms):
            self.loads[*group, first, size] = (at, lanes)
            mate = self.loads.get((*group, first ^ size, size))
            if mate is None:
                return
            (other, other_lanes), low = mate, min(first, first ^ size)
            lanes = lanes if low == first else other_lanes
            wide, narrow = code[min(at, other)], code[max(at, other)]
            assert isinstance(wide, WarpInstruction) and isinstance(narrow, WarpInstruction)
            rows = np.where(active, lanes * item, -1).reshape(-1, WARP)
            count = max(1, int(self.warps(active).sum()))
            rounds = float(access.rounds(rows, 2 * size * item).sum()) / count
            code[min(at, other)] = replace(wide, rounds=rounds)
            code[max(at, other)] = WarpInstruction(COPY, narrow.target, (wide.target,))
            at, first, size = min(at, other), low, 2 * size
        self.loads[*group, first, size] = (at, lanes)

    def store(self, op: Any, active: Any) -> None:
        """Evaluate the store of an element or a vector by the `active` threads: of a local buffer at a constant index
        it renames a register, else it is an instruction."""
        value, buffer, *indices = op.operands
        index = self._flat(buffer, indices)
        name, stored = self.buffers[buffer], self.values[value]
        sources = self._sources(stored)
        if self._is_register(buffer, index):
            self.local[name, index.constant] = sources[0] if sources else ("zero", name, index.constant)
            return
        self.version[name] = self.version.get(name, 0) + 1
        self._access(op, buffer, index, elements(value), active, None, sources)

    def _flat(self, buffer: SSAValue, indices: Sequence[SSAValue]) -> LinearValue:
        type_ = buffer.type
        assert isinstance(type_, MemRefType)
        flat, shape = number(0), type_.get_shape()
        for d, index in enumerate(indices):
            flat = added(flat, times(self.values[index], prod(shape[d + 1 :])))
        return flat

    def _is_register(self, buffer: SSAValue, index: LinearValue) -> bool:
        name = self.buffers[buffer]
        return isinstance(name, tuple) and name[0] == SPILL and index.is_constant

    def _access(
        self, op: Operation, buffer: SSAValue, index: LinearValue, width: int, active: Any, target: Any, sources: Any
    ) -> None:
        """Emit an access of the `active` threads to `width` elements of memory each, from the flat index `index` on,
        after the instructions of its address. target: the register that a load writes, None for a store. sources: the
        registers that a store writes to memory."""
        type_, name = buffer.type, self.buffers[buffer]
        assert isinstance(type_, MemRefType)
        itemsize = element_bytes(element_of(type_.element_type))
        kind = name[0] if isinstance(name, tuple) and name[0] in (SHARED, SPILL) else GLOBAL
        base = self.reg(index)
        if kind == GLOBAL and base is not None:
            base = self.pure(("address", name, base), [INTEGER], (base,))
        lanes = self.guess(index) if index.lanes is None else index.lanes
        rounds, moved = self._cost(op, kind, name, lanes, itemsize * width, active, itemsize, type_)
        registers = (*sources, *(() if base is None else (base,)))
        self.emit(kind, active, target, registers, rounds=rounds, bytes=moved, is_load=target is not None)

    def _cost(
        self,
        op: Operation,
        kind: str,
        name: Hashable,
        lanes: Lanes,
        bytes: int,
        active: Any,
        item: int,
        type_: MemRefType,
    ) -> tuple[float, float]:
        """Return two averages over the sampled warps that execute an access: the rounds, and the bytes that L1 lacks. A
        spill takes one round and no bytes. lanes: the element of each thread; None, for unknown addresses, counts as
        scattered ones. active: the threads that make it. kind: of memory. name: of the buffer. bytes: of a thread's
        access. item: bytes of an element."""
        executing = self.warps(active)
        count = max(1, int(executing.sum()))
        if kind == SPILL:
            return 1.0, 0.0
        if lanes is None:
            return (4.0, 0.0) if kind == SHARED else (WARP / 4, WARP * 32.0)
        addresses = np.where(active, np.broadcast_to(np.asarray(lanes), active.shape) * item, -1).reshape(-1, WARP)
        if kind == SHARED:
            return float(access.rounds(addresses, bytes).sum()) / count, 0.0
        addresses = np.where(addresses >= 0, addresses % max(1, prod(type_.get_shape()) * item), -1)
        found = access.sectors(addresses, bytes)
        total = sum(map(len, found))
        fresh = self._fresh_sectors(name, found, prod(type_.get_shape()) * item // access.SECTOR + 2)
        fresh = min(fresh, self._moved(op, addresses) * total)
        return max(1.0, total / 4 / count), fresh * access.SECTOR / count

    def _fresh_sectors(self, name: Hashable, found: Sequence[Any], size: int) -> float:
        """Return the number of sectors that the sampled blocks access for the first time, and record them; of a buffer
        of more than MOST_SECTORS, all that they access. found: the sectors of each warp. size: the sectors of the
        buffer."""
        if size > MOST_SECTORS:
            return float(sum(map(len, found)))
        if name not in self.touched:
            self.touched[name] = np.zeros((len(self.blocks), size), np.bool_)
        seen, warps = self.touched[name], self.padded // WARP
        fresh = 0
        for warp, row in enumerate(found):
            valid = row[row < size]
            fresh += int((~seen[warp // warps, valid]).sum())
            seen[warp // warps, valid] = True
        return float(fresh)

    def _moved(self, op: Operation, addresses: Any) -> float:
        """Return the share of a sector, up to 1, by which the addresses of an access advance in one iteration; 1 in the
        first iteration, and if no thread accesses in both."""
        key = (op, self.path)
        former = self.last.get(key)
        self.last[key] = addresses
        if former is None:
            return 1.0
        both = (former >= 0) & (addresses >= 0)
        return float(min(1.0, np.abs(addresses - former)[both].mean() / access.SECTOR)) if both.any() else 1.0

    def copy(self, op: nvgpu.CopyOp, active: Any) -> None:
        """Emit an asynchronous copy: a load whose target is in shared memory."""
        width = op.count.value.data
        index = self._flat(op.src, op.src_indices)
        target = self._flat(op.dst, op.dst_indices)
        self.version[self.buffers[op.dst]] = self.version.get(self.buffers[op.dst], 0) + 1
        self._access(op, op.src, index, width, active, ("copies",), self.regs([target]))
        self.values[op.token] = number(0)

    def group(self, op: nvgpu.GroupOp, active: Any) -> None:
        """Set the token of a group of copies; it costs no instruction, whichever threads are `active`."""
        self.values[op.token] = number(0)

    def wait(self, op: nvgpu.WaitOp, active: Any) -> None:
        """Emit a wait for all asynchronous copies; if the op leaves groups in flight, an instruction that waits for
        none: those of earlier groups count as complete."""
        later = op.groups.value.data if op.groups is not None else 0
        self.emit(WAIT, active, None, () if later else (("copies",),))

    def fragment(self, op: nvgpu.LoadMatrixOp, active: Any) -> None:
        """Emit a load of fragments from shared memory: a round for each register."""
        tiles = op.tiles.value.data
        key = self.fresh()
        sources = self.regs([self._flat(op.source, op.indices)])
        self.emit(SHARED, active, key, sources, rounds=float(tiles), is_load=True)
        self.values[op.result] = register(key)

    def multiply(self, op: nvgpu.MmaOp, active: Any) -> None:
        """Emit a product of fragments; its rounds are the multiply-adds of a warp."""
        key = self.fresh()
        m, n, k = (part.value.data for part in op.shape.data)
        sources = tuple(r for v in (op.a, op.b, op.c) for r in self._sources(self.values[v]))
        self.emit(TENSOR, active, key, sources, rounds=float(m * n * k))
        self.values[op.result] = register(key)

    def shuffle(self, op: ShuffleOp, active: Any) -> None:
        """Emit a shuffle of a value within a warp, through the load/store unit."""
        key = self.fresh()
        self.emit(SHARED, active, key, self._sources(self.values[op.value]), rounds=1.0, is_load=True)
        self.values[op.result] = register(key)
        self.values[op.there] = number(1)
