"""Tensorized nests: load the operands, apply the intrinsic's op, store the accumulators.

Accumulators are loaded and stored by plain accesses in the body of the loop around the nest, so that promote-buffers
keeps them in registers. A buffer of scope fragment is a row of AMX tiles: each is the 256 words of a register.
"""

from __future__ import annotations

from xdsl.dialects import vector
from xdsl.dialects.builtin import BFloat16Type, DenseArrayBase, MemRefType, VectorType, f32, i64
from xdsl.ir import SSAValue

from compiler.affine import linear as lin
from compiler.analysis.tensorized import loops_under, nest_of
from compiler.dialects.tile_intrinsics import (
    ROW_BYTES,
    ROWS,
    TILE,
    DotOp,
    LoadOp,
    StoreOp,
    TileDotOp,
    TileLoadOp,
    TileStoreOp,
)
from compiler.intrinsics import NestOperand, Reference, find, fit
from compiler.lowering.loop_to_low import scalars
from compiler.lowering.loop_to_low.context import Context
from compiler.lowering.loop_to_low.operands import Operands
from compiler.lowering.loop_to_low.warp import emit_matrix, emit_sum
from compiler.program.tree import Loop
from compiler.support.errors import LoweringError


def emit_tensorized(context: Context, loop: Loop) -> None:
    """Emit the nest from the outermost tensorized loop inward as its intrinsic. Raises LoweringError if it does not fit
    the intrinsic, if the intrinsic's rounding needs a policy other than strict, or fast, and for a warp's intrinsic
    outside of a kernel or any other one in a kernel."""
    intrinsic = find(loop.intrinsic)
    if not intrinsic.exact and not context.policy.sums:
        raise LoweringError(f"loop '{loop.label}': '{intrinsic.name}' rounds otherwise, and the policy is strict")
    if intrinsic.narrow and not context.policy.narrow:
        raise LoweringError(f"loop '{loop.label}': '{intrinsic.name}' drops digits, and the policy is not fast")
    if intrinsic.runs_on_warp != (context.threads is not None):
        whose = "a GPU's warps run it" if intrinsic.runs_on_warp else "no GPU has it"
        raise LoweringError(f"loop '{loop.label}' is tensorized by '{intrinsic.name}', and {whose}")
    nest = nest_of(context.program, *loops_under(context.program, loop.number))
    _EMITTERS[intrinsic.form](Operands(context, nest, intrinsic, fit(intrinsic, nest)))


# --- dots: vectors in registers -------------------------------------------------------------------------------------


def _emit_dot(nest: Operands) -> None:
    scopes, (a, b), target = nest.context.scopes, nest.reads, nest.target
    group = _load(nest, a, nest.intrinsic.reads[0])
    groups = _load(nest, b, nest.intrinsic.reads[1])
    buffer, places = nest.buffer(target), nest.first_indices(target)
    sums = scopes.add(vector.LoadOp(buffer, places, nest.vector(target, nest.intrinsic.target)))
    scopes.run(vector.StoreOp(scopes.add(DotOp(nest.intrinsic.name, sums, group, groups)), buffer, places))


def _load(nest: Operands, reference: Reference, operand: NestOperand) -> SSAValue:
    load = vector.LoadOp if _is_in_one_row(nest, reference) else LoadOp
    return nest.context.scopes.add(
        load(nest.buffer(reference), nest.first_indices(reference), nest.vector(reference, operand))
    )


def _is_in_one_row(nest: Operands, reference: Reference) -> bool:
    loop_numbers = {loop.number for loop in nest.nest.loops}
    return not any(form.variables() & loop_numbers for form in reference.index[:-1])


# --- interleaving: shuffles -----------------------------------------------------------------------------------------


def _emit_interleave(nest: Operands) -> None:
    """Load rows, and interleave them pairwise until each group has one element of every row."""
    context, (source,) = nest.context, nest.reads
    lanes, group = (axis.extent for axis in nest.intrinsic.axes)
    type = VectorType(source.scalar, [lanes])
    rows = []
    for row in range(group):
        row_index = nest.at(source, {nest.fit.loops["k"]: lin.constant(row)})
        rows.append(context.scopes.add(vector.LoadOp(nest.buffer(source), context.scopes.indices(row_index), type)))
    while len(rows) > 1:
        half = len(rows) // 2
        rows = [_interleaved(context, upper, lower) for upper, lower in zip(rows[:half], rows[half:], strict=True)]
    store = vector.StoreOp if _is_in_one_row(nest, nest.target) else StoreOp
    context.scopes.run(store(rows[0], nest.buffer(nest.target), nest.first_indices(nest.target)))


