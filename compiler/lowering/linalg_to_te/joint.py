"""Reductions whose outputs depend on each other, such as an argmax: a combiner region of te.

The region is the part of the body that depends on the outputs. An order of the reduction that te leaves open must not
matter: of elements that compare equal, an argmax takes the first index, or the last, which the region states.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from compiler.dialects import te
from compiler.dialects.combination import Combination
from compiler.dialects.combiner import identity
from compiler.dialects.upstream.arith import CmpfOp, CmpiOp, SelectOp, kind_of
from compiler.dialects.upstream.linalg.special import IndexOp
from compiler.lowering.linalg_to_te.bodies import is_scalar
from compiler.lowering.linalg_to_te.combiners import depending
from compiler.lowering.linalg_to_te.values import Literal
from compiler.types.elements import element_bits

_FLIPPED = {"gt": "lt", "ge": "le", "lt": "gt", "le": "ge"}
_NEGATED = {"gt": "le", "ge": "lt", "lt": "ge", "le": "gt"}


@dataclass(frozen=True)
class ArgExtremum:
    """The comparison, `compare`, of an argmax or argmin in a reduction of two outputs.

    value, index: the positions of the outputs with the value and with the index. is_greatest: argmax. takes_last: of
    equal values the last index wins. takes_if_true: the new value is selected if the comparison is true.
    """

    compare: CmpfOp | CmpiOp
    value: int
    index: int
    is_greatest: bool
    takes_last: bool
    takes_if_true: bool


@dataclass(frozen=True)
class JointUpdate:
    """The part of a body that depends on the outputs: the outputs' arguments, the added value for each, the ops in
    order, and the values yielded."""

    outputs: Sequence[SSAValue]
    added: Sequence[SSAValue]
    ops: Sequence[Operation]
    yields: Sequence[SSAValue]

    def copy(
        self,
        accumulators: Sequence[SSAValue],
        values: Sequence[SSAValue],
        add: Callable[[Operation], SSAValue],
        ties: ArgExtremum | None = None,
    ) -> list[SSAValue]:
        """Append copies of the ops, on accumulators and added values, by `add`, without fastmath flags; return the
        updated accumulators. With `ties`, its comparison compares the indices of equal values too."""
        scalars = dict(zip((*self.outputs, *self.added), (*accumulators, *values), strict=True))
        for op in self.ops:
            if ties is not None and op is ties.compare:
                scalars[op.results[0]] = _with_ties(ties, accumulators, values, add)
                continue
            for operand in op.operands:
                if operand not in scalars:
                    assert isinstance(operand.owner, arith.ConstantOp)
                    scalars[operand] = add(arith.ConstantOp(operand.owner.value))
            properties = dict(op.properties)
            if "fastmath" in properties:
                properties["fastmath"] = arith.FastMathFlagsAttr("none")
            operands = [scalars[operand] for operand in op.operands]
            types = [result.type for result in op.results]
            new = kind_of(op).create(operands=operands, result_types=types, properties=properties)
            add(new)
            scalars |= zip(op.results, new.results, strict=True)
        return [scalars[value] for value in self.yields]

    def combination(self, identities: Sequence[Literal], ties: ArgExtremum | None) -> Combination:
        """Return the combiner region of a te.compute with the identities. ties: the argmax or argmin whose comparison
        also compares the indices of equal values; None for other updates, which are copied as they are."""
        block = Block(arg_types=[value.type for value in self.outputs] * 2)
        half = len(self.outputs)

        def add(op: Operation) -> SSAValue:
            block.add_op(op)
            return op.results[0]

        combined = self.copy(block.args[:half], block.args[half:], add, ties)
        block.add_op(te.YieldOp(*combined))
        return Combination((), identities, Region(block))

    def identities(self, ties: ArgExtremum) -> list[Literal]:
        """Return an argmax's or argmin's identities, in the order of the outputs: the least or greatest value, and an
        index that loses all ties."""
        literals: list[Literal] = []
        for number, output in enumerate(self.outputs):
            if number == ties.value:
                literals.append(_extreme(ties.compare, ties.is_greatest, output.type))
                continue
            assert isinstance(output.type, IntegerType | IndexType)
            greatest = (1 << element_bits(output.type) - 1) - 1
            literals.append(IntegerAttr(-1 if ties.takes_last else greatest, output.type))
        return literals


def joint_update(body: Block, outputs: Sequence[SSAValue]) -> JointUpdate | None:
    """Return the joint update of a body's outputs; None unless it is a function of the outputs and one added value of
    each output's type. Scalar ops on added values, such as a test for NaN, are drawn into the update to reach that."""
    tainted = depending(body, outputs)
    last = body.last_op
    assert last is not None
    if any(value not in tainted for value in last.operands):
        return None
    inside = {op for op in body.ops if op is not last and any(result in tainted for result in op.results)}
    while all(map(is_scalar, inside)):
        ops = [op for op in body.ops if op in inside]
        made = {result for op in ops for result in op.results}
        taken = dict.fromkeys(v for op in ops for v in op.operands if v not in made and v not in outputs)
        added = [value for value in taken if not isinstance(value.owner, arith.ConstantOp)]
        matched = _matched(added, outputs)
        extra = [value for value in added if value not in matched]
        if not extra:
            return JointUpdate(outputs, matched, ops, list(last.operands)) if len(matched) == len(outputs) else None
        owner = extra[-1].owner
        if not isinstance(owner, Operation) or owner.parent is not body or not is_scalar(owner):
            return None
        inside.add(owner)
    return None


