"""intr in LLVM IR."""

from __future__ import annotations

from compiler.dialects.intr import LdexpOp
from compiler.lowering.low_to_llvm.function import FunctionEmitter, Handlers
from compiler.lowering.low_to_llvm.literals import number
from compiler.lowering.low_to_llvm.types import llvm_type, suffix, width
from compiler.types.machines import Machine

_DIGITS = {32: (23, 127), 64: (52, 1023)}
"""The fraction digits and the exponent's bias of a float, by its bits."""


def intrinsics(machine: Machine) -> Handlers:
    """Return the handlers of the intr dialect for a machine: AVX-512 scales by powers of two in one instruction."""
    return {LdexpOp: _ldexp if machine.vector_bits == 512 else _ldexp_by_bits}


def _ldexp(f: FunctionEmitter, op: LdexpOp) -> None:
    type = op.result.type
    f.set(op.result, f.call(type, f"llvm.ldexp.{suffix(type)}.{suffix(op.n.type)}", op.operands))


def _ldexp_by_bits(f: FunctionEmitter, op: LdexpOp) -> None:
    """Emit x 2^(n/2) 2^(n - n/2) with powers built from bits, or x 2^n if the op has `normal`: llvm.ldexp would be a
    call for each lane."""
    real, integer = op.result.type, op.n.type
    digits, bias = _DIGITS[width(integer)]
    powers, scaled = [f.use(op.n)], f.use(op.x)
    if op.normal is None:
        half = f.temporary(f"ashr {f.typed(op.n)}, {number(1, integer)}")
        powers = [half, f.temporary(f"sub {f.typed(op.n)}, {half}")]
    for n in powers:
        exponent = f.temporary(f"add {llvm_type(integer)} {n}, {number(bias, integer)}")
        bits = f.temporary(f"shl {llvm_type(integer)} {exponent}, {number(digits, integer)}")
        power = f.temporary(f"bitcast {llvm_type(integer)} {bits} to {llvm_type(real)}")
        scaled = f.temporary(f"fmul {llvm_type(real)} {scaled}, {power}")
    f.names[op.result] = scaled
