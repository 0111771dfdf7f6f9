"""Counts of instructions: of an op without effects, and of a loop's body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from xdsl.dialects import arith, math, memref, scf, vector
from xdsl.dialects.builtin import Float64Type, IndexType, IntegerAttr, IntegerType, VectorType
from xdsl.ir import Block, Operation, SSAValue

from compiler.dialects.upstream.casts import element_of
from compiler.targets.timing.code import DOUBLE, FLOAT, INTEGER, SPECIAL
from compiler.targets.timing.values import LinearValue
from compiler.types.scopes import SCOPES, space_of

UNKNOWN_TRIPS = 16
"""The iterations of a loop whose bounds are computed from data."""
COSTS: Mapping[type[Operation], tuple[int, int]] = {
    arith.DivfOp: (8, 1),
    arith.MaximumfOp: (2, 0),
    arith.MinimumfOp: (2, 0),
    math.ExpOp: (4, 1),
    math.Exp2Op: (2, 1),
    math.LogOp: (12, 1),
    math.SqrtOp: (5, 1),
    math.RsqrtOp: (2, 1),
    math.TanhOp: (12, 2),
    math.ErfOp: (22, 1),
    math.SinOp: (20, 1),
    math.CosOp: (20, 1),
    math.PowFOp: (40, 2),
}
"""Instructions of float32, and of the special unit, for an op; (1, 0) for arithmetic, (16, 1) for other functions."""
DIVISION = 4
"""Integer instructions of a division by a constant that is no power of two; DIVISION squared by anything else."""


def op_count(body: Block) -> int:
    """Return the number of ops that one execution of a body runs, all iterations of its loops included, without
    constants, integer sums and products, fused products, and accesses to local buffers. A branch counts as two ops and
    those of both regions; a loop without constant bounds as UNKNOWN_TRIPS iterations."""
    total = 0
    for op in body.ops:
        if isinstance(op, scf.ForOp):
            bounds = [constant_of(v) for v in (op.lb, op.ub, op.step)]
            trips = len(range(*bounds)) if None not in bounds else UNKNOWN_TRIPS  # type: ignore[arg-type]
            total += trips * op_count(op.body.block)
        elif isinstance(op, scf.IfOp):
            total += 2 + sum(op_count(region.block) for region in op.regions if region.blocks)
        elif isinstance(op, memref.LoadOp | memref.StoreOp):
            buffer = op.operands[isinstance(op, memref.StoreOp)]
            total += space_of(buffer.type) != SCOPES["local"]  # type: ignore[arg-type]
        elif not isinstance(op, arith.ConstantOp | arith.AddiOp | arith.MuliOp | scf.YieldOp | memref.AllocaOp):
            total += 0 if is_fused(op) else 1
    return total


def constant_of(value: SSAValue) -> int | None:
    """Return the integer of an SSA value that is an integer constant; None for any other value."""
    owner = value.owner
    is_number = isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr)
    return owner.value.value.data if is_number else None  # type: ignore[union-attr]


def elements(value: SSAValue) -> int:
    """Return the number of elements of a value: 1 for a scalar."""
    return prod(value.type.get_shape()) if isinstance(value.type, VectorType) else 1


def is_fused(op: Operation) -> bool:
    """Return whether an op is a product of floats with one use, in a sum or difference: an fma computes both."""
    if not isinstance(op, arith.MulfOp):
        return False
    uses = list(op.result.uses)
    return len(uses) == 1 and isinstance(uses[0].operation, arith.AddfOp | arith.SubfOp)


def kinds(op: Operation, operands: Sequence[LinearValue]) -> list[str]:
    """Return the kind of each instruction of an op without effects, for one element; none for vector ops on floats
    other than fma, such as a broadcast. `operands` are the values of its operands: an integer division by a constant is
    cheaper."""
    element = element_of(op.results[0].type)
    if isinstance(element, IndexType | IntegerType) and not op.name.endswith("cmpf"):
        if "div" in op.name or "rem" in op.name:
            divisor = operands[1]
            if not divisor.is_constant:
                return [INTEGER] * DIVISION**2
            power = divisor.constant > 0 and divisor.constant & (divisor.constant - 1) == 0
            return [INTEGER] * (1 if power else DIVISION)
        return [INTEGER]
    if op.name.startswith("vector.") and not isinstance(op, vector.FMAOp):
        return []
    default = (16, 1) if op.name.startswith("math.") and not isinstance(op, math.AbsFOp | math.FmaOp) else (1, 0)
    plain, special = COSTS.get(type(op), default)
    return [DOUBLE if isinstance(element, Float64Type) else FLOAT] * plain + [SPECIAL] * special
