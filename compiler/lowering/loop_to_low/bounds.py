"""The bounds of a loop: its extent, narrowed by the guards that its variable completes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.lowering.loop_to_low.context import Context
from compiler.lowering.loop_to_low.scopes import Scopes


class Bounds:
    """The bounds of a loop: its extent, narrowed by guards that its variable completes."""

    def __init__(self, extent: int, lows: Sequence[Linear] = (), highs: Sequence[Linear] = ()) -> None:
        self.extent = extent
        self.lows = list(lows)
        self.highs = list(highs)

    def below(self, forms: Sequence[Linear]) -> Bounds:
        """The bounds of the iterations that are also below the least of some forms."""
        return Bounds(self.extent, self.lows, [*self.highs, *forms])

    def take(self, context: Context, condition: Condition, variable: int) -> bool:
        """Narrow the bounds by a condition f + a*v >= 0 over known f; False if it is not of that form."""
        factor = condition.form.coefficient(variable)
        invariant = condition.form - Linear(((variable, factor or 0),)) if factor else None
        if condition.equal or invariant is None or not context.is_known(invariant) or context.has_lanes(invariant):
            return False
        ranges = context.scopes.ranges
        if factor is not None and factor < 0:  # v <= floor(f / -a)
            quotient = invariant if factor == -1 else None
            self.highs.append((quotient or _floor(invariant, -factor, ranges)) + lin.constant(1))
        else:
            assert factor is not None
            self.lows.append(_floor(invariant.scaled(-1) + lin.constant(factor - 1), factor, ranges))
        return True

    def count(self, ranges: lin.Ranges) -> int | None:
        """How many iterations there are, from the first on, where that is always as many."""
        if self._starts_later(ranges):
            return None
        smallest, largest = self._span(ranges)
        return max(smallest, 0) if max(smallest, 0) == max(largest, 0) else None

    def lower(self, scopes: Scopes) -> SSAValue:
        """Where the iterations start."""
        value = scopes.index_constant(0)
        for form in self.lows:
            if lin.bounds(form, scopes.ranges)[1] > 0:
                value = scopes.add(arith.MaxSIOp(value, scopes.index(form)))
        return value

    def upper(self, scopes: Scopes) -> SSAValue:
        """The end of the iterations; not above `lower` for an empty loop."""
        constant_end = min([self.extent, *(form.constant for form in self.highs if form.is_constant)])
        value = scopes.index_constant(constant_end)
        for form in self.highs:
            if not form.is_constant and lin.bounds(form, scopes.ranges)[0] < constant_end:
                value = scopes.add(arith.MinSIOp(value, scopes.index(form)))
        return value

    def end(self, scopes: Scopes) -> SSAValue:
        """The end of the iterations; `lower` for an empty loop."""
        if self.count(scopes.ranges) == 0:
            return self.lower(scopes)
        value = self.upper(scopes)
        if self._starts_later(scopes.ranges) or self._span(scopes.ranges)[0] < 0:
            value = scopes.add(arith.MaxSIOp(value, self.lower(scopes)))
        return value

    def _starts_later(self, ranges: lin.Ranges) -> bool:
        return any(lin.bounds(form, ranges)[1] > 0 for form in self.lows)

    def _span(self, ranges: lin.Ranges) -> lin.Range:
        """The least and the most that `upper` can be."""
        spans = [(self.extent, self.extent), *(lin.bounds(form, ranges) for form in self.highs)]
        return min(low for low, _ in spans), min(high for _, high in spans)


def _floor(form: Linear, divisor: int, ranges: lin.Ranges) -> Linear:
    return form if divisor == 1 else lin.floordiv(form, divisor, ranges)
