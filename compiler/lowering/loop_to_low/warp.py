"""Tensorized nests that a GPU's warp runs: MMA tiles in registers, MMA, shuffle reductions.

A buffer of scope fragment has an MMA tile as its last two dimensions. The fragment of each thread is one value of a
vector type: the buffer becomes a local one of such values. The threads of a warp are those along x.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import memref, vector
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, MemRefType, VectorType, i32, i64
from xdsl.ir import SSAValue

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.analysis.stages import THREADS
from compiler.dialects.upstream.gpu import ShuffleOp
from compiler.dialects.upstream.nvgpu import LoadMatrixOp, MmaOp
from compiler.intrinsics import Intrinsic, NestOperand, Reference, find
from compiler.intrinsics.warp import LANES, ROWS, TILES, fragment_vector, matrix_shape, tile_count
from compiler.lowering.loop_to_low import scalars
from compiler.lowering.loop_to_low.context import Context, emit_under
from compiler.lowering.loop_to_low.fragments import is_open, is_tensorized
from compiler.lowering.loop_to_low.operands import Operands
from compiler.lowering.loop_to_low.private import PrivatePart
from compiler.program.tree import Buffer, Program
from compiler.support.errors import LoweringError
from compiler.types.elements import element_bytes
from compiler.types.scopes import SCOPES, space_of

ROW_THREADS = 4
"""The threads that hold a row of an MMA tile."""
ROW_BYTES = 16
"""The bytes of a row whose address a thread gives to ldmatrix."""


def thread_fragment_type(program: Program, buffer: Buffer, shape: Sequence[int]) -> MemRefType:
    """Return the type of a thread's part of a fragment buffer with the shape of a warp's part: of registers, or of
    scalars if blocks outside tensorized nests access it. Raises LoweringError unless warp intrinsics access it as one
    kind of MMA tile, of which the last two dimensions have the shape."""
    _, intrinsic, operand = fragment_use(program, buffer)
    type = fragment_vector(intrinsic, operand)
    if tuple(shape[-2:]) != matrix_shape(intrinsic, operand):
        rows, columns = matrix_shape(intrinsic, operand)
        raise LoweringError(f"the fragment '{buffer.name}' has no last dimensions of {rows} and {columns}")
    if is_open(program, buffer.name):
        return MemRefType(type.element_type, [*shape[:-2], *type.get_shape()])
    return MemRefType(type, shape[:-2])


def fragment_use(program: Program, buffer: Buffer) -> tuple[str, Intrinsic, NestOperand]:
    """Return the kind of a fragment buffer, a, b or c, an intrinsic that accesses it, and the operand that it is there.
    Of several such intrinsics the last one is returned. Raises LoweringError unless warp intrinsics write it, or read
    it if none does, all as one kind of MMA tile."""
    uses: dict[object, tuple[str, Intrinsic, NestOperand]] = {}
    for blocks, is_write in ((program.writers[buffer.name], True), (program.readers[buffer.name], False)):
        for block in () if uses else blocks:
            if not is_tensorized(program, block):
                continue
            intrinsic = find(
                next(loop.intrinsic for loop in reversed(program.enclosing(block.label)) if loop.intrinsic)
            )
            for operand in (intrinsic.target,) if is_write else intrinsic.reads:
                shape = matrix_shape(intrinsic, operand)
                if operand.fragment in ("a", "b", "c") and (is_write or shape == tuple(buffer.shape[-2:])):
                    key = (operand.fragment, shape, fragment_vector(intrinsic, operand))
                    uses[key] = (operand.fragment, intrinsic, operand)
    if len(uses) != 1:
        raise LoweringError(
            f"the fragment '{buffer.name}' is written by {len(uses)} kinds of a warp's intrinsics, not one"
        )
    return next(iter(uses.values()))


def emit_matrix(nest: Operands) -> None:
    """Emit an MMA, or the zero, load or store of a fragment. Raises LoweringError for fragments of another kind, for
    memory of a scope that the intrinsic does not access, and for rows that do not begin at multiples of 16 bytes
    (loads) or of two elements (stores)."""
    intrinsic, scopes, reads, target = nest.intrinsic, nest.context.scopes, nest.reads, nest.target
    if intrinsic.combiner:
        sums = _fragment(nest, target, intrinsic.target)
        a, b = (_fragment(nest, read, operand) for read, operand in zip(reads, intrinsic.reads, strict=True))
        _store_fragment(nest, scopes.add(MmaOp(a, b, sums)))
    elif not reads:
        _store_fragment(nest, scopes.constant(scalars.zeros(fragment_vector(intrinsic, intrinsic.target))))
    elif intrinsic.target.fragment:
        _store_tiles(nest, _load_matrices(nest, reads[0]))
    else:
        _check_space(nest, target, ("shared", "global"))
        _store(nest, _fragment(nest, reads[0], intrinsic.reads[0]))


def _fragment(nest: Operands, reference: Reference, operand: NestOperand) -> SSAValue:
    """Load a thread's fragment. Raises LoweringError unless its type is that of the intrinsic's operand."""
    buffer, expected_type = nest.buffer(reference), fragment_vector(nest.intrinsic, operand)
    assert isinstance(buffer.type, MemRefType)
    if _is_of_scalars(buffer.type, expected_type):
        indices = [*_tile_indices(nest, reference), *[nest.context.scopes.index_constant(0)] * 2]
        return nest.context.scopes.add(vector.LoadOp(buffer, indices, expected_type))
    if buffer.type.element_type != expected_type:
        reason = f"is {buffer.type}, where '{nest.intrinsic.name}' takes {expected_type}"
        raise LoweringError(f"the fragment '{reference.buffer}' {reason}")
    return nest.context.scopes.add(memref.LoadOp.get(buffer, _tile_indices(nest, reference)))


def _store_fragment(nest: Operands, fragment: SSAValue, at: Mapping[int, Linear] | None = None) -> None:
    buffer, indices = nest.buffer(nest.target), _tile_indices(nest, nest.target, at)
    assert isinstance(buffer.type, MemRefType) and isinstance(fragment.type, VectorType)
    if _is_of_scalars(buffer.type, fragment.type):
        zero = nest.context.scopes.index_constant(0)
        nest.context.scopes.run(vector.StoreOp(fragment, buffer, [*indices, zero, zero]))
    else:
        nest.context.scopes.run(memref.StoreOp.get(fragment, buffer, indices))


def _is_of_scalars(buffer: MemRefType, fragment: VectorType) -> bool:
    """Return whether a buffer has the element type of a fragment type and, in its last two dimensions, the shape."""
    return buffer.element_type == fragment.element_type and buffer.get_shape()[-2:] == fragment.get_shape()


def _store_tiles(nest: Operands, loaded: SSAValue) -> None:
    """Store the fragments of all tiles that were loaded at once, each of neighbouring registers."""
    count = tile_count(nest.intrinsic)
    if count == 1:
        _store_fragment(nest, loaded)
        return
    type = fragment_vector(nest.intrinsic, nest.intrinsic.target)
    registers, scopes = type.get_shape()[0], nest.context.scopes
    for tile in range(count):
        mask = DenseArrayBase.from_list(i64, range(tile * registers, (tile + 1) * registers))
        part = scopes.add(vector.ShuffleOp(loaded, loaded, mask, result_type=type))
        at = {nest.fit.loops[TILES]: lin.constant(tile)}
        _store_fragment(nest, part, at)


def _tile_indices(nest: Operands, reference: Reference, at: Mapping[int, Linear] | None = None) -> list[SSAValue]:
    """Return the indices of the MMA tile in a buffer of tiles, without the last two dimensions; in the warp's part if
    the warp owns one. `at`: the values of the nest's loops by number, 0 for a loop that it lacks."""
    threads, forms = nest.context.threads, nest.at(reference, at)
    assert threads is not None
    if reference.buffer in threads.parts:
        forms = threads.parts[reference.buffer].at(forms, threads.numbers_of(nest.context.program, reference.buffer))
    return nest.context.scopes.indices(forms[:-2])


