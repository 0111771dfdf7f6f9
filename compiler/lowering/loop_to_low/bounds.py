"""The bounds of a loop: its extent, narrowed by guards."""

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
    """The iterations of a loop: from the largest of 0 and `lows` to before the smallest of its extent and `highs`."""

    def __init__(self, extent: int, lows: Sequence[Linear] = (), highs: Sequence[Linear] = ()) -> None:
        self.extent = extent
        self.lows = list(lows)
        self.highs = list(highs)

    def with_highs(self, forms: Sequence[Linear]) -> Bounds:
        """Return the bounds with further exclusive upper bounds."""
        return Bounds(self.extent, self.lows, [*self.highs, *forms])

    def narrow(self, context: Context, condition: Condition, variable: int) -> bool:
        """Narrow the bounds by a condition f + a*v >= 0, with a not 0, in which f has bound variables only, not the
        lane; return True. Return False, and change nothing, for any other condition. Example: 99 - 16*v >= 0 becomes v
        < floor(99 / 16) + 1 = 7."""
        factor = condition.form.coefficient(variable)
        invariant = condition.form - Linear(((variable, factor or 0),)) if factor else None
        if condition.equal or invariant is None or not context.is_bound(invariant) or context.has_lanes(invariant):
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
        """Return the number of iterations if ranges prove that they start at 0 and that the number is constant; else
        None."""
        if self._has_lower_bound(ranges):
            return None
        smallest, largest = self._range_of_upper(ranges)
        return max(smallest, 0) if max(smallest, 0) == max(largest, 0) else None

    def lower(self, scopes: Scopes) -> SSAValue:
        """Emit the number of the first iteration, the largest of 0 and `lows`, and return it."""
        value = scopes.index_constant(0)
        for form in self.lows:
            if lin.bounds(form, scopes.ranges)[1] > 0:
                value = scopes.add(arith.MaxSIOp(value, scopes.index(form)))
        return value

    def upper(self, scopes: Scopes) -> SSAValue:
        """Emit the exclusive upper bound and return it; it may be below `lower` for an empty loop."""
        constant_end = min([self.extent, *(form.constant for form in self.highs if form.is_constant)])
        value = scopes.index_constant(constant_end)
        for form in self.highs:
            if not form.is_constant and lin.bounds(form, scopes.ranges)[0] < constant_end:
                value = scopes.add(arith.MinSIOp(value, scopes.index(form)))
        return value

    def end(self, scopes: Scopes) -> SSAValue:
        """Emit the exclusive upper bound and return it; it equals `lower` for an empty loop."""
        if self.count(scopes.ranges) == 0:
            return self.lower(scopes)
        value = self.upper(scopes)
        if self._has_lower_bound(scopes.ranges) or self._range_of_upper(scopes.ranges)[0] < 0:
            value = scopes.add(arith.MaxSIOp(value, self.lower(scopes)))
        return value

    def _has_lower_bound(self, ranges: lin.Ranges) -> bool:
        return any(lin.bounds(form, ranges)[1] > 0 for form in self.lows)

    def _range_of_upper(self, ranges: lin.Ranges) -> lin.Range:
        spans = [(self.extent, self.extent), *(lin.bounds(form, ranges) for form in self.highs)]
        return min(low for low, _ in spans), min(high for _, high in spans)


def _floor(form: Linear, divisor: int, ranges: lin.Ranges) -> Linear:
    return form if divisor == 1 else lin.floordiv(form, divisor, ranges)
