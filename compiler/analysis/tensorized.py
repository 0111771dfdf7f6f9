"""Tensorized loops: nests that match an intrinsic, also if the block's guard excludes a part of the nest.

An intrinsic runs whole. If a guard excludes a part of the nest, it runs instances that the program does not have. They
are harmless if they add zero times zero, as in the padding of packed operands, or if they write to elements of a
temporary that the program itself never writes, since it cannot depend on those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import islpy as isl
from xdsl.dialects.builtin import AnyFloat

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.analysis.legal import legal
from compiler.analysis.sets import Undecided, limited, union_set
from compiler.analysis.verify.content import Unknown
from compiler.analysis.verify.flow import Flow
from compiler.dialects.combiner import identity
from compiler.intrinsics import Intrinsic, Misfit, PerfectNest, Reference, fit
from compiler.program.tree import Access, Block, Loop, Program


def loops_under(program: Program, loop: int) -> tuple[list[Loop], Block]:
    """The loops of the perfect nest from a loop inward, and its block. Raises Misfit for another nest or a gather."""
    loops = [program.loops[loop]]
    while True:
        if len(loops[-1].body) != 1:
            raise Misfit(f"the body of loop '{loops[-1].label}' is more than one loop or block")
        inner = loops[-1].body[0]
        if isinstance(inner, Loop):
            loops.append(inner)
        elif isinstance(inner, Block) and inner.table is None:
            return loops, inner
        else:
            raise Misfit(f"loop '{loops[-1].label}' holds no block of arithmetic")


def matched(program: Program, loop: int, intrinsic: Intrinsic) -> Program:
    """Match a loop's nest with an intrinsic; return the program, with its guard weakened so that the nest runs whole.

    Raises Misfit if the nest does not match or is in a vectorized loop, or if the added instances are harmful.
    """
    loops, block = loops_under(program, loop)
    for around in program.enclosing(loop):
        if around.kind == "vectorized":
            raise Misfit(f"it stands inside the vectorized loop '{around.label}'")
    fit(intrinsic, nest_of(program, loops, block))
    return _whole(program, loops, block, intrinsic)


def nest_of(program: Program, loops: Sequence[Loop], block: Block) -> PerfectNest:
    """Return a perfect nest as an argument of `fit`, with accesses over loops; the guard of its block is ignored."""

    def reference(access: Access) -> Reference:
        buffer = program.buffers[access.buffer]
        index = tuple(block.at(form, program.ranges) for form in access.index)
        values = dict(enumerate(block.bindings))
        guarded = any(not c.substitute(values, program.ranges).always(program.ranges) for c in access.where)
        return Reference(access.buffer, buffer.element, buffer.shape, index, guarded, buffer.scope == "fragment")

    return PerfectNest(
        tuple(loops),
        block.label,
        tuple(map(reference, block.reads)),
        tuple(map(reference, block.writes)),
        block.body,
        tuple(block.combiners),
        block.accumulate,
    )


# --- guards ---------------------------------------------------------------------------------------------------------


def _whole(program: Program, loops: list[Loop], block: Block, intrinsic: Intrinsic) -> Program:
    """Return the program with the block's guard weakened by the loops of the nest and, if possible, the unrolled ones
    around it. Raises Misfit if that is not harmless."""
    nest = {n.number for n in loops}
    unrolled = {n.number for n in program.enclosing(block.label) if n.kind == "unrolled"}
    if not any(c.form.variables() & (nest | unrolled) for c in block.guard):
        return program
    reason = ""
    for variables in (nest | unrolled, nest):
        guard = _weakened(program, block.guard, variables)
        if guard is None:
            continue
        after = _with_guard(program, block, guard)
        reason = _harm(program, after, block.label, intrinsic)
        if not reason:
            return after
        if not any(c.form.variables() & nest for c in block.guard):
            return program
    raise Misfit(reason or f"the guard of block '{block.label}' does not grow or shrink along the loops under it")


def _weakened(program: Program, guard: tuple[Condition, ...], variables: set[int]) -> tuple[Condition, ...] | None:
    """Eliminate variables: a new condition holds if the former one does for some values of them, as 8*i + j <= 90 for
    some j in [0, 8) if 8*i <= 90. None for an equality, and for a variable in a floordiv or mod."""
    conditions: list[Condition] = []
    for condition in guard:
        form = condition.form
        for variable in sorted(condition.form.variables() & variables):
            factor = form.coefficient(variable)
            if factor is None or condition.equal:
                return None
            best = lin.constant(program.ranges[variable][1] if factor > 0 else 0)
            form = lin.substitute(form, {variable: best}, program.ranges)
        conditions.append(Condition(form, condition.equal))
    return tuple(dict.fromkeys(c for c in conditions if not c.always(program.ranges)))


def _with_guard(program: Program, block: Block, guard: tuple[Condition, ...]) -> Program:
    """Replace the guard of a block, and extend its axes to the values that they may have under the new guard."""
    highs = [lin.bounds(form, program.ranges)[1] for form in block.bindings]
    axes = tuple(
        type(axis)(axis.label, max(axis.size, high + 1), axis.is_reduce)
        for axis, high in zip(block.axes, highs, strict=True)
    )
    return program.replaced(block.label, lambda _: [replace(block, guard=guard, axes=axes)])


def _harm(before: Program, after: Program, label: str, intrinsic: Intrinsic) -> str:
    """Return why the instances added by a weakened guard are, or may be, wrong; "" if they are harmless."""
    try:
        return limited(lambda: _harm_of(before, after, label, intrinsic))
    except (Undecided, Unknown):
        return f"what block '{label}' would read beyond its guard could not be told"


def _harm_of(before: Program, after: Program, label: str, intrinsic: Intrinsic) -> str:
    # Guard i <= 5 of i in [0, 8), weakened: { S[i] : 6 <= i <= 7 } is new, harmless if both operands are zero there.
    flow, key = Flow(after, after, {}), (label, False)
    statement = flow.statements[key]
    for outside, _, _ in flow.outside(key):
        return f"beyond the guard of block '{label}' it would touch '{outside}' outside its shape"
    new = flow.domain(key).subtract(Flow(before, before, {}).domain(key))
    unproven = new.subtract(_adding_zero(flow, label, intrinsic)) if intrinsic.combiner else new
    if not unproven.is_empty() and not _dead(flow, before, label, unproven):
        if not intrinsic.combiner:
            return f"beyond the guard of block '{label}' it would write to '{statement.uses[-1].buffer}'"
        is_float = isinstance(intrinsic.target.element, AnyFloat)
        what = "neutral" if not intrinsic.product else "both zero" if is_float else "zero"
        return f"beyond the guard of block '{label}' its operands are not {what}; pack them first"
    if legal(after) is not None:
        return f"beyond the guard of block '{label}' it would add to what another iteration of a concurrent loop uses"
    return ""


def _adding_zero(flow: Flow, label: str, intrinsic: Intrinsic) -> isl.UnionSet:
    """The instances that provably add zero: one operand is zero or, for floats, both are, since 0 times NaN is NaN. For
    instructions that combine one operand as it is: the operand is the identity."""
    # A[i] = 0 for i in [4, 8), B[i] = 0 for i in [6, 8): floats add zero for i in [6, 8), integers for i in [4, 8).
    key, zeros = (label, False), []
    statement = flow.statements[key]
    for position, use in enumerate(statement.uses[: len(statement.block.reads)]):
        kind = "add" if intrinsic.product else intrinsic.combiner
        neutral = identity(kind, flow.program.buffers[use.buffer].element)
        zeros.append(flow.content(key, position).constant.get(neutral, union_set()))
    if len(zeros) == 1:
        return zeros[0]
    left, right = zeros
    return left.intersect(right) if isinstance(intrinsic.target.element, AnyFloat) else left.union(right)


def _dead(flow: Flow, before: Program, label: str, instances: isl.UnionSet) -> bool:
    """Whether instances write only to elements of a temporary that no instance of the program `before` writes."""
    # S[i] writes T[i], before: 0 <= i <= 5. Instances { S[i] : 6 <= i <= 7 } reach { T[i] : 6 <= i <= 7 }: True.
    target = flow.statements[label, False].uses[-1]
    if target.buffer not in before.allocs:
        return False
    reached = flow.cell((label, False), target).intersect_domain(instances).range()
    original = Flow(before, before, {})
    for key, statement in original.statements.items():
        for use in statement.uses:
            writes_target = use.buffer == target.buffer and use.how != "read"
            if writes_target and not original.cell(key, use).range().intersect(reached).is_empty():
                return False
    return True
