"""arith in LLVM IR, on scalars and vectors alike."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue

from compiler.dialects.upstream import arith as vector_arith
from compiler.dialects.upstream import casts
from compiler.lowering.low_to_llvm.function import Emit, FunctionEmitter, Handlers
from compiler.lowering.low_to_llvm.literals import fast_flags, number, wrap_flags
from compiler.lowering.low_to_llvm.types import llvm_type, shaped, suffix, width
from compiler.types.machines import Machine


def _binary(instruction: str, flags: Callable[[Operation], str] = lambda op: "") -> Emit:
    def emit(f: FunctionEmitter, op: Operation) -> None:
        lhs, rhs = op.operands
        f.set(op.results[0], f"{instruction} {flags(op)}{f.typed(lhs)}, {f.use(rhs)}")

    return emit


def intrinsic(name: str, tail: str = "") -> Emit:
    """Return a handler that calls `llvm.NAME` on the operands and, if `tail` is "true" or "false", an immediate i1."""

    def emit(f: FunctionEmitter, op: Operation) -> None:
        type = op.results[0].type
        full = f"llvm.{name}.{suffix(type)}"
        f.declare(llvm_type(type), full, [llvm_type(v.type) for v in op.operands] + ["i1"] * bool(tail))
        arguments = ", ".join([*map(f.typed, op.operands), *([f"i1 {tail}"] if tail else [])])
        f.set(op.results[0], f"call {fast_flags(op)}{llvm_type(type)} @{full}({arguments})")

    return emit


def cast(instruction: str) -> Emit:
    """Return a handler that converts the operand to the result's type by an instruction such as `sext`."""

    def emit(f: FunctionEmitter, op: Operation) -> None:
        f.set(op.results[0], f"{instruction} {f.typed(op.operands[0])} to {llvm_type(op.results[0].type)}")

    return emit


def _index_cast(f: FunctionEmitter, op: casts.IndexCastOp) -> None:
    before, after = width(op.input.type), width(op.result.type)
    if before == after:
        f.names[op.result] = f.use(op.input)
    else:
        cast("sext" if before < after else "trunc")(f, op)


def _cmpi(f: FunctionEmitter, op: arith.CmpiOp | vector_arith.CmpiOp) -> None:
    predicate = vector_arith.CMPI[op.predicate.value.data]
    f.set(op.result, f"icmp {predicate} {f.typed(op.lhs)}, {f.use(op.rhs)}")


def _cmpf(f: FunctionEmitter, op: arith.CmpfOp | vector_arith.CmpfOp) -> None:
    predicate = vector_arith.CMPF[op.predicate.value.data]
    f.set(op.result, f"fcmp {fast_flags(op)}{predicate} {f.typed(op.lhs)}, {f.use(op.rhs)}")


def _select(f: FunctionEmitter, op: Operation) -> None:
    f.set(op.results[0], f"select {', '.join(map(f.typed, op.operands))}")


def selections(machine: Machine) -> Handlers:
    """Return the handlers of selections for a machine with an instruction for a minimum that returns NaN if an operand
    is NaN: the selection `x > limit ? limit : x` of a constant limit becomes one, and likewise a maximum; others stay
    selections. Empty for any other machine."""
    if not machine.has_minimum_of_nan:
        return {}

    def emit(f: FunctionEmitter, op: arith.SelectOp | vector_arith.SelectOp) -> None:
        name = _clamp(op)
        if name is None:
            _select(f, op)
            return
        type, full = llvm_type(op.result.type), f"llvm.{name}.{suffix(op.result.type)}"
        f.declare(type, full, [type, type])
        f.set(op.result, f"call {type} @{full}({f.typed(op.rhs)}, {f.typed(op.lhs)})")

    return {arith.SelectOp: emit, vector_arith.SelectOp: emit}


def _clamp(op: arith.SelectOp | vector_arith.SelectOp) -> str | None:
    """Return `minimum` for a selection of the lesser of a value and a constant limit, `maximum` for that of the
    greater; None for any other selection, and for a limit of NaN or of zero, which has two signs."""
    test, limit = op.cond.owner, op.lhs.owner
    if isinstance(limit, vector.BroadcastOp):
        limit = limit.source.owner
    if not isinstance(test, arith.CmpfOp | vector_arith.CmpfOp) or not isinstance(limit, arith.ConstantOp):
        return None
    match limit.value:
        case FloatAttr():
            limits = [limit.value.value.data]
        case DenseIntOrFPElementsAttr():
            limits = list(map(float, limit.value.get_values()))
        case _:
            return None
    if (test.lhs, test.rhs) != (op.rhs, op.lhs) or not all(x and x == x for x in limits):
        return None
    return {"ogt": "minimum", "olt": "maximum"}.get(vector_arith.CMPF[test.predicate.value.data])


def _negate(f: FunctionEmitter, op: arith.NegfOp) -> None:
    f.set(op.result, f"fneg {fast_flags(op)}{f.typed(op.operand)}")


def _division(instruction: str) -> Emit:
    def emit(f: FunctionEmitter, op: Operation) -> None:
        lhs, rhs = op.operands
        divisor = _divisor(f, lhs, rhs, signed=instruction.startswith("s"))
        quotient = f.temporary(f"{instruction} {f.typed(lhs)}, {divisor}")
        f.names[op.results[0]] = _unless_zero(f, rhs, quotient)

    return emit


