"""Formulas on floats and on their bits: Python's operators build arith and math ops, on scalars and vectors alike.

None of the ops carries fastmath flags: an expansion means what it says, and gives the same bits in every lane.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import arith, math, scf
from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import (
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    UnitAttr,
    VectorType,
    f32,
    f64,
    i1,
    i32,
    i64,
)
from xdsl.dialects.vector import BroadcastOp, CombiningKindAttr, CombiningKindFlag, ReductionOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from compiler.dialects.intr import LIBRARY, LdexpOp
from compiler.dialects.upstream.arith import CmpfOp, CmpiOp, ExtUIOp, SelectOp, SIToFPOp, TruncFOp, TruncIOp

_EXACT = FastMathFlagsAttr("none")


@dataclass(frozen=True)
class Format:
    """A float format: its type and that of its bits, the digits after the point, the exponent's bias."""

    name: str
    real: Float32Type | Float64Type
    bits: IntegerType
    digits: int
    bias: int

    def pattern(self, value: float) -> int:
        """The bits of a number, as a signed integer."""
        found: int = struct.unpack(">i" if self.digits < 32 else ">q", self._packed(value))[0]
        return found

    def rounded(self, value: float) -> float:
        """The nearest number of the format."""
        found: float = struct.unpack(">f" if self.digits < 32 else ">d", self._packed(value))[0]
        return found

    def _packed(self, value: float) -> bytes:
        return struct.pack(">f" if self.digits < 32 else ">d", value)

    @property
    def width(self) -> int:
        """How many bits a number has."""
        return self.bits.width.data

    @property
    def shift(self) -> float:
        """A number next to which the others are whole: adding it rounds, and leaves an integer in the lowest bits."""
        return 1.5 * 2.0**self.digits

    @property
    def least_normal(self) -> float:
        """The least positive normal number."""
        return 2.0 ** (1 - self.bias)


F32 = Format("f32", f32, i32, 23, 127)
F64 = Format("f64", f64, i64, 52, 1023)
FORMATS: dict[Attribute, Format] = {f32: F32, f64: F64}


class Pool:
    """The constants of a function, each once, at the start of its first block."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._found: dict[tuple[Attribute, str], SSAValue] = {}

    def get(self, value: float, scalar: Attribute, lanes: int | None) -> SSAValue:
        """A constant, or the same in each of several lanes (broadcast: xDSL misreads the bits of floats in `dense`)."""
        type = scalar if lanes is None else VectorType(scalar, [lanes])
        key = (type, repr(value))
        if key not in self._found:
            self._found[key] = self._insert(value, scalar, type)
        return self._found[key]

    def _insert(self, value: float, scalar: Attribute, type: Attribute) -> SSAValue:
        if not isinstance(type, VectorType):
            op = _constant(value, scalar)
            self._block.insert_op_before(op, self._first)
            return op.results[0]
        source = self.get(value, scalar, None)
        assert isinstance(source.owner, Operation)
        lanes = BroadcastOp(source, type)
        self._block.insert_op_after(lanes, source.owner)
        return lanes.vector

    @property
    def _first(self) -> Operation:
        first = self._block.first_op
        assert first is not None
        return first


def _constant(value: float, type: Attribute) -> Operation:
    if isinstance(type, IntegerType):
        return arith.ConstantOp(IntegerAttr(int(value), type))
    assert isinstance(type, Float32Type | Float64Type)
    return arith.ConstantOp(FloatAttr(value, type))


@dataclass(frozen=True)
class Site:
    """Where the ops of an expansion go: before an op, or to the end of a block; in a format, in one lane or several."""

    pool: Pool
    format: Format
    lanes: int | None
    before: Operation | None = None
    block: Block | None = None

    def add(self, op: Operation) -> SSAValue:
        """Put an op there; its result."""
        if self.before is None:
            assert self.block is not None
            self.block.add_op(op)
        else:
            assert self.before.parent is not None
            self.before.parent.insert_op_before(op, self.before)
        return op.results[0]

    def shaped(self, scalar: Attribute) -> Attribute:
        """A scalar type in the site's number of lanes."""
        return scalar if self.lanes is None else VectorType(scalar, [self.lanes])

    def real(self, value: float) -> Real:
        """A constant of the format."""
        return Real(self, self.pool.get(self.format.rounded(value), self.format.real, self.lanes))

    def bits(self, value: int) -> Bits:
        """A constant integer of as many bits as the format has."""
        return Bits(self, self.pool.get(value, self.format.bits, self.lanes))


