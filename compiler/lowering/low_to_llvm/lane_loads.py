"""Scalars side by side that are only broadcast, loaded as one vector: for machines that multiply by a lane.

So are the words of bytes that dot products share.

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
from compiler.dialects.tile_intrinsics import DotOp
from compiler.dialects.upstream import casts
from compiler.dialects.upstream.arith import kind_of
from compiler.dialects.upstream.vector import ScatterOp
from compiler.lowering.low_to_llvm.address import access_form, form_address
from compiler.lowering.low_to_llvm.function import FunctionEmitter, Handlers, Lane
from compiler.lowering.low_to_llvm.types import byte_size, is_truth, lanes, llvm_type
from compiler.types.machines import Machine

_EXTENSIONS: dict[type[Operation], str] = {casts.ExtFOp: "fpext", casts.ExtSIOp: "sext", casts.ExtUIOp: "zext"}
_READERS = ("arith.", "llvm.call_intrinsic", "math.", "vector.", "memref.load", "unit.dot", "unit.load")
_GROUP = 1
"""The position of a dot product's group among its operands."""
_WRITERS = (memref.StoreOp, vector.StoreOp, vector.MaskedStoreOp, ScatterOp)


@dataclass(frozen=True)
class _LaneLoad:
    """A load of a scalar, or of a group of a dot product, from a buffer at the offset `form` in elements."""

    op: memref.LoadOp | vector.LoadOp
    form: Linear

    @property
    def value(self) -> SSAValue:
        """The loaded value."""
        return self.op.results[0]


def lane_loads(machine: Machine, handlers: Handlers) -> Handlers:
    """Return the handlers of loads, extensions and broadcasts for a machine that multiplies by a lane of a vector;
    `handlers` emit those that stay scalar. Empty for another machine.

        %a0 = memref.load %A[%k, %c0]          %v = load <4 x float>, ptr %A.k
        ... four loads, broadcast each      -> shufflevector %v, <0, 0, 0, 0> ... each lane in place of a broadcast
    """
    if not machine.multiplies_by_lane:
        return {}

    def load(f: FunctionEmitter, op: memref.LoadOp | vector.LoadOp) -> None:
        if op not in f.scanned and _lane_of(op) is not None:
            _load_vectors(f, op, machine.vector_bits)
        if op.results[0] not in f.lanes:
            handlers[kind_of(op)](f, op)

    def broadcast(f: FunctionEmitter, op: vector.BroadcastOp) -> None:
        lane = f.lanes.get(op.source)
        if lane is None:
            handlers[vector.BroadcastOp](f, op)
            return
        f.set(op.vector, lane.splat(lanes(op.vector.type)))

    def extend(f: FunctionEmitter, op: Operation) -> None:
        lane = f.lanes.get(op.operands[0])
        if lane is None:
            handlers[kind_of(op)](f, op)
            return
        element, instruction = llvm_type(op.results[0].type), _EXTENSIONS[kind_of(op)]
        wide = f"{instruction} {lane.type} {lane.vector} to <{lane.count} x {element}>"
        extended = f.once((lane.vector, wide), wide)
        f.lanes[op.results[0]] = Lane(extended, element, lane.count, lane.number)

    extensions = dict.fromkeys(_EXTENSIONS, extend)
    return {memref.LoadOp: load, vector.LoadOp: load, vector.BroadcastOp: broadcast, **extensions}


