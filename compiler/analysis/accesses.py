"""Accesses to buffers at the low level: which element or lanes each touches."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import memref, vector
from xdsl.dialects.builtin import MemRefType, VectorType
from xdsl.ir import Attribute, Operation, SSAValue

from compiler.dialects.upstream.memref import PrefetchOp


@dataclass(frozen=True)
class LowAccess:
    """One load or store of an element, or of neighbouring lanes, of a buffer."""

    op: Operation
    buffer: SSAValue
    indices: tuple[SSAValue, ...]
    type: Attribute
    is_store: bool
    mask: SSAValue | None = None

    @property
    def place(self) -> tuple[SSAValue, tuple[SSAValue, ...], Attribute, SSAValue | None]:
        """The key under which accesses are equal: buffer, indices, type and mask."""
        return self.buffer, self.indices, self.type, self.mask

    @property
    def stored(self) -> SSAValue:
        """The value that a store writes."""
        return self.op.operands[0 if self.mask is None else -1]

    def with_stored(self, value: SSAValue) -> Operation:
        """A store of another value at the same place."""
        new = self.op.clone()
        new.operands[0 if self.mask is None else len(new.operands) - 1] = value
        return new

    @property
    def lanes(self) -> int:
        """How many neighbouring elements are touched."""
        return self.type.get_shape()[0] if isinstance(self.type, VectorType) else 1


def access(op: Operation) -> LowAccess | None:
    """The access that an op is, if it is a load or store of an element or of neighbouring lanes."""
    accessed = _access(op)
    flat = accessed is not None and not (isinstance(accessed.type, VectorType) and accessed.type.get_num_dims() != 1)
    return accessed if flat else None


def _access(op: Operation) -> LowAccess | None:
    match op:
        case memref.LoadOp():
            return LowAccess(op, op.memref, tuple(op.indices), op.res.type, False)
        case vector.LoadOp():
            return LowAccess(op, op.base, tuple(op.indices), op.result.type, False)
        case memref.StoreOp():
            return LowAccess(op, op.memref, tuple(op.indices), op.value.type, True)
        case vector.StoreOp():
            return LowAccess(op, op.base, tuple(op.indices), op.vector.type, True)
        case vector.MaskedLoadOp():
            return LowAccess(op, op.base, tuple(op.indices), op.result.type, False, op.mask)
        case vector.MaskedStoreOp():
            return LowAccess(op, op.base, tuple(op.indices), op.value_to_store.type, True, op.mask)
    return None


def touched(op: Operation) -> set[SSAValue]:
    """The buffers that the ops at or inside `op` may read or write; a prefetch does neither."""
    used = (inner.operands for inner in op.walk() if not isinstance(inner, PrefetchOp))
    return {value for operands in used for value in operands if isinstance(value.type, MemRefType)}
