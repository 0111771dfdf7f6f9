"""vector in LLVM IR, one-dimensional."""

from __future__ import annotations

from math import gcd

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import DenseArrayBase, DenseIntOrFPElementsAttr, IntegerAttr, MemRefType, VectorType
from xdsl.ir import Attribute, SSAValue

from compiler.dialects.upstream.vector import GatherOp, ScatterOp
from compiler.lowering.low_to_llvm.address import Address, element_address
from compiler.lowering.low_to_llvm.arithmetic import cast, intrinsic
from compiler.lowering.low_to_llvm.function import FunctionEmitter, Handlers
from compiler.lowering.low_to_llvm.literals import fast_flags, literal, number
from compiler.lowering.low_to_llvm.memrefs import from_memory, load, store, to_memory
from compiler.lowering.low_to_llvm.types import byte_size, is_float, is_truth, lanes, llvm_type, memory_type, suffix
from compiler.support.errors import LoweringError
from compiler.types.machines import Machine

_DYNAMIC = -(1 << 63)


def _store(f: FunctionEmitter, op: vector.StoreOp) -> None:
    nontemporal = op.properties.get("nontemporal")
    if isinstance(nontemporal, IntegerAttr) and nontemporal.value.data:
        _nontemporal_store(f, op)
    else:
        store(f, op)


def _nontemporal_store(f: FunctionEmitter, op: vector.StoreOp) -> None:
    """Emit a non-temporal store; if it is not known to be aligned, as the processor requires, a test selects it or a
    plain store."""
    type, address = memory_type(op.vector.type), element_address(f, op, op.base, op.indices)
    assert isinstance(op.base.type, MemRefType)
    size = lanes(op.vector.type) * byte_size(op.base.type.element_type)
    value = to_memory(f, op.vector)
    streamed = f"store {type} {value}, ptr {address.pointer}, align {size}, !nontemporal !{{i32 1}}"
    if address.alignment % size == 0:
        f.line(streamed)
        return
    aligned, plain, done = f.fresh("aligned"), f.fresh("plain"), f.fresh("stored")
    pointer_bits = f.temporary(f"ptrtoint ptr {address.pointer} to i64")
    misalignment = f.temporary(f"and i64 {pointer_bits}, {size - 1}")
    test = f.temporary(f"icmp eq i64 {misalignment}, 0")
    f.line(f"br i1 {test}, label %{aligned}, label %{plain}")
    f.start(aligned)
    f.line(streamed)
    f.line(f"br label %{done}")
    f.start(plain)
    f.line(f"store {type} {value}, ptr {address.pointer}, align {address.alignment}")
    f.line(f"br label %{done}")
    f.start(done)


def _masked_load(f: FunctionEmitter, op: vector.MaskedLoadOp) -> None:
    (result,), (buffer, *indices, mask, pass_through) = op.results, op.operands
    type, address = memory_type(result.type), element_address(f, op, buffer, indices)
    name = f"llvm.masked.load.{_memory_suffix(result.type)}.p0"
    f.declare(type, name, ["ptr", llvm_type(mask.type), type])
    otherwise = to_memory(f, pass_through)
    pointer = f"ptr align {address.alignment} {address.pointer}"
    f.set(result, f"call {type} @{name}({pointer}, {f.typed(mask)}, {type} {otherwise})")
    from_memory(f, result)


def _masked_store(f: FunctionEmitter, op: vector.MaskedStoreOp) -> None:
    _store_masked(f, op, element_address(f, op, op.base, op.indices), to_memory(f, op.value_to_store))


def _store_masked(f: FunctionEmitter, op: vector.MaskedStoreOp, address: Address, value: str) -> None:
    type = memory_type(op.value_to_store.type)
    name = f"llvm.masked.store.{_memory_suffix(op.value_to_store.type)}.p0"
    f.declare("void", name, [type, "ptr", llvm_type(op.mask.type)])
    f.line(f"call void @{name}({type} {value}, ptr align {address.alignment} {address.pointer}, {f.typed(op.mask)})")


