"""A cheap estimate of what a program's loops take, where data are in a cache: whether a schedule is worth having."""

from __future__ import annotations

from math import prod

from compiler.affine import linear as lin
from compiler.affine.linear import Linear
from compiler.autotune.space.cpu_features import BlockView, ProgramView, Touch
from compiler.autotune.space.rules.derive import in_default_order
from compiler.elements import element_bytes
from compiler.program.body import Apply, Scalar
from compiler.program.tree import Block, Program
from compiler.schedule import Schedule
from compiler.targets.machine import Machine

FUNCTION = 12
"""Operations of a mathematical function, roughly."""
MASKED, CHOSEN = 2.0, 1.3
"""How many times as long a vector takes whose lanes are masked, and one that LLVM makes of a condition."""
STRIDED = 8.0
"""How many accesses one counts for that does not step by one element, for each lane."""
CLEARLY, NOT_WORSE = 0.9, 2.0
"""The parts of the written program's estimate below which a schedule is clearly better, and below which it may be where
blocks pass on more than L2 holds: the estimate knows of no memory."""


def gains_nothing(original: Schedule, scheduled: Program, machine: Machine) -> bool:
    """Whether a program is as well off as it is written: it reads each element about once, at plain places, its
    schedule has masked or strided vectors or all is in L2, and the schedule's estimate is no better."""
    program = original.program
    if not all(_is_simple(block) for block in program.blocks.values()):
        return False
    size = sum(prod(b.shape) * element_bytes(b.element) for b in program.buffers.values())
    if size > machine.l2_bytes and not any(map(_is_doubtful, ProgramView(scheduled).statements.values())):
        return False
    part = CLEARLY if size <= machine.l2_bytes or len(program.blocks) == 1 else NOT_WORSE
    return estimate(scheduled, machine) >= part * estimate(in_default_order(original, machine).program, machine)


def _is_simple(block: Block) -> bool:
    """Whether a block computes something of elements at plain places, and reads few of them several times: no product,
    no window, no copy, no gather."""
    if block.table is not None or not sum(map(_work, block.body)) + len(block.combiners):
        return False
    read = [set().union(*(form.variables() for form in access.index)) for access in block.reads]
    bound = {n for n, axis in enumerate(block.axes) if axis.size > 1}
    plain = all(_is_plain(form) for access in block.reads for form in access.index)
    return plain and (not block.combiners or sum(bool(bound - moved) for moved in read) <= 1)


def _is_plain(form: Linear) -> bool:
    """Whether an index is of one axis at most, and not of a quotient."""
    return len(form.variables()) <= 1 and all(form.coefficient(axis) is not None for axis in form.variables())


def _is_doubtful(s: BlockView) -> bool:
    """Whether the vectors of a block are masked or step by several elements."""
    return s.vector is not None and (bool(s.block.guard) or _strided(s) > 0)


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
    whole = all(atom.form.coefficient(loop) == 1 and (by == 1 or not atom.is_mod) for atom, by in atoms)
    return whole and len(atoms) == 2 and len(pairs) == 1


def estimate(program: Program, machine: Machine) -> float:
    """Operations and accesses of all blocks, those of vectors counted once for all lanes: where the innermost loop is
    one that LLVM vectorizes, or is vectorized, and steps by one element in all that it touches."""
    view = ProgramView(program)
    return sum(_cost(statement, machine) for statement in view.statements.values())


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
    conditional = bool(s.block.guard) or any(access.where for access in s.block.reads)
    factor = (MASKED if s.vector is not None else CHOSEN) if conditional else 1.0
    whole = count / min(lanes, float(inner.extent))
    return factor * whole * (work + len(s.touches) - strided) + STRIDED * count * strided


def _work(scalar: Scalar) -> int:
    """The operations of an expression."""
    if not isinstance(scalar, Apply):
        return 0
    return (FUNCTION if scalar.kind.name.startswith("math.") else 1) + sum(map(_work, scalar.operands))