def _load_matrices(nest: Operands, reference: Reference) -> SSAValue:
    """Load the fragments of one tile or two from rows in shared memory: the first 8 threads have the addresses of the
    first 8x8 matrix's rows, and so on. Matrices are ordered along i first, then along k, then by tiles; those that are
    transposed have rows along k. Raises LoweringError for other memory, and for rows that do not begin at multiples of
    16 bytes."""
    context, intrinsic = nest.context, nest.intrinsic
    registers, register_elements = fragment_vector(intrinsic, intrinsic.target).get_shape()
    type = VectorType(intrinsic.target.element, [registers * tile_count(intrinsic), register_elements])
    buffer, ranges = nest.buffer(reference), context.scopes.ranges
    assert isinstance(buffer.type, MemRefType)
    _check_space(nest, reference, ("shared",))
    width = ROW_BYTES // element_bytes(buffer.type.element_type)
    lane, operand = _lane(context), intrinsic.reads[0]
    rows, next_axis = ("k", "j") if operand.step("j") == 1 else ("i" if operand.step("i") is None else "j", "k")
    extent = next(axis.extent for axis in intrinsic.axes if axis.label == rows)
    axis_values, across = {rows: lin.mod(lane, extent, ranges)}, registers * 8 // extent
    if across > 1:
        axis_values[next_axis] = lin.mod(lin.floordiv(lane, extent, ranges), across, ranges).scaled(width)
    if tile_count(intrinsic) > 1:
        tile = lin.floordiv(lane, extent * across, ranges)
        axis_values[TILES] = lin.mod(tile, tile_count(intrinsic), ranges)
    forms = nest.at(reference, {nest.fit.loops[axis]: form for axis, form in axis_values.items()})
    if not _is_multiple(forms, reference.shape, width):
        raise LoweringError(f"rows of '{reference.buffer}' do not begin at multiples of {ROW_BYTES} bytes")
    return context.scopes.add(LoadMatrixOp(buffer, context.scopes.indices(forms), type, transpose=rows == "k"))


