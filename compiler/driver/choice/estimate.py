"""A cheap estimate of the time of a program's loops, with data in a cache: whether a schedule is worth having."""

from __future__ import annotations

from math import prod

from compiler.affine import linear as lin
from compiler.program.body import Apply, Scalar
from compiler.program.tree import Block, Program
from compiler.schedule import Schedule
from compiler.space.cpu_features import BlockView, ProgramView, Touch
from compiler.space.derivation import in_default_order
from compiler.types.elements import element_bytes
from compiler.types.machines import Machine

FUNCTION = 12
"""Operations of a mathematical function, roughly."""
MASKED, SELECTED, CHOSEN = 2.0, 3.0, 1.3
"""How many times as long a vector takes whose lanes are masked, one that reads some lanes alone, each time with a mask
that is computed, and one that LLVM makes of such a condition."""
STRIDED = 8.0
"""How many accesses one counts for that does not step by one element, for each lane."""
BEYOND = 8.0
"""How many accesses one counts for that passes a vector on beyond L2: to be written, and to be read again."""
WORSE = 1.75
"""The part of the written program's estimate from which a schedule is worse: below, it is more often better."""


def gains_nothing(original: Schedule, scheduled: Program, machine: Machine) -> bool:
    """Whether a program is better off as it is written: no block reads elements several times, as products and windows
    do, and the schedule's estimate is worse."""
    if any(map(_reuses, original.program.blocks.values())):
        return False
    return estimate(scheduled, machine) >= WORSE * estimate(in_default_order(original, machine).program, machine)


def _reuses(block: Block) -> bool:
    """Whether a reduction reads an element for several of its results, and another for each step."""
    bound = {n for n, axis in enumerate(block.axes) if axis.size > 1}
    steps = {n for n in bound if block.axes[n].is_reduce}
    read = [set().union(*(form.variables() for form in access.index)) for access in block.reads]
    mixed = any(len(form.variables()) > 1 for access in block.reads for form in access.index)
    return bool(block.combiners) and (mixed or any(moved & steps and bound - moved for moved in read))


def _strided(s: BlockView) -> int:
    """How many accesses of a block step by several elements along its innermost loop."""
    inner = s.vector or s.loops[-1]
    return sum(touch.stride(inner.number) == 2 and not _is_fused(touch, inner.number) for touch in s.touches)


def _is_fused(touch: Touch, loop: int) -> bool:
    """Whether an access steps by one element along a loop that is of several dimensions side by side: the place is its
    quotient times the divisor and its remainder."""
    place = lin.offset(touch.index, [int(size) for size in touch.shape])
    atoms = [(atom, by) for atom, by in place.terms if not isinstance(atom, int) and loop in atom.form.variables()]
    pairs = {(atom.form, atom.divisor, by * (atom.divisor if atom.is_mod else 1)) for atom, by in atoms}
    steps_by_one = all(atom.form.coefficient(loop) == 1 and (by == 1 or not atom.is_mod) for atom, by in atoms)
    return steps_by_one and len(atoms) == 2 and len(pairs) == 1


def estimate(program: Program, machine: Machine) -> float:
    """Operations and accesses of all blocks, those of vectors counted once for all lanes: where the innermost loop is
    one that LLVM vectorizes, or is vectorized, and steps by one element in all that it touches."""
    view = ProgramView(program)
    return sum(_cost(statement, machine) for statement in view.statements.values()) + _passed_on(program, machine)


def _passed_on(program: Program, machine: Machine) -> float:
    """The time to write, and to read again, temporaries that L2 does not hold."""
    sizes = [prod(a.buffer.shape) * element_bytes(a.buffer.element) for a in program.allocs.values()]
    return sum(BEYOND * size * 8 / machine.vector_bits for size in sizes if size > machine.l2_bytes)


def _cost(s: BlockView, machine: Machine) -> float:
    work = sum(map(_work, s.block.body)) + len(s.block.combiners)
    if not s.loops:
        return float(work + len(s.touches))
    inner, count = s.vector or s.loops[-1], float(s.count)
    strided = _strided(s)
    lanes = machine.vector_bits / (8 * max(touch.weight for touch in s.touches))
    scalar = strided or s.block.guard or inner.extent < lanes or len(s.block.combiners) > 1
    if s.vector is None and scalar:
        return count * (work + len(s.touches) + (STRIDED - 1) * strided)
    vectors = count / min(lanes, float(inner.extent))
    return _conditions(s) * vectors * (work + len(s.touches) - strided) + STRIDED * count * strided


def _conditions(s: BlockView) -> float:
    """The factor that conditions add to a block's time: conditions that are the same for all lanes cost nothing, and a
    row whose last vector is partial pays for that vector alone."""
    reads = [condition.form for access in s.block.reads for condition in access.where]
    if s.vector is None:
        return CHOSEN if reads else 1.0
    vector = s.vector.number
    axes = {n for n, form in enumerate(s.block.bindings) if vector in form.variables()}
    if any(axes & form.variables() for form in reads):
        return SELECTED
    if not any(vector in condition.form.variables() for condition in s.block.guard):
        return 1.0
    return 1.0 + (MASKED - 1.0) / max(-(-s.block.axes[n].size // s.vector.extent) for n in axes)


def _work(scalar: Scalar) -> int:
    """The operations of an expression."""
    if not isinstance(scalar, Apply):
        return 0
    return (FUNCTION if scalar.kind.name.startswith("math.") else 1) + sum(map(_work, scalar.operands))
