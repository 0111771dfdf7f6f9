"""The primitive sample_location."""

from __future__ import annotations

from random import Random

from compiler.program.tree import Program
from compiler.schedule.parameters import BLOCK, INT, RANDOM
from compiler.schedule.plan import Plan, block_place, refuse
from compiler.schedule.primitive import primitive
from compiler.schedule.state import ROOT


@primitive(
    "$block (`decision` $decision^)?",
    "%at = sched.sample_location %c decision 1",
    gives={"loop": "loop"},
    random=RANDOM,
    block=BLOCK,
    decision=INT.such_that(lambda n: n >= -2, "the decision {} is not a loop's position, -1 or -2").or_else(None),
)
def sample_location(program: Program, random: Random, block: str, decision: int | None = None) -> Plan:
    """Choose the loop at which a block is computed.

        %at = sample_location %t                 // all consumers of T are in loops i, j
      ->
        %at = sample_location %t decision 0      // at i

    The candidates are the loops around all consumers and not around the block itself, outermost first. The decision
    -1 leaves the block where it is; -2, which is never drawn, inlines it. compute_at and reverse_compute_at take
    both. Requires of a decision that it is -2, -1 or the position of a candidate. Elsewhere: TVM
    sample_compute_location, Halide's autoscheduler.
    """
    loops = locations(program, block)
    position = random.randrange(ROOT, len(loops)) if decision is None else decision
    if position >= len(loops):
        refuse(block_place(block), f"the decision {position} is none of its {len(loops)} locations")
    return Plan(program, loops=(loops[position] if position >= 0 else position,), decision=position)


def locations(program: Program, label: str) -> list[int]:
    """The loops at which a block can be computed, outermost first: those around all consumers, not around itself; []
    without a consumer."""
    outer_loops = [
        [loop.number for loop in program.enclosing(reader.label)]
        for name in program.blocks[label].targets
        for reader in program.readers[name]
        if reader.label != label
    ]
    if not outer_loops:
        return []
    shared = set(outer_loops[0]).intersection(*outer_loops[1:]) - program.outer(label)
    return [number for number in outer_loops[0] if number in shared]
