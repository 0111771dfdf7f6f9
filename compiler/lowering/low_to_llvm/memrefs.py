"""memref in LLVM IR."""

from __future__ import annotations

from math import gcd

from xdsl.dialects import memref
from xdsl.dialects.builtin import IntegerAttr, MemRefType, StringAttr, UnrealizedConversionCastOp, i8
from xdsl.ir import Operation, SSAValue

from compiler.affine.linear import Linear
from compiler.dialects.dense import DenseAttr
from compiler.dialects.functions import SLOT_ALIGNMENT
from compiler.dialects.upstream.memref import GlobalOp, PrefetchOp
from compiler.lowering.low_to_llvm.address import divisors, element_address, offset
from compiler.lowering.low_to_llvm.function import FunctionEmitter, Handlers
from compiler.lowering.low_to_llvm.signature import is_view, quoted, symbol
from compiler.lowering.low_to_llvm.types import buffer_bytes, is_truth, memory_type
from compiler.support.errors import LoweringError

STACK_BYTES = 1 << 20
"""The most bytes of a function's stack buffers."""


def load(f: FunctionEmitter, op: Operation) -> None:
    """Emit the load of the op's result, a scalar or a vector; its operands are a buffer and indices."""
    buffer, *indices = op.operands
    type = memory_type(op.results[0].type)
    address = element_address(f, op, buffer, indices)
    f.set(op.results[0], f"load {type}, ptr {address.pointer}, align {address.alignment}")
    from_memory(f, op.results[0])


def store(f: FunctionEmitter, op: Operation) -> None:
    """Emit the store of a scalar or a vector; the op's operands are a value, a buffer and indices."""
    value, buffer, *indices = op.operands
    address = element_address(f, op, buffer, indices)
    f.line(f"store {memory_type(value.type)} {to_memory(f, value)}, ptr {address.pointer}, align {address.alignment}")


def from_memory(f: FunctionEmitter, value: SSAValue) -> None:
    """Emit the conversion of a loaded value to its register form: an i1 is loaded as a byte, and any byte but 0 is
    true. Other values stay as they are."""
    if is_truth(value.type):
        f.set(value, f"icmp ne {memory_type(value.type)} {f.use(value)}, zeroinitializer")


def to_memory(f: FunctionEmitter, value: SSAValue) -> str:
    """Return a value in its memory form, as an operand without its type: i1 as a byte, 0 or 1, any other value
    unchanged."""
    if is_truth(value.type):
        return f.temporary(f"zext {f.typed(value)} to {memory_type(value.type)}")
    return f.use(value)


def _alloc(f: FunctionEmitter, op: memref.AllocOp) -> None:
    if op.memref not in f.names:
        raise LoweringError("a memref.alloc inside a loop or branch has no place in the workspace (see plan-buffers)")


def _alloca(f: FunctionEmitter, op: memref.AllocaOp) -> None:
    size, alignment_attribute = buffer_bytes(op.memref.type), op.alignment
    f.alloca_bytes += size
    if f.alloca_bytes > STACK_BYTES:
        raise LoweringError(f"the memref.allocas of a function take more than {STACK_BYTES} bytes of the stack")
    alignment = max(
        SLOT_ALIGNMENT, alignment_attribute.value.data if isinstance(alignment_attribute, IntegerAttr) else 1
    )
    f.names[op.memref] = f"%{f.fresh('stack')}"
    f.alignments[op.memref] = alignment
    f.allocas.append(f"  {f.use(op.memref)} = alloca [{size} x i8], align {alignment}")


def _dealloc(f: FunctionEmitter, op: memref.DeallocOp) -> None:
    """Emit nothing: the workspace outlives the call."""


def _view(f: FunctionEmitter, op: memref.ViewOp) -> None:
    buffer_bytes(op.result.type)
    shift = f.forms.of(op.byte_shift)
    pointer = f.use(op.source)
    if shift.terms:
        pointer = f.temporary(f"getelementptr nusw i8, ptr {pointer}, i64 {offset(f, Linear(shift.terms, 0))}")
    if shift.constant:
        pointer = f.temporary(f"getelementptr nusw i8, ptr {pointer}, i64 {shift.constant}")
    f.names[op.result] = pointer
    f.alignments[op.result] = gcd(f.alignments[op.source], shift.constant, *divisors(f, shift))


def _bytes(f: FunctionEmitter, op: UnrealizedConversionCastOp) -> None:
    """Let the result of a cast of a buffer to its bytes, of which views are made, be the buffer's pointer, of the same
    alignment; emit nothing. Raises LoweringError for any other cast."""
    first = op.operands[0].type if is_view(op) else None
    if not isinstance(first, MemRefType) or op.results[0].type != MemRefType(i8, [buffer_bytes(first)]):
        raise LoweringError("a builtin.unrealized_conversion_cast other than of a buffer to its bytes").at(op)
    source, target = op.operands[0], op.results[0]
    f.names[target], f.alignments[target] = f.use(source), f.alignments[source]


def _copy(f: FunctionEmitter, op: memref.CopyOp) -> None:
    f.declare("void", "llvm.memcpy.p0.p0.i64", ["ptr", "ptr", "i64", "i1"])
    target, source = (f"ptr align {f.alignments[buffer]} {f.use(buffer)}" for buffer in (op.destination, op.source))
    f.line(f"call void @llvm.memcpy.p0.p0.i64({target}, {source}, i64 {buffer_bytes(op.source.type)}, i1 false)")


def _prefetch(f: FunctionEmitter, op: PrefetchOp) -> None:
    """Emit a prefetch to data caches: buffers contain no code."""
    address = element_address(f, op, op.memref, op.indices)
    f.declare("void", "llvm.prefetch.p0", ["ptr", "i32", "i32", "i32"])
    write, locality = int(bool(op.isWrite.value.data)), op.localityHint.value.data
    f.line(f"call void @llvm.prefetch.p0(ptr {address.pointer}, i32 {write}, i32 {locality}, i32 1)")


def _get_global(f: FunctionEmitter, op: memref.GetGlobalOp) -> None:
    f.names[op.memref] = quoted(symbol(op.name_.string_value()))
    f.alignments[op.memref] = SLOT_ALIGNMENT


def emit_global(op: GlobalOp) -> str:
    """Return the text of a private constant with a value. Raises LoweringError for any other global buffer, and for an
    alignment above SLOT_ALIGNMENT."""
    name, value = op.sym_name.data, op.initial_value
    if op.constant is None or not isinstance(value, DenseAttr) or op.sym_visibility != StringAttr("private"):
        raise LoweringError(f"the memref.global @{name} is no private constant with a value: it has no form in LLVM IR")
    if op.alignment is not None and op.alignment.value.data > SLOT_ALIGNMENT:
        raise LoweringError(f"the memref.global @{name} is aligned to at most {SLOT_ALIGNMENT} bytes")
    text = "".join(map(_BYTES.__getitem__, value.data.data))
    size = buffer_bytes(op.type)
    return f'{quoted(symbol(name))} = private unnamed_addr constant [{size} x i8] c"{text}", align {SLOT_ALIGNMENT}\n'


_BYTES = [f"\\{byte:02X}" for byte in range(256)]
"""The escape of each byte."""


MEMORY: Handlers = {
    memref.LoadOp: load,
    memref.StoreOp: store,
    memref.AllocOp: _alloc,
    memref.AllocaOp: _alloca,
    memref.DeallocOp: _dealloc,
    memref.ViewOp: _view,
    UnrealizedConversionCastOp: _bytes,
    memref.CopyOp: _copy,
    memref.GetGlobalOp: _get_global,
    PrefetchOp: _prefetch,
}