@dataclass(frozen=True)
class Truth:
    """Truth values under construction."""

    site: Site
    ssa: SSAValue

    def __and__(self, other: Truth) -> Truth:
        return Truth(self.site, self.site.add(arith.AndIOp(self.ssa, other.ssa)))

    def any(self) -> SSAValue:
        """Whether one of the lanes is true."""
        if self.site.lanes is None:
            return self.ssa
        kind = CombiningKindAttr(CombiningKindFlag.OR)
        reduction = ReductionOp.create(
            operands=[self.ssa], result_types=[i1], properties={"kind": kind, "fastmath": _EXACT}
        )
        return self.site.add(reduction)


@dataclass(frozen=True)
class Bits:
    """Integers under construction, as wide as the format; numbers beside them become constants."""

    site: Site
    ssa: SSAValue

    def __add__(self, other: Bits | int) -> Bits:
        return self._with(arith.AddiOp, other)

    def __sub__(self, other: Bits | int) -> Bits:
        return self._with(arith.SubiOp, other)

    def __rsub__(self, other: int) -> Bits:
        return self.site.bits(other) - self

    def __and__(self, other: Bits | int) -> Bits:
        return self._with(arith.AndIOp, other)

    def __xor__(self, other: Bits) -> Bits:
        return self._with(arith.XOrIOp, other)

    def __mul__(self, other: Bits | int) -> Bits:
        return self._with(arith.MuliOp, other)

    def __lshift__(self, count: Bits | int) -> Bits:
        return self._with(arith.ShLIOp, count)

    def __rshift__(self, count: Bits | int) -> Bits:
        """Zeros come in from the left."""
        return self._with(arith.ShRUIOp, count)

    def equals(self, other: int) -> Truth:
        """Whether they are a number."""
        return Truth(self.site, self.site.add(CmpiOp(self.ssa, self.site.bits(other).ssa, "eq")))

    def below(self, other: int) -> Truth:
        """Whether they are less than a number, all taken as unsigned."""
        return Truth(self.site, self.site.add(CmpiOp(self.ssa, self.site.bits(other).ssa, "ult")))

    def as_real(self) -> Real:
        """The floats that have these bits."""
        type = self.site.shaped(self.site.format.real)
        return Real(self.site, self.site.add(arith.BitcastOp(self.ssa, type)))

    def converted(self) -> Real:
        """The floats of these values."""
        type = self.site.shaped(self.site.format.real)
        return Real(self.site, self.site.add(SIToFPOp(self.ssa, type)))

    def widened(self) -> Bits:
        """As 64 bits, zeros on the left."""
        site = replace(self.site, format=F64)
        return Bits(site, site.add(ExtUIOp(self.ssa, site.shaped(i64))))

    def narrowed(self) -> Bits:
        """The lowest 32 bits."""
        site = replace(self.site, format=F32)
        return Bits(site, site.add(TruncIOp(self.ssa, site.shaped(i32))))

    def _with(self, kind: Callable[[SSAValue, SSAValue], Operation], other: Bits | int) -> Bits:
        value = self.site.bits(other) if isinstance(other, int) else other
        return Bits(self.site, self.site.add(kind(self.ssa, value.ssa)))


