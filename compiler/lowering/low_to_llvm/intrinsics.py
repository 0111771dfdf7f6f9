"""Calls of intrinsics in LLVM IR."""

from __future__ import annotations

from compiler.dialects.upstream.llvm import CallIntrinsicOp, is_ldexp
from compiler.lowering.low_to_llvm.function import FunctionEmitter, Handlers
from compiler.lowering.low_to_llvm.literals import number
from compiler.lowering.low_to_llvm.types import llvm_type, width
from compiler.support.errors import LoweringError
from compiler.types.machines import Machine

_DIGITS = {32: (23, 127), 64: (52, 1023)}
"""The fraction digits and the exponent's bias of a float, by its bits."""


def intrinsics(machine: Machine) -> Handlers:
    """Return the handler of llvm.ldexp for a machine: one instruction with AVX-512, else multiplications by powers of
    two built from bits. The handler raises LoweringError for any other intrinsic."""
    scale = _ldexp if machine.vector_bits == 512 else _ldexp_by_bits

    def emit(f: FunctionEmitter, op: CallIntrinsicOp) -> None:
        if not is_ldexp(op):
            raise LoweringError(f"the intrinsic '{op.intrin.data}' is not lowered: only llvm.ldexp is").at(op)
        scale(f, op)

    return {CallIntrinsicOp: emit}


def _ldexp(f: FunctionEmitter, op: CallIntrinsicOp) -> None:
    result = op.results[0]
    f.set(result, f.call(result.type, op.intrin.data, op.args))


def _ldexp_by_bits(f: FunctionEmitter, op: CallIntrinsicOp) -> None:
    """Emit x 2^(n/2) 2^(n - n/2) with powers built from bits, or x 2^n if the op has the attribute `normal`: LLVM would
    emit a call for each lane. Exact only if each power is a normal number."""
    x, count = op.args
    real, integer = x.type, count.type
    digits, bias = _DIGITS[width(integer)]
    powers, scaled = [f.use(count)], f.use(x)
    if "normal" not in op.attributes:
        half = f.temporary(f"ashr {f.typed(count)}, {number(1, integer)}")
        powers = [half, f.temporary(f"sub {f.typed(count)}, {half}")]
    for n in powers:
        exponent = f.temporary(f"add {llvm_type(integer)} {n}, {number(bias, integer)}")
        bits = f.temporary(f"shl {llvm_type(integer)} {exponent}, {number(digits, integer)}")
        power = f.temporary(f"bitcast {llvm_type(integer)} {bits} to {llvm_type(real)}")
        scaled = f.temporary(f"fmul {llvm_type(real)} {scaled}, {power}")
    f.names[op.results[0]] = scaled
