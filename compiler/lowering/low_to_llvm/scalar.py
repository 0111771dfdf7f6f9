"""arith and math in LLVM IR, on scalars and vectors alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerType, VectorType
from xdsl.ir import Attribute, Operation

from compiler.dialects.vector_arith import CMPF, CMPI
from compiler.lowering.low_to_llvm.function import Emit, FunctionEmitter
from compiler.lowering.low_to_llvm.types import fast_flags, literal, llvm_type, suffix


def _binary(instruction: str) -> Emit:
    def emit(f: FunctionEmitter, op: Operation) -> None:
        lhs, rhs = op.operands
        wrap = "nsw " if instruction in _WRAPS and isinstance(lhs.type, IndexType) else ""
        f.set(
            op.results[0],
            f"{instruction} {wrap}{fast_flags(op)}{llvm_type(lhs.type)} {f.use(lhs)}, {f.use(rhs)}",
        )

    return emit


_WRAPS = ("add", "sub", "mul")


def _intrinsic(name: str, tail: str = "") -> Emit:
    def emit(f: FunctionEmitter, op: Operation) -> None:
        type = op.results[0].type
        full = f"llvm.{name}.{suffix(type)}"
        types = [llvm_type(v.type) for v in op.operands] + (["i1"] if tail else [])
        f.declare(llvm_type(type), full, types)
        arguments = ", ".join(f.typed(v) for v in op.operands) + tail
        f.set(op.results[0], f"call {fast_flags(op)}{llvm_type(type)} @{full}({arguments})")

    return emit


def _library(name: str) -> Emit:
    """A call of the C library's function, lane by lane on vectors."""

    def emit(f: FunctionEmitter, op: Operation) -> None:
        type = op.results[0].type
        element = type.element_type if isinstance(type, VectorType) else type
        scalar = llvm_type(element)
        full = name + ("f" if scalar == "float" else "")
        f.declare(scalar, full, [scalar] * len(op.operands))
        if not isinstance(type, VectorType):
            f.set(op.results[0], f"call {scalar} @{full}({', '.join(f.typed(v) for v in op.operands)})")
            return
        whole = "poison"
        for lane in range(type.get_shape()[0]):
            picked = [f.temporary(f"extractelement {f.typed(v)}, i64 {lane}") for v in op.operands]
            one = f.temporary(f"call {scalar} @{full}({', '.join(f'{scalar} {p}' for p in picked)})")
            whole = f.temporary(f"insertelement {llvm_type(type)} {whole}, {scalar} {one}, i64 {lane}")
        f.names[op.results[0]] = whole

    return emit


def _cast(instruction: str) -> Emit:
    def emit(f: FunctionEmitter, op: Operation) -> None:
        source, target = op.operands[0], op.results[0]
        f.set(target, f"{instruction} {f.typed(source)} to {llvm_type(target.type)}")

    return emit


def _width(type: Attribute) -> int:
    element = type.element_type if isinstance(type, VectorType) else type
    return element.width.data if isinstance(element, IntegerType) else 64


def _index_cast(f: FunctionEmitter, op: Operation) -> None:
    before, after = _width(op.operands[0].type), _width(op.results[0].type)
    if before == after:
        f.names[op.results[0]] = f.use(op.operands[0])
    else:
        _cast("sext" if before < after else "trunc")(f, op)


def _compare(instruction: str, names: tuple[str, ...]) -> Emit:
    def emit(f: FunctionEmitter, op: Operation) -> None:
        predicate = names[op.properties["predicate"].value.data]  # type: ignore[attr-defined]
        lhs, rhs = op.operands
        f.set(op.results[0], f"{instruction} {predicate} {llvm_type(lhs.type)} {f.use(lhs)}, {f.use(rhs)}")

    return emit


def _select(f: FunctionEmitter, op: Operation) -> None:
    f.set(op.results[0], f"select {', '.join(f.typed(v) for v in op.operands)}")


def _negate(f: FunctionEmitter, op: Operation) -> None:
    f.set(op.results[0], f"fneg {fast_flags(op)}{f.typed(op.operands[0])}")


