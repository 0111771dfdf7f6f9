"""Tensorized nests that the threads of a GPU's warp run together: small matrices in registers, products, sums.

A buffer of scope fragment has a matrix as its last two dimensions. Each thread holds some elements of it, which are one
value of a vector type: the buffer becomes a local one of such values. The threads of a warp are those along x.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import memref, vector
from xdsl.dialects.builtin import IntegerAttr, MemRefType, VectorType, i32
from xdsl.ir import Operation, SSAValue

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.dialects import loop
from compiler.dialects.upstream.gpu import ShuffleOp
from compiler.dialects.upstream.nvgpu import LoadMatrixOp, MmaOp
from compiler.elements import element_bytes
from compiler.errors import LoweringError
from compiler.intrinsics import Fit, Intrinsic, Reference, find
from compiler.intrinsics.warp import LANES, ROWS, held, matrix
from compiler.lowering.loop_to_low import scalars
from compiler.lowering.loop_to_low.accesses import under
from compiler.lowering.loop_to_low.context import Context
from compiler.lowering.loop_to_low.tensor_nest import TensorNest
from compiler.scopes import SCOPES, space_of

GROUP = 4
"""The threads that hold a row of a matrix."""
ROW_BYTES = 16
"""The bytes of a row that a thread names when matrices are loaded."""


def fragment_of(op: loop.AllocOp, shape: Sequence[int]) -> MemRefType:
    """The type of what each thread holds of a buffer of fragments, whose shape is what a warp has.

    Raises LoweringError where it is not written by intrinsics of warps, all of one kind of matrix.
    """
    kinds = set()
    for use in op.buffer.uses:
        block = use.operation
        if isinstance(block, loop.Placed) and op.buffer in block.targets:
            intrinsic = _around(block)
            target = intrinsic.target
            if target.fragment in ("a", "b", "c"):
                kinds.add((target.fragment, matrix(intrinsic, target), held(intrinsic, target)))
    label = op.label.data
    if len(kinds) != 1:
        raise LoweringError(f"the fragment '{label}' is written by {len(kinds)} kinds of a warp's intrinsics, not one")
    ((_, (rows, columns), type),) = kinds
    if tuple(shape[-2:]) != (rows, columns):
        raise LoweringError(f"the fragment '{label}' has no last dimensions of {rows} and {columns}")
    return MemRefType(type, shape[:-2])


def _around(block: Operation) -> Intrinsic:
    """The intrinsic of the tensorized nest around a block."""
    around = block.parent_op()
    while isinstance(around, loop.ForOp) and around.intrinsic is None:
        around = around.parent_op()
    assert isinstance(around, loop.ForOp), "only tensorized nests touch fragments"
    return find(around.intrinsic or "")


def emit_matrix(context: Context, nest: TensorNest, intrinsic: Intrinsic, found: Fit) -> None:
    """A product of matrices, or one that is cleared, loaded or stored. Raises LoweringError for fragments of another
    kind, and for rows that threads cannot load at once."""
    *reads, target = nest.operands(found)
    if intrinsic.combiner:
        sums, a, b = (_fragment(nest, *each, of=intrinsic, number=n) for n, each in ((-1, target), *enumerate(reads)))
        _keep(nest, context.scopes.add(MmaOp(a, b, sums)), *target)
    elif not reads:
        _keep(nest, context.scopes.constant(scalars.zeros(held(intrinsic, intrinsic.target))), *target)
    elif intrinsic.target.fragment:
        _keep(nest, _loaded(nest, intrinsic, found, *reads[0]), *target)
    else:
        _check_space(context.buffers[target[0]], target[1], intrinsic, ("shared", "global"))
        _store(nest, found, _fragment(nest, *reads[0], of=intrinsic, number=0), *target)


def _fragment(nest: TensorNest, value: SSAValue, reference: Reference, of: Intrinsic, number: int) -> SSAValue:
    """What each thread holds of a fragment, of the kind that an intrinsic has there."""
    buffer, wanted = nest.context.buffers[value], held(of, of.target if number < 0 else of.reads[number])
    assert isinstance(buffer.type, MemRefType)
    if buffer.type.element_type != wanted:
        raise LoweringError(f"the fragment '{reference.buffer}' is {buffer.type}, where '{of.name}' takes {wanted}")
    return nest.context.scopes.add(memref.LoadOp.get(buffer, _matrices(nest, value, reference)))


def _keep(nest: TensorNest, held: SSAValue, value: SSAValue, reference: Reference) -> None:
    buffer = nest.context.buffers[value]
    nest.context.scopes.run(memref.StoreOp.get(held, buffer, _matrices(nest, value, reference)))


def _matrices(nest: TensorNest, value: SSAValue, reference: Reference) -> list[SSAValue]:
    """Which of a buffer's matrices it is; of those that a warp keeps, where it has its own."""
    threads, forms = nest.context.threads, nest.at(reference)
    assert threads is not None
    if value in threads.parts:
        forms = threads.parts[value].at(forms, threads.numbers)
    return [nest.context.scopes.index(form) for form in forms[:-2]]


