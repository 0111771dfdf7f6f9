"""Exact bounds checks of quasi-affine expressions over boxes: intervals first, isl if they do not decide."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineSet

from compiler.affine import linear as lin
from compiler.affine.condition import conditions

MAX_OPERATIONS = 1_000_000


@dataclass(frozen=True)
class Escape:
    """A point of the box at which an expression leaves [0, size), and the expression's value at this point."""

    point: tuple[int, ...]
    value: int


def escape(expr: AffineExpr, size: int, extents: Sequence[int], condition: AffineSet | None = None) -> Escape | None:
    """A point of the box (0 <= d_i < extents[i]) within `condition` where `expr` is outside [0, size), or None.

    Exact: None is a proof. A query that exceeds isl's operation limit counts as an escape at the box's origin.
    """
    if isinstance(expr, AffineDimExpr) and extents[expr.position] <= size:
        return None
    ranges = lin.box(extents)
    form = lin.linear(expr, lin.variables(len(extents)), ranges)
    low, high = lin.bounds(form, ranges)
    if low >= 0 and high < size:
        return None
    return _isl_escape(expr, size, tuple(extents), condition)


@lru_cache(maxsize=1024)
def _isl_escape(expr: AffineExpr, size: int, extents: tuple[int, ...], condition: AffineSet | None) -> Escape | None:
    # 4*d0 + d1 with extents (4, 5) and size 16: [d0, d1] : 0 <= d0 < 4 and 0 <= d1 < 5 and 4*d0 + d1 >= 16 has the
    # point (3, 4), of value 16. Under the condition d1 <= 3 the set is empty.
    dims, ranges = lin.variables(len(extents)), lin.box(extents)
    names = {i: f"d{i}" for i in ranges}
    inside = [f"0 <= {names[i]} < {extent}" for i, extent in enumerate(extents)]
    if condition is not None:
        inside += [c.isl(names) for c in conditions(condition, dims, ranges)]
    index = lin.to_isl(lin.linear(expr, dims, ranges), names)
    point = point_outside(names.values(), inside, index, str(size), (0,) * len(names))
    return None if point is None else Escape(point, expr.eval(point, ()))


def point_outside(
    names: Iterable[str], inside: Sequence[str], index: str, end: str, fallback: tuple[int, ...]
) -> tuple[int, ...] | None:
    """A point of the set of the variables `names` under the constraints `inside` at which `index` is outside [0, end),
    all in isl's syntax; None if there is none, and `fallback` if isl's operation limit is exceeded."""
    import islpy as isl

    variables = tuple(names)
    constraints = " and ".join([*inside, f"({index} < 0 or {index} >= {end})"])
    context = isl.Context()
    context.set_max_operations(MAX_OPERATIONS)
    try:
        escapes = isl.Set(f"{{ [{', '.join(variables)}] : {constraints} }}", context)
        if escapes.is_empty():
            return None
        sample = escapes.sample_point()
        return tuple(int(sample.get_coordinate_val(isl.dim_type.set, i).to_python()) for i in range(len(variables)))
    except isl.Error:
        return fallback