def _load_vectors(f: FunctionEmitter, first: Operation, vector_bits: int) -> None:
    """Emit vector loads, of at most `vector_bits`, for neighbouring elements among the loads that `_until_written`
    yields from `first` on. Record their lanes, and mark all these loads as scanned."""
    groups: dict[tuple[SSAValue, tuple[tuple[Atom, int], ...], _LaneType], list[_LaneLoad]] = {}
    for op, lane in _until_written(first):
        f.scanned.add(op)
        buffer, *indices = op.operands
        form = access_form(f, buffer, indices)
        if all(f.forms.values[atom] in f.names for atom, _ in form.terms if isinstance(atom, int)):
            groups.setdefault((buffer, form.terms, lane), []).append(_LaneLoad(op, form))
    for (buffer, terms, lane), loads in groups.items():
        constants = sorted({load.form.constant for load in loads})
        for start, count in _runs(constants, vector_bits // lane.bits, lane.elements):
            address = form_address(f, buffer, Linear(terms, start))
            loaded = f.temporary(f"load <{count} x {lane.llvm}>, ptr {address.pointer}, align {address.alignment}")
            for load in loads:
                number, between = divmod(load.form.constant - start, lane.elements)
                if 0 <= number < count and not between:
                    f.lanes[load.value] = Lane(loaded, lane.llvm, count, number)


@dataclass(frozen=True)
class _LaneType:
    """The type of a lane in LLVM, the bits of the widest lanes that it is extended to, and the number of its elements
    in memory, more than 1 for a word."""

    llvm: str
    bits: int
    elements: int = 1


def _lane_of(op: Operation) -> _LaneType | None:
    """Return the lane type of a load whose scalar is only broadcast in its block, perhaps after an extension, or of a
    word that is only the group of dot products in its block; None for another load."""
    if isinstance(op, memref.LoadOp):
        bits = _broadcast_bits(op.res)
        return _LaneType(llvm_type(op.res.type), bits) if bits else None
    if not isinstance(op, vector.LoadOp):
        return None
    users = [(use.operation, use.index) for use in op.result.uses]
    if not all(isinstance(user, DotOp) and n == _GROUP and user.parent is op.parent for user, n in users):
        return None
    return _LaneType("i32", 32, lanes(op.result.type))


def _broadcast_bits(value: SSAValue, extended: bool = False) -> int:
    """Return the bits of the widest lanes to which a scalar, or its extension, is broadcast in its block; 0 if it has
    another use or none, and for i1 and bf16. `extended`: whether it is an extension."""
    if is_truth(value.type) or isinstance(value.type, BFloat16Type):
        return 0
    widest = 0
    for use in value.uses:
        user = use.operation
        if user.parent is not value.owner.parent:
            bits = 0
        elif isinstance(user, vector.BroadcastOp):
            bits = 8 * byte_size(value.type)
        elif kind_of(user) in _EXTENSIONS and not extended:
            bits = _broadcast_bits(user.results[0], extended=True)
        else:
            bits = 0
        if not bits:
            return 0
        widest = max(widest, bits)
    return widest


def _until_written(first: Operation) -> Iterator[tuple[memref.LoadOp | vector.LoadOp, _LaneType]]:
    """Yield the loads that can be lanes, each with its lane type, from `first` on in its block, up to an op with
    regions or one that is neither arithmetic, a load nor a store; behind a store the loads of its buffer are left
    out."""
    written: set[SSAValue] = set()
    op: Operation | None = first
    while op is not None and not op.regions and (op.name.startswith(_READERS) or isinstance(op, _WRITERS)):
        if isinstance(op, _WRITERS):
            written.update(_viewed(operand) for operand in op.operands if isinstance(operand.type, MemRefType))
        elif isinstance(op, memref.LoadOp | vector.LoadOp) and _viewed(op.operands[0]) not in written:
            lane = _lane_of(op)
            if lane is not None:
                yield op, lane
        op = op.next_op


def _viewed(buffer: SSAValue) -> SSAValue:
    """Return the buffer that a chain of views is of; the buffer itself if it is no view."""
    while isinstance(buffer.owner, memref.ViewOp | UnrealizedConversionCastOp):
        buffer = buffer.owner.operands[0]
    return buffer


def _runs(constants: Sequence[int], width: int, step: int) -> Iterator[tuple[int, int]]:
    """Yield the first offset and the number of lanes, from `width` down by halves, of each vector over lanes of `step`
    elements at the sorted offsets `constants`; lanes without a neighbour are left out. Example: (0, 4) and (4, 2) for
    [0, 1, 2, 3, 4, 5] with a width of 4."""
    present, position = set(constants), 0
    while position < len(constants):
        start, count = constants[position], width
        while count > 1 and not all(start + n * step in present for n in range(count)):
            count //= 2
        if count > 1:
            yield start, count
        position += count
