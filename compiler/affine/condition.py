"""Conditions: quasi-affine constraints as linear forms, and tests of them by interval arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir.affine import AffineConstraintExpr, AffineConstraintKind, AffineExpr, AffineSet

from compiler.affine import linear as lin
from compiler.affine.linear import Linear


@dataclass(frozen=True, slots=True)
class Condition:
    """A constraint over variables: form >= 0 or, with `equal`, form == 0."""

    form: Linear
    equal: bool = False

    def always(self, ranges: lin.Ranges) -> bool:
        """Whether interval arithmetic proves the condition for all values in `ranges`; False may mean undecided."""
        low, high = lin.bounds(self.form, ranges)
        return low == high == 0 if self.equal else low >= 0

    def never(self, ranges: lin.Ranges) -> bool:
        """Whether interval arithmetic refutes the condition for all values in `ranges`; False may mean undecided."""
        low, high = lin.bounds(self.form, ranges)
        return high < 0 or (self.equal and low > 0)

    def substitute(self, values: Mapping[int, Linear], ranges: lin.Ranges) -> Condition:
        """Substitute forms for variables, by number; `ranges` are the ranges of the variables in the new condition."""
        return Condition(lin.substitute(self.form, values, ranges), self.equal)

    def tightened(self, ranges: lin.Ranges) -> Condition:
        """Drop terms that cannot decide an inequality over `ranges`: `4*i + j <= 287`, j in [0, 4), is `i <= 71`.
        Equalities stay."""
        if self.equal:
            return self
        parts = lin.low_part(self.form, None, ranges)
        return self if parts is None else Condition(parts[1]).tightened(ranges)

    def isl(self, names: Mapping[int, str]) -> str:
        """The condition in isl's syntax, variables spelled names[variable]."""
        return f"{lin.to_isl(self.form, names)} {'=' if self.equal else '>='} 0"


def conditions(guard: AffineSet, dims: Sequence[Linear], ranges: lin.Ranges) -> list[Condition]:
    """Translate each constraint of a set to a condition; dimension i becomes dims[i], of variables in `ranges`."""
    forms = []
    for constraint in guard.constraints:
        form = lin.linear(constraint.lhs, dims, ranges) - lin.linear(constraint.rhs, dims, ranges)
        sign = -1 if constraint.kind is AffineConstraintKind.le else 1
        forms.append(Condition(form.scaled(sign), constraint.kind is AffineConstraintKind.eq))
    return forms


def to_set(forms: Sequence[Condition], dims: Mapping[int, AffineExpr], count: int) -> AffineSet:
    """Translate a conjunction of conditions to a set over `count` dimensions; variable v becomes dims[v]."""
    zero = AffineExpr.constant(0)
    kinds = {True: AffineConstraintKind.eq, False: AffineConstraintKind.ge}
    exprs = [AffineConstraintExpr(kinds[c.equal], lin.to_affine(c.form, dims), zero) for c in forms]
    return AffineSet(count, 0, tuple(exprs))