def _lane_pointers(f: FunctionEmitter, op: GatherOp | ScatterOp) -> str:
    assert isinstance(op.base.type, MemRefType)
    address, count, size = (
        element_address(f, op, op.base, op.indices),
        lanes(op.mask.type),
        byte_size(op.base.type.element_type),
    )
    offsets = f"{llvm_type(op.index_vec.type)} {f.use(op.index_vec)}"
    pointers = f.temporary(f"getelementptr [{size} x i8], ptr {address.pointer}, {offsets}")
    return f"<{count} x ptr> align {size} {pointers}"


MAX_STRIDE = 4
"""The largest stride of a gather that becomes loads and shuffles."""


def _strided_load(f: FunctionEmitter, op: GatherOp, stride: int, count: int) -> None:
    """Load `stride` vectors, and shuffle every stride-th element out of them. count: the number of leading lanes that
    are active, at least 1; no element after that of the last one is loaded, and other lanes have the pass-through
    value. Source: LLVM's interleaved access group; a gather makes a memory request for each lane."""
    address, all_lanes, element = (
        element_address(f, op, op.base, op.indices),
        lanes(op.result.type),
        op.result.type.element_type,
    )
    size, vector_type, picked = byte_size(element), memory_type(op.result.type), ""
    last = (count - 1) * stride
    for piece in range(stride):
        first = min(piece * all_lanes, max(0, last - all_lanes + 1))
        lane_numbers = [n for n in range(count) if n * stride // all_lanes == piece]
        if not lane_numbers:
            continue
        pointer = (
            f.temporary(f"getelementptr inbounds [{size} x i8], ptr {address.pointer}, i64 {first}")
            if first
            else address.pointer
        )
        vector_ = _first_lanes(f, op, pointer, gcd(address.alignment, first * size), last + 1 - first)
        former = picked or "poison"
        lane_indices = list(range(all_lanes))
        for n in lane_numbers:
            lane_indices[n] = all_lanes + n * stride - first
        chosen = ", ".join(f"i32 {pick}" for pick in lane_indices)
        picked = f.temporary(
            f"shufflevector {vector_type} {former}, {vector_type} {vector_}, <{all_lanes} x i32> <{chosen}>"
        )
    if count < all_lanes:
        chosen = ", ".join(f"i32 {n if n < count else all_lanes + n}" for n in range(all_lanes))
        otherwise = to_memory(f, op.pass_thru)
        picked = f.temporary(
            f"shufflevector {vector_type} {picked}, {vector_type} {otherwise}, <{all_lanes} x i32> <{chosen}>"
        )
    f.names[op.result] = picked
    from_memory(f, op.result)


def _first_lanes(f: FunctionEmitter, op: GatherOp, pointer: str, alignment: int, count: int) -> str:
    """Load the first `count` elements of a vector from a pointer of an alignment in bytes, under a mask if the vector
    has more lanes; the others are poison."""
    type, all_lanes = memory_type(op.result.type), lanes(op.result.type)
    if count >= all_lanes:
        return f.temporary(f"load {type}, ptr {pointer}, align {alignment}")
    name = f"llvm.masked.load.{_memory_suffix(op.result.type)}.p0"
    f.declare(type, name, ["ptr", f"<{all_lanes} x i1>", type])
    mask = ", ".join(f"i1 {'true' if n < count else 'false'}" for n in range(all_lanes))
    return f.temporary(
        f"call {type} @{name}(ptr align {alignment} {pointer}, <{all_lanes} x i1> <{mask}>, {type} poison)"
    )


def _small_stride(op: GatherOp) -> int | None:
    owner = op.index_vec.owner
    if not isinstance(owner, arith.ConstantOp) or not isinstance(owner.value, DenseIntOrFPElementsAttr):
        return None
    offsets = [int(n) for n in owner.value.get_values()]
    if len(offsets) < 2 or offsets != list(range(0, len(offsets) * offsets[1], offsets[1] or 1)):
        return None
    return offsets[1] if 2 <= offsets[1] <= MAX_STRIDE else None


def _gather(f: FunctionEmitter, op: GatherOp) -> None:
    stride, count = _small_stride(op), _known_prefix(op.mask)
    if stride is not None and count:
        _strided_load(f, op, stride, count)
        return
    type, count = memory_type(op.result.type), lanes(op.mask.type)
    pointers = _lane_pointers(f, op)
    name = f"llvm.masked.gather.{_memory_suffix(op.result.type)}.v{count}p0"
    f.declare(type, name, [f"<{count} x ptr>", llvm_type(op.mask.type), type])
    otherwise = to_memory(f, op.pass_thru)
    f.set(op.result, f"call {type} @{name}({pointers}, {f.typed(op.mask)}, {type} {otherwise})")
    from_memory(f, op.result)


def _scatter(f: FunctionEmitter, op: ScatterOp) -> None:
    type, count = memory_type(op.value.type), lanes(op.mask.type)
    pointers = _lane_pointers(f, op)
    name = f"llvm.masked.scatter.{_memory_suffix(op.value.type)}.v{count}p0"
    f.declare("void", name, [type, f"<{count} x ptr>", llvm_type(op.mask.type)])
    f.line(f"call void @{name}({type} {to_memory(f, op.value)}, {pointers}, {f.typed(op.mask)})")


def stores(machine: Machine) -> Handlers:
    """Return the handler of masked stores for a machine: without AVX-512 they cost tens of cycles, so that known lanes
    are stored in pieces."""
    return {vector.MaskedStoreOp: _masked_store if machine.vector_bits == 512 else _store_in_pieces}


def _store_in_pieces(f: FunctionEmitter, op: vector.MaskedStoreOp) -> None:
    """Branch on the scalar conditions of a mask. Under them, store a constant number of leading lanes as vectors of
    powers of two (7 lanes as 4, 2 and 1), all lanes at once if there is no other mask or a mask of leading lanes is
    full at run time, else under the mask. Source: Agner Fog's instruction tables: VMASKMOVPS to memory is microcode on
    AMD's Zen."""
    address, value = element_address(f, op, op.base, op.indices), to_memory(f, op.value_to_store)
    conditions, masks = _conjuncts(op.mask)
    ends = [_begin_if(f, f.use(condition)) for condition in conditions]
    if not masks:
        _store_all(f, op, address, value)
    elif len(masks) == 1 and (count := _known_prefix(masks[0])) is not None:
        _store_lanes(f, op, address, value, count)
    elif len(masks) == 1 and isinstance(masks[0].owner, vector.CreateMaskOp):
        _store_full_or_masked(f, op, address, value, masks[0].owner)
    else:
        _store_masked(f, op, address, value)
    for end in reversed(ends):
        f.line(f"br label %{end}")
        f.start(end)


def _conjuncts(mask: SSAValue) -> tuple[list[SSAValue], list[SSAValue]]:
    """Split a mask into the scalar conditions and the masks whose conjunction is the mask."""
    owner = mask.owner
    if isinstance(owner, arith.AndIOp):
        (conditions, masks), (right_conditions, right_masks) = _conjuncts(owner.lhs), _conjuncts(owner.rhs)
        return conditions + right_conditions, masks + right_masks
    if isinstance(owner, vector.BroadcastOp) and not isinstance(owner.source.type, VectorType):
        return [owner.source], []
    return [], [mask]


def _begin_if(f: FunctionEmitter, condition: str) -> str:
    """Begin code under a condition, an operand of type i1; return the label of the code after it, to which the caller
    branches."""
    then, after = f.fresh("then"), f.fresh("after")
    f.line(f"br i1 {condition}, label %{then}, label %{after}")
    f.start(then)
    return after


def _store_all(f: FunctionEmitter, op: vector.MaskedStoreOp, address: Address, value: str) -> None:
    f.line(f"store {memory_type(op.value_to_store.type)} {value}, ptr {address.pointer}, align {address.alignment}")


def _store_full_or_masked(
    f: FunctionEmitter, op: vector.MaskedStoreOp, address: Address, value: str, mask: vector.CreateMaskOp
) -> None:
    """Store all lanes if a mask of leading lanes is full, else the masked lanes."""
    full_label, masked_label, done = f.fresh("whole"), f.fresh("some"), f.fresh("stored")
    count = lanes(op.mask.type)
    test = f.temporary(f"icmp sge i64 {f.use(mask.mask_dim_sizes[0])}, {count}")
    f.line(f"br i1 {test}, label %{full_label}, label %{masked_label}")
    f.start(full_label)
    _store_all(f, op, address, value)
    f.line(f"br label %{done}")
    f.start(masked_label)
    _store_masked(f, op, address, value)
    f.line(f"br label %{done}")
    f.start(done)


def _store_lanes(f: FunctionEmitter, op: vector.MaskedStoreOp, address: Address, value: str, count: int) -> None:
    type = op.value_to_store.type
    vector_type = memory_type(type)
    assert isinstance(type, VectorType)
    size, element = byte_size(type.element_type), vector_type.split(" x ")[1].rstrip(">")
    stored_lanes = 0
    for width in (1 << n for n in reversed(range(count.bit_length())) if count >> n & 1):
        lane_indices = ", ".join(f"i32 {lane}" for lane in range(stored_lanes, stored_lanes + width))
        piece = f.temporary(
            f"shufflevector {vector_type} {value}, {vector_type} poison, <{width} x i32> <{lane_indices}>"
        )
        pointer = (
            f.temporary(f"getelementptr inbounds [{size} x i8], ptr {address.pointer}, i64 {stored_lanes}")
            if stored_lanes
            else address.pointer
        )
        f.line(
            f"store <{width} x {element}> {piece}, ptr {pointer}, align {gcd(address.alignment, stored_lanes * size)}"
        )
        stored_lanes += width


def _known_prefix(mask: SSAValue) -> int | None:
    """Return the number of active lanes of a mask whose active lanes are known and leading, 0 for none; None for other
    masks."""
    owner, count = mask.owner, lanes(mask.type)
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, DenseIntOrFPElementsAttr):
        truths = [bool(truth) for truth in owner.value.get_values()]
        prefix = sum(truths)
        return prefix if all(truths[:prefix]) else None
    if not isinstance(owner, vector.CreateMaskOp):
        return None
    size = owner.mask_dim_sizes[0].owner
    if not isinstance(size, arith.ConstantOp) or not isinstance(size.value, IntegerAttr):
        return None
    return max(0, min(size.value.value.data, count))


