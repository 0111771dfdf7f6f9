"""Top-k and sorting along an axis, by counting ranks or by repeated selection."""

from __future__ import annotations

import math

from compiler.support.errors import TeError
from compiler.te import scalar as e
from compiler.te.combiner import combiner, reduce
from compiler.te.compute import compute
from compiler.te.expr import Expr, Reduce
from compiler.te.index import Index, IndexLike
from compiler.te.nn.common import check_axis, check_flag, check_tensor, is_count
from compiler.te.nn.gather import take_along_axis
from compiler.te.nn.selection import LAST_INDEX, extremum_identity
from compiler.te.tensor import Tensor, reduce_axis
from compiler.types.dtypes import is_float

MAX_RANKED = 2048
"""The largest extent of an axis that is ranked by comparing all pairs of elements."""
MAX_SELECTED = 32
"""The largest k for a longer axis, whose elements are selected one after another."""


def topk(x: Tensor, k: int, axis: int = -1, largest: bool = True, name: str = "topk") -> tuple[Tensor, Tensor]:
    """V, P = the k greatest (or least) elements along an axis, sorted, and their indices, i64; NaN counts as greatest.

    Stable; x is of any dtype of numbers. An axis of up to 2048 elements is ranked by comparing all pairs; of a longer
    one at most 32 elements are selected one after another. Raises TeError for more, for an i1, and for other arguments.
    """
    dim = check_axis("topk", check_tensor("topk", x), axis)
    check_flag("topk", "largest", largest)
    extent = x.shape[dim]
    if not is_count(k) or not 1 <= k <= extent:
        raise TeError(
            f"topk: k is {k!r}, expected an integer from 1 to {extent}, the extent of axis {dim} of '{x.name}'"
        )
    if x.dtype == "i1":
        raise TeError(f"topk: '{x.name}' is of i1: te.nn.cast it first")
    if extent > MAX_RANKED and k > MAX_SELECTED:
        raise TeError(
            f"topk: {k} of {extent} elements along axis {dim} of '{x.name}' would need a sort; axes of up to "
            f"{MAX_RANKED} are ranked, and of longer ones up to {MAX_SELECTED} selected"
        )
    indices = (_by_rank if extent <= MAX_RANKED else _by_selection)(x, k, dim, largest, name)
    return take_along_axis(x, indices, dim, name=name), indices


def sort(x: Tensor, axis: int = -1, descending: bool = False, name: str = "sort") -> tuple[Tensor, Tensor]:
    """V, P = the sorted elements along an axis, and their indices, i64; stable, NaN last (or first if descending).

    Raises TeError, also for an axis of more than 2048 elements.
    """
    dim = check_axis("sort", check_tensor("sort", x), axis)
    check_flag("sort", "descending", descending)
    if x.shape[dim] > MAX_RANKED:
        raise TeError(f"sort: axis {dim} of '{x.name}' has {x.shape[dim]} elements; up to {MAX_RANKED} are sorted")
    return topk(x, x.shape[dim], dim, descending, name)


def _before(a: Expr, b: Expr, largest: bool) -> Expr:
    """Build an i1, true if a sorts strictly before b: greater if `largest`, else less; NaN counts as greatest."""
    precedes = a > b if largest else a < b
    if not is_float(a.dtype):
        return precedes
    first, second = (a, b) if largest else (b, a)
    return precedes | (e.not_equal(first, first) & e.equal(second, second))


def _ties(a: Expr, b: Expr) -> Expr:
    is_equal = e.equal(a, b)
    return is_equal | (e.not_equal(a, a) & e.not_equal(b, b)) if is_float(a.dtype) else is_equal


def _replaced(i: tuple[Index, ...], d: int, index: IndexLike) -> tuple[IndexLike, ...]:
    return (*i[:d], index, *i[d + 1 :])


def _by_rank(x: Tensor, k: int, d: int, largest: bool, name: str) -> Tensor:
    """Compute the indices of the first k elements in order (descending if `largest`) along dimension d: result i is the
    index of the element that sorts after i others."""
    j = reduce_axis(x.shape[d], "j")

    def rank(*i: Index) -> Reduce:
        element, rival = x[i], x[_replaced(i, d, j)]
        is_before = _before(rival, element, largest) | (_ties(rival, element) & e.cast(j < i[d], "i1"))
        return e.sum(e.cast(is_before, "i64"), axis=j)

    ranks = compute(x.shape, rank, f"{name}.ranks")
    shape = [k if n == d else size for n, size in enumerate(x.shape)]

    def place(*i: Index) -> Reduce:
        has_rank = e.equal(ranks[_replaced(i, d, j)], e.cast(i[d], "i64"))
        return e.sum(e.select(has_rank, e.cast(j, "i64"), e.const(0, "i64")), axis=j)

    return compute(shape, place, f"{name}.places")


def _by_selection(x: Tensor, k: int, d: int, largest: bool, name: str) -> Tensor:
    """Compute the indices of the first k elements in order (descending if `largest`) along dimension d in k steps, each
    of which selects the best element that sorts after that of the previous step."""
    from compiler.te.nn.shape import concat

    sentinel = extremum_identity(x.dtype, lowest=largest) if largest or not is_float(x.dtype) else math.nan
    pick = combiner(lambda current, added: _ahead(current, added, largest), (sentinel, LAST_INDEX))
    shape = [1 if n == d else size for n, size in enumerate(x.shape)]
    indices: list[Tensor] = []
    previous: Tensor | None = None
    for number in range(k):
        j = reduce_axis(x.shape[d], "j")

        def element(*i: Index, j: Index = j, previous_values: Tensor | None = previous) -> tuple[Reduce, ...]:
            candidate: Expr = x[_replaced(i, d, j)]
            index = e.cast(j, "i64")
            if previous_values is not None:
                limit, limit_index = previous_values[i], indices[-1][i]
                follows = _before(limit, candidate, largest) | (_ties(limit, candidate) & (limit_index < index))
                candidate = e.select(follows, candidate, e.const(sentinel, x.dtype))
                index = e.select(follows, index, e.const(LAST_INDEX, "i64"))
            return reduce(pick, (candidate, index), axis=j)  # type: ignore[arg-type]

        previous, index = compute(shape, element, f"{name}.step{number}", axes=[f"i{n}" for n in range(x.rank)])
        indices.append(index)
    return concat(indices, d, f"{name}.places")


def _ahead(current: tuple[Expr, ...], added: tuple[Expr, ...], largest: bool) -> tuple[Expr, Expr]:
    (v, i), (w, j) = current, added
    take = _before(w, v, largest) | (_ties(v, w) & (j < i))
    return e.select(take, w, v), e.select(take, j, i)
