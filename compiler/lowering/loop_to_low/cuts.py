"""Where a loop of vectors is cut into whole iterations and a masked end.

A guard such as `16*v + lane < n` holds for all lanes in every iteration of v but the last. Each form is linear in v.
With the minimum over the lanes and the unrolled loops inside, it bounds the whole iterations; with the maximum, it
bounds the iterations that do anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.lowering.loop_to_low.context import Context
from compiler.program.tree import Loop, loops_in

SHORT = 8
"""A shorter loop is cut only if its end is one iteration with a known number: an end that is a loop doubles the code,
which few iterations do not repay."""


@dataclass(frozen=True)
class Cut:
    """How a loop is cut.

    whole: the iterations below the least of these forms are whole; `in_whole` holds in each of them.
    ends: from the least of these forms on no iteration does anything; `in_end` holds in each of those before.
    """

    whole: tuple[Linear, ...]
    in_whole: tuple[Condition, ...]
    ends: tuple[Linear, ...]
    in_end: tuple[Condition, ...]


@dataclass(frozen=True)
class _Half:
    """A condition `form - step * variable >= 0`, which fails from some iteration on; its form at its least and most."""

    variable: int
    step: int
    least: Linear
    most: Linear

    def bound(self, form: Linear, ranges: lin.Ranges) -> Linear:
        """The first iteration at which it fails."""
        return lin.floordiv(form, self.step, ranges) + lin.constant(1)

    def holds(self, form: Linear) -> Condition:
        """That it does not fail."""
        return Condition(form + Linear(((self.variable, -self.step),)))


def find_cut(context: Context, loop: Loop, guards: Sequence[Sequence[Condition]]) -> Cut | None:
    """The cut of a loop whose blocks have these open conditions; None where no iteration would gain by it.

        v = 7 { 16 lanes: D if 16*v + lane < 100 }  ->  whole (6), where 84 - 16*v >= 0, ends (7)

    Only a loop that holds vectors and no other loop is cut, so that code does not double for each level of a nest.
    """
    if context.lane is not None or not _holds_vectors_only(loop):
        return None
    ranges = context.scopes.ranges
    halves = [[h for c in guard if (h := _half(context, c, loop.number)) is not None] for guard in guards]
    every = list(dict.fromkeys(h for each in halves for h in each))
    if not every or (loop.extent < SHORT and not all(h.least.is_constant for h in every)):
        return None
    whole_bounds = tuple(dict.fromkeys(h.bound(h.least, ranges) for h in every))
    shared = [h for h in every if all(h in each for each in halves)]
    ends = tuple(dict.fromkeys(h.bound(h.most, ranges) for h in shared))
    return Cut(whole_bounds, tuple(h.holds(h.least) for h in every), ends, tuple(h.holds(h.most) for h in shared))


def _holds_vectors_only(loop: Loop) -> bool:
    kinds = {inner.kind for inner in loops_in(*loop.body)}
    return "vectorized" in kinds and kinds <= {"vectorized", "unrolled"}


def _half(context: Context, condition: Condition, variable: int) -> _Half | None:
    """The condition as a bound of a variable from above, whatever the variables inside the loop; None for others."""
    factor, ranges = condition.form.coefficient(variable), context.scopes.ranges
    if condition.equal or factor is None or factor >= 0 or condition.always(ranges):
        return None
    outside, low, high = lin.constant(condition.form.constant), 0, 0
    for atom, scale in condition.form.terms:
        term = Linear(((atom, scale),))
        if atom == variable:
            continue
        if context.is_known(term):
            outside += term
        elif any(context.is_known(lin.variable(v)) for v in term.variables()):
            return None
        else:
            smallest, largest = lin.bounds(term, ranges)
            low, high = low + smallest, high + largest
    return _Half(variable, -factor, outside + lin.constant(low), outside + lin.constant(high))
