"""Accesses to buffers at the low level: which element or lanes each touches, and whether two can overlap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import IntegerAttr, VectorType
from xdsl.ir import Attribute, Operation, SSAValue

from compiler.affine import linear as lin
from compiler.affine.linear import Linear

LOADS = (memref.LoadOp, vector.LoadOp)
STORES = (memref.StoreOp, vector.StoreOp)


@dataclass(frozen=True)
class Access:
    """One load or store of an element, or of neighbouring lanes, of a buffer."""

    op: Operation
    buffer: SSAValue
    indices: tuple[SSAValue, ...]
    type: Attribute
    is_store: bool

    @property
    def place(self) -> tuple[SSAValue, tuple[SSAValue, ...], Attribute]:
        """What equal accesses share: buffer, indices and type."""
        return self.buffer, self.indices, self.type

    @property
    def lanes(self) -> int:
        """How many neighbouring elements are touched."""
        return self.type.get_shape()[0] if isinstance(self.type, VectorType) else 1


def access(op: Operation) -> Access | None:
    """The access that an op is, if it is a plain load or store."""
    match op:
        case memref.LoadOp():
            return Access(op, op.memref, tuple(op.indices), op.res.type, False)
        case vector.LoadOp():
            return Access(op, op.base, tuple(op.indices), op.result.type, False)
        case memref.StoreOp():
            return Access(op, op.memref, tuple(op.indices), op.value.type, True)
        case vector.StoreOp():
            return Access(op, op.base, tuple(op.indices), op.vector.type, True)
    return None


def touching(op: Operation, buffer: SSAValue) -> Iterator[Operation]:
    """The ops at or inside `op` that have the buffer as an operand."""
    return (inner for inner in op.walk() if buffer in inner.operands)


class Forms:
    """Index values as linear forms over the values that they are computed from."""

    def __init__(self) -> None:
        self.numbers: dict[SSAValue, int] = {}
        self.known: dict[SSAValue, Linear] = {}

    def of(self, value: SSAValue) -> Linear:
        """The form of an index value."""
        if value not in self.known:
            self.known[value] = self._form(value)
        return self.known[value]

    def _form(self, value: SSAValue) -> Linear:
        match value.owner:
            case arith.ConstantOp(value=IntegerAttr() as literal):
                return lin.constant(literal.value.data)
            case arith.AddiOp() as op:
                return self.of(op.lhs) + self.of(op.rhs)
            case arith.SubiOp() as op:
                return self.of(op.lhs) - self.of(op.rhs)
            case arith.MuliOp() as op:
                lhs, rhs = self.of(op.lhs), self.of(op.rhs)
                if rhs.is_constant:
                    return lhs.scaled(rhs.constant)
                if lhs.is_constant:
                    return rhs.scaled(lhs.constant)
        return lin.variable(self.numbers.setdefault(value, len(self.numbers)))

    def disjoint(self, a: Access, b: Access) -> bool:
        """Whether two accesses can never touch a common element; False if that is not evident."""
        if a.buffer is not b.buffer:
            return True
        last = len(a.indices) - 1
        for dim, (i, j) in enumerate(zip(a.indices, b.indices, strict=True)):
            gap = self.of(i) - self.of(j)
            if not gap.is_constant:
                continue
            if dim == last and not (-a.lanes < gap.constant < b.lanes):
                return True
            if dim != last and gap.constant != 0:
                return True
        return False
