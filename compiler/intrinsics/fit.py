"""Match a nest of loops around one block with an intrinsic: loops to axes, reads to operands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute

from compiler.affine import linear as lin
from compiler.affine.linear import Linear
from compiler.intrinsics.model import Intrinsic, NestOperand
from compiler.program import body
from compiler.program.tree import Loop
from compiler.types.elements import scalar_type


class Misfit(Exception):
    """A mismatch of a nest and an intrinsic; the message is a sentence about the loop, block or buffer.

    >>> raise strata.intrinsics.Misfit("the loop 'j' has 8 iterations, expected 16")
    Traceback (most recent call last):
        ...
    compiler.intrinsics.fit.Misfit: the loop 'j' has 8 iterations, expected 16
    """


@dataclass(frozen=True)
class Reference:
    """An access of the block: a buffer, its index over loop numbers, and whether it is conditional or to a fragment."""

    buffer: str
    element: Attribute
    shape: tuple[int, ...]
    index: tuple[Linear, ...]
    conditional: bool = False
    fragment: bool = False

    @property
    def scalar(self) -> Attribute:
        """The buffer's element type without signedness."""
        return scalar_type(self.element)

    @property
    def flat(self) -> Linear:
        """The row-major offset of the index in the buffer, in elements, over loop numbers."""
        return lin.offset(self.index, self.shape)


@dataclass(frozen=True)
class PerfectNest:
    """A perfect nest of loops, outermost first, around one block, by the block's reads, targets, yielded values and
    combiners. `accumulates`: whether the block adds to its target."""

    loops: tuple[Loop, ...]
    label: str
    reads: tuple[Reference, ...]
    targets: tuple[Reference, ...]
    values: tuple[body.Scalar, ...]
    combiners: tuple[object, ...]
    accumulates: bool = False


@dataclass(frozen=True)
class Fit:
    """A match: the loop number of each axis, the read number of each operand, and in elements each step that the
    intrinsic leaves open, by (operand number, axis); the target is the last operand.

    >>> strata.intrinsics.Fit({"j": 0, "k": 1}, (0, 1), {}).loops
    {'j': 0, 'k': 1}
    """

    loops: dict[str, int]
    reads: tuple[int, ...]
    open_steps: dict[tuple[int, str], int]


def fit(intrinsic: Intrinsic, nest: PerfectNest) -> Fit:
    """Match a nest with an intrinsic: return the first assignment that fits. If all fail, raise the first Misfit."""
    _check_block(intrinsic, nest)
    first_misfit: Misfit | None = None
    for loops in _loop_assignments(intrinsic, nest):
        for reads in _read_assignments(intrinsic, nest):
            try:
                return _check_assignment(intrinsic, nest, loops, reads)
            except Misfit as misfit:
                first_misfit = first_misfit or misfit
    assert first_misfit is not None
    raise first_misfit


def _check_block(intrinsic: Intrinsic, nest: PerfectNest) -> None:
    combiners = (intrinsic.combiner,) if intrinsic.combiner else ()
    if len(nest.targets) != 1 or nest.combiners != combiners:
        does = f"{intrinsic.combiner} to" if intrinsic.combiner else "set"
        raise Misfit(f"block '{nest.label}' does not {does} one target, which '{intrinsic.name}' does")
    for reference in (*nest.reads, *nest.targets):
        if reference.conditional:
            raise Misfit(f"block '{nest.label}' reads '{reference.buffer}' under a condition; pack it first")
    if nest.targets[0].buffer in {r.buffer for r in nest.reads}:
        raise Misfit(f"block '{nest.label}' reads '{nest.targets[0].buffer}', which it writes")


def _loop_assignments(intrinsic: Intrinsic, nest: PerfectNest) -> list[dict[str, Loop]]:
    """Return each map of the intrinsic's axis labels to loops of equal extents, that in the nest's order first. Raises
    Misfit if there is none."""
    if len(nest.loops) != len(intrinsic.axes):
        raise Misfit(f"{len(nest.loops)} nested loops are not the {len(intrinsic.axes)} of '{intrinsic.name}'")
    orders = [
        {axis.label: loop for axis, loop in zip(intrinsic.axes, order, strict=True)}
        for order in permutations(nest.loops)
        if [loop.extent for loop in order] == [axis.extent for axis in intrinsic.axes]
    ]
    if not orders:
        extents = " x ".join(str(loop.extent) for loop in nest.loops)
        expected_extents = " x ".join(str(axis.extent) for axis in intrinsic.axes)
        raise Misfit(f"loops of {extents} iterations are not the {expected_extents} of '{intrinsic.name}'")
    return orders


