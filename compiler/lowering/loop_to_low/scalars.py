"""The body's operations on scalars or vectors, with the floating-point policy's flags."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache

from xdsl.dialects import arith
from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import AnyFloat, DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr, VectorType, i1
from xdsl.dialects.utils import FastMathFlag
from xdsl.dialects.vector import (
    CombiningKindAttr,
    CombiningKindFlag,
    ExtractOp,
    ReductionOp,
)
from xdsl.ir import Attribute, Operation, SSAValue

from compiler.dialects.upstream.builders import Constant, broadcast, vector_type
from compiler.lowering.loop_to_low.literals import Known, Number, known
from compiler.lowering.loop_to_low.scopes import INDEX, Scopes
from compiler.program.body import Apply, Index, Read, Scalar
from compiler.types.elements import is_unsigned
from compiler.types.policies import Policy

_SUMS = ("arith.addf", "arith.subf", "arith.mulf")


def lanes_of(value: SSAValue) -> int | None:
    """The lane count of a vector, or None for a scalar."""
    return value.type.get_shape()[0] if isinstance(value.type, VectorType) else None


def widen(scopes: Scopes, value: SSAValue, lanes: int) -> SSAValue:
    """The value as a vector of that many lanes."""
    if isinstance(value.type, VectorType):
        return value
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, FloatAttr | IntegerAttr):
        return scopes.constant(splat(owner.value, lanes))
    return scopes.add(broadcast(value, lanes))


def lane(scopes: Scopes, value: SSAValue, number: int) -> SSAValue:
    """One lane of a vector."""
    assert isinstance(value.type, VectorType)
    return scopes.add(ExtractOp(value, [number], value.type.element_type))


@lru_cache(maxsize=256)
def splat(value: FloatAttr | IntegerAttr, lanes: int) -> Constant:
    """A dense vector constant with the same value in each lane."""
    return dense([value.value.data] * lanes, value.type)


def zeros(type: Constant) -> Constant:
    """A vector constant of zeros."""
    return DenseIntOrFPElementsAttr.from_list(type, [0])


def dense(values: Sequence[int | float], element: Constant) -> Constant:
    """A dense vector constant."""
    return DenseIntOrFPElementsAttr.from_list(vector_type(element, len(values)), list(values))


@lru_cache(maxsize=256)
def multiples(step: int, lanes: int) -> Constant:
    """The places of lanes: the multiples of a step, from 0, as indices."""
    return dense([step * n for n in range(lanes)], INDEX)


@lru_cache(maxsize=64)
def all_lanes(lanes: int) -> Constant:
    """The mask that has all lanes."""
    return dense([1] * lanes, i1)


def evaluate(
    scopes: Scopes, roots: Sequence[Scalar], leaf: Callable[[Read | Index], SSAValue], policy: Policy
) -> list[SSAValue]:
    """Emit the ops of scalar expressions, each once, whose reads and axes `leaf` gives."""
    emitter = Expressions(scopes, leaf, policy)
    return [emitter.value(root) for root in roots]


@dataclass
class Expressions:
    """Scalar expressions under emission: expressions by identity, ops by operation and operands.

    `reads` are the elements of constants among the reads, by their numbers.
    """

    scopes: Scopes
    leaf: Callable[[Read | Index], SSAValue]
    policy: Policy
    reads: Mapping[int, Number] = field(default_factory=dict)
    values: dict[int, SSAValue] = field(default_factory=dict)
    ops: dict[object, SSAValue] = field(default_factory=dict)
    _found: dict[int, Known | None] = field(default_factory=dict)

    def value(self, node: Scalar) -> SSAValue:
        """The value of an expression."""
        if id(node) not in self.values:
            self.values[id(node)] = self._op(node) if isinstance(node, Apply) else self._leaf(node)
        return self.values[id(node)]

    def _leaf(self, node: Read | Index) -> SSAValue:
        if isinstance(node, Read) and node.position in self.reads:
            return self.scopes.constant(self.reads[node.position])
        return self.leaf(node)

    def known(self, node: Scalar) -> Known | None:
        """The number of an expression that constants determine; None for any other."""
        if not self.reads:
            return None
        number = known(node, self.reads, self._found)
        if number is None and isinstance(node, Apply) and node.kind in _PRODUCTS and self.policy.zeros:
            factors = [self.known(operand) for operand in node.operands]
            return next((Known(f.value, True) for f in factors if f and f.of_constant and f.is_zero), None)
        return number

    def _shorter(self, node: Apply) -> SSAValue | None:
        """The value of an operation that constants reduce to an operand, or its negation."""
        if not self.reads or len(node.operands) != 2:
            return None
        first, second = (self.known(operand) for operand in node.operands)
        number = first or second
        if number is None or (first and second and not self.known(node)):
            return None
        kept, is_first = node.operands[1 if first else 0], number is first
        if _is_neutral(node.kind, number, is_first, self.policy):
            return self.value(kept)
        if _negates(node.kind, number, is_first, self.policy):
            return self.scopes.add(arith.NegfOp(self.value(kept)))
        return None

    def _op(self, node: Apply) -> SSAValue:
        number = self.known(node)
        if number is not None and number.of_constant:
            return self.scopes.constant(number.value)
        shorter = self._shorter(node)
        if shorter is not None:
            return shorter
        operands = [self.value(operand) for operand in node.operands]
        key = (node.kind, tuple(operands), node.properties, node.types)
        if key not in self.ops:
            self.ops[key] = _apply(self.scopes, node, operands, self.policy)
        return self.ops[key]


_PRODUCTS = (arith.MulfOp, arith.MuliOp)
_SUMS_OF_TWO = (arith.AddfOp, arith.AddiOp)
_DIFFERENCES = (arith.SubfOp, arith.SubiOp)


def _is_neutral(kind: type[Operation], number: Known, is_first: bool, policy: Policy) -> bool:
    """Whether an operation with a number, first or second, gives its other operand."""
    if kind in _PRODUCTS:
        return number.number == 1
    drops = number.is_zero and number.of_constant and policy.zeros
    if kind in _SUMS_OF_TWO:
        return number.adds_nothing or drops
    if kind in _DIFFERENCES and not is_first:
        return drops or (number.is_zero and not number.adds_nothing) or (kind is arith.SubiOp and number.is_zero)
    return False


def _negates(kind: type[Operation], number: Known, is_first: bool, policy: Policy) -> bool:
    """Whether an operation with a number, first or second, gives its other operand negated."""
    if kind is arith.MulfOp:
        return number.number == -1
    drops = number.is_zero and number.of_constant and policy.zeros
    return kind is arith.SubfOp and is_first and (number.adds_nothing or drops)


def drops_out(combiner: str, number: Known | None, policy: Policy) -> bool:
    """Whether combining with a number changes nothing."""
    if number is None:
        return False
    if combiner == "mul":
        return number.number == 1
    return combiner == "add" and (number.adds_nothing or (number.is_zero and policy.zeros))


def _apply(scopes: Scopes, node: Apply, operands: Sequence[SSAValue], policy: Policy) -> SSAValue:
    """Emit one scalar op of a body on given operands, as a vector op where one of them is a vector."""
    properties = dict(node.properties)
    if node.kind is arith.ConstantOp:
        return scopes.constant(properties["value"])
    lanes = next((n for v in operands if (n := lanes_of(v)) is not None), None)
    if lanes is not None:
        operands = [widen(scopes, v, lanes) for v in operands]
    if policy.body and node.kind.name in _SUMS:
        properties["fastmath"] = _flags(policy.body)
    type = node.types[0] if lanes is None else vector_type(node.types[0], lanes)
    return scopes.add(node.kind.create(operands=operands, result_types=[type], properties=properties))


def _combination(combiner: str, policy: Policy) -> FastMathFlagsAttr:
    """The fast-math flags of a combiner of floats."""
    return _flags(policy.sums if combiner in ("add", "mul") else policy.extremes)


@cache
def _flags(names: tuple[str, ...]) -> FastMathFlagsAttr:
    return FastMathFlagsAttr([FastMathFlag(name) for name in names])


def combine(
    scopes: Scopes, combiner: str, lhs: SSAValue, rhs: SSAValue, element: Attribute, policy: Policy
) -> SSAValue:
    """lhs combined with rhs, as a target of an element type combines."""
    op = _COMBINERS[combiner][_column(element)].create(operands=[lhs, rhs], result_types=[lhs.type])
    if isinstance(element, AnyFloat):
        op.properties["fastmath"] = _combination(combiner, policy)
    return scopes.add(op)


def reduction(combiner: str, value: SSAValue, element: Attribute, policy: Policy) -> ReductionOp:
    """The lanes of a vector combined into a scalar, as a target of an element type combines."""
    assert isinstance(value.type, VectorType)
    word = combiner if combiner in _SAME else _COMBINERS[combiner][_column(element)].name.removeprefix("arith.")
    flags = _combination(combiner, policy) if isinstance(element, AnyFloat) else _flags(())
    properties: dict[str, Attribute] = {"kind": CombiningKindAttr(CombiningKindFlag(word)), "fastmath": flags}
    return ReductionOp.create(operands=[value], result_types=[value.type.element_type], properties=properties)


def _column(element: Attribute) -> int:
    """Of `_COMBINERS`: floats, integers, unsigned integers."""
    return 0 if isinstance(element, AnyFloat) else 2 if is_unsigned(element) else 1


_COMBINERS: dict[str, tuple[type[Operation], type[Operation], type[Operation]]] = {
    "add": (arith.AddfOp, arith.AddiOp, arith.AddiOp),
    "mul": (arith.MulfOp, arith.MuliOp, arith.MuliOp),
    "max": (arith.MaximumfOp, arith.MaxSIOp, arith.MaxUIOp),
    "min": (arith.MinimumfOp, arith.MinSIOp, arith.MinUIOp),
}
_SAME = ("add", "mul")
"""The combiners that a vector.reduction calls the same for all element types; others are called as the op is."""
