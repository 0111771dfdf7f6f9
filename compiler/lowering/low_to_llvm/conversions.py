"""Conversions between floats, and between integers and floats: each rounds once, to nearest, ties to even.

LLVM has no instruction for some of them on most processors: it would call a function that a process may lack, round
twice, or flush denormals to zero (vcvtneps2bf16). Those are expanded here.
"""

from __future__ import annotations

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float64Type

from compiler.dialects.upstream import casts
from compiler.dialects.upstream.casts import element_of
from compiler.lowering.low_to_llvm.arithmetic import cast
from compiler.lowering.low_to_llvm.function import Emit, FunctionEmitter, Handlers
from compiler.lowering.low_to_llvm.types import is_truth, llvm_type, shaped, width


def _extend(f: FunctionEmitter, op: casts.ExtFOp) -> None:
    if not isinstance(element_of(op.input.type), BFloat16Type):
        cast("fpext")(f, op)
        return
    value = _to_float(f, op)
    if isinstance(element_of(op.result.type), Float64Type):
        value = f.temporary(f"fpext {shaped(op.input.type, 'float')} {value} to {llvm_type(op.result.type)}")
    f.names[op.result] = value


def _to_float(f: FunctionEmitter, op: casts.CastOp) -> str:
    integer, real = (shaped(op.input.type, t) for t in ("i32", "float"))
    extended = f.temporary(f"zext {f.typed(op.input)} to {integer}")
    high = f.temporary(f"shl {integer} {extended}, {_splat(op, 16)}")
    return f.temporary(f"bitcast {integer} {high} to {real}")


def _to_integer(instruction: str) -> Emit:
    def emit(f: FunctionEmitter, op: casts.CastOp) -> None:
        if not isinstance(element_of(op.input.type), BFloat16Type):
            cast(instruction)(f, op)
            return
        value = _to_float(f, op)
        f.set(op.result, f"{instruction} {shaped(op.input.type, 'float')} {value} to {llvm_type(op.result.type)}")

    return emit


def _truncate(f: FunctionEmitter, op: casts.TruncFOp) -> None:
    source, target = element_of(op.input.type), element_of(op.result.type)
    narrow = isinstance(target, Float16Type | BFloat16Type)
    value = f.use(op.input)
    if narrow and isinstance(source, Float64Type):
        value = _to_odd(f, op, value)
    if isinstance(target, BFloat16Type):
        f.names[op.result] = _to_bfloat(f, op, value)
    elif narrow and isinstance(source, Float64Type):
        f.set(op.result, f"fptrunc {shaped(op.input.type, 'float')} {value} to {llvm_type(op.result.type)}")
    else:
        cast("fptrunc")(f, op)


def _splat(op: casts.CastOp, value: int) -> str:
    type = shaped(op.input.type, "i32")
    return f"splat (i32 {value})" if type != "i32" else str(value)


def _to_odd(f: FunctionEmitter, op: casts.CastOp, value: str) -> str:
    """Round the double `value` to a float, to odd: an inexact result has the last bit 1, so that a second rounding, to
    f16 or bf16, is correct. A finite value beyond the floats becomes the largest float of its sign; NaN and infinities
    stay. `op` gives the number of lanes; return the register."""
    double, real, bits, truth = (shaped(op.input.type, t) for t in ("double", "float", "i32", "i1"))
    nearest = f.temporary(f"fptrunc {double} {value} to {real}")
    back = f.temporary(f"fpext {real} {nearest} to {double}")
    is_inexact = f.temporary(f"fcmp one {double} {back}, {value}")
    f.declare(double, f"llvm.fabs.{_suffix(double)}", [double])
    magnitudes = [f.temporary(f"call {double} @llvm.fabs.{_suffix(double)}({double} {v})") for v in (back, value)]
    is_rounded_up = f.temporary(f"fcmp ogt {double} {magnitudes[0]}, {magnitudes[1]}")
    pattern = f.temporary(f"bitcast {real} {nearest} to {bits}")
    step = f.temporary(f"zext {truth} {is_rounded_up} to {bits}")
    towards_zero = f.temporary(f"sub {bits} {pattern}, {step}")
    odd = f.temporary(f"or {bits} {towards_zero}, {_splat(op, 1)}")
    rounded = f.temporary(f"select {truth} {is_inexact}, {bits} {odd}, {bits} {pattern}")
    return f.temporary(f"bitcast {bits} {rounded} to {real}")


