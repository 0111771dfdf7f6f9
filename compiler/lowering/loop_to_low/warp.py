"""Tensorized nests that the threads of a GPU's warp run together: small matrices in registers, products, sums.

A buffer of scope fragment has a matrix as its last two dimensions. Each thread holds some elements of it, which are one
value of a vector type: the buffer becomes a local one of such values. The threads of a warp are those along x.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import memref, vector
from xdsl.dialects.builtin import IntegerAttr, MemRefType, VectorType, i32
from xdsl.ir import SSAValue

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.dialects.upstream.gpu import ShuffleOp
from compiler.dialects.upstream.nvgpu import LoadMatrixOp, MmaOp
from compiler.intrinsics import NestOperand, Reference, find
from compiler.intrinsics.warp import LANES, ROWS, held, matrix
from compiler.lowering.loop_to_low import scalars
from compiler.lowering.loop_to_low.context import Context, under
from compiler.lowering.loop_to_low.operands import Operands
from compiler.program.tree import Buffer, Program
from compiler.support.errors import LoweringError
from compiler.types.elements import element_bytes
from compiler.types.scopes import SCOPES, space_of

GROUP = 4
"""The threads that hold a row of a matrix."""
ROW_BYTES = 16
"""The bytes of a row that a thread names when matrices are loaded."""


def fragment_of(program: Program, buffer: Buffer, shape: Sequence[int]) -> MemRefType:
    """The type of one thread's part of a fragment buffer, whose shape is that of a warp.

    Raises LoweringError where it is not written by intrinsics of warps, all of one kind of matrix.
    """
    kinds = set()
    for block in program.writers[buffer.name]:
        name = next(loop.intrinsic for loop in reversed(program.enclosing(block.label)) if loop.intrinsic)
        intrinsic = find(name)
        target = intrinsic.target
        if target.fragment in ("a", "b", "c"):
            kinds.add((target.fragment, matrix(intrinsic, target), held(intrinsic, target)))
    label = buffer.name
    if len(kinds) != 1:
        raise LoweringError(f"the fragment '{label}' is written by {len(kinds)} kinds of a warp's intrinsics, not one")
    ((_, (rows, columns), type),) = kinds
    if tuple(shape[-2:]) != (rows, columns):
        raise LoweringError(f"the fragment '{label}' has no last dimensions of {rows} and {columns}")
    return MemRefType(type, shape[:-2])


def emit_matrix(nest: Operands) -> None:
    """A product of matrices, or one that is cleared, loaded or stored. Raises LoweringError for fragments of another
    kind, and for rows that threads cannot load at once."""
    intrinsic, scopes, reads, target = nest.intrinsic, nest.context.scopes, nest.reads, nest.target
    if intrinsic.combiner:
        sums = _fragment(nest, target, intrinsic.target)
        a, b = (_fragment(nest, read, operand) for read, operand in zip(reads, intrinsic.reads, strict=True))
        _keep(nest, scopes.add(MmaOp(a, b, sums)))
    elif not reads:
        _keep(nest, scopes.constant(scalars.zeros(held(intrinsic, intrinsic.target))))
    elif intrinsic.target.fragment:
        _keep(nest, _loaded(nest, reads[0]))
    else:
        _check_space(nest, target, ("shared", "global"))
        _store(nest, _fragment(nest, reads[0], intrinsic.reads[0]))


def _fragment(nest: Operands, reference: Reference, operand: NestOperand) -> SSAValue:
    """One thread's part of a fragment, of the kind that the intrinsic has there."""
    buffer, wanted = nest.buffer(reference), held(nest.intrinsic, operand)
    assert isinstance(buffer.type, MemRefType)
    if buffer.type.element_type != wanted:
        said = f"is {buffer.type}, where '{nest.intrinsic.name}' takes {wanted}"
        raise LoweringError(f"the fragment '{reference.buffer}' {said}")
    return nest.context.scopes.add(memref.LoadOp.get(buffer, _matrices(nest, reference)))


def _keep(nest: Operands, fragment: SSAValue) -> None:
    store = memref.StoreOp.get(fragment, nest.buffer(nest.target), _matrices(nest, nest.target))
    nest.context.scopes.run(store)


def _matrices(nest: Operands, reference: Reference) -> list[SSAValue]:
    """The number of the MMA tile of a buffer; in buffers that a warp keeps, of the warp's own tile."""
    threads, forms = nest.context.threads, nest.at(reference)
    assert threads is not None
    if reference.buffer in threads.parts:
        forms = threads.parts[reference.buffer].at(forms, threads.numbers)
    return nest.context.scopes.indices(forms[:-2])


