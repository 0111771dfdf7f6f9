"""Exact bounds checks of quasi-affine expressions over axes whose extents are forms of sizes, for all values of these.

A size is an integer that each call gives, with a range. In an expression it is a symbol, `s0` the first size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from xdsl.ir.affine import AffineConstraintExpr, AffineExpr, AffineMap, AffineSet, AffineSymExpr

from compiler.affine import linear as lin
from compiler.affine.condition import Condition, conditions
from compiler.affine.exact import Escape, point_outside
from compiler.affine.linear import Linear


@dataclass(frozen=True)
class Domain:
    """The values of axes and sizes at which a body is evaluated: each axis d is in [0, extents[d]), an expression of
    sizes; each size is in its inclusive range, and `relations`, a set over the sizes as symbols, hold of them."""

    extents: tuple[AffineExpr, ...]
    sizes: tuple[lin.Range, ...]
    relations: AffineSet | None = None

    @property
    def ranges(self) -> dict[int, lin.Range]:
        """The inclusive range of each axis by its number, and behind them of each size."""
        axes = [lin.bounds(self.form(extent), self._size_ranges)[1] - 1 for extent in self.extents]
        return {d: (0, most) for d, most in enumerate(axes)} | self._size_ranges

    @property
    def _size_ranges(self) -> dict[int, lin.Range]:
        return {len(self.extents) + n: bounds for n, bounds in enumerate(self.sizes)}

    def over_dims(self, expr: AffineExpr) -> AffineExpr:
        """Replace the symbols of an expression by the dimensions behind the axes."""
        axes, count = len(self.extents), len(self.sizes)
        return expr.replace_dims_and_symbols(
            [AffineExpr.dimension(d) for d in range(axes)], [AffineExpr.dimension(axes + n) for n in range(count)]
        )

    def form(self, expr: AffineExpr, ranges: lin.Ranges | None = None) -> Linear:
        """The form of an expression over axes and sizes: size n is the variable behind the last axis, plus n. Without
        `ranges` of axes, those of the sizes simplify it."""
        variables = lin.variables(len(self.extents) + len(self.sizes))
        return lin.linear(self.over_dims(expr), variables, self._size_ranges if ranges is None else ranges)

    def conditions(self, condition: AffineSet | None) -> list[Condition]:
        """The constraints of a set over axes and sizes as conditions; none for None."""
        if condition is None:
            return []
        sides = [[self.over_dims(side) for side in (c.lhs, c.rhs)] for c in condition.constraints]
        over = [AffineConstraintExpr(c.kind, *pair) for c, pair in zip(condition.constraints, sides, strict=True)]
        count = len(self.extents) + len(self.sizes)
        return conditions(AffineSet(count, 0, tuple(over)), lin.variables(count), self.ranges)


def escape_below(expr: AffineExpr, extent: AffineExpr, domain: Domain, condition: AffineSet | None) -> Escape | None:
    """A point of a domain, within `condition`, where `expr` is outside [0, extent), or None; `extent` is an expression
    of sizes. The point has the values of the axes, then those of the sizes.

    Exact: None is a proof for all sizes. A query that exceeds isl's operation limit counts as an escape at the least
    sizes and the axes' origin.
    """
    ranges = domain.ranges
    index, end = domain.form(expr, ranges), domain.form(extent, ranges)
    variable = index.as_variable
    if variable is not None and variable < len(domain.extents) and domain.form(domain.extents[variable], ranges) == end:
        return None
    if lin.bounds(index, ranges)[0] >= 0 and lin.bounds(end - index, ranges)[0] >= 1:
        return None
    return _isl_escape(expr, extent, domain, condition)


def empty(domain: Domain) -> bool:
    """Whether no values of the sizes satisfy a domain's ranges and relations. Exact unless isl's limit is exceeded:
    then False."""
    if domain.relations is None:
        return False
    sizes = Domain((), domain.sizes, domain.relations)
    return _isl_escape(AffineExpr.constant(-1), AffineExpr.constant(0), sizes, None) is None


def capacity(extent: AffineExpr, sizes: Sequence[lin.Range]) -> lin.Range:
    """The least and the most value of an extent, an expression of sizes, over their inclusive ranges."""
    domain = Domain((), tuple(sizes))
    return lin.bounds(domain.form(extent), domain.ranges)


@lru_cache(maxsize=1024)
def _isl_escape(expr: AffineExpr, extent: AffineExpr, domain: Domain, condition: AffineSet | None) -> Escape | None:
    # d0 + 1 with d0 below s0, 1 <= s0 <= 512, and the extent s0: [d0, d1] : 1 <= d1 <= 512 and 0 <= d0 < d1 and
    # d0 + 1 >= d1 has the point (0, 1), of value 1. With the extent s0 + 1 the set is empty.
    ranges, axes = domain.ranges, len(domain.extents)
    names = {n: f"d{n}" for n in ranges}
    inside = [f"{low} <= {names[axes + n]} <= {high}" for n, (low, high) in enumerate(domain.sizes)]
    for n, below in enumerate(domain.extents):
        inside.append(f"0 <= {names[n]} < {lin.to_isl(domain.form(below, ranges), names)}")
    stated = [*domain.conditions(domain.relations), *domain.conditions(condition)]
    inside += [c.isl(names) for c in stated]
    index, end = (lin.to_isl(domain.form(e, ranges), names) for e in (expr, extent))
    fallback = (*(0 for _ in range(axes)), *(low for low, _ in domain.sizes))
    point = point_outside(names.values(), inside, index, end, fallback)
    return None if point is None else Escape(point, domain.over_dims(expr).eval(point, ()))


def size_map(dims: int, results: Sequence[AffineExpr], sizes: int) -> AffineMap:
    """A map over `dims` axes, with `sizes` symbols if one occurs in it, else without symbols."""
    return AffineMap(dims, _symbols(results, sizes), tuple(results))


def size_set(dims: int, constraints: Sequence[AffineConstraintExpr], sizes: int) -> AffineSet:
    """A set over `dims` axes, with `sizes` symbols if one occurs in it, else without symbols."""
    sides = [side for c in constraints for side in (c.lhs, c.rhs)]
    return AffineSet(dims, _symbols(sides, sizes), tuple(constraints))


def _symbols(expressions: Sequence[AffineExpr], sizes: int) -> int:
    return sizes if any(isinstance(part, AffineSymExpr) for expr in expressions for part in expr.dfs()) else 0