@dataclass(frozen=True)
class Real:
    """Floats under construction; numbers beside them become constants."""

    site: Site
    ssa: SSAValue

    def __add__(self, other: Real | float) -> Real:
        return self._with(arith.AddfOp, other)

    def __sub__(self, other: Real | float) -> Real:
        return self._with(arith.SubfOp, other)

    def __rsub__(self, other: float) -> Real:
        return self.site.real(other) - self

    def __mul__(self, other: Real | float) -> Real:
        return self._with(arith.MulfOp, other)

    def __truediv__(self, other: Real | float) -> Real:
        return self._with(arith.DivfOp, other)

    def __neg__(self) -> Real:
        return Real(self.site, self.site.add(arith.NegfOp(self.ssa, _EXACT)))

    def __lt__(self, other: Real | float) -> Truth:
        return self._compared("olt", other)

    def __gt__(self, other: Real | float) -> Truth:
        return self._compared("ogt", other)

    def equals(self, other: Real | float) -> Truth:
        """Whether they are equal, which NaN is to nothing."""
        return self._compared("oeq", other)

    def magnitude(self) -> Real:
        """Without their signs."""
        return Real(self.site, self.site.add(math.AbsFOp(self.ssa, _EXACT)))

    def as_bits(self) -> Bits:
        """Their bits."""
        type = self.site.shaped(self.site.format.bits)
        return Bits(self.site, self.site.add(arith.BitcastOp(self.ssa, type)))

    def narrowed(self) -> Real:
        """Rounded to f32."""
        site = replace(self.site, format=F32)
        return Real(site, site.add(TruncFOp(self.ssa, site.shaped(f32))))

    def lifted(self, other: Real | float) -> Real:
        """A number as a constant of the same type; what is none stays."""
        return other if isinstance(other, Real) else self.site.real(other)

    def _with(self, kind: Callable[[SSAValue, SSAValue, FastMathFlagsAttr], Operation], other: Real | float) -> Real:
        return Real(self.site, self.site.add(kind(self.ssa, self.lifted(other).ssa, _EXACT)))

    def _compared(self, predicate: str, other: Real | float) -> Truth:
        return Truth(self.site, self.site.add(CmpfOp(self.ssa, self.lifted(other).ssa, predicate)))


def fma(a: Real, b: Real | float, c: Real | float) -> Real:
    """a * b + c, rounded once."""
    operands = [a.ssa, a.lifted(b).ssa, a.lifted(c).ssa]
    op = math.FmaOp.create(operands=operands, result_types=[a.ssa.type], properties={"fastmath": _EXACT})
    return Real(a.site, a.site.add(op))


def horner(x: Real, coefficients: Sequence[float]) -> Real:
    """The polynomial with these coefficients, lowest power first."""
    *rest, last = coefficients
    result = x.site.real(last)
    for coefficient in reversed(rest):
        result = fma(result, x, coefficient)
    return result


def select(condition: Truth, a: Real | float, b: Real | float) -> Real:
    """a where the condition holds, else b."""
    site = condition.site
    chosen = [value if isinstance(value, Real) else site.real(value) for value in (a, b)]
    return Real(site, site.add(SelectOp(condition.ssa, chosen[0].ssa, chosen[1].ssa)))


def select_bits(condition: Truth, a: Bits | int, b: Bits | int) -> Bits:
    """a where the condition holds, else b."""
    site = condition.site
    chosen = [value if isinstance(value, Bits) else site.bits(value) for value in (a, b)]
    return Bits(site, site.add(SelectOp(condition.ssa, chosen[0].ssa, chosen[1].ssa)))


def at_most(x: Real, limit: float) -> Real:
    """The lesser of both; NaN stays (processors take it so: minps gives its second operand)."""
    return select(x > limit, limit, x)


def at_least(x: Real, limit: float) -> Real:
    """The greater of both; NaN stays."""
    return select(x < limit, limit, x)


def with_sign_of(magnitude: Real, sign: Real) -> Real:
    """The magnitude of one number with the sign of another."""
    return Real(sign.site, sign.site.add(math.CopySignOp(magnitude.ssa, sign.ssa, _EXACT)))


def ldexp(x: Real, n: Bits) -> Real:
    """x * 2^n, for a normal x."""
    return Real(x.site, x.site.add(LdexpOp(x.ssa, n.ssa)))


def where_any(condition: Truth, fast: Sequence[Bits], slow: Callable[[Site], Sequence[Bits]]) -> list[Bits]:
    """`fast`, or in the lanes where the condition holds what `slow` builds, which runs only if there are such lanes."""
    site = condition.site
    then, otherwise = Block(), Block()
    inside = replace(site, before=None, block=then)
    chosen = [SelectOp(condition.ssa, a.ssa, b.ssa) for a, b in zip(slow(inside), fast, strict=True)]
    then.add_ops([*chosen, scf.YieldOp(*chosen)])
    otherwise.add_op(scf.YieldOp(*(value.ssa for value in fast)))
    branch = scf.IfOp(condition.any(), [v.ssa.type for v in fast], Region(then), Region(otherwise))
    site.add(branch)
    return [Bits(site, result) for result in branch.results]


def library(op: Operation, site: Site) -> Real:
    """The same op, marked as the C library's."""
    again = type(op).create(
        operands=list(op.operands),
        result_types=[result.type for result in op.results],
        properties=dict(op.properties),
        attributes=op.attributes | {LIBRARY: UnitAttr()},
    )
    return Real(site, site.add(again))
