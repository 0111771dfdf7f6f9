"""Exact questions about quasi-affine expressions over boxes: intervals first, isl where they do not decide."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineSet

from compiler.affine import linear as lin
from compiler.affine.text import constraint_isl, to_isl

_MAX_OPERATIONS = 1_000_000


@dataclass(frozen=True)
class Escape:
    """A point of the box at which an expression leaves [0, size)."""

    point: tuple[int, ...]
    value: int


def escape(expr: AffineExpr, size: int, extents: Sequence[int], condition: AffineSet | None = None) -> Escape | None:
    """A point of the box (0 <= d_i < extents[i]) within `condition` where `expr` is outside [0, size), or None.

    Exact: None is a proof. A query that exceeds isl's operation limit counts as an escape at the box's origin.
    """
    if isinstance(expr, AffineDimExpr) and extents[expr.position] <= size:
        return None
    ranges = {i: (0, extent - 1) for i, extent in enumerate(extents)}
    form = lin.linear(expr, [lin.variable(i) for i in range(len(extents))], ranges)
    low, high = lin.bounds(form, ranges)
    if low >= 0 and high < size:
        return None
    return _isl_escape(expr, size, tuple(extents), condition)


@lru_cache(maxsize=1024)
def _isl_escape(expr: AffineExpr, size: int, extents: tuple[int, ...], condition: AffineSet | None) -> Escape | None:
    import islpy as isl

    names = [f"d{i}" for i in range(len(extents))]
    inside = [f"0 <= {name} < {extent}" for name, extent in zip(names, extents, strict=True)]
    if condition is not None:
        inside += [constraint_isl(c, names) for c in condition.constraints]
    index = to_isl(expr, names)
    outside = f"({index} < 0 or {index} >= {size})"
    context = isl.Context()
    context.set_max_operations(_MAX_OPERATIONS)
    try:
        bad = isl.Set(f"{{ [{', '.join(names)}] : {' and '.join([*inside, outside])} }}", context)
        if bad.is_empty():
            return None
        sample = bad.sample_point()
        point = tuple(int(sample.get_coordinate_val(isl.dim_type.set, i).to_python()) for i in range(len(names)))
    except isl.Error:
        point = (0,) * len(names)
    return Escape(point, expr.eval(point, ()))