def _interleaved(context: Context, first: SSAValue, second: SSAValue) -> SSAValue:
    assert isinstance(first.type, VectorType)
    count = first.type.get_shape()[0]
    type = VectorType(first.type.element_type, [2 * count])
    indices = [lane + side * count for lane in range(count) for side in range(2)]
    return context.scopes.add(vector.ShuffleOp(first, second, DenseArrayBase.from_list(i64, indices), result_type=type))


# --- tiles: two-dimensional registers -------------------------------------------------------------------------------


def _emit_tile(nest: Operands) -> None:
    """Emit a product of AMX tiles, or a tile load, store or zero."""
    scopes = nest.context.scopes
    tiles = [_tile(nest, reference, nest.step(number)) for number, reference in enumerate(nest.reads)]
    if not tiles:
        tiles.append(scopes.constant(scalars.dense([0] * TILE.get_shape()[0], TILE.element_type)))
    if nest.intrinsic.combiner:
        sums = _tile(nest, nest.target, 0)
        tiles = [scopes.add(TileDotOp(nest.intrinsic.name, sums, *tiles))]
    _store_tile(nest, tiles[0], nest.target, nest.step(len(nest.reads)))


def _tile(nest: Operands, reference: Reference, step: int) -> SSAValue:
    """Load the tile at a reference: a fragment, or rows in memory at a distance of `step` elements, for which an
    earlier load may serve."""
    scopes, buffer = nest.context.scopes, nest.buffer(reference)
    if reference.fragment:
        return scopes.add(vector.LoadOp(buffer, _fragment_indices(nest, reference), TILE))
    stride = scopes.index_constant(step * _bytes(reference))
    indices = nest.first_indices(reference)
    return _loaded_tile(nest.context, (buffer, *indices, stride)) or scopes.add(TileLoadOp(buffer, indices, stride))


def _loaded_tile(context: Context, operands: tuple[SSAValue, ...]) -> SSAValue | None:
    """Return the tile that this body has loaded from the same operands, if since then no op accessed its buffer and
    there was no loop or branch; else None. LLVM would load it again."""
    op = context.scopes.stack[-1].block.last_op
    while op is not None and not op.regions:
        if isinstance(op, TileLoadOp):
            if tuple(op.operands) == operands:
                return op.result
        elif operands[0] in op.operands:
            return None
        op = op.prev_op
    return None


def _store_tile(nest: Operands, tile: SSAValue, reference: Reference, step: int) -> None:
    scopes, buffer = nest.context.scopes, nest.buffer(reference)
    if reference.fragment:
        scopes.run(vector.StoreOp(tile, buffer, _fragment_indices(nest, reference)))
        return
    stride = scopes.index_constant(step * _bytes(reference))
    scopes.run(TileStoreOp(tile, buffer, nest.first_indices(reference), stride))


def _fragment_indices(nest: Operands, reference: Reference) -> list[SSAValue]:
    """Return the index of a fragment's tile, with 0 in the dimension of its words, the last."""
    return [*nest.first_indices(reference)[:-2], nest.context.scopes.index_constant(0)]


def _bytes(reference: Reference) -> int:
    return 2 if isinstance(reference.element, BFloat16Type) else 4


def fragment_type(label: str, type: MemRefType) -> MemRefType:
    """Return the low-level type of a fragment, [..., 256] words, for its type [..., 16, 16] of f32. Raises
    LoweringError, which names `label`, for a shape that is no row of tiles."""
    *outer, rows, columns = (1, 1, *type.get_shape())
    if (rows, columns) != (ROWS, ROW_BYTES // 4) or type.element_type != f32:
        raise LoweringError(f"'{label}' is a fragment of {type}, where a tile is of 16 by 16 f32")
    return MemRefType(TILE.element_type, [*outer[2:], *TILE.get_shape()])


_EMITTERS = {
    "dot": _emit_dot,
    "tile": _emit_tile,
    "interleave": _emit_interleave,
    "matrix": emit_matrix,
    "sum": emit_sum,
}
