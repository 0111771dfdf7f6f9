"""Values as quasi-affine forms over loops, and truth values as conditions over loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product

from xdsl.dialects import affine, arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, i1
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineConstraintKind,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
    AffineSet,
    AffineSymExpr,
)

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.limits import END
from compiler.affine.linear import Linear
from compiler.dialects.upstream.affine import MaxOp
from compiler.dialects.upstream.arith import CmpiOp, SelectOp

Truth = tuple[tuple[Condition, ...], ...]
"""A truth value: alternatives of which at most one holds, each a conjunction. `()` is false, `((),)` true."""
MOST_ALTERNATIVES = 8
"""The number of alternatives above which a condition counts as not affine."""

_CASTS = ("arith.index_cast", "arith.extsi", "arith.trunci")
_UNSIGNED_CASTS = ("arith.index_castui", "arith.extui")
_DIVISIONS = {
    arith.FloorDivSIOp: AffineBinaryOpKind.FloorDiv,
    arith.CeilDivSIOp: AffineBinaryOpKind.CeilDiv,
    arith.DivSIOp: AffineBinaryOpKind.FloorDiv,
    arith.DivUIOp: AffineBinaryOpKind.FloorDiv,
    arith.RemSIOp: AffineBinaryOpKind.Mod,
    arith.RemUIOp: AffineBinaryOpKind.Mod,
}
_TRUNCATING = (arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp)
"""Divisions that equal the floor division if the dividend is not negative."""
_EXTREMA = {arith.MinSIOp: False, arith.MaxSIOp: True, affine.MinOp: False, MaxOp: True}
"""Map each op of a minimum or maximum to whether it is the maximum."""
_COMPARED: dict[str, Callable[[Linear], Truth]] = {
    "eq": lambda d: ((Condition(d, True),),),
    "ne": lambda d: ((_above(d),), (_above(d.scaled(-1)),)),
    "slt": lambda d: ((_above(d.scaled(-1)),),),
    "sle": lambda d: ((Condition(d.scaled(-1)),),),
    "sgt": lambda d: ((_above(d),),),
    "sge": lambda d: ((Condition(d),),),
}
"""Map a predicate to the condition on the difference of the operands."""


def _above(form: Linear) -> Condition:
    """The condition form > 0."""
    return Condition(form - lin.constant(1))


class ValueForms:
    """The forms of the values of a function; `ranges` are those of the loops bound so far, by number."""

    def __init__(self) -> None:
        self.ranges: dict[int, lin.Range] = {}
        self._bound: dict[SSAValue, Linear] = {}
        self._cache: dict[SSAValue, Linear | None] = {}

    def bind(self, variable: SSAValue, form: Linear) -> None:
        """Set the form of a loop variable, over loops with a range."""
        self._bound[variable] = form
        self._cache.clear()

    def form(self, value: SSAValue) -> Linear | None:
        """Return the form of a value of type index or integer; None for i1 and other types, if it is not affine, or if
        intervals do not prove that it fits the value's type. A loop variable has the form that `bind` set, unchecked.
        """
        if value in self._bound:
            return self._bound[value]
        if value not in self._cache:
            is_integer = isinstance(value.type, IndexType | IntegerType) and value.type != i1
            self._cache[value] = self._form(value) if is_integer else None
        return self._cache[value]

    def _form(self, value: SSAValue) -> Linear | None:
        op = value.owner
        if not isinstance(op, Operation):
            return None
        form = self._computed(op)
        return form if form is not None and self._fits(form, value) else None

    def _fits(self, form: Linear, value: SSAValue) -> bool:
        """Whether intervals prove that no value of a form wraps in the type of an SSA value; END bounds those of type
        index."""
        end = 1 << (value.type.width.data - 1) if isinstance(value.type, IntegerType) else END
        low, high = lin.bounds(form, self.ranges)
        return -end <= low and high < end

    def _computed(self, op: Operation) -> Linear | None:
        match op:
            case arith.ConstantOp(value=IntegerAttr() as literal):
                return lin.constant(literal.value.data)
            case affine.ApplyOp():
                return self.results(op.map.data, op.mapOperands)[0]
            case affine.MinOp() | MaxOp():
                return self.extremum(self.results(op.map.data, op.arguments), type(op) is MaxOp)
            case SelectOp():
                truth = self.truth(op.cond)
                return None if truth not in ((), ((),)) else self.form(op.lhs if truth else op.rhs)
        operands = [self.form(operand) for operand in op.operands]
        if any(operand is None for operand in operands):
            return None
        return self._arithmetic(op, [operand for operand in operands if operand is not None])

    def _arithmetic(self, op: Operation, operands: Sequence[Linear]) -> Linear | None:
        kind = type(op)
        if op.name in _CASTS:
            return operands[0]
        if op.name in _UNSIGNED_CASTS:
            return operands[0] if self._is_natural(operands[0]) else None
        if kind is arith.AddiOp:
            return operands[0] + operands[1]
        if kind is arith.SubiOp:
            return operands[0] - operands[1]
        if kind is arith.MuliOp:
            return self.binary(AffineBinaryOpKind.Mul, *operands)
        if kind in _EXTREMA:
            return self.extremum(operands, _EXTREMA[kind])
        if kind in _DIVISIONS and (kind not in _TRUNCATING or self._is_natural(operands[0])):
            return self.binary(_DIVISIONS[kind], *operands)
        return None

    def _is_natural(self, form: Linear) -> bool:
        return lin.bounds(form, self.ranges)[0] >= 0

    def extremum(self, forms: Sequence[Linear | None], largest: bool) -> Linear | None:
        """Return the form that is the least, or the largest, for all values of the loops; None if intervals prove it of
        none, or if one of the forms is None: `min(i + 4, 8)` with i in [0, 4] is `i + 4`. None without forms."""
        known = [form for form in forms if form is not None]
        for form in known if len(known) == len(forms) else []:
            gaps = [(form - rival) if largest else (rival - form) for rival in known]
            if all(map(self._is_natural, gaps)):
                return form
        return None

    def results(self, affine_map: AffineMap, operands: Sequence[SSAValue]) -> list[Linear | None]:
        """Return the form of each result of a map at its operands; None for a result that is not affine. Symbols follow
        the dimensions among the operands."""
        forms = dict(enumerate(map(self.form, operands)))
        return [self._expr(expr, forms, affine_map.num_dims) for expr in affine_map.results]

    def contains(self, set: AffineSet, operands: Sequence[SSAValue]) -> Truth | None:
        """Return the condition that a set contains its operands; None if it is not affine."""
        forms, kinds = dict(enumerate(map(self.form, operands))), AffineConstraintKind
        conditions: list[Condition] = []
        for constraint in set.constraints:
            left, right = (self._expr(side, forms, set.num_dims) for side in (constraint.lhs, constraint.rhs))
            if left is None or right is None:
                return None
            gap = right - left if constraint.kind is kinds.le else left - right
            conditions.append(Condition(gap, constraint.kind is kinds.eq))
        return self._simplified((tuple(conditions),))

    def _expr(self, expr: AffineExpr, forms: Mapping[int, Linear | None], dims: int) -> Linear | None:
        """The form of an expression, None if not affine; `forms` are those of its `dims` dimensions, then symbols."""
        match expr:
            case AffineConstantExpr(value):
                return lin.constant(value)
            case AffineDimExpr(position):
                return forms[position]
            case AffineSymExpr(position):
                return forms[dims + position]
            case AffineBinaryOpExpr(kind, lhs, rhs):
                left, right = self._expr(lhs, forms, dims), self._expr(rhs, forms, dims)
                return None if left is None or right is None else self.binary(kind, left, right)
        raise AssertionError(f"no affine expression: {expr}")

    def binary(self, kind: AffineBinaryOpKind, left: Linear, right: Linear) -> Linear | None:
        """Combine two forms; None for a product of two forms that are not constant, and for a divisor that is no
        positive constant."""
        match kind:
            case AffineBinaryOpKind.Add:
                return left + right
            case AffineBinaryOpKind.Mul:
                scaled, factor = (left, right) if right.is_constant else (right, left)
                return scaled.scaled(factor.constant) if factor.is_constant else None
        divisor = right.constant
        if not right.is_constant or divisor < 1:
            return None
        if kind is AffineBinaryOpKind.Mod:
            return lin.mod(left, divisor, self.ranges)
        rounded = left + lin.constant(divisor - 1) if kind is AffineBinaryOpKind.CeilDiv else left
        return lin.floordiv(rounded, divisor, self.ranges)

    def truth(self, value: SSAValue) -> Truth | None:
        """Return the condition of a value of type i1; None if it is not affine or has more than MOST_ALTERNATIVES
        alternatives. Values of i1 are affine if they are constants, comparisons of affine integers (unsigned ones of
        integers that are not negative), or and, or, xor of such values."""
        op = value.owner
        match op:
            case arith.ConstantOp(value=IntegerAttr() as literal):
                return ((),) if literal.value.data else ()
            case CmpiOp():
                return self._comparison(op)
            case arith.AndIOp() | arith.OrIOp() | arith.XOrIOp():
                left, right = self.truth(op.lhs), self.truth(op.rhs)
                return None if left is None or right is None else self._combined(op, left, right)
        return None

    def _combined(self, op: Operation, left: Truth, right: Truth) -> Truth | None:
        if isinstance(op, arith.AndIOp):
            return self._both(left, right)
        no_left, no_right = self.negated(left), self.negated(right)
        if no_left is None or no_right is None:
            return None
        only_right = self._both(no_left, right)
        rest = left if isinstance(op, arith.OrIOp) else self._both(left, no_right)
        return None if only_right is None or rest is None else self._simplified((*rest, *only_right))

    def _comparison(self, op: CmpiOp) -> Truth | None:
        left, right = self.form(op.lhs), self.form(op.rhs)
        if left is None or right is None:
            return None
        predicate = op.predicate_name
        if predicate.startswith("u"):
            if not (self._is_natural(left) and self._is_natural(right)):
                return None
            predicate = f"s{predicate[1:]}"
        return self._simplified(_COMPARED[predicate](left - right))

    def negated(self, truth: Truth) -> Truth | None:
        """Return the condition that none of the alternatives holds; None if it has more than MOST_ALTERNATIVES
        alternatives. `i >= 1 and j >= 2` becomes `i <= 0`, or `i >= 1 and j <= 1`."""
        remaining: Truth | None = ((),)
        for conjunction in truth:
            failures: list[tuple[Condition, ...]] = []
            for n, condition in enumerate(conjunction):
                failures += [(*conjunction[:n], failure) for failure in _failures(condition)]
            remaining = None if remaining is None else self._both(remaining, tuple(failures))
        return remaining

    def _both(self, left: Truth, right: Truth) -> Truth | None:
        return self._simplified(tuple((*a, *b) for a, b in product(left, right)))

    def _simplified(self, truth: Truth) -> Truth | None:
        """Drop conditions that always hold or are repeated, and alternatives that never hold; None if more than
        MOST_ALTERNATIVES remain."""
        possible = [c for c in truth if not any(condition.never(self.ranges) for condition in c)]
        simple = [tuple(dict.fromkeys(c for c in one if not c.always(self.ranges))) for one in possible]
        return tuple(simple) if len(simple) <= MOST_ALTERNATIVES else None


def _failures(condition: Condition) -> list[Condition]:
    """Return conditions of which exactly one is true wherever a condition fails: f < 0 for f >= 0; f < 0 and f > 0 for
    f = 0."""
    below = _above(condition.form.scaled(-1))
    return [below, _above(condition.form)] if condition.equal else [below]
