"""A cheap estimate of the time of a program's loops, with data in a cache, to reject schedules that do not pay."""

from __future__ import annotations

from math import prod

from compiler.affine import linear as lin
from compiler.program.body import Apply, Scalar
from compiler.program.combiner import Joint
from compiler.program.tree import Block, Program
from compiler.schedule import Schedule
from compiler.space.cpu_features import BlockView, ProgramView, Touch
from compiler.space.derivation import in_default_order
from compiler.types.elements import element_bytes
from compiler.types.machines import Machine

FUNCTION = 12
"""The approximate operations of a mathematical function."""
MASKED, SELECTED, CHOSEN = 2.0, 3.0, 1.3
"""The factors on the time of a vector: with masked lanes, with a computed mask for each read, and with a condition that
LLVM vectorizes by a select."""
STRIDED = 8.0
"""The cost of a strided access, in unit-stride accesses, for each lane."""
BEYOND = 8.0
"""The cost of a vector of a temporary beyond L2, in accesses: to write it and to read it again."""
WORSE = 1.75
"""The ratio to the written program's estimate from which a schedule is rejected; below, it is more often faster."""


def gains_nothing(original: Schedule, scheduled: Program, machine: Machine) -> bool:
    """Whether to keep a program as written: no block reuses elements, as products and windows do, and the estimate of
    the schedule is WORSE times that of the written program or more."""
    if any(map(_reuses, original.program.blocks.values())):
        return False
    return estimate(scheduled, machine) >= WORSE * estimate(in_default_order(original, machine).program, machine)


def _reuses(block: Block) -> bool:
    """Whether a reduction reuses read elements: a read indexed by a reduce axis lacks another axis, or an index mixes
    axes, as in a window.

    C[i, j] += A[i, k] * B[k, j]: the index of A has the reduce axis k and lacks j, so A is reused.
    y[i] += A[i, k]: the only read has both axes, so nothing is reused.
    """
    all_axes = {n for n, axis in enumerate(block.axes) if axis.size > 1}
    reduce_axes = {n for n in all_axes if block.axes[n].is_reduce}
    reads = [set().union(*(form.variables() for form in access.index)) for access in block.reads]
    mixed = any(len(form.variables()) > 1 for access in block.reads for form in access.index)
    return bool(block.combiners) and (mixed or any(axes & reduce_axes and all_axes - axes for axes in reads))


def _strided(s: BlockView) -> int:
    """The number of a block's accesses that are strided along its vectorized, else its innermost loop."""
    inner = s.vector or s.loops[-1]
    return sum(touch.stride(inner.number) == 2 and not _is_fused(touch, inner.number) for touch in s.touches)


def _is_fused(touch: Touch, loop: int) -> bool:
    """Whether an access has unit stride along a loop that fuses several dimensions.

    T[i // 8, i % 8] of shape (n, 8): the offset is 8 * (i // 8) + i % 8 = i, the quotient times the divisor plus the
    remainder, so the access steps by one element.
    """
    offset = lin.offset(touch.index, [int(size) for size in touch.shape])
    atoms = [(atom, by) for atom, by in offset.terms if not isinstance(atom, int) and loop in atom.form.variables()]
    pairs = {(atom.form, atom.divisor, by * (atom.divisor if atom.is_mod else 1)) for atom, by in atoms}
    steps_by_one = all(atom.form.coefficient(loop) == 1 and (by == 1 or not atom.is_mod) for atom, by in atoms)
    return steps_by_one and len(atoms) == 2 and len(pairs) == 1


def estimate(program: Program, machine: Machine) -> float:
    """The estimated time of a program, in operations: the operations and accesses of all blocks, and the traffic of
    temporaries larger than L2.

    A vector operation counts as one. A block runs on vectors if its innermost loop is vectorized, or if LLVM vectorizes
    it: unguarded, without a joint or a second combiner, with unit strides and at least as many iterations as lanes.
    """
    view = ProgramView(program)
    return sum(_cost(statement, machine) for statement in view.statements.values()) + _passed_on(program, machine)


def _passed_on(program: Program, machine: Machine) -> float:
    """Return the estimated time, in operations, to write and read again the temporaries larger than L2."""
    sizes = [prod(a.buffer.shape) * element_bytes(a.buffer.element) for a in program.allocs.values()]
    return sum(BEYOND * size * 8 / machine.vector_bits for size in sizes if size > machine.l2_bytes)


def _cost(s: BlockView, machine: Machine) -> float:
    first = s.block.combiners[0] if s.block.combiners else ""
    combination = sum(map(_work, first.body)) if isinstance(first, Joint) else len(s.block.combiners)
    work = sum(map(_work, s.block.body)) + combination
    if not s.loops:
        return float(work + len(s.touches))
    inner, count = s.vector or s.loops[-1], float(s.count)
    strided = _strided(s)
    lanes = machine.vector_bits / (8 * max(touch.weight for touch in s.touches))
    scalar = strided or s.block.guard or inner.extent < lanes or isinstance(first, Joint) or combination > 1
    if s.vector is None and scalar:
        return count * (work + len(s.touches) + (STRIDED - 1) * strided)
    vectors = count / min(lanes, float(inner.extent))
    return _conditions(s) * vectors * (work + len(s.touches) - strided) + STRIDED * count * strided


def _conditions(s: BlockView) -> float:
    """The factor of conditions on a block's time. Conditions of reads: CHOSEN without a vectorized loop, SELECTED if
    they vary over the lanes, else 1. A guard masks only the partial last vector of a row: 100 elements by 16 are 7
    vectors, so 1 + (MASKED - 1) / 7; one that is uniform over the lanes is free."""
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
    """The number of operations of an expression, a mathematical function as FUNCTION."""
    if not isinstance(scalar, Apply):
        return 0
    return (FUNCTION if scalar.kind.name.startswith("math.") else 1) + sum(map(_work, scalar.operands))
