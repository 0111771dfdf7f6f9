"""memref and vector in LLVM IR."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import memref, vector
from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, VectorType
from xdsl.ir import Operation, SSAValue

from compiler.errors import LoweringError
from compiler.lowering.low_to_llvm.function import SLOT_ALIGNMENT, Emit, FunctionEmitter, Place
from compiler.lowering.low_to_llvm.types import (
    buffer_bytes,
    fast_flags,
    is_truth,
    literal,
    llvm_type,
    memory_type,
    suffix,
)

_DYNAMIC = -(1 << 63)


def _load(f: FunctionEmitter, op: Operation, buffer: SSAValue, indices: list[SSAValue]) -> None:
    result = op.results[0]
    place = f.place(buffer, indices)
    loaded = f"load {memory_type(result.type)}, ptr {place.pointer}, align {place.alignment}"
    if is_truth(result.type):
        loaded = f"trunc {memory_type(result.type)} {f.temporary(loaded)} to {llvm_type(result.type)}"
    f.set(result, loaded)


def _store(f: FunctionEmitter, value: SSAValue, buffer: SSAValue, indices: list[SSAValue]) -> None:
    place = f.place(buffer, indices)
    name = f.use(value)
    if is_truth(value.type):
        name = f.temporary(f"zext {f.typed(value)} to {memory_type(value.type)}")
    f.line(f"store {memory_type(value.type)} {name}, ptr {place.pointer}, align {place.alignment}")


def _memref_load(f: FunctionEmitter, op: Operation) -> None:
    assert isinstance(op, memref.LoadOp)
    _load(f, op, op.memref, list(op.indices))


def _vector_load(f: FunctionEmitter, op: Operation) -> None:
    assert isinstance(op, vector.LoadOp)
    _load(f, op, op.base, list(op.indices))


def _memref_store(f: FunctionEmitter, op: Operation) -> None:
    assert isinstance(op, memref.StoreOp)
    _store(f, op.value, op.memref, list(op.indices))


def _vector_store(f: FunctionEmitter, op: Operation) -> None:
    assert isinstance(op, vector.StoreOp)
    _store(f, op.vector, op.base, list(op.indices))


def _alloc(f: FunctionEmitter, op: Operation) -> None:
    assert isinstance(op, memref.AllocOp)
    if op.memref not in f.names:
        raise LoweringError("a memref.alloc inside a loop has no place in the workspace (run plan-buffers first)")


def _alloca(f: FunctionEmitter, op: Operation) -> None:
    assert isinstance(op, memref.AllocaOp)
    name = f.names[op.memref] = f.fresh("stack")
    f.alignments[op.memref] = SLOT_ALIGNMENT
    f.allocas.append(f"  {name} = alloca [{buffer_bytes(op.memref.type)} x i8], align {SLOT_ALIGNMENT}")


def _view(f: FunctionEmitter, op: Operation) -> None:
    assert isinstance(op, memref.ViewOp)
    shift = f.forms.of(op.byte_shift)
    if not shift.is_constant or shift.constant or op.sizes:
        raise LoweringError("a memref.view starts at byte 0 of its buffer and is static here")
    f.names[op.result] = f.use(op.source)
    f.alignments[op.result] = f.alignments[op.source]


def _copy(f: FunctionEmitter, op: Operation) -> None:
    assert isinstance(op, memref.CopyOp)
    f.declare("void", "llvm.memcpy.p0.p0.i64", ["ptr", "ptr", "i64", "i1"])
    source, target = f.use(op.source), f.use(op.destination)
    size = buffer_bytes(op.source.type)
    f.line(f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)")


def _nothing(f: FunctionEmitter, op: Operation) -> None:
    """The workspace outlives the call: nothing is freed."""


def _masked_load(f: FunctionEmitter, op: Operation) -> None:
    assert isinstance(op, vector.MaskedLoadOp)
    type = llvm_type(op.result.type)
    if is_truth(op.result.type):
        raise LoweringError("masked loads of truth values have no form here")
    place = f.place(op.base, list(op.indices))
    name = f"llvm.masked.load.{suffix(op.result.type)}.p0"
    f.declare(type, name, ["ptr", llvm_type(op.mask.type), type])
    f.set(
        op.result,
        f"call {type} @{name}({_aligned(place)}, {f.typed(op.mask)}, {f.typed(op.pass_thru)})",
    )


def _masked_store(f: FunctionEmitter, op: Operation) -> None:
    assert isinstance(op, vector.MaskedStoreOp)
    value = op.value_to_store
    if is_truth(value.type):
        raise LoweringError("masked stores of truth values have no form here")
    place = f.place(op.base, list(op.indices))
    name = f"llvm.masked.store.{suffix(value.type)}.p0"
    f.declare("void", name, [llvm_type(value.type), "ptr", llvm_type(op.mask.type)])
    f.line(f"call void @{name}({f.typed(value)}, {_aligned(place)}, {f.typed(op.mask)})")


def _aligned(place: Place) -> str:
    return f"ptr align {place.alignment} {place.pointer}"


def _broadcast(f: FunctionEmitter, op: Operation) -> None:
    assert isinstance(op, vector.BroadcastOp)
    if isinstance(op.source.type, VectorType):
        raise LoweringError("vector.broadcast takes a scalar here")
    type = llvm_type(op.vector.type)
    lanes = op.vector.type.get_shape()[0]
    first = f.temporary(f"insertelement {type} poison, {f.typed(op.source)}, i64 0")
    f.set(op.vector, f"shufflevector {type} {first}, {type} poison, <{lanes} x i32> zeroinitializer")


def _position(f: FunctionEmitter, op: vector.ExtractOp | vector.InsertOp) -> str:
    positions = op.static_position.get_values()
    if len(positions) != 1:
        raise LoweringError(f"'{op.name}' takes one position here")
    return f.use(op.dynamic_position[0]) if positions[0] == _DYNAMIC else str(positions[0])


def _extract(f: FunctionEmitter, op: Operation) -> None:
    assert isinstance(op, vector.ExtractOp)
    f.set(op.result, f"extractelement {f.typed(op.vector)}, i64 {_position(f, op)}")


def _insert(f: FunctionEmitter, op: Operation) -> None:
    assert isinstance(op, vector.InsertOp)
    f.set(op.result, f"insertelement {f.typed(op.dest)}, {f.typed(op.source)}, i64 {_position(f, op)}")


def _create_mask(f: FunctionEmitter, op: Operation) -> None:
    assert isinstance(op, vector.CreateMaskOp)
    mask = op.mask_vector.type
    assert isinstance(mask, VectorType)
    lanes = mask.get_shape()[0]
    type = f"<{lanes} x i64>"
    numbers = f"<{', '.join(f'i64 {n}' for n in range(lanes))}>"
    first = f.temporary(f"insertelement {type} poison, {f.typed(op.mask_dim_sizes[0])}, i64 0")
    splat = f.temporary(f"shufflevector {type} {first}, {type} poison, <{lanes} x i32> zeroinitializer")
    f.set(op.mask_vector, f"icmp slt {type} {numbers}, {splat}")


def _fma(f: FunctionEmitter, op: Operation) -> None:
    f.set(op.results[0], f.call(op.results[0].type, f"llvm.fma.{suffix(op.results[0].type)}", list(op.operands)))


def _shuffle(f: FunctionEmitter, op: Operation) -> None:
    assert isinstance(op, vector.ShuffleOp)
    assert isinstance(op.mask, DenseArrayBase)
    picks = ", ".join(f"i32 {'poison' if n < 0 else n}" for n in op.mask.get_values())
    count = len(op.mask.get_values())
    f.set(op.result, f"shufflevector {f.typed(op.v1)}, {f.typed(op.v2)}, <{count} x i32> <{picks}>")


def _bitcast(f: FunctionEmitter, op: Operation) -> None:
    f.set(op.results[0], f"bitcast {f.typed(op.operands[0])} to {llvm_type(op.results[0].type)}")


_FLOAT_STARTS = {"add": -0.0, "mul": 1.0}
_REDUCES = {
    "maximumf": "fmaximum",
    "minimumf": "fminimum",
    "maxnumf": "fmax",
    "minnumf": "fmin",
    "maxsi": "smax",
    "minsi": "smin",
    "maxui": "umax",
    "minui": "umin",
}


def _reduction(f: FunctionEmitter, op: Operation) -> None:
    assert isinstance(op, vector.ReductionOp)
    kind = op.kind.data.value
    element: Any = op.dest.type
    scalar, ordered = llvm_type(element), kind in _FLOAT_STARTS and not llvm_type(element).startswith("i")
    name = _REDUCES.get(kind, f"f{kind}" if ordered else kind)
    full = f"llvm.vector.reduce.{name}.{suffix(op.vector.type)}"
    flags = "" if scalar.startswith("i") else fast_flags(op)
    if op.acc is not None and not ordered:
        raise LoweringError(f"vector.reduction <{kind}> takes no accumulator here")
    if not ordered:
        f.set(op.dest, f.call(element, full, [op.vector], flags))
        return
    f.declare(scalar, full, [scalar, llvm_type(op.vector.type)])
    start = literal(FloatAttr(_FLOAT_STARTS[kind], element)) if op.acc is None else f.use(op.acc)
    f.set(op.dest, f"call {flags}{scalar} @{full}({scalar} {start}, {f.typed(op.vector)})")


MEMORY: dict[str, Emit] = {
    "memref.load": _memref_load,
    "memref.store": _memref_store,
    "memref.alloc": _alloc,
    "memref.alloca": _alloca,
    "memref.dealloc": _nothing,
    "memref.view": _view,
    "memref.copy": _copy,
    "vector.load": _vector_load,
    "vector.store": _vector_store,
    "vector.maskedload": _masked_load,
    "vector.maskedstore": _masked_store,
    "vector.broadcast": _broadcast,
    "vector.extract": _extract,
    "vector.insert": _insert,
    "vector.create_mask": _create_mask,
    "vector.fma": _fma,
    "vector.shuffle": _shuffle,
    "vector.bitcast": _bitcast,
    "vector.reduction": _reduction,
}
