"""Operators on floats and on their bits that build arith and math ops, for scalars and vectors alike.

The ops have no fast-math flags: an expansion has the same bits in every lane.
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

from compiler.dialects.upstream import llvm
from compiler.dialects.upstream.arith import CmpfOp, CmpiOp, SelectOp
from compiler.dialects.upstream.builders import elementwise, vector_type
from compiler.dialects.upstream.casts import ExtUIOp, SIToFPOp, TruncFOp, TruncIOp
from compiler.dialects.upstream.math import LIBRARY


@dataclass(frozen=True)
class Format:
    """A float format: its type, the integer type of its bits, the fraction digits, the exponent's bias. `code` is its
    format character in the module struct."""

    name: str
    code: str
    real: Float32Type | Float64Type
    bits: IntegerType
    digits: int
    bias: int

    def pattern(self, value: float) -> int:
        """Return the bits of a number, rounded to the format, as a signed integer."""
        return int.from_bytes(self._packed(value), signed=True)

    def rounded(self, value: float) -> float:
        """Round to the nearest number of the format."""
        return float(struct.unpack(f">{self.code}", self._packed(value))[0])

    def _packed(self, value: float) -> bytes:
        return struct.pack(f">{self.code}", value)

    @property
    def width(self) -> int:
        """The number of bits of a float."""
        return self.bits.width.data

    @property
    def shift(self) -> float:
        """1.5 * 2^digits: a smaller number plus this is rounded to an integer, which is then in the lowest bits."""
        return 1.5 * 2.0**self.digits

    @property
    def least_normal(self) -> float:
        """The smallest positive normal number."""
        return 2.0 ** (1 - self.bias)


F32 = Format("f32", "f", f32, i32, 23, 127)
F64 = Format("f64", "d", f64, i64, 52, 1023)
FORMATS: dict[Attribute, Format] = {f32: F32, f64: F64}


class Constants:
    """The constants of a function, each once, at the start of its entry block."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._by_number: dict[tuple[Attribute, str], SSAValue] = {}

    def get(self, value: float, scalar: Attribute, lanes: int | None) -> SSAValue:
        """Return a constant of the type `scalar`; with `lanes` a vector of it, as a broadcast, since xDSL misreads the
        bits of floats in `dense`."""
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
    """The insertion point of an expansion, with its format and number of lanes, None for scalars. pool: the constants
    of the function. insert: inserts an op at this point."""

    pool: Constants
    format: Format
    lanes: int | None
    insert: Callable[[Operation], object]

    def add(self, op: Operation) -> SSAValue:
        """Insert an op; return its result."""
        self.insert(op)
        return op.results[0]

    def shaped(self, scalar: Attribute) -> Attribute:
        """Return a scalar type, or the vector type with the site's lanes."""
        return scalar if self.lanes is None else vector_type(scalar, self.lanes)

    def real(self, value: Real | float) -> Real:
        """Return a number as a constant of the format, a Real unchanged."""
        if isinstance(value, Real):
            return value
        return Real(self, self.pool.get(self.format.rounded(value), self.format.real, self.lanes))

    def bits(self, value: Bits | int) -> Bits:
        """Return a number as a constant integer of the format's width, Bits unchanged."""
        if isinstance(value, Bits):
            return value
        return Bits(self, self.pool.get(value, self.format.bits, self.lanes))


@dataclass(frozen=True)
class Truth:
    """A truth value of an expansion, or a vector of one for each lane."""

    site: Site
    ssa: SSAValue

    def any(self) -> SSAValue:
        """Insert a test whether any lane is true; return its i1."""
        if self.site.lanes is None:
            return self.ssa
        kind = CombiningKindAttr(CombiningKindFlag.OR)
        return self.site.add(ReductionOp.create(operands=[self.ssa], result_types=[i1], properties={"kind": kind}))


def _on_bits(kind: type[Operation]) -> Callable[[Bits, Bits | int], Bits]:
    """Return the binary operator on integers that inserts an op of a class."""
    return lambda a, b: Bits(a.site, a.site.add(elementwise(kind, a.ssa, a.site.bits(b).ssa)))


def _on_reals(kind: type[Operation]) -> Callable[[Real, Real | float], Real]:
    """Return the binary operator on floats that inserts an op of a class."""
    return lambda a, b: Real(a.site, a.site.add(elementwise(kind, a.ssa, a.site.real(b).ssa)))


