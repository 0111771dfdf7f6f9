"""extend-floats: compute arithmetic on bf16, and math on f16, in f32; round each result."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.arith import BitcastOp, ConstantOp
from xdsl.dialects.builtin import BFloat16Type, Float16Type, ModuleOp, VectorType, f32
from xdsl.dialects.vector import ReductionOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter

from compiler.dialects.levels import require
from compiler.dialects.upstream.arith import RemFOp, SelectOp
from compiler.dialects.upstream.casts import CASTS, ExtFOp, TruncFOp, element_of
from compiler.dialects.upstream.walk import ops_in


@dataclass(frozen=True)
class ExtendFloatsPass(ModulePass):
    """Compute bf16 ops of arith, math and vector.reduction, and f16 ops of math and arith.remf, in f32.

        %c = arith.mulf %a, %b : bf16
      ->
        %0 = arith.extf %a : bf16 to f32    %1 = arith.extf %b : bf16 to f32
        %2 = arith.mulf %0, %1 : f32        %c = arith.truncf %2 : f32 to bf16

    The results equal bf16 arithmetic: f32 has more than twice its digits, so that rounding twice is rounding once for +
    - * / and sqrt. Conversions, constants and selections stay. Source: MLIR's arith-emulate-unsupported-floats.
    """

    name = "extend-floats"
    anchor: ClassVar = "func.func"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        require(op, "low", self.name)
        for inner in ops_in(op):
            narrow = _narrow(type(inner))
            if narrow and any(isinstance(element_of(v.type), narrow) for v in (*inner.operands, *inner.results)):
                _extend(PatternRewriter(inner), inner, narrow)


def _extend(rewriter: PatternRewriter, op: Operation, narrow: tuple[type[Attribute], ...]) -> None:
    """Replace an op on floats of the types `narrow` by the op on f32: extend its operands, round its results."""

    def is_narrow(value: SSAValue) -> bool:
        return isinstance(element_of(value.type), narrow)

    operands = [rewriter.insert(ExtFOp(v, _as_f32(v.type))).result if is_narrow(v) else v for v in op.operands]
    extended = type(op).create(
        operands=operands,
        result_types=[_as_f32(narrow_value.type) for narrow_value in op.results],
        properties=dict(op.properties),
        attributes=dict(op.attributes),
    )
    extended_values = rewriter.insert(extended).results
    pairs = zip(op.results, extended_values, strict=True)
    rounded = [rewriter.insert(TruncFOp(v, old.type)).result if is_narrow(old) else v for old, v in pairs]
    rewriter.replace(op, [], rounded)


_EXCLUDED_OPS = {kind.name for kind in (*CASTS, SelectOp, ConstantOp, BitcastOp)}


@lru_cache(maxsize=512)
def _narrow(kind: type[Operation]) -> tuple[type[Attribute], ...]:
    """Return the float types for which ops of a class are computed in f32; empty if the class stays."""
    if kind.name in _EXCLUDED_OPS:
        return ()
    if kind.name.startswith("math.") or kind is RemFOp:
        return (BFloat16Type, Float16Type)
    return (BFloat16Type,) if kind.name.startswith("arith.") or kind is ReductionOp else ()


def _as_f32(type: Attribute) -> Attribute:
    if not isinstance(element_of(type), BFloat16Type | Float16Type):
        return type
    return VectorType(f32, type.get_shape()) if isinstance(type, VectorType) else f32
