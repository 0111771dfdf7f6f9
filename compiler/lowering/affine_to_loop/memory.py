"""Loads and stores of a function, and the stores that may run between two of its ops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from xdsl.dialects import affine, memref, scf
from xdsl.ir import Block, Operation, SSAValue

from compiler.affine.linear import Linear
from compiler.dialects.upstream.walk import ops_in
from compiler.lowering.affine_to_loop.forms import ValueForms
from compiler.support.errors import LoweringError

LoadLike: TypeAlias = affine.LoadOp | memref.LoadOp
StoreLike: TypeAlias = affine.StoreOp | memref.StoreOp
ForLike: TypeAlias = affine.ForOp | scf.ForOp
IfLike: TypeAlias = affine.IfOp | scf.IfOp

LOOPS = (affine.ForOp, scf.ForOp, affine.ParallelOp, scf.ParallelOp)


def index_of(op: LoadLike | StoreLike, forms: ValueForms) -> tuple[Linear, ...]:
    """The index of a load or store as forms over loops. Raises LoweringError for one that is not affine."""
    index: Sequence[Linear | None]
    if isinstance(op, affine.LoadOp | affine.StoreOp):
        index = forms.results(op.map.data, op.indices)
    else:
        index = [forms.form(value) for value in op.indices]
    for dimension, form in enumerate(index):
        if form is None:
            sentence = f"the index of '{name_of(op.memref)}' in dimension {dimension} is not affine in the loops"
            raise LoweringError(sentence).at(op)
    return tuple(form for form in index if form is not None)


def name_of(value: SSAValue) -> str:
    """Return the name of a value for a message, with its `%`; "a value" without a name."""
    return f"%{value.name_hint}" if value.name_hint else "a value"


def written(op: Operation) -> set[SSAValue]:
    """The memrefs that the stores and copies at and inside an op write."""
    targets = {inner.memref for inner in ops_in(op) if isinstance(inner, affine.StoreOp | memref.StoreOp)}
    return targets | {inner.destination for inner in ops_in(op) if isinstance(inner, memref.CopyOp)}


def ops_from(first: Operation, last: Operation) -> list[Operation]:
    """The ops at and inside the ops of a block from one up to another, which is excluded."""
    ops: list[Operation] = []
    op: Operation | None = first
    while op is not None and op is not last:
        ops += ops_in(op)
        op = op.next_op
    return ops


def loads_in(values: Iterable[SSAValue]) -> list[LoadLike]:
    """The loads from which values are computed by scalar operations and conditionals, each once, in no particular
    order. Loads on which a load's index depends are not among them; the results of loops have none."""
    loads: list[LoadLike] = []
    stack, seen = list(values), set[SSAValue]()
    while stack:
        value = stack.pop()
        op = value.owner
        if value in seen or not isinstance(op, Operation) or isinstance(op, LOOPS):
            continue
        seen.add(value)
        if isinstance(op, affine.LoadOp | memref.LoadOp):
            loads.append(op)
            continue
        stack += op.operands
        if isinstance(op, affine.IfOp | scf.IfOp):
            stack += [
                operand
                for region in op.regions
                for last in (region.block.last_op,)
                if last
                for operand in last.operands
            ]
    return loads


def clobbered(load: LoadLike, use: Operation) -> bool:
    """Whether a store or copy to the loaded memref may run between a load and an op that uses the value; in a loop
    around the use alone, each of its stores may."""
    block, common = _common(load, use)
    after: Operation | None = common
    while True:
        ancestor = _within(use, block)
        if any(load.memref in written(op) for op in _between(block, after, ancestor)):
            return True
        if ancestor is use:
            return False
        if isinstance(ancestor, LOOPS):
            return load.memref in written(ancestor)
        block, after = _entered(use, ancestor), None


def _common(load: Operation, use: Operation) -> tuple[Block, Operation]:
    """The innermost block with both a load and a use of it, and the op in this block that is or contains the load."""
    op: Operation | None = load
    while op is not None:
        block = op.parent
        assert block is not None
        if _holds(block, use):
            return block, op
        op = op.parent_op()
    raise AssertionError("a value is used outside its function")


def _holds(block: Block, op: Operation) -> bool:
    inner: Operation | None = op
    while inner is not None and inner.parent is not block:
        inner = inner.parent_op()
    return inner is not None


def _within(op: Operation, block: Block) -> Operation:
    """The op directly in a block that is `op` or contains it."""
    while op.parent is not block:
        parent = op.parent_op()
        assert parent is not None
        op = parent
    return op


def _entered(op: Operation, ancestor: Operation) -> Block:
    """The block of the regions of `ancestor` that contains `op`."""
    blocks: list[Block] = [block for region in ancestor.regions for block in region.blocks]
    return next(block for block in blocks if _holds(block, op))


def _between(block: Block, after: Operation | None, before: Operation) -> list[Operation]:
    """The ops of a block after one op (None: from the first) and before another."""
    ops = list(block.ops)
    start = 0 if after is None else ops.index(after) + 1
    return ops[start : ops.index(before)]
