"""Shared by primitives: the plan that they return, refusals, and the names of new loops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NoReturn

from compiler.affine.condition import Condition
from compiler.analysis.legal import Step
from compiler.program.names import fresh
from compiler.program.tree import Block, Loop, Node, Program, loops_in
from compiler.support.errors import ScheduleError


@dataclass(frozen=True)
class Plan(Step):
    """A planned step, with the loops, blocks and parameters that it returns, and the decision of a choice. Loops are
    given by number or location, blocks by label ("" for none), parameters by value.

    >>> A = te.placeholder((64,), name="A")
    >>> program = Schedule(te.function("f", [A], te.nn.exp(A, name="B"))).program
    >>> plan = strata.schedule.PRIMITIVES["split"].plan(program, 0, (None, 16))
    >>> plan.loops
    (1, 2)
    """

    loops: tuple[int | None, ...] = ()
    blocks: tuple[str, ...] = ()
    params: tuple[int, ...] = ()
    decision: int | tuple[int, ...] | None = None


def neighbours(program: Program, label: str, producers: bool) -> tuple[str, ...]:
    """The producers, or else the consumers, of a block except itself, in the order of the program."""
    block = program.blocks[label]
    touched = block.sources if producers else block.targets
    touching = program.writers if producers else program.readers
    labels = {b.label for name in touched for b in touching[name]} - {label}
    return tuple(name for name in program.blocks if name in labels)


def refuse(place: str, reason: object) -> NoReturn:
    """Raise the ScheduleError of a refused primitive; the caller adds the name of the primitive.

    >>> strata.schedule.refuse("loop 'k'", "it has 8 iterations")
    Traceback (most recent call last):
        ...
    compiler.support.errors.ScheduleError: loop 'k': it has 8 iterations
    """
    raise ScheduleError(reason, place=place)


def loop_place(program: Program, loop: int) -> str:
    """The text that names a loop in a refusal: loop 'i'.

    >>> A = te.placeholder((64,), name="A")
    >>> program = Schedule(te.function("f", [A], te.nn.exp(A, name="B"))).program
    >>> strata.schedule.loop_place(program, 0)
    "loop 'i0'"
    """
    return f"loop '{program.loops[loop].label}'"


def block_place(label: str) -> str:
    """The text that names a block in a refusal: block 'C'.

    >>> strata.schedule.block_place("C")
    "block 'C'"
    """
    return f"block '{label}'"


def labels_around(program: Program, loop: int) -> set[str]:
    """The labels of loops around and inside a loop, without its own: the label of a new loop at its position must
    differ from them."""
    node = program.loops[loop]
    outside = {around.label for around in program.enclosing(loop)}
    return outside | labels_in(node.body)


def labels_in(nodes: Iterable[Node]) -> set[str]:
    """The labels of all loops at or inside nodes."""
    return {node.label for node in loops_in(*nodes)}


def new_label(label: str, taken: set[str]) -> str:
    """Return the label or, if it is taken, the label with a number; the result is added to `taken`."""
    unique = fresh(label, taken)
    taken.add(unique)
    return unique


MARKED_LAST = "; loops are cut and fused before they are bound, vectorized, unrolled or made parallel"


def is_end(program: Program, loop: int, condition: Condition) -> bool:
    """Return whether a condition, over a loop and the loops around it, fails from some iteration of the loop on: an
    inequality with a negative factor of the loop. Without a constant factor it is False."""
    around = {outer.number for outer in program.enclosing(loop)}
    factor = condition.form.coefficient(loop) or 0
    return not condition.equal and factor < 0 and condition.form.variables() <= around | {loop}


def require_serial(program: Program, loops: Sequence[int]) -> None:
    """Raise ScheduleError if a loop is not serial."""
    for number in loops:
        if program.loops[number].kind != "serial":
            refuse(loop_place(program, number), f"it is {program.loops[number].kind} already, not serial{MARKED_LAST}")


def require_perfect(chain: Sequence[Loop]) -> None:
    """Raise ScheduleError unless each loop is the only content of the previous one."""
    for outer, inner in pairwise(chain):
        if outer.body != (inner,):
            reason = f"it is not the only content of loop '{outer.label}', so they are not perfectly nested"
            refuse(f"loop '{inner.label}'", reason)


def loops_around(program: Program, block: str, loop: int) -> tuple[tuple[Loop, ...], int]:
    """The loops around a block, and the position of `loop` among them. Raises ScheduleError if it is not one."""
    around = program.enclosing(block)
    position = next((n for n, node in enumerate(around) if node.number == loop), None)
    if position is None:
        refuse(loop_place(program, loop), f"it is not around {block_place(block)}")
    return around, position


def require_read(block: Block, buffer: str) -> None:
    """Raise ScheduleError unless a block reads a buffer and does not write it."""
    if buffer not in block.sources:
        refuse(block_place(block.label), f"it does not read '{buffer}'")
    if buffer in block.targets:
        refuse(block_place(block.label), f"it writes '{buffer}' as well")


def sole_writer(program: Program, buffer: str, label: str) -> None:
    """Raise ScheduleError unless a buffer is a temporary that no block but `label` writes."""
    if buffer not in program.allocs:
        refuse(block_place(label), f"'{buffer}' is an argument of the function, not a temporary")
    other_writers = [w.label for w in program.writers[buffer] if w.label != label]
    if other_writers:
        refuse(block_place(label), f"'{buffer}' is written by block '{other_writers[0]}' as well")


def no_table(place: str, blocks: Iterable[Block], *buffers: str) -> None:
    """Raise ScheduleError, at `place`, if a gather among blocks has one of the buffers as its table."""
    for block in blocks:
        if block.table is not None and block.table.buffer in buffers:
            gathers = f"block '{block.label}' gathers from '{block.table.buffer}'"
            refuse(place, f"{gathers}: which elements it reads depends on data")


def no_gather(place: str, block: Block) -> None:
    """Raise ScheduleError, at `place`, if a block is a gather."""
    if block.table is not None:
        refuse(place, f"block '{block.label}' is a gather, which stays a statement of its own")


def only_target(block: Block) -> str:
    """The only target of a block. Raises ScheduleError if it has none or several."""
    if len(block.writes) != 1:
        refuse(block_place(block.label), f"it writes {len(block.targets)} buffers, not one")
    return block.writes[0].buffer


def without_kind_around(program: Program, loop: int, kind: str, description: str, hint: str = "") -> None:
    """Raise ScheduleError if a loop around or inside a loop has a kind; the loop itself may. The sentence calls the
    kind `description` and ends with `hint`."""
    for node in (*program.enclosing(loop), *loops_in(*program.loops[loop].body)):
        if node.kind == kind:
            refuse(loop_place(program, loop), f"loop '{node.label}' in the same nest is {description} already{hint}")


def with_kind(program: Program, loop: int, kind: str) -> Plan:
    """Return a plan that sets the kind of a serial loop. Raises ScheduleError for a loop of another kind."""
    node = program.loops[loop]
    if node.kind != "serial":
        refuse(loop_place(program, loop), f"it is {node.kind} already")
    after = program.replaced(loop, lambda _: [replace(node, kind=kind)])
    return Plan(after, keeps_order=True)
