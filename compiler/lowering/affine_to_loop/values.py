"""The body of a block: the scalar operations, back to loads, constants and loop variables, that give a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from xdsl.dialects import affine, arith, memref, scf
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, IntegerAttr, IntegerType, VectorType
from xdsl.ir import Attribute, Operation, Region, SSAValue

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.dialects.upstream.arith import SelectOp, kind_of
from compiler.lowering.affine_to_loop.forms import Truth, ValueForms
from compiler.lowering.affine_to_loop.memory import IfLike, index_of, name_of
from compiler.program import body
from compiler.program.body import Scalar
from compiler.program.tree import Access, Loop
from compiler.support.errors import LoweringError

_DIVISIONS = (arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp, arith.FloorDivSIOp, arith.CeilDivSIOp)


class BlockBody:
    """The reads and the scalar expression of a block under construction; axis n is bound to loop n of `loops`. `op` is
    the op of the block. `name` returns the name of the buffer of a memref that an op uses; `stored` maps each scalar
    value that is in memory to its element, at an index over loops."""

    def __init__(
        self,
        op: Operation,
        forms: ValueForms,
        loops: Sequence[Loop],
        name: Callable[[SSAValue, Operation], str],
        stored: Mapping[SSAValue, Access],
    ) -> None:
        self._op = op
        self._forms = forms
        self._axes = {loop.number: lin.variable(n) for n, loop in enumerate(loops)}
        self._ranges = lin.box([loop.extent for loop in loops])
        self._name = name
        self._stored = stored
        self._cache: dict[tuple[SSAValue, tuple[Condition, ...]], Scalar] = {}
        self.reads: list[Access] = []
        self.types: list[Attribute] = []

    def over_axes(self, index: Sequence[Linear]) -> tuple[Linear, ...]:
        """Return forms over loops as forms over the axes that are bound to these loops."""
        return tuple(lin.substitute(form, self._axes, self._ranges) for form in index)

    def value(self, value: SSAValue, where: tuple[Condition, ...] = ()) -> Scalar:
        """Return the expression of a value; it reads memory only where the conditions, over loops, hold. Raises
        LoweringError for an op that is no scalar operation, a load or a conditional, for an index that is not affine,
        and for a value that a loop carries but `stored` lacks."""
        key = value, where
        if key not in self._cache:
            self._cache[key] = self._value(value, where)
        return self._cache[key]

    def _value(self, value: SSAValue, where: tuple[Condition, ...]) -> Scalar:
        if value in self._stored:
            access = self._stored[value]
            return self.read(access.buffer, access.index, value.type, where)
        if isinstance(value.type, IndexType):
            form = self._forms.form(value)
            if form is not None:
                return body.from_linear(self.over_axes([form])[0])
        op = value.owner
        if not isinstance(op, Operation):
            raise LoweringError(f"{name_of(value)} is carried by a loop, and is no reduction").at(self._op)
        match op:
            case affine.LoadOp() | memref.LoadOp():
                return self.read(self._name(op.memref, op), index_of(op, self._forms), value.type, where)
            case affine.IfOp() | scf.IfOp():
                return self._conditional(op, _position(op, value), where)
            case affine.ApplyOp() | affine.MinOp():
                raise LoweringError(f"'{op.name}' is not affine in the loops").at(op)
        return self._operation(op, value, where)

    def _operation(self, op: Operation, value: SSAValue, where: tuple[Condition, ...]) -> Scalar:
        types = [result.type for result in op.results]
        if op.regions or op.name.split(".")[0] not in ("arith", "math"):
            raise LoweringError(f"'{op.name}' has no form in a block").at(op)
        if any(isinstance(type, VectorType) or not is_scalar(type) for type in types):
            raise LoweringError(f"'{op.name}' of {types[0]} is no scalar operation").at(op)
        operands = [self.value(operand, where) for operand in op.operands]
        return body.apply(kind_of(op), operands, op.properties | op.attributes, types, _position(op, value))

    def read(self, buffer: str, index: Sequence[Linear], type: Attribute, where: tuple[Condition, ...] = ()) -> Scalar:
        """Return the expression of an element of a buffer, at an index over loops, where the conditions hold; elsewhere
        0."""
        access = Access(buffer, self.over_axes(index))
        if where:
            conditions = tuple(c.substitute(self._axes, self._ranges) for c in where)
            access = replace(access, where=conditions, otherwise=zero(type))
        if access not in self.reads:
            self.reads.append(access)
            self.types.append(type)
        return body.read(self.reads.index(access), type)

    def _conditional(self, op: IfLike, result: int, where: tuple[Condition, ...]) -> Scalar:
        """Return the expression of result number `result` of a conditional: a select. Under an affine condition a
        branch reads memory only where it runs, but the else branch everywhere if the negation has several alternatives;
        under a condition on data both branches read. Raises LoweringError at an integer division whose divisor is no
        positive constant."""
        _check_speculable(op)
        then, otherwise = (_yielded(region, result) for region in op.regions)
        truth = condition_of(op, self._forms)
        if truth is None:
            assert isinstance(op, scf.IfOp)
            operands = [self.value(value, where) for value in (op.cond, then, otherwise)]
            return body.apply(SelectOp, operands, {}, [then.type])
        if truth == ((),):
            return self.value(then, where)
        negated = self._forms.negated(truth)
        outside = negated[0] if negated is not None and len(negated) == 1 else ()
        value = self.value(otherwise, (*where, *outside))
        for conjunction in truth:
            tests = [c.substitute(self._axes, self._ranges) for c in conjunction]
            value = body.select(tests, self.value(then, (*where, *conjunction)), value, then.type)
        return value


def _position(op: Operation, value: SSAValue) -> int:
    return next(n for n, result in enumerate(op.results) if result is value)


def _yielded(region: Region, result: int) -> SSAValue:
    last = region.block.last_op
    assert last is not None
    return last.operands[result]


def _check_speculable(op: IfLike) -> None:
    """Raise LoweringError at an integer division in a branch whose divisor is no positive constant: a select runs both
    branches."""
    for inner in op.walk():
        if isinstance(inner, _DIVISIONS):
            divisor = inner.rhs.owner
            literal = divisor.value if isinstance(divisor, arith.ConstantOp) else None
            if not isinstance(literal, IntegerAttr) or literal.value.data < 1:
                sentence = f"'{inner.name}' under a condition could divide by zero where the condition fails"
                raise LoweringError(sentence).at(inner)


def condition_of(op: IfLike, forms: ValueForms) -> Truth | None:
    """The condition of a conditional, over loops; None if it is not affine or has more than MOST_ALTERNATIVES
    alternatives."""
    if isinstance(op, affine.IfOp):
        return forms.contains(op.condition.data, op.args)
    return forms.truth(op.cond)


def is_scalar(type: Attribute) -> bool:
    """Whether a type is a float, an integer of any width or index."""
    return isinstance(type, AnyFloat | IntegerType | IndexType)


def zero(type: Attribute) -> FloatAttr | IntegerAttr:
    """The zero of a type of numbers."""
    if isinstance(type, AnyFloat):
        return FloatAttr(0.0, type)
    assert isinstance(type, IntegerType | IndexType)
    return IntegerAttr(0, type)
