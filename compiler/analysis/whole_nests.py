"""Tensorized nests that run whole: their guards are weakened, which is proved to be harmless."""

from __future__ import annotations

from compiler.analysis.tensorized import loops_under, matched
from compiler.intrinsics import Misfit, find
from compiler.program.tree import Program
from compiler.support.errors import LoweringError, ScheduleError, refused_by


def run_whole(program: Program) -> Program:
    """Weaken the guards of tensorized nests so that these run whole, which is proved to be harmless.

    Raises LoweringError for an unknown intrinsic, a nest that is not its intrinsic's, stands in a vectorized loop or
    may do harm if it runs whole, and for a fragment that other nests touch.
    """
    _check_fragments(program)
    if not any(loop.kind == "tensorized" for loop in program.loops.values()):
        return program
    try:
        return absorbed(program)
    except (Misfit, ScheduleError) as error:
        raise LoweringError(f"@{program.name}: {error}") from error


def absorbed(program: Program) -> Program:
    """Return the program with each tensorized nest matched again, and its guard weakened by `matched`.

    Each nest is judged in `program`, in which other guards are not weakened. Raises Misfit, which names the loop, and
    ScheduleError for an unknown intrinsic.
    """
    weakened_program = program
    for loop in program.loops.values():
        if loop.kind != "tensorized" or any(n.kind == "tensorized" for n in program.enclosing(loop.number)):
            continue
        name = loop.intrinsic
        try:
            with refused_by("tensorize"):
                declared = find(name)
            rematched = matched(program, loop.number, declared)
        except Misfit as misfit:
            raise Misfit(f"loop '{loop.label}' is tensorized by '{name}', but {misfit}") from misfit
        if rematched is not program:
            weakened = rematched.blocks[loops_under(program, loop.number)[1].label]
            weakened_program = weakened_program.map_blocks(lambda b, new=weakened: new if b.label == new.label else b)  # type: ignore[misc]
    return weakened_program


def _check_fragments(program: Program) -> None:
    """Raise LoweringError if a block outside tensorized nests and loops over a warp's threads accesses a fragment."""
    for buffer in program.buffers.values():
        for block in (*program.readers[buffer.name], *program.writers[buffer.name]):
            kinds = {loop.kind for loop in program.enclosing(block.label)}
            if buffer.scope == "fragment" and kinds.isdisjoint(("tensorized", "thread_x")):
                reason = "which only a tensorized nest does, or a block in a loop over the threads of a warp"
                raise LoweringError(f"block '{block.label}' touches a fragment, {reason}")
