"""Linear forms and ranges of index values at the low level, recovered from the arith ops that compute them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf, isinf

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType
from xdsl.ir import BlockArgument, Operation, SSAValue

from compiler.affine import linear as lin
from compiler.affine.linear import Linear


class Forms:
    """Linear forms of index values: sums of multiples of values that are no sums or multiples themselves."""

    def __init__(self) -> None:
        self.values: list[SSAValue] = []
        """The value of each variable in the forms, by the variable's number."""
        self._numbers: dict[SSAValue, int] = {}
        self._by_value: dict[SSAValue, Linear] = {}

    def of(self, value: SSAValue) -> Linear:
        """Return the form of an index value; a value that is no constant, sum, difference or multiple is a variable."""
        form = self._by_value.get(value)
        if form is None:
            form = self._by_value[value] = self._form(value)
        return form

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


Range = tuple[float, float]
"""The smallest and the largest value, both integers; infinite if unknown."""
ANY: Range = (-inf, inf)
_WORD = (-(1 << 63), (1 << 63) - 1)
_BELOW = IntegerAttr(arith.CMPI_COMPARISON_OPERATIONS.index("ult"), 64)


class Ranges:
    """Interval analysis of index values, by constants, integer types and loop bounds: i in [0, 9], 2*i in [0, 18]."""

    def __init__(self) -> None:
        self._by_value: dict[SSAValue, Range] = {}

    def of(self, value: SSAValue) -> Range:
        """Return the least and the greatest value of an index; ANY if unknown, and for a value of another type."""
        if value not in self._by_value:
            self.state(value, self._argument(value) if isinstance(value, BlockArgument) else self._result(value))
        return self._by_value[value]

    def state(self, value: SSAValue, stated: Range) -> None:
        """Record the range of a value. A range beyond 64 bits, where indices wrap, becomes ANY."""
        self._by_value[value] = stated if all(isinf(end) or _WORD[0] <= end <= _WORD[1] for end in stated) else ANY

    def surely_runs(self, loop: scf.ForOp | scf.ParallelOp) -> bool:
        """Whether a loop runs at least one iteration for all values of its bounds in their ranges."""
        return all(self.of(low)[1] < self.of(high)[0] for low, high, _ in bounds(loop))

    def _argument(self, value: BlockArgument) -> Range:
        loop = value.block.parent_op()
        if not isinstance(loop, scf.ForOp | scf.ParallelOp) or value.index >= len(bounds(loop)):
            return ANY
        low, high, _ = bounds(loop)[value.index]
        return self.of(low)[0], self.of(high)[1] - 1

    def _result(self, value: SSAValue) -> Range:
        op = value.owner
        assert isinstance(op, Operation)
        if not isinstance(value.type, IndexType):
            return ANY
        if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
            return op.value.value.data, op.value.value.data
        if op.name == "arith.index_cast":
            return _of_integer(op.operands[0])
        if op.name == "arith.select":
            yes, no = self._where(op.operands[0], op.operands[1]), self.of(op.operands[2])
            return min(yes[0], no[0]), max(yes[1], no[1])
        rule = _RULES.get(type(op))
        return ANY if rule is None else rule(*map(self.of, op.operands))

    def _where(self, condition: SSAValue, value: SSAValue) -> Range:
        """The range of a value under a condition: [0, size) if it is `value ult size`; any other changes nothing."""
        test = condition.owner
        if isinstance(test, Operation) and test.name == "arith.cmpi" and test.operands[0] is value:
            low, high = self.of(test.operands[1])
            if test.properties["predicate"] == _BELOW and low >= 0:
                return 0, max(high - 1, 0)
        return self.of(value)


def bounds(loop: scf.ForOp | scf.ParallelOp) -> Sequence[tuple[SSAValue, SSAValue, SSAValue]]:
    """Return the lower bound, upper bound and step of each variable of a loop."""
    if isinstance(loop, scf.ForOp):
        return [(loop.lb, loop.ub, loop.step)]
    return list(zip(loop.lowerBound, loop.upperBound, loop.step, strict=True))


def _of_integer(value: SSAValue) -> Range:
    """Return an integer type's signed range; that of the narrow unsigned type if zero-extended; ANY for others."""
    owner = value.owner
    if isinstance(owner, Operation) and owner.name == "arith.extui":
        extended = owner.operands[0].type
        if isinstance(extended, IntegerType):
            return 0, (1 << extended.width.data) - 1
    if not isinstance(value.type, IntegerType):
        return ANY
    half = 1 << value.type.width.data - 1
    return -half, half - 1


def _product(a: Range, b: Range) -> Range:
    corners = [x * y if x and y else 0 for x in a for y in b]
    return min(corners), max(corners)


def _divided(a: float, b: float) -> float:
    return a if isinf(a) else a // b


def _floored(a: Range, b: Range) -> Range:
    if b[0] <= 0:
        return ANY
    corners = [_divided(x, y) for x in a for y in b]
    return min(corners), max(corners)


def _quotient(a: Range, b: Range) -> Range:
    return _floored(a, b) if a[0] >= 0 else ANY


def _remainder(a: Range, b: Range) -> Range:
    return (0, min(a[1], b[1] - 1)) if a[0] >= 0 and b[0] > 0 else ANY


def _signed_remainder(a: Range, b: Range) -> Range:
    return (0 if a[0] >= 0 else 1 - b[1], b[1] - 1) if b[0] > 0 else ANY


_RULES: Mapping[type[Operation], Callable[[Range, Range], Range]] = {
    arith.AddiOp: lambda a, b: (a[0] + b[0], a[1] + b[1]),
    arith.SubiOp: lambda a, b: (a[0] - b[1], a[1] - b[0]),
    arith.MuliOp: _product,
    arith.DivUIOp: _quotient,
    arith.DivSIOp: _quotient,
    arith.FloorDivSIOp: _floored,
    arith.RemUIOp: _remainder,
    arith.RemSIOp: _signed_remainder,
    arith.MinSIOp: lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    arith.MaxSIOp: lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
}
"""The range of an op's result from the ranges of its operands."""