def _memory_suffix(type: Attribute) -> str:
    return f"v{lanes(type)}i8" if is_truth(type) else suffix(type)


def _splat(f: FunctionEmitter, value: str, scalar: str, count: int) -> str:
    type = f"<{count} x {scalar}>"
    first = f.temporary(f"insertelement {type} poison, {scalar} {value}, i64 0")
    return f.temporary(f"shufflevector {type} {first}, {type} poison, <{count} x i32> zeroinitializer")


def _broadcast(f: FunctionEmitter, op: vector.BroadcastOp) -> None:
    source, count = op.source, lanes(op.vector.type)
    value, type = f.use(source), source.type
    if isinstance(type, VectorType):
        if lanes(type) != 1:
            raise LoweringError(f"vector.broadcast of {type} to {op.vector.type} has no form in LLVM IR")
        value, type = f.temporary(f"extractelement {f.typed(source)}, i64 0"), type.element_type
    if isinstance(source.owner, arith.ConstantOp) and source.type == type:
        f.names[op.vector] = f"splat ({llvm_type(type)} {literal(source.owner.value)})"
    else:
        f.names[op.vector] = _splat(f, value, llvm_type(type), count)


def _position(f: FunctionEmitter, op: vector.ExtractOp | vector.InsertOp) -> str:
    positions = op.static_position.get_values()
    if len(positions) != 1:
        raise LoweringError(f"'{op.name}' takes one position, not {len(positions)}")
    return f.use(op.dynamic_position[0]) if positions[0] == _DYNAMIC else str(positions[0])