def _loaded(nest: TensorNest, intrinsic: Intrinsic, found: Fit, value: SSAValue, reference: Reference) -> SSAValue:
    """The fragment of rows in shared memory: the first threads name those of the first matrix of 8 rows, and so on.

    Along k matrices lie one behind the other, along i one below the other; of what is transposed rows go along k.
    """
    context, type = nest.context, held(intrinsic, intrinsic.target)
    buffer, ranges = context.buffers[value], context.scopes.ranges
    assert isinstance(buffer.type, MemRefType)
    _check_space(buffer, reference, intrinsic, ("shared",))
    width = ROW_BYTES // element_bytes(buffer.type.element_type)
    lane, operand = _lane(context), intrinsic.reads[0]
    rows, along = ("k", "j") if operand.step("j") == 1 else ("i" if operand.step("i") is None else "j", "k")
    extent = next(axis.extent for axis in intrinsic.axes if axis.label == rows)
    at = {rows: lin.mod(lane, extent, ranges)}
    if type.get_shape()[0] * 8 > extent:
        at[along] = lin.mod(lin.floordiv(lane, extent, ranges), type.get_shape()[0] * 8 // extent, ranges).scaled(width)
    forms = nest.at(reference, {found.loops[axis]: form for axis, form in at.items()})
    if not _is_multiple(forms, buffer.type.get_shape(), width):
        raise LoweringError(f"rows of '{reference.buffer}' do not begin at multiples of {ROW_BYTES} bytes")
    places = [context.scopes.index(form) for form in forms]
    return context.scopes.add(LoadMatrixOp(buffer, places, type, transpose=rows == "k"))


def _check_space(buffer: SSAValue, reference: Reference, intrinsic: Intrinsic, spaces: Sequence[str]) -> None:
    """Raise LoweringError for what the threads of a warp do not share."""
    type = buffer.type
    assert isinstance(type, MemRefType)
    if space_of(type) not in [SCOPES[name] for name in spaces]:
        wanted = " or ".join(spaces)
        raise LoweringError(f"'{reference.buffer}' is no {wanted} memory, as '{intrinsic.name}' wants it")


def _is_multiple(forms: Sequence[Linear], shape: Sequence[int], width: int) -> bool:
    """Whether a place is always at a multiple of a number of elements."""
    steps = [forms[-1].constant, *(factor for _, factor in forms[-1].terms)]
    if any(form.terms or form.constant for form in forms[:-1]):
        steps.append(shape[-1])
    return all(step % width == 0 for step in steps)


def _store(nest: TensorNest, found: Fit, sums: SSAValue, value: SSAValue, reference: Reference) -> None:
    """Store sums to memory: each thread has two neighbours of two rows."""
    context, buffer = nest.context, nest.context.buffers[value]
    ranges, lane = context.scopes.ranges, _lane(context)
    row, pair = lin.floordiv(lane, GROUP, ranges), lin.mod(lane, GROUP, ranges).scaled(2)
    for number in range(2):
        below = row + lin.constant(number * ROWS // 2)
        forms = nest.at(reference, {found.loops["i"]: below, found.loops["j"]: pair})
        assert isinstance(buffer.type, MemRefType)
        if not _is_multiple(forms, buffer.type.get_shape(), 2):
            raise LoweringError(f"rows of '{reference.buffer}' do not begin at even elements")
        two = vector.ExtractOp(sums, [number], VectorType(buffer.type.element_type, [2]))
        context.scopes.run(vector.StoreOp(context.scopes.add(two), buffer, [context.scopes.index(f) for f in forms]))


def emit_sum(context: Context, nest: TensorNest, intrinsic: Intrinsic, found: Fit) -> None:
    """What the threads of a warp read, each its own, combined by exchanges across ever shorter distances; the first
    thread sets the target to that, or combines it with what is there."""
    (value, reference), (target, written) = nest.operands(found)
    for buffer, place in ((value, reference), (target, written)):
        _check_space(context.buffers[buffer], place, intrinsic, ("shared", "global"))
    lane, scopes = _lane(context), context.scopes
    places = [scopes.index(form) for form in nest.at(reference, {found.loops["t"]: lane})]
    sum, distance = scopes.add(memref.LoadOp.get(context.buffers[value], places)), LANES // 2
    element, width = sum.type, scopes.constant(IntegerAttr(LANES, i32))
    while distance:
        other = scopes.add(ShuffleOp(sum, scopes.constant(IntegerAttr(distance, i32)), width))
        sum = scalars.combine(scopes, intrinsic.combiner, sum, other, element, context.policy)
        distance //= 2

    def combined() -> None:
        buffer, at = context.buffers[target], nest.places(written)
        new = sum
        if nest.accumulates:
            old = scopes.add(memref.LoadOp.get(buffer, at))
            new = scalars.combine(scopes, intrinsic.combiner, old, sum, element, context.policy)
        scopes.run(memref.StoreOp.get(new, buffer, at))

    under(context, [Condition(lane, equal=True)], combined)


def _lane(context: Context) -> Linear:
    """The number of a thread in its warp."""
    assert context.threads is not None
    return lin.variable(context.threads.variables["thread_x"])
