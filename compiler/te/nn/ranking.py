"""Order: the greatest or least elements along an axis, and sorting, by counting or by repeated selection."""

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
from compiler.te.nn.selection import LAST, worst
from compiler.te.tensor import Tensor, reduce_axis
from compiler.types.elements import is_float

COUNTED = 2048
"""The longest axis whose elements are ranked by comparing each with each."""
SELECTED = 32
"""The most elements that are selected one after another along a longer axis."""


def topk(x: Tensor, k: int, axis: int = -1, largest: bool = True, name: str = "topk") -> tuple[Tensor, Tensor]:
    """V, P = the k greatest (least) elements along an axis in order, and their places, i64; NaN counts as greatest.

    Of equal elements the first comes first. An axis of up to 2048 elements is ranked by counting, each with each; of a
    longer one up to 32 are selected one after another. Raises TeError, also for more of a longer one.
    """
    along = check_axis("topk", check_tensor("topk", x), axis)
    check_flag("topk", "largest", largest)
    extent = x.shape[along]
    if not is_count(k) or not 1 <= k <= extent:
        raise TeError(
            f"topk: k is {k!r}, expected an integer from 1 to {extent}, the extent of axis {along} of '{x.name}'"
        )
    if x.dtype == "i1":
        raise TeError(f"topk: '{x.name}' is of i1: te.nn.cast it first")
    if extent > COUNTED and k > SELECTED:
        raise TeError(
            f"topk: {k} of {extent} elements along axis {along} of '{x.name}' would need a sort; axes of up to "
            f"{COUNTED} are ranked, and of longer ones up to {SELECTED} selected"
        )
    places = _counted(x, k, along, largest, name) if extent <= COUNTED else _selected(x, k, along, largest, name)
    return take_along_axis(x, places, along, name=name), places


def sort(x: Tensor, axis: int = -1, descending: bool = False, name: str = "sort") -> tuple[Tensor, Tensor]:
    """V, P = the elements along an axis, of up to 2048, in order, and their places, i64; stable, NaN last or first.

    Raises TeError.
    """
    along = check_axis("sort", check_tensor("sort", x), axis)
    check_flag("sort", "descending", descending)
    if x.shape[along] > COUNTED:
        raise TeError(f"sort: axis {along} of '{x.name}' has {x.shape[along]} elements; up to {COUNTED} are sorted")
    return topk(x, x.shape[along], along, descending, name)


def _before(a: Expr, b: Expr, largest: bool) -> Expr:
    """Whether one element stands before another that differs."""
    ahead = a > b if largest else a < b
    if not is_float(a.dtype):
        return ahead
    first, second = (a, b) if largest else (b, a)
    return ahead | (e.not_equal(first, first) & e.equal(second, second))


def _alike(a: Expr, b: Expr) -> Expr:
    same = e.equal(a, b)
    return same | (e.not_equal(a, a) & e.not_equal(b, b)) if is_float(a.dtype) else same


def _along(i: tuple[Index, ...], d: int, index: IndexLike) -> tuple[IndexLike, ...]:
    return (*i[:d], index, *i[d + 1 :])


def _counted(x: Tensor, k: int, d: int, largest: bool, name: str) -> Tensor:
    """The places: an element's rank is the number of those before it."""
    j = reduce_axis(x.shape[d], "j")

    def rank(*i: Index) -> Reduce:
        element, met = x[i], x[_along(i, d, j)]
        is_before = _before(met, element, largest) | (_alike(met, element) & e.cast(j < i[d], "i1"))
        return e.sum(e.cast(is_before, "i64"), axis=j)

    ranks = compute(x.shape, rank, f"{name}.ranks")
    shape = [k if n == d else size for n, size in enumerate(x.shape)]

    def place(*i: Index) -> Reduce:
        meets = e.equal(ranks[_along(i, d, j)], e.cast(i[d], "i64"))
        return e.sum(e.select(meets, e.cast(j, "i64"), e.const(0, "i64")), axis=j)

    return compute(shape, place, f"{name}.places")


def _selected(x: Tensor, k: int, d: int, largest: bool, name: str) -> Tensor:
    """The places: k times the first of those behind the last one that was selected."""
    from compiler.te.nn.shape import concat

    sentinel = worst(x.dtype, lowest=largest) if largest or not is_float(x.dtype) else math.nan
    pick = combiner(lambda current, added: _ahead(current, added, largest), (sentinel, LAST))
    shape = [1 if n == d else size for n, size in enumerate(x.shape)]
    places: list[Tensor] = []
    last: Tensor | None = None
    for number in range(k):
        j = reduce_axis(x.shape[d], "j")

        def element(*i: Index, j: Index = j, value: Tensor | None = last) -> tuple[Reduce, ...]:
            value_here: Expr = x[_along(i, d, j)]
            place = e.cast(j, "i64")
            if value is not None:
                last_value, at = value[i], places[-1][i]
                behind = _before(last_value, value_here, largest) | (_alike(last_value, value_here) & (at < place))
                value_here = e.select(behind, value_here, e.const(sentinel, x.dtype))
                place = e.select(behind, place, e.const(LAST, "i64"))
            return reduce(pick, (value_here, place), axis=j)  # type: ignore[arg-type]

        last, at = compute(shape, element, f"{name}.step{number}", axes=[f"i{n}" for n in range(x.rank)])
        places.append(at)
    return concat(places, d, f"{name}.places")


def _ahead(current: tuple[Expr, ...], added: tuple[Expr, ...], largest: bool) -> tuple[Expr, Expr]:
    (v, i), (w, j) = current, added
    take = _before(w, v, largest) | (_alike(v, w) & (j < i))
    return e.select(take, w, v), e.select(take, j, i)
