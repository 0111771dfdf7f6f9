"""expand-math: exp, log, tanh, erf, sin and similar functions as polynomials, in arith and math.fma.

values.py          operators that build ops on floats and their bits
exponential.py     exp, exp2, expm1        logarithm.py      log, log2, log10, log1p
hyperbolic.py      tanh                    error_function.py erf, erfc
trigonometric.py   sin, cos                large_angles.py   f32 angles of any size
remainder.py       arith.remf

Bounds are in docs/math.md; the coefficients come from tools/minimax.sollya.

`python -m benchmarks.price maths`, times with calls of the C library over these, in vectors of 512 bits on Zen 4: of
f32 exp 11, log 6, tanh 47, erf 38, sin 3, cos 3, sigmoid 9, gelu 27, softmax 5; of f64 2 to 16.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import math
from xdsl.dialects.builtin import ModuleOp, VectorType
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from compiler.dialects.functions import functions
from compiler.dialects.levels import require
from compiler.dialects.upstream.arith import RemFOp
from compiler.dialects.upstream.casts import element_of
from compiler.dialects.upstream.math import LIBRARY, ErfcOp
from compiler.dialects.upstream.walk import ops_in
from compiler.passes.expand_math import exponential, logarithm, trigonometric
from compiler.passes.expand_math.error_function import erf, erfc
from compiler.passes.expand_math.hyperbolic import tanh
from compiler.passes.expand_math.remainder import fmod
from compiler.passes.expand_math.values import FORMATS, Constants, Format, Real, Site, library_call
from compiler.support.errors import LoweringError
from compiler.types.policies import policy_named

_LEVEL = ("func", "scf")

EXPANSIONS: dict[type[Operation], Callable[[Real], Real]] = {
    math.ExpOp: exponential.exp,
    math.Exp2Op: exponential.exp2,
    math.ExpM1Op: exponential.expm1,
    math.LogOp: logarithm.log,
    math.Log2Op: logarithm.log2,
    math.Log10Op: logarithm.log10,
    math.Log1pOp: logarithm.log1p,
    math.TanhOp: tanh,
    math.ErfOp: erf,
    ErfcOp: erfc,
}
LIBRARY_EXPANSIONS: dict[type[Operation], Callable[..., Real]] = {
    RemFOp: fmod,
    math.SinOp: trigonometric.sin,
    math.CosOp: trigonometric.cos,
}
"""Expansions that call the C library for large angles and quotients; they take a function that builds the call."""
EXACT_OPS = (RemFOp,)
"""Ops whose expansions are exact, as the library is: they are expanded under strict, too."""


@dataclass(frozen=True)
class ExpandMathPass(ModulePass):
    """Compute exp, exp2, expm1, log, log2, log10, log1p, tanh, erf, erfc, sin and cos of f32 and f64 by polynomials,
    and arith.remf by a division.

        %y = math.exp %x : vector<16xf32>
      ->
        %t = math.fma %x, %log2e, %shift : vector<16xf32>       // n = x / log 2, rounded, in the lowest bits
        ...                                                      // r = x - n log 2, p = its polynomial
        %y = llvm.call_intrinsic "llvm.ldexp.v16f32.v16i32"(%p, %n) : ...

    Scalars and lanes have results of the same bits. `policy` is strict, contract or fast; under strict only remainders
    are expanded, which are exact. Large arguments of sin and cos, and large quotients of remainders, are calls of the C
    library under an scf.if. Ops with the attribute `library` are not expanded. Raises LoweringError for a
    module that is not at the low level. Source: MLIR's math-polynomial-approximation; Muller, "Elementary Functions",
    2016.
    """

    name = "expand-math"
    anchor: ClassVar = "func.func"

    policy: str = "contract"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        policy = policy_named(self.policy, LoweringError)
        require(op, "low", self.name)
        for function in functions(op):
            allowed = (inner for inner in ops_in(function) if policy.polynomials or type(inner) in EXACT_OPS)
            expanded = [inner for inner in allowed if _format(inner) is not None]
            for inner in expanded:
                _check_level(inner)
            pools = [Constants(block) for block in list(function.body.blocks)[:1]]
            for inner in expanded:
                _expand(inner, pools[0])


def _expand(op: Operation, pool: Constants) -> None:
    """Replace an op by its expansion; its constants are inserted into the function's pool."""
    format, type_, block = _format(op), op.results[0].type, op.parent
    assert format is not None and block is not None
    lanes = type_.get_shape()[0] if isinstance(type_, VectorType) else None
    site = Site(pool, format, lanes, lambda new: block.insert_op_before(new, op))
    operands = [Real(site, operand) for operand in op.operands]
    if type(op) in EXPANSIONS:
        expansion = EXPANSIONS[type(op)](*operands)
    else:
        expansion = LIBRARY_EXPANSIONS[type(op)](*operands, lambda inside: library_call(op, inside))
    Rewriter.replace_op(op, [], [expansion.ssa])


def _format(op: Operation) -> Format | None:
    """Return the format in which an op is expanded; None for an op that is not."""
    if (type(op) not in EXPANSIONS and type(op) not in LIBRARY_EXPANSIONS) or LIBRARY in op.attributes:
        return None
    type_ = op.results[0].type
    has_supported_shape = not isinstance(type_, VectorType) or (
        type_.get_num_dims() == 1 and not type_.get_num_scalable_dims()
    )
    return FORMATS.get(element_of(type_)) if has_supported_shape else None


def _check_level(op: Operation) -> None:
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, ModuleOp):
        if parent.name.split(".")[0] not in _LEVEL:
            raise LoweringError(f"'{op.name}' is inside '{parent.name}': expand-math takes the low level")
        parent = parent.parent_op()