def _read_assignments(intrinsic: Intrinsic, nest: PerfectNest) -> list[tuple[int, ...]]:
    """Return for each possible match of the bodies the read number of each operand. Raises Misfit if there is none."""
    value = nest.values[0]
    is_copy = isinstance(value, body.Read) or (not nest.reads and _is_zero(value))
    if not intrinsic.product and is_copy and len(nest.reads) == len(intrinsic.reads):
        return [tuple(range(len(nest.reads)))]
    if intrinsic.product and isinstance(value, body.Apply) and value.kind.name == intrinsic.product:
        factors = [_factor(operand) for operand in value.operands]
        assignments = [
            tuple(position for position, _ in order if position is not None)
            for order in permutations(factors)
            if [widened for _, widened in order] == [operand.widened for operand in intrinsic.reads]
        ]
        assignments = [reads for reads in dict.fromkeys(assignments) if sorted(reads) == list(range(len(nest.reads)))]
        if assignments:
            return assignments
    raise Misfit(f"block '{nest.label}' does not yield {_yielded_value(intrinsic)}, as '{intrinsic.name}' does")


def _factor(node: body.Scalar) -> tuple[int | None, str]:
    """Return the number of the read that is a factor of a product, and the name of the op that widens it, "" without
    one; (None, "?") for any other factor."""
    if isinstance(node, body.Read):
        return node.position, ""
    if isinstance(node, body.Apply) and len(node.operands) == 1 and isinstance(node.operands[0], body.Read):
        return node.operands[0].position, node.kind.name
    return None, "?"


def _is_zero(node: body.Scalar) -> bool:
    if not isinstance(node, body.Apply) or node.operands or not node.properties:
        return False
    value = node.properties[0][1]
    return isinstance(value, FloatAttr | IntegerAttr) and value.value.data == 0


def _yielded_value(intrinsic: Intrinsic) -> str:
    """Describe the value that an intrinsic's nest yields, for a message."""
    parts = [f"{_spelled(r.element)} widened by {r.widened}" if r.widened else "what it reads" for r in intrinsic.reads]
    return " times ".join(parts) or "zero"


def _spelled(element: Attribute) -> str:
    return str(element).removeprefix("!")


def _check_assignment(intrinsic: Intrinsic, nest: PerfectNest, loops: dict[str, Loop], reads: tuple[int, ...]) -> Fit:
    """Return the fit of one assignment: `loops` maps the intrinsic's axes to loops, `reads` has the read number of each
    operand. The fit records the strides that the intrinsic leaves open. Raises Misfit if an element type, a memory
    space or the stride of an operand along a loop differs from the intrinsic's."""
    open_steps: dict[tuple[int, str], int] = {}
    for number, (operand, reference) in enumerate(_pairs(intrinsic, nest, reads)):
        if reference.element != operand.element:
            actual_type, expected = _spelled(reference.element), _spelled(operand.element)
            raise Misfit(f"'{reference.buffer}' holds {actual_type}, where '{intrinsic.name}' takes {expected}")
        if reference.fragment != bool(operand.fragment):
            scope = "a fragment" if operand.fragment else "memory"
            raise Misfit(f"'{reference.buffer}' does not lie in {scope}, where '{intrinsic.name}' has it")
        for axis, loop in loops.items():
            step, expected_step = _step(reference, loop), operand.step(axis)
            if expected_step is None and step > 0:
                open_steps[number, axis] = step
            elif step != expected_step:
                expected = "a row" if expected_step is None else str(expected_step)
                subject = f"'{reference.buffer}' steps by {step} along loop '{loop.label}'"
                raise Misfit(f"{subject}, where '{intrinsic.name}' steps by {expected}")
    return Fit({axis: loop.number for axis, loop in loops.items()}, reads, open_steps)


def _pairs(intrinsic: Intrinsic, nest: PerfectNest, reads: Sequence[int]) -> Iterator[tuple[NestOperand, Reference]]:
    yield from zip(intrinsic.reads, (nest.reads[n] for n in reads), strict=True)
    yield intrinsic.target, nest.targets[0]


def _step(reference: Reference, loop: Loop) -> int:
    factor = reference.flat.coefficient(loop.number)
    if factor is None:
        raise Misfit(f"'{reference.buffer}' does not move in equal steps along loop '{loop.label}'")
    return factor