def _test_of_bits(predicate: str) -> Callable[[Bits, int], Truth]:
    return lambda a, b: Truth(a.site, a.site.add(CmpiOp(a.ssa, a.site.bits(b).ssa, predicate)))


def _test_of_reals(predicate: str) -> Callable[[Real, Real | float], Truth]:
    return lambda a, b: Truth(a.site, a.site.add(CmpfOp(a.ssa, a.site.real(b).ssa, predicate)))


@dataclass(frozen=True)
class Bits:
    """An integer of the format's width, or a vector of them; operands that are Python numbers become constants."""

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
        """Bitcast to floats."""
        return Real(self.site, self.site.add(arith.BitcastOp(self.ssa, self.site.shaped(self.site.format.real))))

    def converted(self) -> Real:
        """Convert signed integers to floats."""
        return Real(self.site, self.site.add(SIToFPOp(self.ssa, self.site.shaped(self.site.format.real))))

    def widened(self) -> Bits:
        """Zero-extend to 64 bits."""
        return Bits(replace(self.site, format=F64), self.site.add(ExtUIOp(self.ssa, self.site.shaped(i64))))

    def narrowed(self) -> Bits:
        """Truncate to 32 bits."""
        return Bits(replace(self.site, format=F32), self.site.add(TruncIOp(self.ssa, self.site.shaped(i32))))


@dataclass(frozen=True)
class Real:
    """A float of the site's format, or a vector of them; operands that are Python numbers become constants."""

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
        """The absolute value."""
        return Real(self.site, self.site.add(math.AbsFOp(self.ssa)))

    def as_bits(self) -> Bits:
        """Bitcast to integers."""
        return Bits(self.site, self.site.add(arith.BitcastOp(self.ssa, self.site.shaped(self.site.format.bits))))

    def narrowed(self) -> Real:
        """Round to f32."""
        return Real(replace(self.site, format=F32), self.site.add(TruncFOp(self.ssa, self.site.shaped(f32))))


def fma(a: Real, b: Real | float, c: Real | float) -> Real:
    """a * b + c, rounded once."""
    return Real(a.site, a.site.add(elementwise(math.FmaOp, a.ssa, a.site.real(b).ssa, a.site.real(c).ssa)))


def horner(x: Real, coefficients: Sequence[float]) -> Real:
    """Evaluate the polynomial of these coefficients, lowest power first, by fma."""
    *lower, last = coefficients
    value = x.site.real(last)
    for coefficient in reversed(lower):
        value = fma(value, x, coefficient)
    return value


def select(condition: Truth, a: Real | float, b: Real | float) -> Real:
    """a if the condition holds, else b."""
    site = condition.site
    return Real(site, site.add(SelectOp(condition.ssa, site.real(a).ssa, site.real(b).ssa)))


def select_bits(condition: Truth, a: Bits | int, b: Bits | int) -> Bits:
    """a if the condition holds, else b."""
    site = condition.site
    return Bits(site, site.add(SelectOp(condition.ssa, site.bits(a).ssa, site.bits(b).ssa)))


def at_most(x: Real, limit: float) -> Real:
    """The minimum of x and a limit; NaN if x is NaN (as by minps, which returns its second operand)."""
    return select(x > limit, limit, x)


def at_least(x: Real, limit: float) -> Real:
    """The maximum of x and a limit; NaN if x is NaN."""
    return select(x < limit, limit, x)


def with_sign_of(magnitude: Real, sign: Real) -> Real:
    """The magnitude of one number with the sign of another."""
    return Real(sign.site, sign.site.add(math.CopySignOp(magnitude.ssa, sign.ssa)))


def ldexp(x: Real, n: Bits, normal: bool = False) -> Real:
    """x * 2^n for a normal x; `normal` asserts that 2^n and the result are normal, too."""
    return Real(x.site, x.site.add(llvm.ldexp(x.ssa, n.ssa, normal)))


def select_if_any(condition: Truth, fast: Sequence[Bits], slow: Callable[[Site], Sequence[Bits]]) -> list[Bits]:
    """Return `fast`, but in lanes where the condition holds the values that `slow` builds, in a branch that is taken
    only if there is such a lane."""
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
    """Insert a clone of an op with the attribute `library`, which lowers to a call of the C library."""
    clone = op.clone()
    clone.attributes[LIBRARY] = UnitAttr()
    clone.results[0].name_hint = None
    return Real(site, site.add(clone))