def _rounded_division(up: bool) -> Emit:
    """The quotient rounded down (or up): one less (more) where the signs differ (agree) and a rest remains."""

    def emit(f: FunctionEmitter, op: Operation) -> None:
        lhs, rhs = op.operands
        type, a, b = llvm_type(lhs.type), f.use(lhs), f.use(rhs)
        zero, one = _filled(lhs.type, 0), _filled(lhs.type, 1)
        quotient = f.temporary(f"sdiv {type} {a}, {b}")
        rest = f.temporary(f"srem {type} {a}, {b}")
        signs = f.temporary(f"xor {type} {a}, {b}")
        truth = type.replace(type.split()[-1].rstrip(">"), "i1") if "x" in type else "i1"
        differ = f.temporary(f"icmp {'sge' if up else 'slt'} {type} {signs}, {zero}")
        inexact = f.temporary(f"icmp ne {type} {rest}, {zero}")
        adjust = f.temporary(f"and {truth} {differ}, {inexact}")
        moved = f.temporary(f"{'add' if up else 'sub'} {type} {quotient}, {one}")
        f.set(op.results[0], f"select {truth} {adjust}, {type} {moved}, {type} {quotient}")

    return emit


def _filled(type: Attribute, value: int) -> str:
    if isinstance(type, VectorType):
        element = llvm_type(type.element_type)
        return f"<{', '.join([f'{element} {value}'] * type.get_shape()[0])}>"
    return str(value)


def _reciprocal_root(f: FunctionEmitter, op: Operation) -> None:
    type = op.results[0].type
    name = f"llvm.sqrt.{suffix(type)}"
    root = f.temporary(f.call(type, name, [op.operands[0]], fast_flags(op)))
    element: Any = type.element_type if isinstance(type, VectorType) else type
    one = literal(FloatAttr(1.0, element))
    if isinstance(type, VectorType):
        one = f"<{', '.join([f'{llvm_type(element)} {one}'] * type.get_shape()[0])}>"
    f.set(op.results[0], f"fdiv {fast_flags(op)}{llvm_type(type)} {one}, {root}")


def _table(names: dict[str, str], make: Callable[[str], Emit]) -> dict[str, Emit]:
    return {op: make(name) for op, name in names.items()}


SCALAR: dict[str, Emit] = {
    **_table(
        {
            "arith.addf": "fadd",
            "arith.subf": "fsub",
            "arith.mulf": "fmul",
            "arith.divf": "fdiv",
            "arith.addi": "add",
            "arith.subi": "sub",
            "arith.muli": "mul",
            "arith.divsi": "sdiv",
            "arith.divui": "udiv",
            "arith.remsi": "srem",
            "arith.remui": "urem",
            "arith.andi": "and",
            "arith.ori": "or",
            "arith.xori": "xor",
            "arith.shli": "shl",
            "arith.shrsi": "ashr",
            "arith.shrui": "lshr",
        },
        _binary,
    ),
    **_table(
        {
            "arith.maxsi": "smax",
            "arith.minsi": "smin",
            "arith.maxui": "umax",
            "arith.minui": "umin",
            "arith.maximumf": "maximum",
            "arith.minimumf": "minimum",
            "arith.maxnumf": "maxnum",
            "arith.minnumf": "minnum",
            "math.exp": "exp",
            "math.exp2": "exp2",
            "math.log": "log",
            "math.log2": "log2",
            "math.log10": "log10",
            "math.sqrt": "sqrt",
            "math.sin": "sin",
            "math.cos": "cos",
            "math.powf": "pow",
            "math.fma": "fma",
            "math.absf": "fabs",
            "math.floor": "floor",
            "math.ceil": "ceil",
            "math.round": "round",
            "math.roundeven": "roundeven",
            "math.trunc": "trunc",
            "math.copysign": "copysign",
        },
        _intrinsic,
    ),
    "math.absi": _intrinsic("abs", ", i1 false"),
    **_table(
        {
            f"math.{name}": name
            for name in (
                "tanh",
                "erf",
                "tan",
                "atan",
                "atan2",
                "log1p",
                "expm1",
                "cbrt",
                "erfc",
                "sinh",
                "cosh",
            )
        },
        _library,
    ),
    **_table(
        {
            "arith.sitofp": "sitofp",
            "arith.uitofp": "uitofp",
            "arith.fptosi": "fptosi",
            "arith.fptoui": "fptoui",
            "arith.extf": "fpext",
            "arith.truncf": "fptrunc",
            "arith.extsi": "sext",
            "arith.extui": "zext",
            "arith.trunci": "trunc",
            "arith.bitcast": "bitcast",
        },
        _cast,
    ),
    "arith.index_cast": _index_cast,
    "arith.cmpi": _compare("icmp", CMPI),
    "arith.cmpf": _compare("fcmp", CMPF),
    "arith.select": _select,
    "arith.negf": _negate,
    "arith.floordivsi": _rounded_division(False),
    "arith.ceildivsi": _rounded_division(True),
    "math.rsqrt": _reciprocal_root,
}