def _matched(added: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> list[SSAValue]:
    """Return the first unused added value of its type for each output in order; outputs without one are skipped."""
    matched: list[SSAValue] = []
    for output in outputs:
        fitting = [value for value in added if value.type == output.type and value not in matched]
        matched += fitting[:1]
    return matched


def arg_extremum(update: JointUpdate, reduced: Sequence[int]) -> ArgExtremum | None:
    """Return the comparison of an argmax or argmin over one reduced dimension; None for other updates, or several
    dimensions in `reduced`."""
    compares = [op for op in update.ops if isinstance(op, CmpfOp | CmpiOp)]
    if len(update.outputs) != 2 or len(compares) != 1 or len(reduced) != 1:
        return None
    compare, pairs = compares[0], list(zip(update.added, update.outputs, strict=True))
    sides = (compare.lhs, compare.rhs)
    value = next((n for n, pair in enumerate(pairs) if sides in (pair, pair[::-1])), None)
    if value is None or not _is_index(pairs[1 - value][0], reduced[0]):
        return None
    select = next((op for op in update.ops if _chooses(op, compare, pairs[1 - value])), None)
    if select is None:
        return None
    takes_if_true = select.operands[1] is pairs[1 - value][0]
    relation = _relation(compare, pairs[value], takes_if_true)
    if relation is None:
        return None
    return ArgExtremum(compare, value, 1 - value, relation[0] == "g", relation[1] == "e", takes_if_true)


def extremum_identity(update: JointUpdate) -> list[Literal]:
    """Return the identity of an update of one output that selects the greater or the less of output and added value, as
    a list of one; empty for other updates."""
    if len(update.outputs) != 1 or len(update.ops) != 2:
        return []
    (compare, select), pair = update.ops, (update.added[0], update.outputs[0])
    if not isinstance(compare, CmpfOp | CmpiOp) or not _chooses(select, compare, pair):
        return []
    relation = _relation(compare, pair, select.operands[1] is pair[0])
    if relation is None or {compare.lhs, compare.rhs} != {*pair} or pair[0].type == IntegerType(1):
        return []
    return [_extreme(compare, relation[0] == "g", pair[0].type)]


def _extreme(compare: CmpfOp | CmpiOp, is_greatest: bool, type: Attribute) -> Literal:
    """Return the identity of a maximum (`is_greatest`) or minimum of a type, unsigned if the comparison is."""
    if isinstance(compare, CmpiOp) and compare.predicate_name[0] == "u":
        return IntegerAttr(0 if is_greatest else -1, type)  # type: ignore[call-overload, no-any-return]
    return identity("max" if is_greatest else "min", type)


def _relation(compare: CmpfOp | CmpiOp, pair: tuple[SSAValue, SSAValue], takes_if_true: bool) -> str | None:
    """Return the relation of the added value to the output, `pair`, under which it is selected: gt, ge, lt or le; None
    for other comparisons. `takes_if_true`: whether it is selected if the comparison is true."""
    relation = compare.predicate_name[1:]
    if relation not in _FLIPPED:
        return None
    relation = relation if (compare.lhs, compare.rhs) == pair else _FLIPPED[relation]
    return relation if takes_if_true else _NEGATED[relation]


def _chooses(op: Operation, compare: Operation, pair: tuple[SSAValue, SSAValue]) -> bool:
    """Whether an op is a select between the two values of `pair`, in any order, by a comparison."""
    is_select = isinstance(op, SelectOp) and op.cond is compare.results[0]
    return is_select and tuple(op.operands[1:]) in (pair, pair[::-1])


def _is_index(value: SSAValue, dim: int) -> bool:
    """Whether a value is linalg.index of the dimension `dim`, or its index_cast."""
    owner = value.owner
    if isinstance(owner, Operation) and owner.name == "arith.index_cast":
        owner = owner.operands[0].owner
    return isinstance(owner, IndexOp) and owner.dim.value.data == dim


def _with_ties(
    ties: ArgExtremum,
    accumulators: Sequence[SSAValue],
    values: Sequence[SSAValue],
    add: Callable[[Operation], SSAValue],
) -> SSAValue:
    """Append, by `add`, a comparison of values and, if they are equal, indices, as in an argmax; return its truth
    value."""
    held, value = accumulators[ties.value], values[ties.value]
    better = "gt" if ties.is_greatest else "lt"
    if isinstance(value.type, AnyFloat):
        wins, equal = (add(CmpfOp(value, held, f"o{word}")) for word in (better, "eq"))
    else:
        sign = ties.compare.predicate_name[0]
        wins, equal = add(CmpiOp(value, held, f"{sign}{better}")), add(CmpiOp(value, held, "eq"))
    nearer = add(CmpiOp(values[ties.index], accumulators[ties.index], "sgt" if ties.takes_last else "slt"))
    takes = add(arith.OrIOp(wins, add(arith.AndIOp(equal, nearer))))
    return takes if ties.takes_if_true else add(arith.XOrIOp(takes, add(arith.ConstantOp(IntegerAttr(1, 1)))))