def _extract(f: FunctionEmitter, op: vector.ExtractOp) -> None:
    f.set(op.result, f"extractelement {f.typed(op.vector)}, i64 {_position(f, op)}")


def _insert(f: FunctionEmitter, op: vector.InsertOp) -> None:
    f.set(op.result, f"insertelement {f.typed(op.dest)}, {f.typed(op.source)}, i64 {_position(f, op)}")


def _create_mask(f: FunctionEmitter, op: vector.CreateMaskOp) -> None:
    count = lanes(op.mask_vector.type)
    size = _splat(f, f.use(op.mask_dim_sizes[0]), "i64", count)
    numbers = ", ".join(f"i64 {lane}" for lane in range(count))
    f.set(op.mask_vector, f"icmp slt <{count} x i64> <{numbers}>, {size}")


def _shuffle(f: FunctionEmitter, op: vector.ShuffleOp) -> None:
    assert isinstance(op.mask, DenseArrayBase)
    picks = [f"i32 {'poison' if pick < 0 else pick}" for pick in op.mask.get_values()]
    f.set(op.result, f"shufflevector {f.typed(op.v1)}, {f.typed(op.v2)}, <{len(picks)} x i32> <{', '.join(picks)}>")


_FLOAT_STARTS = {"add": -0.0, "mul": 1.0}  # neutral; -0.0 + -0.0 is -0.0

