"""The bodies of reductions: which combiner a body applies to its output, and what it adds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import arith
from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from compiler.dialects import te
from compiler.dialects.combination import Combination
from compiler.dialects.combiner import identity
from compiler.dialects.upstream.arith import SelectOp, kind_of
from compiler.lowering.linalg_to_te.values import Literal, refusal

NAMED = {
    "arith.addf": "add",
    "arith.addi": "add",
    "arith.mulf": "mul",
    "arith.muli": "mul",
    "arith.maximumf": "max",
    "arith.maxsi": "max",
    "arith.minimumf": "min",
    "arith.minsi": "min",
}
"""Map each combining op to te's combiner."""

_IDENTITIES: dict[str, float] = {
    "arith.maxnumf": -math.inf,
    "arith.minnumf": math.inf,
    "arith.maxui": 0,
    "arith.minui": -1,
    "arith.andi": -1,
    "arith.ori": 0,
    "arith.xori": 0,
    "arith.addi": 0,
    "arith.muli": -1,
    "arith.maxsi": -1,
    "arith.minsi": 0,  # of i1, whose true is -1
}
"""Map each combining op without a combiner in te to its identity; -1 has all bits set."""

_DIFFERENCES = {"arith.subf": arith.AddfOp, "arith.subi": arith.AddiOp}
"""Map each difference to the sum that it is, of the negated value."""


@dataclass(frozen=True)
class OutputUpdate:
    """The update of one output by a reduction's body: `output = kind(output, added)`, without fastmath flags.

    kind, type: of the combining op. negated: the negation of `added` is combined. conditions: values, each with the
    truth value under which the update applies. is_from_nan: maxnumf or minnumf, whose identity is NaN.
    """

    kind: type[Operation]
    type: Attribute
    added: SSAValue
    negated: bool = False
    conditions: tuple[tuple[SSAValue, bool], ...] = ()
    is_from_nan: bool = False

    def starting(self, start: Literal | None) -> OutputUpdate:
        """Return the update for an initial value, None if unknown. The identity of maxnumf and minnumf, which ignore
        NaN, is NaN unless the initial value is their infinity: the result is then NaN if all values are."""
        is_ignoring = self.kind.name in ("arith.maxnumf", "arith.minnumf") and start != self.neutral
        return replace(self, is_from_nan=is_ignoring)

    @property
    def named(self) -> str | None:
        """The name of te's combiner; None if the reduction needs a combiner region."""
        is_truth = self.type == IntegerType(1)
        return None if is_truth else NAMED.get(self.kind.name)

    @property
    def neutral(self) -> Literal:
        """The identity of the combining op; NaN with `is_from_nan`."""
        if self.named is not None:
            return identity(self.named, self.type)
        value = math.nan if self.is_from_nan else _IDENTITIES[self.kind.name]
        if isinstance(self.type, AnyFloat):
            return FloatAttr(float(value), self.type)
        assert isinstance(self.type, IntegerType)
        return IntegerAttr(int(value), self.type)

    def apply(self, lhs: SSAValue, rhs: SSAValue) -> Operation:
        """Return a new op that combines two values; it is in no block."""
        flags = {"fastmath": FastMathFlagsAttr("none")} if isinstance(self.type, AnyFloat) else {}
        return self.kind.create(operands=[lhs, rhs], result_types=[self.type], properties=flags)


def combinings(op: Operation, body: Block, outputs: Sequence[SSAValue]) -> list[OutputUpdate]:
    """Return the update of each output by a body; `outputs` are the body's arguments for the outputs. Raises
    LoweringError at `op` for an output that is not combined once, by a commutative op or a difference, with a value
    that depends on no output."""
    last = body.last_op
    assert last is not None
    tainted = depending(body, outputs)
    return [_combining(op, value, out, tainted) for value, out in zip(last.operands, outputs, strict=True)]


def are_separate(body: Block, outputs: Sequence[SSAValue]) -> bool:
    """Whether no op of a body, except its terminator, depends on two outputs, and each output is combined by one op of
    two operands, perhaps under conditions."""
    last = body.last_op
    assert last is not None
    dependent = [depending(body, [output]) for output in outputs]
    results = [result for op in body.ops for result in op.results]
    return all(sum(result in values for values in dependent) <= 1 for result in results) and all(
        _unconditional(value, output, depending(body, outputs)) is not None
        for value, output in zip(last.operands, outputs, strict=True)
    )


def _combining(op: Operation, yielded: SSAValue, out: SSAValue, tainted: set[SSAValue]) -> OutputUpdate:
    update = _unconditional(yielded, out, tainted)
    if update is None:
        raise refusal(op, "has a body that does not combine its output with a value, once: te reductions do")
    combined, conditions = update
    name, (lhs, rhs) = combined.name, combined.operands
    added = rhs if lhs is out else lhs
    if added in tainted:
        raise refusal(op, "has a body that combines its output with a value that depends on an output")
    if name in _DIFFERENCES and lhs is out:
        return OutputUpdate(_DIFFERENCES[name], yielded.type, added, True, conditions)
    if name not in NAMED and name not in _IDENTITIES:
        raise refusal(op, f"combines its output by '{name}', which is no combiner of te")
    return OutputUpdate(kind_of(combined), yielded.type, added, False, conditions)


def _unconditional(
    yielded: SSAValue, out: SSAValue, tainted: set[SSAValue]
) -> tuple[Operation, tuple[tuple[SSAValue, bool], ...]] | None:
    """Return the binary op that combines an output, and the conditions of the selects around it that otherwise return
    the output, each with the truth value under which the op applies, as in `select %c, (addf %out, %a), %out`; None for
    any other op, and if the output has further uses."""
    conditions: list[tuple[SSAValue, bool]] = []
    while isinstance(owner := yielded.owner, SelectOp) and owner.cond not in tainted and out in (owner.lhs, owner.rhs):
        conditions.append((owner.cond, owner.rhs is out))
        yielded = owner.lhs if owner.rhs is out else owner.rhs
    if not isinstance(owner, Operation) or len(owner.operands) != 2 or out not in owner.operands:
        return None
    return (owner, tuple(conditions)) if len([*out.uses]) == len(conditions) + 1 else None


def depending(body: Block, sources: Sequence[SSAValue]) -> set[SSAValue]:
    """Return the sources and the values of a body that depend on them."""
    tainted = set(sources)
    for op in body.ops:
        if any(operand in tainted for operand in op.operands):
            tainted.update(op.results)
    return tainted


def combination_of(parts: Sequence[OutputUpdate]) -> Combination:
    """Return the combination of a te.compute for its outputs' updates: names if te has all combiners, else a region."""
    names = [part.named for part in parts]
    if all(names):
        return Combination([name for name in names if name])
    block = Block(arg_types=[part.type for part in parts] * 2)
    ops = [part.apply(block.args[n], block.args[n + len(parts)]) for n, part in enumerate(parts)]
    block.add_ops([*ops, te.YieldOp(*(op.results[0] for op in ops))])
    return Combination((), [part.neutral for part in parts], Region(block))