def _rounded(instruction: str, up: bool) -> Emit:
    """Return a handler of a quotient by `instruction`, sdiv or udiv, rounded down (with `up`, up): one less (more) if
    there is a remainder and, for sdiv, the signs differ (agree). A division by zero gives 0, and the least integer
    divided by -1 by sdiv gives itself."""

    def emit(f: FunctionEmitter, op: Operation) -> None:
        lhs, rhs = op.operands
        signed, type, truth = instruction == "sdiv", llvm_type(lhs.type), shaped(lhs.type, "i1")
        divisor, zero, unit = _divisor(f, lhs, rhs, signed), number(0, lhs.type), number(1, lhs.type)
        quotient = f.temporary(f"{instruction} {f.typed(lhs)}, {divisor}")
        remainder = f.temporary(f"{'srem' if signed else 'urem'} {f.typed(lhs)}, {divisor}")
        adjust = f.temporary(f"icmp ne {type} {remainder}, {zero}")
        if signed:
            signs = f.temporary(f"xor {f.typed(lhs)}, {divisor}")
            needs_adjustment = f.temporary(f"icmp {'sge' if up else 'slt'} {type} {signs}, {zero}")
            adjust = f.temporary(f"and {truth} {adjust}, {needs_adjustment}")
        adjusted_quotient = f.temporary(f"{'add' if up else 'sub'} {type} {quotient}, {unit}")
        rounded = f.temporary(f"select {truth} {adjust}, {type} {adjusted_quotient}, {type} {quotient}")
        f.names[op.results[0]] = _unless_zero(f, rhs, rounded)

    return emit


def _divisor(f: FunctionEmitter, lhs: SSAValue, rhs: SSAValue, signed: bool) -> str:
    """Emit the divisor `rhs` in each lane, or 1 where the division would trap: by zero, and, if `signed`, the minimum
    integer by -1; return the operand. A constant that never traps is `rhs` itself."""
    if _never_traps(rhs):
        return f.use(rhs)
    type, truth, unit = llvm_type(rhs.type), shaped(rhs.type, "i1"), number(1, rhs.type)
    traps = _equals(f, rhs, 0)
    if signed:
        is_minimum = _equals(f, lhs, -(1 << width(lhs.type) - 1))
        overflows = f.temporary(f"and {truth} {is_minimum}, {_equals(f, rhs, -1)}")
        traps = f.temporary(f"or {truth} {traps}, {overflows}")
    return f.temporary(f"select {truth} {traps}, {type} {unit}, {f.typed(rhs)}")


def _unless_zero(f: FunctionEmitter, rhs: SSAValue, value: str) -> str:
    if _never_traps(rhs):
        return value
    type, zero = llvm_type(rhs.type), number(0, rhs.type)
    return f.temporary(f"select {shaped(rhs.type, 'i1')} {_equals(f, rhs, 0)}, {type} {zero}, {type} {value}")


def _equals(f: FunctionEmitter, value: SSAValue, number_: int) -> str:
    return f.temporary(f"icmp eq {f.typed(value)}, {number(number_, value.type)}")


def _never_traps(divisor: SSAValue) -> bool:
    attribute: Attribute | None = divisor.owner.value if isinstance(divisor.owner, arith.ConstantOp) else None
    match attribute:
        case IntegerAttr():
            return attribute.value.data not in (0, -1) and width(attribute.type) > 1
        case DenseIntOrFPElementsAttr():
            return not {0, -1} & set(attribute.get_values())
    return False


ARITHMETIC: Handlers = {
    arith.AddfOp: _binary("fadd", fast_flags),
    arith.SubfOp: _binary("fsub", fast_flags),
    arith.MulfOp: _binary("fmul", fast_flags),
    arith.DivfOp: _binary("fdiv", fast_flags),
    arith.NegfOp: _negate,
    arith.AddiOp: _binary("add", wrap_flags),
    arith.SubiOp: _binary("sub", wrap_flags),
    arith.MuliOp: _binary("mul", wrap_flags),
    arith.DivSIOp: _division("sdiv"),
    arith.DivUIOp: _division("udiv"),
    arith.RemSIOp: _division("srem"),
    arith.RemUIOp: _division("urem"),
    arith.FloorDivSIOp: _rounded("sdiv", up=False),
    arith.CeilDivSIOp: _rounded("sdiv", up=True),
    arith.CeilDivUIOp: _rounded("udiv", up=True),
    arith.AndIOp: _binary("and"),
    arith.OrIOp: _binary("or"),
    arith.XOrIOp: _binary("xor"),
    arith.ShLIOp: _binary("shl"),
    arith.ShRSIOp: _binary("ashr"),
    arith.ShRUIOp: _binary("lshr"),
    arith.MaxSIOp: intrinsic("smax"),
    arith.MinSIOp: intrinsic("smin"),
    arith.MaxUIOp: intrinsic("umax"),
    arith.MinUIOp: intrinsic("umin"),
    arith.MaximumfOp: intrinsic("maximum"),
    arith.MinimumfOp: intrinsic("minimum"),
    arith.MaxnumfOp: intrinsic("maxnum"),
    arith.MinnumfOp: intrinsic("minnum"),
    casts.ExtSIOp: cast("sext"),
    casts.ExtUIOp: cast("zext"),
    casts.TruncIOp: cast("trunc"),
    arith.BitcastOp: cast("bitcast"),
    casts.IndexCastOp: _index_cast,
    arith.CmpiOp: _cmpi,
    arith.CmpfOp: _cmpf,
    arith.SelectOp: _select,
    vector_arith.CmpiOp: _cmpi,
    vector_arith.CmpfOp: _cmpf,
    vector_arith.SelectOp: _select,
}
