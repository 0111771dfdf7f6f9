"""sort, by the ranks of the elements, and top_k."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr

from compiler.dialects.upstream.stablehlo.attributes import integers
from compiler.lowering.stablehlo_to_te.call import HloCall
from compiler.lowering.stablehlo_to_te.operators.elementwise import convert_to
from compiler.lowering.stablehlo_to_te.operators.reductions import outside
from compiler.lowering.stablehlo_to_te.scalars import apply_region
from compiler.lowering.stablehlo_to_te.table import handles
from compiler.te import nn
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.index import Index, IndexLike
from compiler.te.tensor import Tensor, reduce_axis

MAX_SORTED = 2048
"""The largest extent that is sorted: each element is compared with each other."""


@handles("sort")
def _sort(call: HloCall) -> Sequence[Tensor]:
    """Sort tensors together, always stably (`is_stable` is ignored), along a dimension by the region's comparison: each
    element's rank is counted against all others. Raises LoweringError above MAX_SORTED elements."""
    first = call.operands[0]
    (dim,) = call.dims("dimension", first.rank, [first.rank - 1])
    extent, block = first.shape[dim], call.op.regions[0].block
    if extent > MAX_SORTED:
        raise call.refused(f"sorts {extent} elements; up to {MAX_SORTED} are sorted")
    scalars = outside(call, block)
    j = reduce_axis(extent, "j")

    def precedes(left: Sequence[IndexLike], right: Sequence[IndexLike]) -> Expr:
        pairs = [call.at(x, *index) for x in call.operands for index in (left, right)]
        return apply_region(block, pairs, scalars)[0]

    def rank(*i: Index) -> Expr:
        rival = (*i[:dim], j, *i[dim + 1 :])
        is_before, is_behind = precedes(rival, i), precedes(i, rival)
        ties = ~is_before & ~is_behind & e.cast(j < i[dim], "i1")
        return e.sum(e.cast(is_before | ties, "i64"), axis=j)

    ranks = compute(first.shape, rank, f"{call.name}.ranks")

    def place(*i: Index) -> Expr:
        has_rank = e.equal(ranks[(*i[:dim], j, *i[dim + 1 :])], e.cast(i[dim], "i64"))
        return e.sum(e.select(has_rank, e.cast(j, "i64"), e.const(0, "i64")), axis=j)

    places = compute(first.shape, place, f"{call.name}.places")
    return [nn.take_along_axis(x, places, dim, name=f"{call.name}.{n}") for n, x in enumerate(call.operands)]


@handles("chlo.top_k")
def _top_k(call: HloCall) -> Sequence[Tensor]:
    """Return the k greatest elements along the last dimension, in descending order, and their i32 indices. Raises
    LoweringError without k."""
    attributes = call.attribute("composite_attributes")
    k = attributes.data.get("k") if isinstance(attributes, DictionaryAttr) else call.attribute("k")
    if not isinstance(k, IntegerAttr):
        raise call.refused("has no 'k'")
    values, indices = nn.topk(call.operands[0], integers(k, [0])[0], name=call.name)
    return [values, convert_to(indices, "i32", f"{call.name}.index")]
