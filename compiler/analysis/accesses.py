"""Accesses to buffers at the low level: loads and stores of elements or of neighbouring lanes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from xdsl.dialects import memref, vector
from xdsl.dialects.builtin import MemRefType, VectorType
from xdsl.ir import Attribute, Operation, SSAValue

from compiler.dialects.upstream.memref import PrefetchOp


@dataclass(frozen=True)
class LowAccess:
    """A load or store, the op `op`, of one or several neighbouring elements of a buffer. `type`: of the element or
    vector accessed; `indices`: of the first element, by dimension; `mask`: the lanes that are accessed, None for
    all."""

    op: Operation
    buffer: SSAValue
    indices: tuple[SSAValue, ...]
    type: Attribute
    is_store: bool
    mask: SSAValue | None = None

    @property
    def place(self) -> tuple[SSAValue, tuple[SSAValue, ...], Attribute, SSAValue | None]:
        """The accessed elements, to compare accesses: buffer, indices, type and mask (None without one)."""
        return self.buffer, self.indices, self.type, self.mask

    @property
    def stored(self) -> SSAValue:
        """The value that a store writes; meaningless for a load."""
        return self.op.operands[0 if self.mask is None else -1]

    def with_stored(self, value: SSAValue) -> Operation:
        """Return a copy of the store, in no block, that writes another value."""
        new = self.op.clone()
        new.operands[0 if self.mask is None else len(new.operands) - 1] = value
        return new

    @property
    def lanes(self) -> int:
        """Number of neighbouring elements that are loaded or stored."""
        return self.type.get_shape()[0] if isinstance(self.type, VectorType) else 1


def access(op: Operation) -> LowAccess | None:
    """Describe a load or store of an element or a one-dimensional vector; None for any other op."""
    kind = _ACCESSES.get(type(op))
    if kind is None:
        return None
    accessed = kind(op)
    is_flat = not isinstance(accessed.type, VectorType) or accessed.type.get_num_dims() == 1
    return accessed if is_flat else None


def _load(op: Operation) -> LowAccess:
    buffer, *indices = op.operands
    return LowAccess(op, buffer, tuple(indices), op.results[0].type, False)


def _store(op: Operation) -> LowAccess:
    value, buffer, *indices = op.operands
    return LowAccess(op, buffer, tuple(indices), value.type, True)


def _masked_load(op: Operation) -> LowAccess:
    buffer, *indices, mask, _ = op.operands
    return LowAccess(op, buffer, tuple(indices), op.results[0].type, False, mask)


def _masked_store(op: Operation) -> LowAccess:
    buffer, *indices, mask, value = op.operands
    return LowAccess(op, buffer, tuple(indices), value.type, True, mask)


_ACCESSES: Mapping[type[Operation], Callable[[Operation], LowAccess]] = {
    memref.LoadOp: _load,
    memref.StoreOp: _store,
    vector.LoadOp: _load,
    vector.StoreOp: _store,
    vector.MaskedLoadOp: _masked_load,
    vector.MaskedStoreOp: _masked_store,
}
"""The access of an op by its class."""


def touched(op: Operation) -> set[SSAValue]:
    """Return the buffers among the operands of `op` and of the ops inside; operands of prefetches do not count."""
    used = (inner.operands for inner in op.walk() if not isinstance(inner, PrefetchOp))
    return {value for operands in used for value in operands if isinstance(value.type, MemRefType)}
