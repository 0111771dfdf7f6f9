"""Tensorized nests: the operands loaded, one op of the intrinsic, the sums stored.

The sums are loaded and stored by plain accesses in the body of the loop around the nest, so that promote-buffers
keeps them in registers. A buffer of scope fragment is a row of tiles: each lies as the 256 words of a register.
"""

from __future__ import annotations

from xdsl.dialects import vector
from xdsl.dialects.builtin import BFloat16Type, DenseArrayBase, MemRefType, VectorType, f32, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from compiler.affine import linear as lin
from compiler.analysis.tensorized import absorbed
from compiler.dialects import loop
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
from compiler.errors import LoweringError, ScheduleError
from compiler.intrinsics import Fit, Intrinsic, Misfit, Operand, Reference, find, fit
from compiler.lowering.loop_to_low import scalars
from compiler.lowering.loop_to_low.context import Context
from compiler.lowering.loop_to_low.tensor_nest import TensorNest, is_fragment
from compiler.lowering.loop_to_low.warp import emit_matrix, emit_sum
from compiler.program.read import read
from compiler.program.write import write


def run_whole(function: FuncOp) -> None:
    """Let the blocks of tensorized nests run where any part of their nest does, which is proved to be harmless.

    Raises LoweringError for a tensorized nest that is not its intrinsic's, and for a fragment that others touch.
    """
    _check_fragments(function)
    if not any(isinstance(op, loop.ForOp) and op.loop_kind == "tensorized" for op in function.walk()):
        return
    program = read(function)
    try:
        after = absorbed(program, find)
    except (Misfit, ScheduleError) as error:
        raise LoweringError(f"@{program.name}: {error}") from error
    if after is not program:
        new = write(after)
        for old, argument in zip(function.args, new.args, strict=True):
            argument.name_hint = old.name_hint
        function.detach_region(function.body)
        function.add_region(new.detach_region(new.body))


def _check_fragments(function: FuncOp) -> None:
    """Fragments are touched by intrinsics only."""
    for op in function.walk():
        if isinstance(op, loop.Placed) and any(map(is_fragment, op.operands)):
            around = op.parent_op()
            if not isinstance(around, loop.ForOp) or around.loop_kind != "tensorized":
                label = op.label.data
                raise LoweringError(f"block '{label}' touches a fragment, which only a tensorized nest does")


def emit_tensorized(context: Context, op: loop.ForOp) -> None:
    """Emit the nest from the outermost tensorized loop inward. Raises LoweringError where it is not an intrinsic's."""
    intrinsic = find(op.intrinsic or "")
    if not intrinsic.exact and not context.policy.sums:
        raise LoweringError(f"loop '{op.label.data}': '{intrinsic.name}' rounds otherwise, and the policy is strict")
    if intrinsic.narrow and not context.policy.narrow:
        raise LoweringError(f"loop '{op.label.data}': '{intrinsic.name}' drops digits, and the policy is not fast")
    if intrinsic.is_warps != (context.threads is not None):
        whose = "a GPU's warps run it" if intrinsic.is_warps else "no GPU has it"
        raise LoweringError(f"loop '{op.label.data}' is tensorized by '{intrinsic.name}', and {whose}")
    nest = TensorNest.of(context, op)
    _FORMS[intrinsic.form](context, nest, intrinsic, fit(intrinsic, nest.shape))


# --- dots: vectors in registers -------------------------------------------------------------------------------------


def _emit_dot(context: Context, nest: TensorNest, intrinsic: Intrinsic, found: Fit) -> None:
    (a, b), target = nest.operands(found)[:2], nest.operands(found)[-1]
    group = _load(context, nest, *a, intrinsic, intrinsic.reads[0])
    groups = _load(context, nest, *b, intrinsic, intrinsic.reads[1])
    buffer, places = context.buffers[target[0]], nest.places(target[1])
    assert isinstance(buffer.type, MemRefType)
    type = VectorType(buffer.type.element_type, [intrinsic.length(intrinsic.target)])
    sums = context.scopes.add(vector.LoadOp(buffer, places, type))
    context.scopes.run(vector.StoreOp(context.scopes.add(DotOp(intrinsic.name, sums, group, groups)), buffer, places))


def _load(
    context: Context, nest: TensorNest, value: SSAValue, reference: Reference, intrinsic: Intrinsic, operand: Operand
) -> SSAValue:
    """All elements of an operand, which lie one behind the other."""
    buffer, places = context.buffers[value], nest.places(reference)
    assert isinstance(buffer.type, MemRefType)
    type = VectorType(buffer.type.element_type, [intrinsic.length(operand)])
    if _in_one_row(nest, reference):
        return context.scopes.add(vector.LoadOp(buffer, places, type))
    return context.scopes.add(LoadOp(buffer, places, type))


def _in_one_row(nest: TensorNest, reference: Reference) -> bool:
    """Whether the nest moves along the last dimension only."""
    inside = {found.variable for found in nest.shape.loops}
    return not any(form.variables() & inside for form in reference.index[:-1])


# --- interleaving: shuffles -----------------------------------------------------------------------------------------


