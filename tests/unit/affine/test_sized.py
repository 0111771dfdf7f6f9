"""`escape_below` against enumeration: expressions over axes below forms of sizes, for all sizes."""

from __future__ import annotations

import random
from itertools import product

import pytest
from xdsl.ir.affine import AffineConstraintExpr, AffineConstraintKind, AffineExpr, AffineSet

from compiler.affine.sized import Domain, capacity, empty, escape_below

D0, D1 = AffineExpr.dimension(0), AffineExpr.dimension(1)
S, T = AffineExpr.symbol(0), AffineExpr.symbol(1)


def at_least_zero(*forms: AffineExpr) -> AffineSet:
    zero = AffineExpr.constant(0)
    return AffineSet(2, 2, tuple(AffineConstraintExpr(AffineConstraintKind.ge, form, zero) for form in forms))


def holds(condition: AffineSet | None, axes: tuple[int, ...], sizes: tuple[int, ...]) -> bool:
    constraints = () if condition is None else condition.constraints
    return all(c.lhs.eval(axes, sizes) >= c.rhs.eval(axes, sizes) for c in constraints)


def escapes(expr: AffineExpr, extent: AffineExpr, domain: Domain, condition: AffineSet | None) -> bool:
    for sizes in product(*(range(low, high + 1) for low, high in domain.sizes)):
        if not holds(domain.relations, (), sizes):
            continue
        for axes in product(*(range(end.eval((), sizes)) for end in domain.extents)):
            if holds(condition, axes, sizes) and not 0 <= expr.eval(axes, sizes) < extent.eval((), sizes):
                return True
    return False


@pytest.mark.parametrize("seed", range(60))
def test_an_escape_is_found_where_enumeration_finds_one(seed: int) -> None:
    rng = random.Random(seed)
    indices = [D0, D0 + 1, D0 - 1, S - 1 - D0, D0 + D1, (D0 + S) // 2, D0 % 3, T - 1, D1 + T - D0, (D0 + D1) // 2]
    extents = [S, T, S + T - 1, S + 1, (S + T) // 2, AffineExpr.constant(5)]
    domain = Domain(
        (rng.choice(extents), rng.choice(extents)),
        ((rng.randint(1, 2), rng.randint(2, 5)), (1, rng.randint(1, 4))),
        at_least_zero(S - T) if rng.random() < 0.4 else None,
    )
    condition = rng.choice([None, at_least_zero(D0 - 1), at_least_zero(S - D0 - 2), at_least_zero(T - D1 - D0)])
    expr, extent = rng.choice(indices), rng.choice(extents)
    found = escape_below(expr, extent, domain, condition)
    assert (found is not None) == escapes(expr, extent, domain, condition)
    if found is not None:
        axes, sizes = found.point[:2], found.point[2:]
        assert holds(condition, axes, sizes) and holds(domain.relations, (), sizes)
        assert found.value == expr.eval(axes, sizes) and not 0 <= found.value < extent.eval((), sizes)
        assert all(axis < end.eval((), sizes) for axis, end in zip(axes, domain.extents, strict=True))


def test_the_capacity_of_a_form_and_sizes_that_no_call_has() -> None:
    assert capacity(S * 4 + 3, [(1, 512)]) == (7, 2051)
    assert capacity(AffineExpr.constant(8), []) == (8, 8)
    assert not empty(Domain((), ((1, 4), (1, 4)), at_least_zero(S - T)))
    assert empty(Domain((), ((1, 4), (5, 9)), at_least_zero(S - T)))
