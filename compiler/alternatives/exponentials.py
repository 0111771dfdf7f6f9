"""Symbolic evaluation of expressions to sums of products of reads and exponentials, for each order of two reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Operation

from compiler.dialects.upstream.arith import CMPF, CmpfOp, SelectOp
from compiler.program.body import Apply, Read, Scalar

Exponent: TypeAlias = tuple[tuple[int, float], ...]
"""A linear combination of reads: pairs of a read's position and its factor, ordered by position."""
Term: TypeAlias = tuple[tuple[int, ...], Exponent]
"""A product of reads, given by their positions, and of the exponential of an exponent."""
Sum: TypeAlias = Mapping[Term, float]
"""A sum: map each term to its coefficient, which is not 0."""


class UnknownValueError(Exception):
    """Raised for an expression that is no sum of products of reads and exponentials."""


@dataclass
class OrderCase:
    """A symbolic evaluator for one order of two reads, given by their positions: `order` is 1 if `first` > `second`, -1
    if it is less, 0 if they are equal, None if one is NaN.

    `cancels` becomes True if a read is subtracted from itself, which is NaN if the read is infinite.
    """

    first: int
    second: int
    order: int | None
    cancels: bool = False
    _values: dict[int, Sum] = field(default_factory=dict)

    def value(self, node: Scalar) -> Sum:
        """Evaluate an expression to a sum of products of reads and exponentials. Raises UnknownValueError for any other
        expression."""
        if id(node) not in self._values:
            self._values[id(node)] = self._value(node)
        return self._values[id(node)]

    def variable(self, position: int) -> Sum:
        """The sum that is the read at `position`; `second` becomes `first` if the two are equal."""
        return {((self._named(position),), ()): 1.0}

    def _named(self, position: int) -> int:
        return self.first if self.order == 0 and position == self.second else position

    def _value(self, node: Scalar) -> Sum:
        if isinstance(node, Read):
            return self.variable(node.position)
        if not isinstance(node, Apply):
            raise UnknownValueError
        if node.kind is SelectOp:
            condition, then, otherwise = node.operands
            return self.value(then if self._holds(condition) else otherwise)
        if node.kind is arith.ConstantOp:
            literal = dict(node.properties)["value"]
            if not isinstance(literal, FloatAttr):
                raise UnknownValueError
            return _sum({((), ()): literal.value.data})
        rule = _RULES.get(node.kind)
        if rule is None:
            raise UnknownValueError
        return rule(self, *map(self.value, node.operands))

    def _holds(self, condition: Scalar) -> bool:
        """Whether a comparison of floats is true; with a NaN operand, unordered predicates are true and others false.
        Raises UnknownValueError if the order does not decide it."""
        if not isinstance(condition, Apply) or condition.kind is not CmpfOp:
            raise UnknownValueError
        number = dict(condition.properties)["predicate"]
        assert isinstance(number, IntegerAttr)
        predicate = CMPF[number.value.data]
        sign = self.sign(*map(self.value, condition.operands))
        if sign is None:
            return predicate[0] == "u"
        return predicate[1:] in _HOLDING[sign]

    def sign(self, a: Sum, b: Sum) -> int | None:
        """The sign of a - b: 1, 0 or -1, or None if `first` or `second` is NaN. Raises UnknownValueError unless a - b
        is 0 or a multiple of first - second; in the case of NaN, if a - b is 0."""
        # Case(0, 1, order=-1), where read 0 < read 1: the sign of read 0 - read 1 is -1, of read 1 - read 0 it is 1.
        difference = _sum(a, _negated(b))
        if self.order is None and difference:
            return None
        if self.order is not None and not difference:
            return 0
        first, second = (difference.get(((n,), ()), 0.0) for n in (self.first, self.second))
        if self.order is None or len(difference) != 2 or first != -second:
            raise UnknownValueError
        return self.order if first > 0 else -self.order

    def subtracted(self, a: Sum, b: Sum) -> Sum:
        """a - b; sets `cancels` if a term with a read is subtracted from itself."""
        self.cancels |= any(reads and (reads, power) in b for reads, power in a)
        return _sum(a, _negated(b))

    def greatest(self, a: Sum, b: Sum) -> Sum:
        """The maximum of a and b; the read that represents NaN if one of them is NaN."""
        sign = self.sign(a, b)
        return {((_NAN,), ()): 1.0} if sign is None else a if sign >= 0 else b


_NAN = -1
"""The position of an artificial read that represents NaN."""
_HOLDING = {1: ("gt", "ge", "ne"), 0: ("eq", "ge", "le"), -1: ("lt", "le", "ne")}


def _sum(*sums: Sum) -> Sum:
    total: dict[Term, float] = {}
    for each in sums:
        for term, factor in each.items():
            total[term] = total.get(term, 0.0) + factor
    return {term: factor for term, factor in total.items() if factor}


def _product(a: Sum, b: Sum) -> Sum:
    terms = [
        {(tuple(sorted((*reads, *more))), _exponent(power, right_factor)): factor * times}
        for (reads, power), factor in a.items()
        for (more, right_factor), times in b.items()
    ]
    return _sum(*terms)


def _exponent(*exponents: Exponent) -> Exponent:
    total: dict[int, float] = {}
    for read, factor in (pair for exponent in exponents for pair in exponent):
        total[read] = total.get(read, 0.0) + factor
    return tuple(sorted((read, factor) for read, factor in total.items() if factor))


def _exponential(a: Sum) -> Sum:
    """exp(a), such as exp(2*x + y). Raises UnknownValueError unless each term of `a` is one read with a factor."""
    if any(len(reads) != 1 or power for reads, power in a):
        raise UnknownValueError
    return {((), _exponent(*(((reads[0], factor),) for (reads, _), factor in a.items()))): 1.0}


def _negated(a: Sum) -> Sum:
    return {term: -factor for term, factor in a.items()}


_RULES: dict[type[Operation], Callable[..., Sum]] = {
    arith.AddfOp: lambda case, a, b: _sum(a, b),
    arith.SubfOp: OrderCase.subtracted,
    arith.MulfOp: lambda case, a, b: _product(a, b),
    arith.NegfOp: lambda case, a: _negated(a),
    arith.MaximumfOp: OrderCase.greatest,
    math.ExpOp: lambda case, a: _exponential(a),
}
