"""Scalars that lie side by side and are only broadcast, loaded as one vector: for machines that multiply by a lane.

Such a machine has no multiplication by an operand in memory: each scalar takes a register of its own, and a register
tile of 24 accumulators spills. LLVM joins loads of scalars only where lanes are used, not where they are broadcast.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import memref, vector
from xdsl.dialects.builtin import BFloat16Type, MemRefType, UnrealizedConversionCastOp
from xdsl.ir import Operation, SSAValue

from compiler.affine.linear import Atom, Linear
from compiler.dialects.upstream import casts
from compiler.dialects.upstream.vector import ScatterOp
from compiler.lowering.low_to_llvm.address import access_form, form_address
from compiler.lowering.low_to_llvm.function import FunctionEmitter, Handlers, Lane
from compiler.lowering.low_to_llvm.types import byte_size, is_truth, lanes, llvm_type
from compiler.types.machines import Machine

_EXTENSIONS: dict[type[Operation], str] = {casts.ExtFOp: "fpext", casts.ExtSIOp: "sext", casts.ExtUIOp: "zext"}
_READERS = ("arith.", "intr.", "math.", "vector.", "memref.load")
_WRITERS = (memref.StoreOp, vector.StoreOp, vector.MaskedStoreOp, ScatterOp)


@dataclass(frozen=True)
class _ScalarLoad:
    """A load of a scalar from a buffer, at the offset `form` in elements."""

    op: memref.LoadOp
    form: Linear


def lane_loads(machine: Machine, handlers: Handlers) -> Handlers:
    """Return the handlers of loads, extensions and broadcasts for a machine that multiplies by a lane of a vector,
    `handlers` for what stays scalar; none for another machine.

        %a0 = memref.load %A[%k, %c0]          %v = load <4 x float>, ptr %A.k
        ... four loads, broadcast each      -> shufflevector %v, <0, 0, 0, 0> ... each lane in place of a broadcast
    """
    if not machine.multiplies_by_lane:
        return {}

    def load(f: FunctionEmitter, op: memref.LoadOp) -> None:
        if op not in f.scanned:
            _load_vectors(f, op, machine.vector_bits)
        if op.res not in f.lanes:
            handlers[memref.LoadOp](f, op)

    def broadcast(f: FunctionEmitter, op: vector.BroadcastOp) -> None:
        lane = f.lanes.get(op.source)
        if lane is None:
            handlers[vector.BroadcastOp](f, op)
            return
        positions = ", ".join([f"i32 {lane.number}"] * lanes(op.vector.type))
        f.set(
            op.vector,
            f"shufflevector {lane.type} {lane.vector}, {lane.type} poison, <{lanes(op.vector.type)} x i32> "
            f"<{positions}>",
        )

    def extend(f: FunctionEmitter, op: Operation) -> None:
        lane = f.lanes.get(op.operands[0])
        if lane is None:
            handlers[type(op)](f, op)
            return
        wide = f"<{lane.count} x {llvm_type(op.results[0].type)}>"
        extended = f.once((lane.vector, wide, type(op)), f"{_EXTENSIONS[type(op)]} {lane.type} {lane.vector} to {wide}")
        f.lanes[op.results[0]] = Lane(extended, wide, lane.count, lane.number)

    return {memref.LoadOp: load, vector.BroadcastOp: broadcast, **dict.fromkeys(_EXTENSIONS, extend)}


def _load_vectors(f: FunctionEmitter, first: memref.LoadOp, vector_bits: int) -> None:
    """Emit vectors for the loads from `first` to the next op that may write what they read, where they lie side by
    side; note their lanes, and all of these loads as scanned."""
    groups: dict[tuple[SSAValue, tuple[tuple[Atom, int], ...], int], list[_ScalarLoad]] = {}
    for op in _until_written(first):
        f.scanned.add(op)
        bits = _broadcast_bits(op.res)
        form = access_form(f, op.memref, op.indices)
        if bits and all(f.forms.values[atom] in f.names for atom, _ in form.terms if isinstance(atom, int)):
            groups.setdefault((op.memref, form.terms, bits), []).append(_ScalarLoad(op, form))
    for (_, _, bits), loads in groups.items():
        constants = sorted({load.form.constant for load in loads})
        for start, count in _runs(constants, vector_bits // bits):
            _load_run(f, [x for x in loads if 0 <= x.form.constant - start < count], start, count)


def _load_run(f: FunctionEmitter, loads: Sequence[_ScalarLoad], start: int, count: int) -> None:
    first = loads[0]
    type = f"<{count} x {llvm_type(first.op.res.type)}>"
    address = form_address(f, first.op.memref, Linear(first.form.terms, start))
    loaded = f.temporary(f"load {type}, ptr {address.pointer}, align {address.alignment}")
    for load in loads:
        f.lanes[load.op.res] = Lane(loaded, type, count, load.form.constant - start)


def _broadcast_bits(value: SSAValue, extended: bool = False) -> int:
    """Return the bits of the widest lanes that a scalar, or its extension, is broadcast to in its block; 0 with another
    use."""
    if is_truth(value.type) or isinstance(value.type, BFloat16Type):
        return 0
    widest = 0
    for use in value.uses:
        user = use.operation
        if user.parent is not value.owner.parent:
            bits = 0
        elif isinstance(user, vector.BroadcastOp):
            bits = 8 * byte_size(value.type)
        elif type(user) in _EXTENSIONS and not extended:
            bits = _broadcast_bits(user.results[0], extended=True)
        else:
            bits = 0
        if not bits:
            return 0
        widest = max(widest, bits)
    return widest


def _until_written(first: memref.LoadOp) -> Iterator[memref.LoadOp]:
    """Yield the scalar loads from `first` on in its block, to an op with regions or of another kind; behind a store
    those of its buffer are left out."""
    written: set[SSAValue] = set()
    op: Operation | None = first
    while op is not None and not op.regions and (op.name.startswith(_READERS) or isinstance(op, _WRITERS)):
        if isinstance(op, _WRITERS):
            written.update(_viewed(operand) for operand in op.operands if isinstance(operand.type, MemRefType))
        elif isinstance(op, memref.LoadOp) and _viewed(op.memref) not in written:
            yield op
        op = op.next_op


def _viewed(buffer: SSAValue) -> SSAValue:
    """Return the buffer whose memory a buffer is, or is a view of."""
    while isinstance(buffer.owner, memref.ViewOp | UnrealizedConversionCastOp):
        buffer = buffer.owner.operands[0]
    return buffer


def _runs(constants: Sequence[int], width: int) -> Iterator[tuple[int, int]]:
    """Yield the first offset and the count of vectors that together have all of the elements that lie side by side:
    4 and 2 of [0, 1, 2, 3, 4, 5], with a width of 4."""
    present, position = set(constants), 0
    while position < len(constants):
        start, count = constants[position], width
        while count > 1 and not all(start + n in present for n in range(count)):
            count //= 2
        if count > 1:
            yield start, count
        position += count
