"""Make the init of every reduction an explicit loop nest, so that each block with combiners accumulates."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import IndexType, ModuleOp, UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstraintExpr, AffineDimExpr, AffineExpr, AffineMap, AffineSet
from xdsl.passes import ModulePass

from compiler.dialects import loop
from compiler.dialects.access import AccessAttr, project
from compiler.dialects.checks import element_type
from compiler.dialects.loop import BlockOp, ForOp
from compiler.errors import LoweringError
from compiler.intrinsics import find


@dataclass(frozen=True)
class DecomposeReductionsPass(ModulePass):
    """Write each implicit init as a nest before the outermost loop that binds a reduce iterator.

      loop.for "k" { loop.for "l" { block "C" [l, reduce k] combine [add] } }
    ->
      loop.for "l" { block "C.init" [l] { 0 } }
      loop.for "k" { loop.for "l" { block "C" [l, reduce k] combine [add] accumulate } }
    """

    name = "decompose-reductions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        blocks = [b for b in op.walk() if isinstance(b, BlockOp)]
        for block in blocks:
            if block.is_reduction and block.accumulate is None and not is_set_whole(block):
                decompose(block)


def is_set_whole(block: BlockOp) -> bool:
    """Whether the threads of a warp sum up all of a reduction at once, and set its target to that: its other loops are
    each a spatial axis of their own, so that no two of their iterations add to one element."""
    around = block.parent_op()
    if not isinstance(around, ForOp) or not around.intrinsic or find(around.intrinsic).form != "sum":
        return False
    apart = {
        block.loops[expr.position]
        for axis, expr in zip(block.axes, block.bindings.data.results, strict=True)
        if not axis.is_reduce and isinstance(expr, AffineDimExpr)
    }
    return _bound_loops(block, reduce=True) - apart == {around.iv} and around.iv not in apart


def decompose(block: BlockOp) -> None:
    """Insert the init nest of one block and mark it `accumulate`."""
    place = outermost_reduce_loop(block) or block
    parent = place.parent_block()
    assert parent is not None
    parent.insert_op_before(init_nest(block, place), place)
    block.properties["accumulate"] = UnitAttr()


def outermost_reduce_loop(block: BlockOp) -> ForOp | None:
    """The outermost enclosing loop that binds one of the block's reduce iterators, if any."""
    binding = _bound_loops(block, reduce=True)
    return next((around for around in loop.enclosing_loops(block) if around.iv in binding), None)


def _bound_loops(block: BlockOp, reduce: bool) -> set[SSAValue]:
    bound: set[SSAValue] = set()
    for axis, expr in zip(block.axes, block.bindings.data.results, strict=True):
        if axis.is_reduce == reduce:
            bound |= {block.loops[d] for d in expr.used_dims()}
    return bound


def init_nest(block: BlockOp, place: Operation) -> Operation:
    """The nest that sets the block's targets to the identity, for the loops from `place` inward that it needs."""
    axes = [axis for axis in block.axes if not axis.is_reduce]
    bindings = block.bindings.data.results[: len(axes)]
    guard = _init_guard(block)
    constraints = guard.constraints if guard is not None else ()
    used = sorted({d for e in (*bindings, *(c.lhs for c in constraints)) for d in e.used_dims()})
    values = [block.loops[d] for d in used]
    inner = [around for around in loop.enclosing_loops(block) if _within(around, place) and around.iv in values]
    dims = [AffineExpr.dimension(used.index(d) if d in used else 0) for d in range(len(block.loops))]
    bodies = [Block(arg_types=[IndexType()]) for _ in inner]
    renamed: dict[SSAValue, SSAValue] = {}
    for old, body in zip(inner, bodies, strict=True):
        renamed[old.iv] = body.args[0]
        body.args[0].name_hint = old.iv.name_hint
    op: Operation = BlockOp(
        f"{block.label.data}.init",
        axes,
        [renamed.get(value, value) for value in values],
        project(AffineMap(len(block.loops), 0, bindings), dims, len(used)),
        [],
        [],
        list(block.targets),
        [_spatial(access, len(axes), len(block.axes)) for access in block.writes],
        _identity_body(block),
        guard=AffineSet(len(used), 0, tuple(_renumbered(c, dims) for c in constraints)),
    )
    for old, body in reversed(list(zip(inner, bodies, strict=True))):
        body.add_op(op)
        kind = old.loop_kind
        if kind == "tensorized":  # the intrinsic is of the sum, not of its init
            kind = "vectorized" if old is inner[-1] else "serial"
        op = ForOp(old.label.data, old.size, Region(body), kind)
    return op


def _renumbered(constraint: AffineConstraintExpr, dims: list[AffineExpr]) -> AffineConstraintExpr:
    lhs = constraint.lhs.replace_dims_and_symbols(dims, ())
    return AffineConstraintExpr(constraint.kind, lhs, constraint.rhs)


def _within(inner: ForOp, place: Operation) -> bool:
    return inner is place or (isinstance(place, ForOp) and place.is_ancestor(inner))


def _init_guard(block: BlockOp) -> AffineSet | None:
    if block.guard is None:
        return None
    reduce_only = _bound_loops(block, reduce=True) - _bound_loops(block, reduce=False)
    kept = tuple(
        c for c in block.guard.constraints if not any(block.loops[d] in reduce_only for d in c.lhs.used_dims())
    )
    return AffineSet(block.guard.num_dims, 0, kept)


def _spatial(access: AccessAttr, spatial: int, axes: int) -> AccessAttr:
    used = {d for e in access.affine_map.results for d in e.used_dims()}
    if used and max(used) >= spatial:
        raise LoweringError("a reduction writes at an index that depends on a reduce axis")
    dims = [AffineExpr.dimension(d) for d in range(spatial)] + [AffineExpr.constant(0)] * (axes - spatial)
    return AccessAttr(project(access.affine_map, dims, spatial))


def _identity_body(block: BlockOp) -> Region:
    body = Block()
    values = []
    for position, target in enumerate(block.targets):
        constant = ConstantOp(block.neutral(element_type(target), position))
        body.add_op(constant)
        values.append(constant.result)
    body.add_op(loop.YieldOp(*values))
    return Region(body)