_REDUCTIONS = {
    "add": ("add", "add"),
    "mul": ("mul", "mul"),
    "and": ("and", "and"),
    "or": ("or", "or"),
    "xor": ("xor", "xor"),
    "maxsi": ("smax", "llvm.smax"),
    "minsi": ("smin", "llvm.smin"),
    "maxui": ("umax", "llvm.umax"),
    "minui": ("umin", "llvm.umin"),
    "maximumf": ("fmaximum", "llvm.maximum"),
    "minimumf": ("fminimum", "llvm.minimum"),
    "maxnumf": ("fmax", "llvm.maxnum"),
    "minnumf": ("fmin", "llvm.minnum"),
}
"""By the kind of a reduction, LLVM's reduction, and the op that combines its result with an accumulator."""


def _reduction(f: FunctionEmitter, op: vector.ReductionOp) -> None:
    kind = op.kind.data.value
    if is_float(op.dest.type) and kind in _FLOAT_STARTS:
        _ordered(f, op, kind)
        return
    name, join = _REDUCTIONS[kind]
    flags = fast_flags(op) if is_float(op.dest.type) else ""
    f.set(op.dest, f.call(op.dest.type, f"llvm.vector.reduce.{name}.{suffix(op.vector.type)}", [op.vector], flags))
    if op.acc is None:
        return
    if join.startswith("llvm."):
        f.set(op.dest, f.call(op.dest.type, f"{join}.{suffix(op.dest.type)}", [op.acc, op.dest], flags))
    else:
        f.set(op.dest, f"{join} {f.typed(op.acc)}, {f.use(op.dest)}")


def _ordered(f: FunctionEmitter, op: vector.ReductionOp, kind: str) -> None:
    """Emit a reduction of a vector of floats by `kind`, add or mul, onto the accumulator or, without one, the neutral
    value; in lane order unless the op's flags have `reassoc`."""
    scalar, name = llvm_type(op.dest.type), f"llvm.vector.reduce.f{kind}.{suffix(op.vector.type)}"
    f.declare(scalar, name, [scalar, llvm_type(op.vector.type)])
    start = number(_FLOAT_STARTS[kind], op.dest.type) if op.acc is None else f.use(op.acc)
    f.set(op.dest, f"call {fast_flags(op)}{scalar} @{name}({scalar} {start}, {f.typed(op.vector)})")


VECTORS: Handlers = {
    vector.LoadOp: load,
    vector.StoreOp: _store,
    vector.MaskedLoadOp: _masked_load,
    GatherOp: _gather,
    ScatterOp: _scatter,
    vector.BroadcastOp: _broadcast,
    vector.ExtractOp: _extract,
    vector.InsertOp: _insert,
    vector.CreateMaskOp: _create_mask,
    vector.FMAOp: intrinsic("fma"),
    vector.ShuffleOp: _shuffle,
    vector.BitcastOp: cast("bitcast"),
    vector.ReductionOp: _reduction,
}