def _emit_interleave(context: Context, nest: TensorNest, intrinsic: Intrinsic, found: Fit) -> None:
    """Rows are loaded, and zipped until each group has one element of every row."""
    (value, reference), (target, written) = nest.operands(found)
    lanes, group = (axis.extent for axis in intrinsic.axes)
    buffer = context.buffers[value]
    assert isinstance(buffer.type, MemRefType)
    rows = []
    for row in range(group):
        at = nest.at(reference, {found.loops["k"]: lin.constant(row)})
        type = VectorType(buffer.type.element_type, [lanes])
        rows.append(context.scopes.add(vector.LoadOp(buffer, [context.scopes.index(form) for form in at], type)))
    while len(rows) > 1:
        half = len(rows) // 2
        rows = [_zipped(context, one, two) for one, two in zip(rows[:half], rows[half:], strict=True)]
    store = vector.StoreOp if _in_one_row(nest, written) else StoreOp
    context.scopes.run(store(rows[0], context.buffers[target], nest.places(written)))


def _zipped(context: Context, one: SSAValue, two: SSAValue) -> SSAValue:
    """The elements of two vectors in turns."""
    assert isinstance(one.type, VectorType)
    count = one.type.get_shape()[0]
    type = VectorType(one.type.element_type, [2 * count])
    picks = [lane + side * count for lane in range(count) for side in range(2)]
    return context.scopes.add(vector.ShuffleOp(one, two, DenseArrayBase.from_list(i64, picks), result_type=type))


# --- tiles: two-dimensional registers -------------------------------------------------------------------------------


def _emit_tile(context: Context, nest: TensorNest, intrinsic: Intrinsic, found: Fit) -> None:
    """A product of tiles, or a tile moved."""
    *reads, target = nest.operands(found)
    tiles = []
    for number, (value, reference) in enumerate(reads):
        step = next((s for (n, _), s in found.open_steps.items() if n == number), 0)
        tiles.append(_tile(context, nest, value, reference, step))
    if not tiles:
        tiles.append(context.scopes.constant(scalars.dense([0] * TILE.get_shape()[0], TILE.element_type)))
    if intrinsic.combiner:
        sums = _tile(context, nest, *target, 0)
        tiles = [context.scopes.add(TileDotOp(intrinsic.name, sums, *tiles))]
    step = next((s for (n, _), s in found.open_steps.items() if n == len(reads)), 0)
    _keep(context, nest, tiles[0], *target, step)


def _tile(context: Context, nest: TensorNest, value: SSAValue, reference: Reference, step: int) -> SSAValue:
    """The tile that begins at a reference: a fragment, or rows in memory that many elements apart."""
    buffer = context.buffers[value]
    if reference.fragment:
        return context.scopes.add(vector.LoadOp(buffer, _fragment(context, nest, reference), TILE))
    stride = context.scopes.index_constant(step * _bytes(reference))
    places = nest.places(reference)
    return _earlier(context, (buffer, *places, stride)) or context.scopes.add(TileLoadOp(buffer, places, stride))


def _earlier(context: Context, operands: tuple[SSAValue, ...]) -> SSAValue | None:
    """The same tile, if this body has loaded it since the buffer was touched otherwise; LLVM does not see that."""
    op = context.scopes.stack[-1].block.last_op
    while op is not None and not op.regions:
        if isinstance(op, TileLoadOp):
            if tuple(op.operands) == operands:
                return op.result
        elif operands[0] in op.operands:
            return None
        op = op.prev_op
    return None


def _keep(context: Context, nest: TensorNest, tile: SSAValue, value: SSAValue, reference: Reference, step: int) -> None:
    """Put a tile where a reference begins."""
    buffer = context.buffers[value]
    if reference.fragment:
        context.scopes.run(vector.StoreOp(tile, buffer, _fragment(context, nest, reference)))
        return
    stride = context.scopes.index_constant(step * _bytes(reference))
    context.scopes.run(TileStoreOp(tile, buffer, nest.places(reference), stride))


def _fragment(context: Context, nest: TensorNest, reference: Reference) -> list[SSAValue]:
    """The place of a fragment's tile: its words are the last dimension."""
    return [*nest.places(reference)[:-2], context.scopes.index_constant(0)]


def _bytes(reference: Reference) -> int:
    return 2 if isinstance(reference.element, BFloat16Type) else 4


def fragment_type(label: str, type: MemRefType) -> MemRefType:
    """The type at the low level of a buffer of scope fragment. Raises LoweringError for one that is no row of tiles."""
    *outer, rows, columns = (1, 1, *type.get_shape())
    if (rows, columns) != (ROWS, ROW_BYTES // 4) or type.element_type != f32:
        raise LoweringError(f"'{label}' is a fragment of {type}, where a tile is of 16 by 16 f32")
    return MemRefType(TILE.element_type, [*outer[2:], *TILE.get_shape()])


_FORMS = {
    "dot": _emit_dot,
    "tile": _emit_tile,
    "interleave": _emit_interleave,
    "matrix": emit_matrix,
    "sum": emit_sum,
}
