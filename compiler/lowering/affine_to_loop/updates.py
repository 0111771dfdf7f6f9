"""Updates of an element by a combiner: `A[f] = A[f] op expr`, and chains of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Attribute, Operation, SSAValue

from compiler.lowering.affine_to_loop.values import BlockBody, zero
from compiler.program import body
from compiler.program.body import Scalar

_COMBINERS: dict[type[Operation], str] = {
    arith.AddfOp: "add",
    arith.AddiOp: "add",
    arith.MulfOp: "mul",
    arith.MuliOp: "mul",
    arith.MaximumfOp: "max",
    arith.MaxSIOp: "max",
    arith.MinimumfOp: "min",
    arith.MinSIOp: "min",
}
_DIFFERENCES = (arith.SubfOp, arith.SubiOp)


@dataclass(frozen=True)
class Update:
    """A contribution to an element by a combiner: operand `position` of `op`, its negative for a difference, for fma
    the product."""

    combiner: str
    op: Operation
    position: int

    def contribution(self, values: BlockBody) -> Scalar:
        """Return the scalar expression that the update combines into the element. Raises LoweringError for a value that
        no block computes."""
        operands = self.op.operands
        if isinstance(self.op, math.FmaOp):
            factors = [values.value(operand) for operand in operands[:2]]
            return body.apply(arith.MulfOp, factors, {"fastmath": self.op.fastmath}, [operands[0].type])
        value = values.value(operands[self.position])
        return _negative(value, operands[0].type) if isinstance(self.op, _DIFFERENCES) else value


def _negative(value: Scalar, type: Attribute) -> Scalar:
    if isinstance(type, AnyFloat):
        return body.apply(arith.NegfOp, [value], {}, [type])
    return body.apply(arith.SubiOp, [body.constant(zero(type)), value], {}, [type])


@dataclass(frozen=True)
class UpdateChain:
    """The updates, by one combiner, that lead from a start value to another value, the first one first."""

    start: SSAValue
    updates: tuple[Update, ...] = ()


def chain_of(value: SSAValue, is_start: Callable[[SSAValue], bool]) -> UpdateChain | None:
    """Return the chain of updates that leads from a start to a value, all by one combiner; None if there is none: `(a +
    x) - y` from the start `a` has the updates `+ x` and `+ (-y)`."""
    if is_start(value):
        return UpdateChain(value)
    op = value.owner
    for before, update in _steps(op) if isinstance(op, Operation) else []:
        chain = chain_of(before, is_start)
        if chain is not None and all(update.combiner == earlier.combiner for earlier in chain.updates):
            return UpdateChain(chain.start, (*chain.updates, update))
    return None


def _steps(op: Operation) -> list[tuple[SSAValue, Update]]:
    """The operands of an op that the op may update, each with the update; none for an op that is no update."""
    kind = type(op)
    if isinstance(op, math.FmaOp):
        return [(op.c, Update("add", op, 2))]
    if isinstance(op, _DIFFERENCES):
        return [(op.lhs, Update("add", op, 1))]
    if kind in _COMBINERS:
        return [(op.operands[n], Update(_COMBINERS[kind], op, 1 - n)) for n in (0, 1)]
    return []
