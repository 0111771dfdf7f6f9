"""Accesses to buffers at the low level: which element or lanes each touches, and whether two can overlap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, memref, scf, vector
from xdsl.dialects.builtin import IntegerAttr, MemRefType, VectorType
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from compiler.affine import linear as lin
from compiler.affine.linear import Linear
from compiler.dialects.upstream.memref import PrefetchOp


@dataclass(frozen=True)
class Access:
    """One load or store of an element, or of neighbouring lanes, of a buffer."""

    op: Operation
    buffer: SSAValue
    indices: tuple[SSAValue, ...]
    type: Attribute
    is_store: bool
    mask: SSAValue | None = None

    @property
    def place(self) -> tuple[SSAValue, tuple[SSAValue, ...], Attribute, SSAValue | None]:
        """What equal accesses share: buffer, indices, type and mask."""
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


def access(op: Operation) -> Access | None:
    """The access that an op is, if it is a load or store of an element or of neighbouring lanes."""
    found = _access(op)
    flat = found is not None and not (isinstance(found.type, VectorType) and found.type.get_num_dims() != 1)
    return found if flat else None


def _access(op: Operation) -> Access | None:
    match op:
        case memref.LoadOp():
            return Access(op, op.memref, tuple(op.indices), op.res.type, False)
        case vector.LoadOp():
            return Access(op, op.base, tuple(op.indices), op.result.type, False)
        case memref.StoreOp():
            return Access(op, op.memref, tuple(op.indices), op.value.type, True)
        case vector.StoreOp():
            return Access(op, op.base, tuple(op.indices), op.vector.type, True)
        case vector.MaskedLoadOp():
            return Access(op, op.base, tuple(op.indices), op.result.type, False, op.mask)
        case vector.MaskedStoreOp():
            return Access(op, op.base, tuple(op.indices), op.value_to_store.type, True, op.mask)
    return None


def touched(op: Operation) -> set[SSAValue]:
    """The buffers that the ops at or inside `op` may read or write; a prefetch does neither."""
    used = (inner.operands for inner in op.walk() if not isinstance(inner, PrefetchOp))
    return {value for operands in used for value in operands if isinstance(value.type, MemRefType)}


Span = tuple[int | None, int | None]
"""An inclusive interval; None where nothing is known."""


class Spans:
    """The values that indices may have, as far as constants and the bounds of loops tell."""

    def __init__(self) -> None:
        self._known: dict[SSAValue, Span] = {}

    def of(self, value: SSAValue) -> Span:
        """The span of an index value."""
        if value not in self._known:
            low, high = self._span(value)
            self._known[value] = (low, high) if _fits(low) and _fits(high) else (None, None)
        return self._known[value]

    def surely_runs(self, loop: scf.ForOp | scf.ParallelOp) -> bool:
        """Whether a loop has an iteration whatever its bounds are."""
        return all(
            (last := self.of(low)[1]) is not None and (first := self.of(high)[0]) is not None and last < first
            for low, high in zip(*_bounds(loop), strict=True)
        )

    def _span(self, value: SSAValue) -> Span:
        if isinstance(value, BlockArgument):
            return self._argument(value)
        match value.owner:
            case arith.ConstantOp(value=IntegerAttr() as literal):
                return literal.value.data, literal.value.data
            case arith.AddiOp() as op:
                (a, b), (c, d) = self.of(op.lhs), self.of(op.rhs)
                return _plus(a, c), _plus(b, d)
            case arith.SubiOp() as op:
                (a, b), (c, d) = self.of(op.lhs), self.of(op.rhs)
                return _plus(a, None if d is None else -d), _plus(b, None if c is None else -c)
            case arith.MuliOp() as op:
                (a, b), (c, d) = self.of(op.lhs), self.of(op.rhs)
                if c is None or c != d:
                    return None, None
                ends = (None if a is None else a * c, None if b is None else b * c)
                return ends if c >= 0 else (ends[1], ends[0])
            case arith.MinSIOp() as op:
                return self._both(min, op, 0), self._either(min, op, 1)
            case arith.MaxSIOp() as op:
                return self._either(max, op, 0), self._both(max, op, 1)
        return None, None

    def _argument(self, value: BlockArgument) -> Span:
        loop = value.block.parent_op()
        if not isinstance(loop, scf.ForOp | scf.ParallelOp) or value.index >= len(_bounds(loop)[0]):
            return None, None
        low, high = (values[value.index] for values in _bounds(loop))
        end = self.of(high)[1]
        return self.of(low)[0], None if end is None else end - 1

    def _both(self, choose: Callable[[int, int], int], op: arith.MinSIOp | arith.MaxSIOp, end: int) -> int | None:
        a, b = self.of(op.lhs)[end], self.of(op.rhs)[end]
        return None if a is None or b is None else choose(a, b)

    def _either(self, choose: Callable[[int, int], int], op: arith.MinSIOp | arith.MaxSIOp, end: int) -> int | None:
        a, b = self.of(op.lhs)[end], self.of(op.rhs)[end]
        return b if a is None else a if b is None else choose(a, b)


def _bounds(loop: scf.ForOp | scf.ParallelOp) -> tuple[Sequence[SSAValue], Sequence[SSAValue]]:
    if isinstance(loop, scf.ForOp):
        return [loop.lb], [loop.ub]
    return list(loop.lowerBound), list(loop.upperBound)


def _fits(end: int | None) -> bool:
    """Whether an index has 64 bits, so that it has not wrapped around."""
    return end is None or -(2**63) <= end < 2**63


def _plus(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


class Forms:
    """Index values as linear forms over the values that they are computed from."""

    def __init__(self) -> None:
        self.values: list[SSAValue] = []
        """The values of which forms are made, by the numbers of their variables."""
        self._numbers: dict[SSAValue, int] = {}
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
        if value not in self._numbers:
            self._numbers[value] = len(self.values)
            self.values.append(value)
        return lin.variable(self._numbers[value])

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
