"""Formulas on floats and on their bits: Python's operators build arith and math ops, on scalars and vectors alike.

None of the ops carries fast-math flags: an expansion gives the same bits in every lane.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from xdsl.builder import Builder
from xdsl.dialects import arith, math, scf
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
from xdsl.rewriter import InsertPoint

from compiler.dialects.intr import LIBRARY, LdexpOp
from compiler.dialects.upstream.arith import CmpfOp, CmpiOp, ExtUIOp, SelectOp, SIToFPOp, TruncFOp, TruncIOp
from compiler.dialects.upstream.builders import elementwise, vector_type


@dataclass(frozen=True)
class Format:
    """A float format: its type, the integer type of its bits, the digits after the point, the exponent's bias.

    `code` is what the module struct calls it.
    """

    name: str
    code: str
    real: Float32Type | Float64Type
    bits: IntegerType
    digits: int
    bias: int

    def pattern(self, value: float) -> int:
        """The bits of a number, as a signed integer."""
        return int.from_bytes(self._packed(value), signed=True)

    def rounded(self, value: float) -> float:
        """The nearest number of the format."""
        return float(struct.unpack(f">{self.code}", self._packed(value))[0])

    def _packed(self, value: float) -> bytes:
        return struct.pack(f">{self.code}", value)

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


F32 = Format("f32", "f", f32, i32, 23, 127)
F64 = Format("f64", "d", f64, i64, 52, 1023)
FORMATS: dict[Attribute, Format] = {f32: F32, f64: F64}


class Constants:
    """The constants of a function, each once, at the start of its first block."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._by_number: dict[tuple[Attribute, str], SSAValue] = {}

    def get(self, value: float, scalar: Attribute, lanes: int | None) -> SSAValue:
        """A constant, or the same in each of several lanes (broadcast: xDSL misreads the bits of floats in `dense`)."""
        type = scalar if lanes is None else vector_type(scalar, lanes)
        key = (type, repr(value))
        if key not in self._by_number:
            self._by_number[key] = self._insert(value, scalar, type)
        return self._by_number[key]

    def _insert(self, value: float, scalar: Attribute, type: Attribute) -> SSAValue:
        if isinstance(type, VectorType):
            source = self.get(value, scalar, None)
            assert isinstance(source.owner, Operation)
            return Builder(InsertPoint.after(source.owner)).insert(BroadcastOp(source, type)).vector
        if isinstance(scalar, IntegerType):
            op = arith.ConstantOp(IntegerAttr(int(value), scalar))
        else:
            assert isinstance(scalar, Float32Type | Float64Type)
            op = arith.ConstantOp(FloatAttr(value, scalar))
        return Builder(InsertPoint.at_start(self._block)).insert(op).result


@dataclass(frozen=True)
class Site:
    """Where the ops of an expansion go, which `insert` puts there; in a format, in one lane or several."""

    pool: Constants
    format: Format
    lanes: int | None
    insert: Callable[[Operation], object]

    def add(self, op: Operation) -> SSAValue:
        """Put an op there; its result."""
        self.insert(op)
        return op.results[0]

    def shaped(self, scalar: Attribute) -> Attribute:
        """A scalar type in the site's number of lanes."""
        return scalar if self.lanes is None else vector_type(scalar, self.lanes)

    def real(self, value: Real | float) -> Real:
        """A number as a constant of the format; other values stay."""
        if isinstance(value, Real):
            return value
        return Real(self, self.pool.get(self.format.rounded(value), self.format.real, self.lanes))

    def bits(self, value: Bits | int) -> Bits:
        """A number as a constant integer of the format's width; other values stay."""
        if isinstance(value, Bits):
            return value
        return Bits(self, self.pool.get(value, self.format.bits, self.lanes))


@dataclass(frozen=True)
class Truth:
    """Truth values under construction."""

    site: Site
    ssa: SSAValue

    def any(self) -> SSAValue:
        """Whether one of the lanes is true."""
        if self.site.lanes is None:
            return self.ssa
        kind = CombiningKindAttr(CombiningKindFlag.OR)
        return self.site.add(ReductionOp.create(operands=[self.ssa], result_types=[i1], properties={"kind": kind}))


def _on_bits(kind: type[Operation]) -> Callable[[Bits, Bits | int], Bits]:
    """The operator of integers that an op computes."""
    return lambda a, b: Bits(a.site, a.site.add(elementwise(kind, a.ssa, a.site.bits(b).ssa)))


def _on_reals(kind: type[Operation]) -> Callable[[Real, Real | float], Real]:
    """The operator of floats that an op computes."""
    return lambda a, b: Real(a.site, a.site.add(elementwise(kind, a.ssa, a.site.real(b).ssa)))


def _test_of_bits(predicate: str) -> Callable[[Bits, int], Truth]:
    return lambda a, b: Truth(a.site, a.site.add(CmpiOp(a.ssa, a.site.bits(b).ssa, predicate)))


def _test_of_reals(predicate: str) -> Callable[[Real, Real | float], Truth]:
    return lambda a, b: Truth(a.site, a.site.add(CmpfOp(a.ssa, a.site.real(b).ssa, predicate)))


