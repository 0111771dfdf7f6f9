"""The primitive sample_perfect_tile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from random import Random

from compiler.program.tree import Program
from compiler.schedule.parameters import INT, INTS, LOOP, RANDOM, RESULTS, Value
from compiler.schedule.plan import Plan, loop_place, refuse
from compiler.schedule.primitive import primitive


def _decides(stated: Mapping[str, Value], result_count: int) -> str:
    factors, innermost = stated["decision"], stated["innermost"]
    if factors is None:
        return ""
    if len(factors) != result_count or any(factor < 1 for factor in factors):
        return f"the decision {factors} is not one positive factor a parameter"
    return f"the innermost factor {factors[-1]} is above {innermost}" if factors[-1] > innermost else ""


@primitive(
    "$loop `innermost` $innermost (`decision` $decision^)?",
    "%t:2 = sched.sample_perfect_tile %m innermost 64 decision [4, 16] : !sched.param, !sched.param\n"
    "%m0, %m1 = sched.split %m by [%t#0, %t#1] : !sched.loop, !sched.loop",
    gives={"factors": "param*"},
    check=_decides,
    random=RANDOM,
    loop=LOOP,
    parts=RESULTS,
    innermost=INT,
    decision=INTS.or_else(None),
)
def sample_perfect_tile(
    program: Program, random: Random, loop: int, parts: int, innermost: int = 64, decision: Sequence[int] | None = None
) -> Plan:
    """Choose factors whose product is a loop's extent, the innermost at most `innermost`.

        %t0, %t1 = sample_perfect_tile %i        // the extent of i is 10
      ->
        %t0, %t1 = sample_perfect_tile %i decision [2, 5]

    Drawn evenly from all ways to factor the extent. Requires an extent that has such factors, and of a decision that
    its product is the extent. Elsewhere: TVM sample_perfect_tile.
    """
    if not parts:
        refuse(loop_place(program, loop), "it needs at least one factor")
    extent = program.loops[loop].extent
    ways = [tuple(decision)] if decision is not None else perfect_tiles(extent, parts, innermost)
    if not ways:
        reason = f"its extent {extent} has no perfect tile with an innermost factor up to {innermost}"
        refuse(loop_place(program, loop), reason)
    if prod(ways[0]) != extent:
        reason = f"the decision {list(ways[0])} is no perfect tile of its extent {extent}"
        refuse(loop_place(program, loop), reason)
    factors = ways[0] if decision is not None else random.choice(ways)
    return Plan(program, params=factors, decision=factors)


def perfect_tiles(extent: int, parts: int, innermost: int) -> list[tuple[int, ...]]:
    """All ways to factor an extent in `parts`, the last at most `innermost`: 10, 2, 5 -> (2, 5), (5, 2), (10, 1); [] if
    none. They ascend by the first factor, then the next. Requires at least one part."""
    if parts == 1:
        return [(extent,)] if extent <= innermost else []
    tiles = []
    for factor in range(1, extent + 1):
        if extent % factor == 0:
            tiles += [
                (factor, *inner_factors) for inner_factors in perfect_tiles(extent // factor, parts - 1, innermost)
            ]
    return tiles