def _loaded(nest: Operands, reference: Reference) -> SSAValue:
    """The fragment of rows in shared memory: the first threads name those of the first matrix of 8 rows, and so on.

    Along k matrices lie one behind the other, along i one below the other; of what is transposed rows go along k.
    """
    context, intrinsic, type = nest.context, nest.intrinsic, held(nest.intrinsic, nest.intrinsic.target)
    buffer, ranges = nest.buffer(reference), context.scopes.ranges
    assert isinstance(buffer.type, MemRefType)
    _check_space(nest, reference, ("shared",))
    width = ROW_BYTES // element_bytes(buffer.type.element_type)
    lane, operand = _lane(context), intrinsic.reads[0]
    rows, along = ("k", "j") if operand.step("j") == 1 else ("i" if operand.step("i") is None else "j", "k")
    extent = next(axis.extent for axis in intrinsic.axes if axis.label == rows)
    at = {rows: lin.mod(lane, extent, ranges)}
    if type.get_shape()[0] * 8 > extent:
        at[along] = lin.mod(lin.floordiv(lane, extent, ranges), type.get_shape()[0] * 8 // extent, ranges).scaled(width)
    forms = nest.at(reference, {nest.fit.loops[axis]: form for axis, form in at.items()})
    if not _is_multiple(forms, reference.shape, width):
        raise LoweringError(f"rows of '{reference.buffer}' do not begin at multiples of {ROW_BYTES} bytes")
    return context.scopes.add(LoadMatrixOp(buffer, context.scopes.indices(forms), type, transpose=rows == "k"))


def _check_space(nest: Operands, reference: Reference, spaces: Sequence[str]) -> None:
    """Raise LoweringError for memory that the threads of a warp do not share."""
    type = nest.buffer(reference).type
    assert isinstance(type, MemRefType)
    if space_of(type) not in [SCOPES[name] for name in spaces]:
        wanted = " or ".join(spaces)
        raise LoweringError(f"'{reference.buffer}' is no {wanted} memory, as '{nest.intrinsic.name}' wants it")


def _is_multiple(forms: Sequence[Linear], shape: Sequence[int], width: int) -> bool:
    """Whether a place is always at a multiple of a number of elements."""
    steps = [forms[-1].constant, *(factor for _, factor in forms[-1].terms)]
    if any(form.terms or form.constant for form in forms[:-1]):
        steps.append(shape[-1])
    return all(step % width == 0 for step in steps)


def _store(nest: Operands, sums: SSAValue) -> None:
    """Store sums to memory: each thread has two neighbours of two rows."""
    scopes, target, loops = nest.context.scopes, nest.target, nest.fit.loops
    lane = _lane(nest.context)
    row, pair = lin.floordiv(lane, GROUP, scopes.ranges), lin.mod(lane, GROUP, scopes.ranges).scaled(2)
    for number in range(2):
        below = row + lin.constant(number * ROWS // 2)
        forms = nest.at(target, {loops["i"]: below, loops["j"]: pair})
        if not _is_multiple(forms, target.shape, 2):
            raise LoweringError(f"rows of '{target.buffer}' do not begin at even elements")
        two = vector.ExtractOp(sums, [number], VectorType(target.scalar, [2]))
        scopes.run(vector.StoreOp(scopes.add(two), nest.buffer(target), scopes.indices(forms)))


def emit_sum(nest: Operands) -> None:
    """What the threads of a warp read, each its own, combined by exchanges across ever shorter distances; the first
    thread sets the target to that, or combines it with what is there."""
    context, (source,), target = nest.context, nest.reads, nest.target
    for reference in (source, target):
        _check_space(nest, reference, ("shared", "global"))
    lane, scopes, combiner = _lane(context), context.scopes, nest.intrinsic.combiner
    places = scopes.indices(nest.at(source, {nest.fit.loops["t"]: lane}))
    sum, distance = scopes.add(memref.LoadOp.get(nest.buffer(source), places)), LANES // 2
    element, width = sum.type, scopes.constant(IntegerAttr(LANES, i32))
    while distance:
        shuffled = scopes.add(ShuffleOp(sum, scopes.constant(IntegerAttr(distance, i32)), width))
        sum = scalars.combine(scopes, combiner, sum, shuffled, element, context.policy)
        distance //= 2

    def combined() -> None:
        buffer, at = nest.buffer(target), nest.places(target)
        new = sum
        if nest.nest.accumulates:
            old = scopes.add(memref.LoadOp.get(buffer, at))
            new = scalars.combine(scopes, combiner, old, sum, element, context.policy)
        scopes.run(memref.StoreOp.get(new, buffer, at))

    under(context, [Condition(lane, equal=True)], combined)


def _lane(context: Context) -> Linear:
    """The number of a thread in its warp."""
    assert context.threads is not None
    return lin.variable(context.threads.variables["thread_x"])