@dataclass(frozen=True)
class Bits:
    """Integers under construction, as wide as the format; numbers beside them become constants."""

    site: Site
    ssa: SSAValue

    __add__ = _on_bits(arith.AddiOp)
    __sub__ = _on_bits(arith.SubiOp)
    __mul__ = _on_bits(arith.MuliOp)
    __and__ = _on_bits(arith.AndIOp)
    __xor__ = _on_bits(arith.XOrIOp)
    __lshift__ = _on_bits(arith.ShLIOp)
    __rshift__ = _on_bits(arith.ShRUIOp)  # zeros come in from the left
    equals = _test_of_bits("eq")
    below = _test_of_bits("ult")

    def __rsub__(self, other: int) -> Bits:
        return self.site.bits(other) - self

    def as_real(self) -> Real:
        """The floats that have these bits."""
        return Real(self.site, self.site.add(arith.BitcastOp(self.ssa, self.site.shaped(self.site.format.real))))

    def converted(self) -> Real:
        """The floats of these values."""
        return Real(self.site, self.site.add(SIToFPOp(self.ssa, self.site.shaped(self.site.format.real))))

    def widened(self) -> Bits:
        """As 64 bits, zeros on the left."""
        return Bits(replace(self.site, format=F64), self.site.add(ExtUIOp(self.ssa, self.site.shaped(i64))))

    def narrowed(self) -> Bits:
        """The lowest 32 bits."""
        return Bits(replace(self.site, format=F32), self.site.add(TruncIOp(self.ssa, self.site.shaped(i32))))


@dataclass(frozen=True)
class Real:
    """Floats under construction; numbers beside them become constants."""

    site: Site
    ssa: SSAValue

    __add__ = _on_reals(arith.AddfOp)
    __sub__ = _on_reals(arith.SubfOp)
    __mul__ = _on_reals(arith.MulfOp)
    __truediv__ = _on_reals(arith.DivfOp)
    __lt__ = _test_of_reals("olt")
    __gt__ = _test_of_reals("ogt")
    equals = _test_of_reals("oeq")
    not_below = _test_of_reals("uge")  # NaN is not below

    def __rsub__(self, other: float) -> Real:
        return self.site.real(other) - self

    def __neg__(self) -> Real:
        return Real(self.site, self.site.add(arith.NegfOp(self.ssa)))

    def magnitude(self) -> Real:
        """Without their signs."""
        return Real(self.site, self.site.add(math.AbsFOp(self.ssa)))

    def as_bits(self) -> Bits:
        """Their bits."""
        return Bits(self.site, self.site.add(arith.BitcastOp(self.ssa, self.site.shaped(self.site.format.bits))))

    def narrowed(self) -> Real:
        """Rounded to f32."""
        return Real(replace(self.site, format=F32), self.site.add(TruncFOp(self.ssa, self.site.shaped(f32))))


def fma(a: Real, b: Real | float, c: Real | float) -> Real:
    """a * b + c, rounded once."""
    return Real(a.site, a.site.add(elementwise(math.FmaOp, a.ssa, a.site.real(b).ssa, a.site.real(c).ssa)))


def horner(x: Real, coefficients: Sequence[float]) -> Real:
    """The polynomial with these coefficients, lowest power first."""
    *lower, last = coefficients
    value = x.site.real(last)
    for coefficient in reversed(lower):
        value = fma(value, x, coefficient)
    return value


def select(condition: Truth, a: Real | float, b: Real | float) -> Real:
    """a where the condition holds, else b."""
    site = condition.site
    return Real(site, site.add(SelectOp(condition.ssa, site.real(a).ssa, site.real(b).ssa)))


def select_bits(condition: Truth, a: Bits | int, b: Bits | int) -> Bits:
    """a where the condition holds, else b."""
    site = condition.site
    return Bits(site, site.add(SelectOp(condition.ssa, site.bits(a).ssa, site.bits(b).ssa)))


def at_most(x: Real, limit: float) -> Real:
    """The lesser of both; NaN stays (processors take it so: minps gives its second operand)."""
    return select(x > limit, limit, x)


def at_least(x: Real, limit: float) -> Real:
    """The greater of both; NaN stays."""
    return select(x < limit, limit, x)


def with_sign_of(magnitude: Real, sign: Real) -> Real:
    """The magnitude of one number with the sign of another."""
    return Real(sign.site, sign.site.add(math.CopySignOp(magnitude.ssa, sign.ssa)))


def ldexp(x: Real, n: Bits, normal: bool = False) -> Real:
    """x * 2^n, for a normal x; `normal` says that the power and the result are so too."""
    return Real(x.site, x.site.add(LdexpOp(x.ssa, n.ssa, normal)))


def select_if_any(condition: Truth, fast: Sequence[Bits], slow: Callable[[Site], Sequence[Bits]]) -> list[Bits]:
    """`fast`, or in the lanes where the condition holds what `slow` builds, which runs only if there are such lanes."""
    site = condition.site
    then, otherwise = Block(), Block()
    inside = replace(site, insert=then.add_op)
    chosen = [SelectOp(condition.ssa, a.ssa, b.ssa) for a, b in zip(slow(inside), fast, strict=True)]
    then.add_ops([*chosen, scf.YieldOp(*chosen)])
    otherwise.add_op(scf.YieldOp(*(value.ssa for value in fast)))
    branch = scf.IfOp(condition.any(), [v.ssa.type for v in fast], Region(then), Region(otherwise))
    site.add(branch)
    return [Bits(site, bits) for bits in branch.results]


def library_call(op: Operation, site: Site) -> Real:
    """The same op, marked as the C library's."""
    again = op.clone()
    again.attributes[LIBRARY] = UnitAttr()
    again.results[0].name_hint = None
    return Real(site, site.add(again))
