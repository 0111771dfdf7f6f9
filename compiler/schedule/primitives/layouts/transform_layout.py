"""The primitive transform_layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineExpr, AffineMap

from compiler.affine import linear as lin
from compiler.analysis.fold import clash, is_injective
from compiler.program.tree import Buffer, Program
from compiler.schedule.layouts import blocked_shape, dimension_order, in_blocks, relaid, temporary
from compiler.schedule.parameters import BLOCK, INTS, MAP, SIZES, TEXT, Value
from compiler.schedule.plan import Plan, block_place, no_table, refuse
from compiler.schedule.primitive import primitive
from compiler.schedule.region import touches


def _one_way(stated: Mapping[str, Value], result_count: int) -> str:
    if (stated["by"] is None) == (not stated["tiles"]):
        return "a layout is either a map or tiles"
    return "an order belongs to tiles, not to a map" if stated["by"] is not None and stated["order"] else ""


@primitive(
    "$block $buffer (`by` $by^)? (`tiles` custom<DynamicIndexList>($params, $tiles)^)? (`order` $order^)?",
    'sched.transform_layout %c "T" by affine_map<(i, j) -> (j, i)>\n'
    'sched.transform_layout %c "T" tiles [1, 8] order [1, 0, 2]',
    'transform-layout{block=C buffer=C by="(i, j) -> (j, i mod 3)"}',
    check=_one_way,
    block=BLOCK,
    buffer=TEXT,
    by=MAP.or_else(None),
    tiles=replace(SIZES, optional=True),
    order=INTS.or_else([]),
)
def transform_layout(
    program: Program,
    block: str,
    buffer: str,
    by: AffineMap | None = None,
    tiles: Sequence[int] = (),
    order: Sequence[int] = (),
) -> Plan:
    """Index a temporary buffer through a map: the map gives the location of each element.

        alloc T[8, 6];  T[i, j] ...              // by (i, j) -> (j, i mod 3)
      ->
        alloc T[6, 3];  T[j, i mod 3] ...

    A script can also state a layout in blocks by tiles and order, as `pack` does: a size per dimension, 1 for none, and
    the order of the dimensions of the blocks, then those inside a block.

        alloc T[8, 6];  T[i, j] ...              // tiles [4, 1] order [0, 2, 1]
      ->
        alloc T[2, 6, 4];  T[i floordiv 4, j, i mod 4] ...

    Several elements may share a place (storage folding, rolling windows) as long as none is overwritten before its last
    use. Requires a temporary that the block touches, and a map with one dimension for each of its own and results that
    are not negative. Refused where two elements that live at the same time would share a place, and for the table of a
    gather. Elsewhere: TVM transform_layout, Halide fold_storage and reorder_storage, Exo rearrange_dim.
    """
    old = _laid(program, block, buffer)
    if by is None:
        return _in_block_layout(program, block, old, tiles, order)
    place = f"buffer '{buffer}'"
    if by.num_dims != len(old.shape):
        reason = f"the layout is of {by.num_dims} dimensions, the buffer has {len(old.shape)}"
        refuse(place, reason)
    if by.num_symbols or not by.results:
        refuse(place, "the layout has symbols, or no results")
    if any(_divides_badly(e) for expression in by.results for e in expression.dfs()):
        refuse(place, "the layout divides by a value that is not a positive integer")
    ranges = lin.box(old.shape)
    dims = lin.variables(len(old.shape))
    forms = [lin.linear(e, dims, ranges) for e in by.results]
    spans = [lin.bounds(form, ranges) for form in forms]
    if any(low < 0 for low, _ in spans):
        refuse(place, "the layout has negative places")
    after = relaid(program, old, replace(old, shape=tuple(high + 1 for _, high in spans)), forms)
    if not is_injective(forms, old.shape):
        clashing = clash(program, buffer, forms)
        if clashing is not None:
            refuse(place, clashing)
    return Plan(after, keeps_order=True)


def _in_block_layout(program: Program, block: str, old: Buffer, tiles: Sequence[int], order: Sequence[int]) -> Plan:
    """Plan a layout in blocks of `tiles`, dimensions in `order`, in which no two elements share a location."""
    ranges = lin.box(old.shape)
    order = dimension_order(block, old.name, old, tiles, order)
    forms = in_blocks(lin.variables(len(old.shape)), tiles, order, ranges)
    shape = blocked_shape(old, tiles)
    new = replace(old, shape=tuple(shape[d] for d in order))
    return Plan(relaid(program, old, new, forms), keeps_order=True)


def _laid(program: Program, block: str, buffer: str) -> Buffer:
    """Find the temporary to lay out. Raises ScheduleError for other buffers, a gather's table, and one not touched."""
    old = temporary(program, block, buffer)
    no_table(f"buffer '{buffer}'", program.blocks.values(), buffer)
    if not touches(program.blocks[block], buffer):
        refuse(f"buffer '{buffer}'", f"{block_place(block)} does not touch it")
    return old


def _divides_badly(expr: AffineExpr) -> bool:
    """Whether an expression is a division or a mod by anything but a positive integer; its parts are not considered."""
    if not isinstance(expr, AffineBinaryOpExpr) or expr.kind in (AffineBinaryOpKind.Add, AffineBinaryOpKind.Mul):
        return False
    return not (isinstance(expr.rhs, AffineConstantExpr) and expr.rhs.value > 0)
