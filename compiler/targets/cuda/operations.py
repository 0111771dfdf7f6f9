"""Scalar operations as expressions of CUDA C++: infix operators, and calls."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float32Type, Float64Type, IntegerType
from xdsl.ir import Attribute, Operation

from compiler.dialects.vector_arith import CmpfOp, CmpiOp, SelectOp
from compiler.errors import LoweringError
from compiler.targets.cuda.types import spelled

Texts = list[str]

INFIX: Mapping[type[Operation], tuple[str, int]] = {
    arith.AddiOp: ("+", 12),
    arith.SubiOp: ("-", 12),
    arith.MuliOp: ("*", 13),
    arith.DivUIOp: ("/", 13),
    arith.DivSIOp: ("/", 13),
    arith.RemUIOp: ("%", 13),
    arith.RemSIOp: ("%", 13),
    arith.AndIOp: ("&", 8),
    arith.OrIOp: ("|", 6),
    arith.XOrIOp: ("^", 7),
    arith.ShLIOp: ("<<", 11),
    arith.ShRSIOp: (">>", 11),
    arith.AddfOp: ("+", 12),
    arith.SubfOp: ("-", 12),
    arith.MulfOp: ("*", 13),
    arith.DivfOp: ("/", 13),
}
"""Infix operators with their precedence in C, higher binding closer."""

LOGICAL: Mapping[type[Operation], tuple[str, int]] = {
    arith.AndIOp: ("&&", 5),
    arith.OrIOp: ("||", 4),
    arith.XOrIOp: ("!=", 9),
}
"""The same on truth values."""

_CALLS: Mapping[type[Operation], str] = {
    math.AbsFOp: "fabs",
    math.AcosOp: "acos",
    math.AcoshOp: "acosh",
    math.AsinOp: "asin",
    math.AsinhOp: "asinh",
    math.AtanOp: "atan",
    math.Atan2Op: "atan2",
    math.AtanhOp: "atanh",
    math.CbrtOp: "cbrt",
    math.CeilOp: "ceil",
    math.CopySignOp: "copysign",
    math.CosOp: "cos",
    math.CoshOp: "cosh",
    math.ErfOp: "erf",
    math.ExpOp: "exp",
    math.Exp2Op: "exp2",
    math.ExpM1Op: "expm1",
    math.FloorOp: "floor",
    math.FmaOp: "fma",
    math.LogOp: "log",
    math.Log10Op: "log10",
    math.Log1pOp: "log1p",
    math.Log2Op: "log2",
    math.PowFOp: "pow",
    math.RoundOp: "round",
    math.RoundEvenOp: "rint",
    math.RsqrtOp: "rsqrt",
    math.SinOp: "sin",
    math.SinhOp: "sinh",
    math.SqrtOp: "sqrt",
    math.TanOp: "tan",
    math.TanhOp: "tanh",
    math.TruncOp: "trunc",
    arith.MaxnumfOp: "fmax",
    arith.MinnumfOp: "fmin",
}
"""Functions of CUDA's mathematics; f in single precision."""

_COMPARED = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")
_ORDERED = {1: "==", 2: ">", 3: ">=", 4: "<", 5: "<=", 13: "!="}
_ROUNDED: Mapping[type[Operation], str] = {arith.AddfOp: "add", arith.SubfOp: "sub", arith.MulfOp: "mul"}


def call(op: Operation, texts: Texts, closed: Texts, type_: Attribute, used: set[str]) -> str:
    """An op that is no infix operator as an expression of its operands, on scalars of a type; `closed` are those with
    parentheses where an operator binds less closely than a sum. Helpers that it needs are added to `used`. Raises
    LoweringError for what kernels lack."""
    kind = type(op)
    check_signs(op)
    if kind in _CALLS:
        return f"{_CALLS[kind]}{'f' if isinstance(type_, Float32Type) else ''}({', '.join(texts)})"
    if isinstance(op, arith.MaximumfOp | arith.MinimumfOp):
        name = "maximum" if isinstance(op, arith.MaximumfOp) else "minimum"
        used.add(name)
        return f"{name}({', '.join(texts)})"
    if isinstance(op, arith.MinSIOp | arith.MinUIOp):
        return f"min({', '.join(texts)})"
    if isinstance(op, arith.MaxSIOp | arith.MaxUIOp):
        return f"max({', '.join(texts)})"
    if isinstance(op, CmpiOp | arith.CmpiOp):
        if op.predicate.value.data == 5 and texts[0].isdigit():
            return f"({closed[1]} < {int(texts[0]) + 1})"
        return f"({closed[0]} {_COMPARED[op.predicate.value.data]} {closed[1]})"
    if isinstance(op, CmpfOp | arith.CmpfOp):
        return _compared(op.predicate.value.data, closed)
    if isinstance(op, SelectOp | arith.SelectOp):
        return f"({closed[0]} ? {closed[1]} : {closed[2]})"
    if isinstance(op, arith.NegfOp):
        return f"(-({texts[0]}))"
    if op.name in ("arith.index_cast", "arith.extsi", "arith.trunci", "arith.sitofp", "arith.fptosi", "arith.extf"):
        return f"({spelled(type_)})({texts[0]})"
    if op.name == "arith.truncf":
        return f"({spelled(type_)})({texts[0]})"
    if op.name == "arith.extui":
        return f"({spelled(type_)})({texts[0]})"
    raise LoweringError(f"kernels have no '{op.name}'")


def _compared(predicate: int, texts: Texts) -> str:
    a, b = texts
    if predicate in _ORDERED:
        return f"({a} {_ORDERED[predicate]} {b})"
    if predicate == 7:
        return f"({a} == {a} && {b} == {b})"
    if predicate == 14:
        return f"({a} != {a} || {b} != {b})"
    negated = {9: "<=", 10: "<", 11: ">=", 12: ">"}
    if predicate == 8:
        return f"(!({a} < {b} || {a} > {b}))"
    if predicate in negated:
        return f"(!({a} {negated[predicate]} {b}))"
    if predicate == 6:
        return f"({a} < {b} || {a} > {b})"
    return "true" if predicate == 15 else "false"


def rounded(op: Operation, texts: Texts, type_: Attribute) -> str | None:
    """A sum or product that must not be contracted, as the intrinsic that never is; None where it may be."""
    name = _ROUNDED.get(type(op))
    flags = getattr(op, "fastmath", None)
    if name is None or not isinstance(type_, Float32Type | Float64Type):
        return None
    if flags is not None and any(str(flag) in ("contract", "fast") or "contract" in str(flag) for flag in flags.data):
        return None
    return f"__{'f' if isinstance(type_, Float32Type) else 'd'}{name}_rn({', '.join(texts)})"


def check_signs(op: Operation) -> None:
    """Raise LoweringError for what would differ on integers without a sign, which kernels do not tell apart yet."""
    operand = op.operands[0].type if op.operands else None
    if not isinstance(operand, IntegerType) or operand.width.data == 1:
        return
    unsigned = isinstance(op, CmpiOp | arith.CmpiOp) and op.predicate.value.data >= 6
    if unsigned or op.name in _UNSIGNED:
        raise LoweringError(f"kernels have no '{op.name}' on integers without a sign")


_UNSIGNED = ("arith.divui", "arith.remui", "arith.minui", "arith.maxui", "arith.extui", "arith.shrui", "arith.uitofp")
