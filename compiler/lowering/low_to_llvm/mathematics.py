"""math in LLVM IR: intrinsics, which LLVM lowers to instructions or calls of libm, else calls of libm."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import math
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Operation, SSAValue

from compiler.dialects.mathematics import ELEMENTARY, Elementary
from compiler.dialects.upstream.casts import element_of
from compiler.dialects.upstream.math import LIBRARY
from compiler.lowering.low_to_llvm.arithmetic import intrinsic
from compiler.lowering.low_to_llvm.function import PURE, Emit, FunctionEmitter, Handlers
from compiler.lowering.low_to_llvm.literals import fast_flags, number
from compiler.lowering.low_to_llvm.types import is_truth, lanes, llvm_type, shaped, suffix
from compiler.support.errors import LoweringError

_HALF = "half"


def _by_lane(f: FunctionEmitter, op: Operation, scalar_call: Callable[[Sequence[str]], str]) -> None:
    type = op.results[0].type
    if not isinstance(type, VectorType):
        f.names[op.results[0]] = scalar_call([f.use(v) for v in op.operands])
        return
    vector = "poison"
    for lane in range(lanes(type)):
        value = scalar_call([f.temporary(f"extractelement {f.typed(v)}, i64 {lane}") for v in op.operands])
        inner = llvm_type(type.element_type)
        vector = f.temporary(f"insertelement {llvm_type(type)} {vector}, {inner} {value}, i64 {lane}")
    f.names[op.results[0]] = vector


def _library(name: str, attributes: str = "") -> Emit:
    """Return a handler that calls the C library's function `name` for double, or its `f` variant for float and, in
    float, for half, lane by lane; `attributes` follow the call."""

    def emit(f: FunctionEmitter, op: Operation) -> None:
        element = llvm_type(element_of(op.results[0].type))
        type = "float" if element == _HALF else element
        full = name + ("f" if type == "float" else "")
        f.declare(type, full, [type] * len(op.operands), PURE)

        def emit_scalar(values: Sequence[str]) -> str:
            if element != type:
                values = [f.temporary(f"fpext {element} {value} to {type}") for value in values]
            returned = f.temporary(
                f"call {type} @{full}({', '.join(f'{type} {value}' for value in values)}){attributes}"
            )
            return returned if element == type else f.temporary(f"fptrunc {type} {returned} to {element}")

        _by_lane(f, op, emit_scalar)

    return emit


def _elementary(row: Elementary) -> Emit:
    """Return a handler that emits the intrinsic, or the library's function if there is none or the op has the attribute
    `library`: LLVM would vectorize a loop with an intrinsic in a branch by taking the branch for all lanes; a
    `nobuiltin` call stays in the lanes that need it."""
    default = _library(row.c) if row.llvm is None else intrinsic(row.llvm)
    library_call = _library(row.c, " nobuiltin")
    return lambda f, op: (library_call if LIBRARY in op.attributes else default)(f, op)


def _reciprocal_root(f: FunctionEmitter, op: math.RsqrtOp) -> None:
    type = op.result.type
    root = f.temporary(f.call(type, f"llvm.sqrt.{suffix(type)}", [op.operand], fast_flags(op)))
    f.set(op.result, f"fdiv {fast_flags(op)}{llvm_type(type)} {number(1, type)}, {root}")


def _float_power(f: FunctionEmitter, op: math.FPowIOp) -> None:
    """Emit a power with an integer exponent as llvm.pow in double, in which each i32 exponent is exact; the result is
    rounded to the op's type."""
    type, double_type = op.result.type, shaped(op.result.type, "double")
    name = "llvm.pow." + (f"v{lanes(type)}f64" if isinstance(type, VectorType) else "f64")
    f.declare(double_type, name, [double_type, double_type])
    base = _widened(f, op.lhs, double_type)
    exponent = f.temporary(f"sitofp {f.typed(op.rhs)} to {double_type}")
    power = f.temporary(f"call {fast_flags(op)}{double_type} @{name}({double_type} {base}, {double_type} {exponent})")
    is_double = llvm_type(type) == double_type
    f.names[op.result] = power if is_double else f.temporary(f"fptrunc {double_type} {power} to {llvm_type(type)}")


def _widened(f: FunctionEmitter, value: SSAValue, wide: str) -> str:
    return f.use(value) if llvm_type(value.type) == wide else f.temporary(f"fpext {f.typed(value)} to {wide}")


def _integer_power(f: FunctionEmitter, op: math.IPowIOp) -> None:
    """Emit a call for each lane of a function that squares repeatedly; x to a negative exponent n is the power of 1/x
    truncated to an integer: 0 unless x is 1 or -1. Raises LoweringError for truth values."""
    inner = llvm_type(element_of(op.result.type))
    if is_truth(op.result.type):
        raise LoweringError("'math.ipowi' has no form in LLVM IR for truth values")
    f.externals.add(_POWER.replace("TYPE", inner))
    _by_lane(f, op, lambda v: f.temporary(f"call {inner} @ipow.{inner}({inner} {v[0]}, {inner} {v[1]})"))


_POWER = """\
define internal TYPE @ipow.TYPE(TYPE %x, TYPE %n) #0 {
  %negative = icmp slt TYPE %n, 0
  %positive = sub TYPE 0, %n
  %count = select i1 %negative, TYPE %positive, TYPE %n
  %unit = add TYPE %x, 1
  %small = icmp ule TYPE %unit, 2
  %own = select i1 %small, TYPE %x, TYPE 0
  %base = select i1 %negative, TYPE %own, TYPE %x
  br label %head
head:
  %left = phi TYPE [ %count, %0 ], [ %rest, %body ]
  %square = phi TYPE [ %base, %0 ], [ %squared, %body ]
  %power = phi TYPE [ 1, %0 ], [ %next, %body ]
  %more = icmp ne TYPE %left, 0
  br i1 %more, label %body, label %done
body:
  %odd = trunc TYPE %left to i1
  %times = mul TYPE %power, %square
  %next = select i1 %odd, TYPE %times, TYPE %power
  %squared = mul TYPE %square, %square
  %rest = lshr TYPE %left, 1
  br label %head
done:
  ret TYPE %power
}"""

MATHEMATICS: Handlers = {
    **{row.op: _elementary(row) for row in ELEMENTARY.values()},
    math.AbsIOp: intrinsic("abs", "false"),
    math.CountLeadingZerosOp: intrinsic("ctlz", "false"),
    math.CountTrailingZerosOp: intrinsic("cttz", "false"),
    math.CtPopOp: intrinsic("ctpop"),
    math.FPowIOp: _float_power,
    math.IPowIOp: _integer_power,
    math.RsqrtOp: _reciprocal_root,
}
