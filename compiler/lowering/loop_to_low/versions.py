"""Versions of a stage of a kernel: without the selections that nothing needs in an iteration of the loops around it.

    t { thread_x { L[x] = select(m >= 64 t + x, S[x], -inf) } }
  ->
    t { if m >= 64 t + 63 { thread_x { L[x] = S[x] } } else { thread_x { L[x] = select(m >= 64 t + x, S[x], -inf) } } }

So a causal mask costs nothing in the blocks of keys that are wholly below the diagonal.
"""

from __future__ import annotations

from collections.abc import Iterator

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.dialects.upstream.arith import SelectOp
from compiler.lowering.loop_to_low.context import Context
from compiler.program.body import Apply, reached
from compiler.program.index_values import affine_test
from compiler.program.tree import Block, Loop, blocks_in, loops_in


def conditions_for_all(context: Context, stage: Loop | Block) -> list[Condition]:
    """Return conditions over the loops around a stage under which the conditions of selections in it hold in all of its
    iterations; those alone that change with a serial loop around it and that may hold and may fail."""
    own = {loop.number for loop in loops_in(stage)}
    found: dict[Condition, None] = {}
    for block in blocks_in(stage):
        for test in _tests(context, block):
            condition = _least(context, test, own)
            if condition is not None:
                found[condition] = None
    return list(found)


def _tests(context: Context, block: Block) -> Iterator[Condition]:
    """Yield the conditions of a block's selections, over loops."""
    for value in reached(block.body):
        if isinstance(value, Apply) and value.kind is SelectOp:
            test = affine_test(value.operands[0], block.bindings, context.program.ranges)
            if test is not None and not test.equal:
                yield test


def _least(context: Context, test: Condition, own: set[int]) -> Condition | None:
    """Return the condition that the least value of `test` over the loops `own` fulfils it; None unless a serial loop
    around them decides about it."""
    ranges, loops = context.scopes.ranges, context.program.loops
    outer = lin.constant(test.form.constant)
    inner = lin.constant(0)
    for atom, factor in test.form.terms:
        term, variables = lin.Linear(((atom, factor),)), lin.variables_of(atom)
        if variables <= own:
            inner = inner + term
        elif variables.isdisjoint(own):
            outer = outer + term
        else:
            return None
    condition = Condition(outer + lin.constant(lin.bounds(inner, ranges)[0]))
    kinds = {loops[number].kind for number in outer.variables() if number in loops}
    if "serial" not in kinds or not context.is_bound(outer) or context.is_implied(condition):
        return None
    return None if condition.always(ranges) or condition.never(ranges) else condition
