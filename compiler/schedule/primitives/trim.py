"""The primitive trim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.program.tree import Access, Block, Program, blocks_in
from compiler.schedule.parameters import LOOP
from compiler.schedule.plan import Plan, block_place, is_end, loop_place, refuse, require_serial
from compiler.schedule.primitive import primitive


@primitive("$loop", "sched.trim %m", "trim{block=C loop=m}", loop=LOOP)
def trim(program: Program, loop: int) -> Plan:
    """End a loop with the last iteration whose results are needed.

        loop.for "i" = 4 { alloc M[8];  loop.for "t" = 8 { M[t] = f(M[t - 1]) }  Y[i] = M[2*i] }
      ->
        loop.for "i" = 4 { alloc M[8];  loop.for "t" = 8 { if t <= 2*i: M[t] = f(M[t - 1]) }  Y[i] = M[2*i] }

    Requires a serial loop, whose blocks write temporaries alone that live in the iteration of the loops around, and
    reads of these after the loop, all at one index in the dimension that the loop indexes, given by the loops around. A
    loop that has an end already gives it to blocks that were added since, such as copies, whose readers all have it.
    Elsewhere: Halide bounds inference.
    """
    require_serial(program, [loop])
    inside = blocks_in(program.loops[loop])
    for block in inside:
        _require_private(program, loop, block)
    ends = {c for block in inside for c in block.guard if is_end(program, loop, c)}
    condition = ends.pop() if len(ends) == 1 else Condition(_last(program, loop, inside) - lin.variable(loop))
    without = [block for block in inside if condition not in block.guard]
    if any(condition in block.guard for block in inside):
        _require_readers_with(program, without, inside)
    after = program
    for block in without if not condition.always(program.ranges) else ():
        guarded = replace(block, guard=(*block.guard, condition))
        after = after.replaced(block.label, lambda _, guarded=guarded: [guarded])  # type: ignore[misc]
    return Plan(after)


def _require_private(program: Program, loop: int, block: Block) -> None:
    """Raise ScheduleError if a block writes a buffer that lives longer than an iteration of the loops around a loop."""
    around = program.enclosing(loop)
    for name in block.targets:
        if name not in program.allocs or program.enclosing((name,))[: len(around)] != around:
            refuse(block_place(block.label), f"it writes '{name}', which lives longer than the loops around")


def _require_readers_with(program: Program, without: Sequence[Block], inside: Sequence[Block]) -> None:
    """Raise ScheduleError if a block outside the loop reads what a block without the loop's end writes."""
    labels = {block.label for block in inside}
    for block in without:
        for name in block.targets:
            for reader in program.readers[name]:
                if reader.label not in labels:
                    refuse(
                        block_place(block.label), f"block '{reader.label}' reads '{name}' of iterations beyond the end"
                    )


def _last(program: Program, loop: int, inside: Sequence[Block]) -> Linear:
    """Return the last iteration that is needed, over the loops around. Raises ScheduleError if there is no such
    form."""
    labels, place = {block.label for block in inside}, loop_place(program, loop)
    limits = {
        limit
        for block in inside
        for written in block.writes
        for limit in _limits(program, loop, block, written, labels)
    }
    if len(limits) != 1:
        refuse(place, "its results are read at several indices" if limits else "no block outside it reads its results")
    (last,) = limits
    if not last.variables() <= {outer.number for outer in program.enclosing(loop)}:
        refuse(place, "the index at which its results are read depends on other loops than those around")
    return last


def _limits(program: Program, loop: int, block: Block, written: Access, labels: set[str]) -> list[Linear]:
    """Return the index, over loops, of each read outside the loop of what a block inside writes, in the dimension that
    the loop indexes. Raises ScheduleError for a read without such an index."""
    ranges, name = program.ranges, written.buffer
    dimensions = [d for d, form in enumerate(written.index) if block.at(form, ranges) == lin.variable(loop)]
    limits = []
    for reader in program.readers[name]:
        if reader.label in labels:
            continue
        if not dimensions or (reader.table is not None and reader.table.buffer == name):
            reason = f"block '{reader.label}' reads '{name}' at no index that the loop gives"
            refuse(block_place(block.label), reason)
        reads = [access for access in reader.reads if access.buffer == name]
        limits += [reader.at(access.index[dimensions[0]], ranges) for access in reads]
    return limits
