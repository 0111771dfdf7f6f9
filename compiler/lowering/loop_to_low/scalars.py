"""The body's operations on scalars or vectors, with the policy's fastmath flags."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache

from xdsl.dialects import arith
from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import AnyFloat, DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr, VectorType, i1
from xdsl.dialects.utils import FastMathFlag
from xdsl.dialects.vector import CombiningKindAttr, CombiningKindFlag, ExtractOp, ReductionOp
from xdsl.ir import Attribute, Operation, SSAValue

from compiler.dialects.upstream.builders import Constant, broadcast, vector_type
from compiler.lowering.loop_to_low.literals import KnownNumber, Number, known_number
from compiler.lowering.loop_to_low.scopes import INDEX, Scopes
from compiler.program.body import Apply, Index, Read, Scalar
from compiler.types.elements import is_unsigned
from compiler.types.policies import Policy

_FUSED_OPS = ("arith.addf", "arith.subf", "arith.mulf")


def lanes_of(value: SSAValue) -> int | None:
    """Return the number of lanes of a vector of rank 1; None for a scalar."""
    return value.type.get_shape()[0] if isinstance(value.type, VectorType) else None


def broadcast_to_lanes(scopes: Scopes, value: SSAValue, lanes: int) -> SSAValue:
    """Broadcast a scalar to all lanes; a vector is returned as it is."""
    if isinstance(value.type, VectorType):
        return value
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, FloatAttr | IntegerAttr):
        return scopes.constant(splat(owner.value, lanes))
    return scopes.add(broadcast(value, lanes))


def extract_lane(scopes: Scopes, value: SSAValue, number: int) -> SSAValue:
    """Emit the extraction of the lane `number` of a vector; return the scalar."""
    assert isinstance(value.type, VectorType)
    return scopes.add(ExtractOp(value, [number], value.type.element_type))


@lru_cache(maxsize=256)
def splat(value: FloatAttr | IntegerAttr, lanes: int) -> Constant:
    """Return a vector constant with the same value in each lane."""
    return dense([value.value.data] * lanes, value.type)


def zeros(type: Constant) -> Constant:
    """Return a constant of zeros; `type` is its vector type."""
    return DenseIntOrFPElementsAttr.from_list(type, [0])


def dense(values: Sequence[int | float], element: Constant) -> Constant:
    """Return a vector constant with these values, one for each lane; `element` is their type."""
    return DenseIntOrFPElementsAttr.from_list(vector_type(element, len(values)), list(values))


@lru_cache(maxsize=256)
def lane_offsets(step: int, lanes: int) -> Constant:
    """Return the offsets of lanes, (0, step, 2 * step, ...), as an index vector."""
    return dense([step * n for n in range(lanes)], INDEX)


@lru_cache(maxsize=64)
def all_lanes(lanes: int) -> Constant:
    """Return the mask constant in which all lanes are active."""
    return dense([1] * lanes, i1)


def evaluate(
    scopes: Scopes, roots: Sequence[Scalar], leaf: Callable[[Read | Index], SSAValue], policy: Policy
) -> list[SSAValue]:
    """Emit scalar expressions, each common subexpression once; return their values in order. leaf: emits a read or an
    axis. policy: selects the fast-math flags of the ops."""
    emitter = Expressions(scopes, leaf, policy)
    return [emitter.value(root) for root in roots]


@dataclass
class Expressions:
    """The emitter of scalar expressions, which emits equal subexpressions once. leaf: emits a read or an axis. reads:
    the element of each read of a constant buffer, by the number of the read; without any, no operation is folded.
    values, ops: values emitted so far, by node and by operation."""

    scopes: Scopes
    leaf: Callable[[Read | Index], SSAValue]
    policy: Policy
    reads: Mapping[int, Number] = field(default_factory=dict)
    values: dict[int, SSAValue] = field(default_factory=dict)
    ops: dict[object, SSAValue] = field(default_factory=dict)
    _known_numbers: dict[int, KnownNumber | None] = field(default_factory=dict)

    def value(self, node: Scalar) -> SSAValue:
        """Return the value of an expression, which is emitted once."""
        if id(node) not in self.values:
            self.values[id(node)] = self._op(node) if isinstance(node, Apply) else self._leaf(node)
        return self.values[id(node)]

    def _leaf(self, node: Read | Index) -> SSAValue:
        if isinstance(node, Read) and node.position in self.reads:
            return self.scopes.constant(self.reads[node.position])
        return self.leaf(node)

    def known(self, node: Scalar) -> KnownNumber | None:
        """Return the constant value of an expression, by `known_number`; a product with a zero element of a constant is
        that zero if the policy allows it. None for other expressions, and for all if the block reads no constant."""
        if not self.reads:
            return None
        number = known_number(node, self.reads, self._known_numbers)
        if number is None and isinstance(node, Apply) and node.kind in _PRODUCTS and self.policy.zeros:
            factors = [self.known(operand) for operand in node.operands]
            return next((KnownNumber(f.value, True) for f in factors if f and f.of_constant and f.is_zero), None)
        return number

    def _simplified(self, node: Apply) -> SSAValue | None:
        """Return the other operand of an operation with a known number, or its emitted negation, if the operation
        equals it; else None. Without reads of constants always None."""
        if not self.reads or len(node.operands) != 2:
            return None
        first, second = (self.known(operand) for operand in node.operands)
        number = first or second
        if number is None or (first and second and not self.known(node)):
            return None
        remaining_operand, is_first = node.operands[1 if first else 0], number is first
        if _is_neutral(node.kind, number, is_first, self.policy):
            return self.value(remaining_operand)
        if _negates(node.kind, number, is_first, self.policy):
            return self.scopes.add(arith.NegfOp(self.value(remaining_operand)))
        return None

    def _op(self, node: Apply) -> SSAValue:
        number = self.known(node)
        if number is not None and number.of_constant:
            return self.scopes.constant(number.value)
        simplified = self._simplified(node)
        if simplified is not None:
            return simplified
        operands = [self.value(operand) for operand in node.operands]
        key = (node.kind, tuple(operands), node.properties, node.types)
        if key not in self.ops:
            self.ops[key] = _apply(self.scopes, node, operands, self.policy)
        return self.ops[key]


_PRODUCTS = (arith.MulfOp, arith.MuliOp)
_SUMS_OF_TWO = (arith.AddfOp, arith.AddiOp)
_DIFFERENCES = (arith.SubfOp, arith.SubiOp)


def _is_neutral(kind: type[Operation], number: KnownNumber, is_first: bool, policy: Policy) -> bool:
    """Return whether an operation of a kind equals its other operand: `number` is its first operand if `is_first`, else
    its second. `policy.zeros` lets a zero of either sign count as one that adds nothing."""
    if kind in _PRODUCTS:
        return number.number == 1
    drops = number.is_zero and number.of_constant and policy.zeros
    if kind in _SUMS_OF_TWO:
        return number.adds_nothing or drops
    if kind in _DIFFERENCES and not is_first:
        return drops or (number.is_zero and not number.adds_nothing) or (kind is arith.SubiOp and number.is_zero)
    return False


def _negates(kind: type[Operation], number: KnownNumber, is_first: bool, policy: Policy) -> bool:
    """Return whether a float operation of a kind equals its negated other operand: `number` is its first operand if
    `is_first`, else its second. `policy.zeros` lets a zero of either sign count as one that adds nothing."""
    if kind is arith.MulfOp:
        return number.number == -1
    drops = number.is_zero and number.of_constant and policy.zeros
    return kind is arith.SubfOp and is_first and (number.adds_nothing or drops)


def is_identity(combiner: str, number: KnownNumber | None, policy: Policy) -> bool:
    """Return whether combining with a number by `combiner`, add or mul, changes nothing; false for other combiners, and
    for None, a value that is not constant. If the policy allows it, a zero of any sign is the identity of add."""
    if number is None:
        return False
    if combiner == "mul":
        return number.number == 1
    return combiner == "add" and (number.adds_nothing or (number.is_zero and policy.zeros))


def _apply(scopes: Scopes, node: Apply, operands: Sequence[SSAValue], policy: Policy) -> SSAValue:
    """Emit a scalar op of a body; with a vector operand, a vector op, to whose lanes scalar operands are broadcast.
    `policy`: its flags for bodies are set on the ops of _FUSED_OPS."""
    properties = dict(node.properties)
    if node.kind is arith.ConstantOp:
        return scopes.constant(properties["value"])
    lanes = next((n for v in operands if (n := lanes_of(v)) is not None), None)
    if lanes is not None:
        operands = [broadcast_to_lanes(scopes, v, lanes) for v in operands]
    if policy.body and node.kind.name in _FUSED_OPS:
        properties["fastmath"] = _flags(policy.body)
    type = node.types[0] if lanes is None else vector_type(node.types[0], lanes)
    return scopes.add(node.kind.create(operands=operands, result_types=[type], properties=properties))


def _combiner_flags(combiner: str, policy: Policy) -> FastMathFlagsAttr:
    return _flags(policy.sums if combiner in ("add", "mul") else policy.extremes)


@cache
def _flags(names: tuple[str, ...]) -> FastMathFlagsAttr:
    return FastMathFlagsAttr([FastMathFlag(name) for name in names])


def combine(
    scopes: Scopes, combiner: str, lhs: SSAValue, rhs: SSAValue, element: Attribute, policy: Policy
) -> SSAValue:
    """Emit the combination of lhs and rhs, of one type, by a combiner (add, mul, max or min), and return its value; the
    target's element type `element` selects the float, signed or unsigned op, and of floats `policy` the fast-math
    flags."""
    op = _COMBINERS[combiner][_combiner_column(element)].create(operands=[lhs, rhs], result_types=[lhs.type])
    if isinstance(element, AnyFloat):
        op.properties["fastmath"] = _combiner_flags(combiner, policy)
    return scopes.add(op)


def reduction(combiner: str, value: SSAValue, element: Attribute, policy: Policy) -> ReductionOp:
    """Create, but do not insert, the reduction of a vector's lanes to a scalar by `combiner`; `element`, the target's
    element type, selects the float, signed or unsigned kind, and of floats `policy` the fast-math flags."""
    assert isinstance(value.type, VectorType)
    kind = (
        combiner
        if combiner in _UNTYPED_COMBINERS
        else _COMBINERS[combiner][_combiner_column(element)].name.removeprefix("arith.")
    )
    flags = _combiner_flags(combiner, policy) if isinstance(element, AnyFloat) else _flags(())
    properties: dict[str, Attribute] = {"kind": CombiningKindAttr(CombiningKindFlag(kind)), "fastmath": flags}
    return ReductionOp.create(operands=[value], result_types=[value.type.element_type], properties=properties)


def _combiner_column(element: Attribute) -> int:
    """Return the column of _COMBINERS: floats, signed integers, unsigned integers."""
    return 0 if isinstance(element, AnyFloat) else 2 if is_unsigned(element) else 1


_COMBINERS: dict[str, tuple[type[Operation], type[Operation], type[Operation]]] = {
    "add": (arith.AddfOp, arith.AddiOp, arith.AddiOp),
    "mul": (arith.MulfOp, arith.MuliOp, arith.MuliOp),
    "max": (arith.MaximumfOp, arith.MaxSIOp, arith.MaxUIOp),
    "min": (arith.MinimumfOp, arith.MinSIOp, arith.MinUIOp),
}
_UNTYPED_COMBINERS = ("add", "mul")
"""Combiners with one name in vector.reduction for all element types; others have the names of the ops."""