def _suffix(double: str) -> str:
    return "f64" if double == "double" else f"v{double[1:].split()[0]}f64"


def _to_bfloat(f: FunctionEmitter, op: casts.CastOp, value: str) -> str:
    """Emit the rounding of a float `value` to bf16, to nearest even, by integer arithmetic; return the register. NaN
    stays NaN."""
    real, integer, truth = (shaped(op.input.type, t) for t in ("float", "i32", "i1"))
    bits = f.temporary(f"bitcast {real} {value} to {integer}")
    high = f.temporary(f"lshr {integer} {bits}, {_splat(op, 16)}")
    last = f.temporary(f"and {integer} {high}, {_splat(op, 1)}")
    bias = f.temporary(f"add {integer} {last}, {_splat(op, 0x7FFF)}")
    sum = f.temporary(f"add {integer} {bits}, {bias}")
    rounded = f.temporary(f"lshr {integer} {sum}, {_splat(op, 16)}")
    quiet = f.temporary(f"or {integer} {high}, {_splat(op, 0x40)}")
    is_nan = f.temporary(f"fcmp uno {real} {value}, {value}")
    selected = f.temporary(f"select {truth} {is_nan}, {integer} {quiet}, {integer} {rounded}")
    return f.temporary(f"trunc {integer} {selected} to {llvm_type(op.result.type)}")


def _from_integer(signed: bool) -> Emit:
    instruction = "sitofp" if signed else "uitofp"

    def emit(f: FunctionEmitter, op: casts.SIToFPOp | casts.UIToFPOp) -> None:
        if not isinstance(element_of(op.result.type), BFloat16Type):
            cast(instruction)(f, op)
            return
        bits = width(op.input.type)
        real, double = (shaped(op.input.type, t) for t in ("float", "double"))
        value = f.use(op.input)
        if bits < 32 or is_truth(op.input.type):
            value = f.temporary(f"{instruction} {f.typed(op.input)} to {real}")
        else:
            if bits == 64:
                value = _with_sticky_bit(f, op, signed)
            wide = f.temporary(f"{instruction} {llvm_type(op.input.type)} {value} to {double}")
            value = _to_odd(f, op, wide)
        f.names[op.result] = _to_bfloat(f, op, value)

    return emit


def _with_sticky_bit(f: FunctionEmitter, op: casts.CastOp, signed: bool) -> str:
    """Emit the replacement of the low 11 bits of an i64 of magnitude above 2^53 by a sticky bit, bit 11, and return the
    register, so that the result is an exact double and rounds to bf16 as the integer does. `signed`: whether the i64
    is."""
    type, truth = llvm_type(op.input.type), shaped(op.input.type, "i1")

    def number(value: int) -> str:
        return f"splat (i64 {value})" if type != "i64" else str(value)

    value = f.use(op.input)
    low = f.temporary(f"and {type} {value}, {number(2047)}")
    has_low_bits = f.temporary(f"icmp ne {type} {low}, {number(0)}")
    bit = f.temporary(f"select {truth} {has_low_bits}, {type} {number(2048)}, {type} {number(0)}")
    high = f.temporary(f"and {type} {value}, {number(-2048)}")
    sticky = f.temporary(f"or {type} {high}, {bit}")
    shifted = f.temporary(f"add {type} {value}, {number(1 << 53 if signed else 0)}")
    is_exact = f.temporary(f"icmp ule {type} {shifted}, {number(1 << 54 if signed else 1 << 53)}")
    return f.temporary(f"select {truth} {is_exact}, {type} {value}, {type} {sticky}")


CONVERSIONS: Handlers = {
    casts.ExtFOp: _extend,
    casts.TruncFOp: _truncate,
    casts.FPToSIOp: _to_integer("fptosi"),
    casts.FPToUIOp: _to_integer("fptoui"),
    casts.SIToFPOp: _from_integer(signed=True),
    casts.UIToFPOp: _from_integer(signed=False),
}
