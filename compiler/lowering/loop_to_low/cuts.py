"""Splitting of a loop of vectors into full iterations and a masked end.

A guard such as `16*v + lane < n` holds for all lanes in every iteration of v but the last. Its form is linear in v:
its minimum over lanes and unrolled inner loops bounds the full iterations, its maximum the iterations with any active
lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.lowering.loop_to_low.context import Context
from compiler.program.tree import Loop, loops_in

MIN_EXTENT = 8
"""A shorter loop is cut only if its end is one iteration with a constant number: an end that is a loop doubles the
code, which few iterations do not repay."""


@dataclass(frozen=True)
class Cut:
    """The cut of a loop into full iterations, in which all lanes are active, and an end. full: the iterations below the
    minimum of these forms are full; the conditions `in_full` are true in each. ends: the iterations from the minimum of
    these forms on are inactive (none if empty); `in_end` is true in those before."""

    full: tuple[Linear, ...]
    in_full: tuple[Condition, ...]
    ends: tuple[Linear, ...]
    in_end: tuple[Condition, ...]


@dataclass(frozen=True)
class _VariableBound:
    """A condition `form - step * variable >= 0` with a positive step; minimum and maximum of the form over lanes and
    inner loops, as forms over outer loops."""

    variable: int
    step: int
    minimum: Linear
    maximum: Linear

    def bound(self, form: Linear, ranges: lin.Ranges) -> Linear:
        """Return the first iteration at which `form - step * variable >= 0` fails."""
        return lin.floordiv(form, self.step, ranges) + lin.constant(1)

    def holds(self, form: Linear) -> Condition:
        """Return the condition `form - step * variable >= 0`."""
        return Condition(form + Linear(((self.variable, -self.step),)))


def find_cut(context: Context, loop: Loop, guards: Sequence[Sequence[Condition]]) -> Cut | None:
    """Return the cut of a loop; None if no guard bounds it from above, inside a vectorized loop, or if it is shorter
    than MIN_EXTENT and its bounds vary. `guards`: each block's untested conditions.

        v = 7 { 16 lanes: D if 16*v + lane < 100 }  ->  full (6), where 84 - 16*v >= 0, ends (7)

    Only a loop of vectors and unrolled loops is cut, so that code does not double at each level of a nest.
    """
    if context.lane is not None or not _holds_vectors_only(loop):
        return None
    ranges = context.scopes.ranges
    bounds_by_block = [
        [h for c in guard if (h := _variable_bound(context, c, loop.number)) is not None] for guard in guards
    ]
    all_bounds = list(dict.fromkeys(h for block_bounds in bounds_by_block for h in block_bounds))
    if not all_bounds or (loop.extent < MIN_EXTENT and not all(h.minimum.is_constant for h in all_bounds)):
        return None
    full_bounds = tuple(dict.fromkeys(h.bound(h.minimum, ranges) for h in all_bounds))
    common = [h for h in all_bounds if all(h in block_bounds for block_bounds in bounds_by_block)]
    ends = tuple(dict.fromkeys(h.bound(h.maximum, ranges) for h in common))
    return Cut(
        full_bounds, tuple(h.holds(h.minimum) for h in all_bounds), ends, tuple(h.holds(h.maximum) for h in common)
    )


def _holds_vectors_only(loop: Loop) -> bool:
    kinds = {inner.kind for inner in loops_in(*loop.body)}
    return "vectorized" in kinds and kinds <= {"vectorized", "unrolled"}


def _variable_bound(context: Context, condition: Condition, variable: int) -> _VariableBound | None:
    """Return a condition as an upper bound of a variable, for all values of inner variables; None for an equality, a
    condition that always holds, bounds the variable from below or is not linear in it, and a term that mixes outer and
    inner variables. Example: 100 - 16*v - lane >= 0 over 16 lanes has step 16, minimum 85 and maximum 100."""
    factor, ranges = condition.form.coefficient(variable), context.scopes.ranges
    if condition.equal or factor is None or factor >= 0 or condition.always(ranges):
        return None
    outer_form, low, high = lin.constant(condition.form.constant), 0, 0
    for atom, scale in condition.form.terms:
        term = Linear(((atom, scale),))
        if atom == variable:
            continue
        if context.is_bound(term):
            outer_form += term
        elif any(context.is_bound(lin.variable(v)) for v in term.variables()):
            return None
        else:
            smallest, largest = lin.bounds(term, ranges)
            low, high = low + smallest, high + largest
    return _VariableBound(variable, -factor, outer_form + lin.constant(low), outer_form + lin.constant(high))