def _check_space(nest: Operands, reference: Reference, spaces: Sequence[str]) -> None:
    type = nest.buffer(reference).type
    assert isinstance(type, MemRefType)
    if space_of(type) not in [SCOPES[name] for name in spaces]:
        spaces_text = " or ".join(spaces)
        raise LoweringError(f"'{reference.buffer}' is no {spaces_text} memory, as '{nest.intrinsic.name}' wants it")


def _is_multiple(forms: Sequence[Linear], shape: Sequence[int], width: int) -> bool:
    steps = [forms[-1].constant, *(factor for _, factor in forms[-1].terms)]
    if any(form.terms or form.constant for form in forms[:-1]):
        steps.append(shape[-1])
    return all(step % width == 0 for step in steps)


def _store(nest: Operands, sums: SSAValue) -> None:
    """Store accumulators to memory: each thread has two neighbouring elements in each of two rows. Raises LoweringError
    if a row may begin at an odd element."""
    scopes, target, loops = nest.context.scopes, nest.target, nest.fit.loops
    lane = _lane(nest.context)
    row, pair = lin.floordiv(lane, ROW_THREADS, scopes.ranges), lin.mod(lane, ROW_THREADS, scopes.ranges).scaled(2)
    for number in range(2):
        row_of_half = row + lin.constant(number * ROWS // 2)
        forms = nest.at(target, {loops["i"]: row_of_half, loops["j"]: pair})
        if not _is_multiple(forms, target.shape, 2):
            raise LoweringError(f"rows of '{target.buffer}' do not begin at even elements")
        pair_values = vector.ExtractOp(sums, [number], VectorType(target.scalar, [2]))
        scopes.run(vector.StoreOp(scopes.add(pair_values), nest.buffer(target), scopes.indices(forms)))


def emit_sum(nest: Operands) -> None:
    """Combine a value of each thread of a warp, or of fewer neighbours, by xor shuffles over halving distances; the
    first thread stores the result, or combines it with the target if the nest accumulates; each thread does if the
    target is local. Raises LoweringError for an operand that is a fragment, or local and allocated inside the thread
    loops."""
    context, (source,), target = nest.context, nest.reads, nest.target
    lane, scopes, combiner = _lane(context), context.scopes, nest.intrinsic.combiner
    own = {nest.fit.loops[axis]: form for axis, form in sum_axes(nest.intrinsic, lane, scopes.ranges).items()}
    total = scopes.add(memref.LoadOp.get(nest.buffer(source), _own_indices(nest, source, own)))
    distance = next(axis.extent for axis in nest.intrinsic.axes if axis.label == "t") // 2
    element, width = total.type, scopes.constant(IntegerAttr(LANES, i32))
    while distance:
        shuffled = scopes.add(ShuffleOp(total, scopes.constant(IntegerAttr(distance, i32)), width))
        total = scalars.combine(scopes, combiner, total, shuffled, element, context.policy)
        distance //= 2

    def store_result() -> None:
        buffer, target_indices = nest.buffer(target), _own_indices(nest, target, own)
        result = total
        if nest.nest.accumulates:
            former = scopes.add(memref.LoadOp.get(buffer, target_indices))
            result = scalars.combine(scopes, combiner, former, total, element, context.policy)
        scopes.run(memref.StoreOp.get(result, buffer, target_indices))

    is_local = _part(nest, target) is not None
    emit_under(context, [] if is_local else [Condition(lane, equal=True)], store_result)


def sum_axes(intrinsic: Intrinsic, lane: Linear, ranges: lin.Ranges) -> dict[str, Linear]:
    """Return the values of the axes of a sum at the elements that the thread `lane` along x has: t for the summand, j
    for its copy of the sum, if it has one, and i for the row, if the sum is of several rows. The extent of the last
    axis is the number of threads of a row. ranges: those of the variables in `lane`."""
    (*_, each), labels = intrinsic.axes, {axis.label for axis in intrinsic.axes}
    place = lin.mod(lane, each.extent, ranges)
    values = {"i": lin.floordiv(lane, each.extent, ranges), "j": place, "t": place}
    return {label: form for label, form in values.items() if label in labels}


def _part(nest: Operands, reference: Reference) -> PrivatePart | None:
    """Return the part of a local buffer that each thread owns; None for shared and global memory. Raises LoweringError
    for a fragment, and for a local buffer that is allocated inside the thread loops."""
    type = nest.buffer(reference).type
    assert isinstance(type, MemRefType) and nest.context.threads is not None
    if space_of(type) != SCOPES["local"]:
        _check_space(nest, reference, ("shared", "global"))
        return None
    part = nest.context.threads.parts.get(reference.buffer)
    if part is None:
        raise LoweringError(f"'{reference.buffer}' is one thread's, and '{nest.intrinsic.name}' is run by a warp")
    return part


def _own_indices(nest: Operands, reference: Reference, iterations: Mapping[int, Linear]) -> list[SSAValue]:
    """Emit the indices of an operand at an iteration of the nest's loops (those not in `iterations` are at 0), within
    the thread's part if the operand is local."""
    threads, part = nest.context.threads, _part(nest, reference)
    assert threads is not None
    if part is None:
        return nest.context.scopes.indices(nest.at(reference, iterations))
    own = {threads.variables[kind] for kind in THREADS if kind in threads.variables}
    return nest.context.scopes.indices(part.at(nest.at(reference, iterations), {*threads.numbers, *own}))


def _lane(context: Context) -> Linear:
    assert context.threads is not None
    return lin.variable(context.threads.variables["thread_x"])
