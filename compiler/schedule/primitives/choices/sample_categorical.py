"""The primitive sample_categorical."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from compiler.program.tree import Program
from compiler.schedule.parameters import FLOATS, INT, INTS, RANDOM, Value
from compiler.schedule.plan import Plan
from compiler.schedule.primitive import primitive


def _distributes(stated: Mapping[str, Value], result_count: int) -> str:
    count, decision = len(stated["candidates"]), stated["decision"]
    chances = [1 / max(1, count)] * count if stated["probabilities"] is None else stated["probabilities"]
    if not count:
        return "there is nothing to choose from"
    if len(chances) != count:
        return f"{count} candidates need as many probabilities, not {len(chances)}"
    if any(chance < 0 for chance in chances) or abs(sum(chances) - 1) > 1e-6:
        return f"the probabilities {chances} are negative or do not sum to 1"
    if decision is not None and not 0 <= decision < count:
        return f"the decision {decision} is not one of {count} positions"
    return ""


@primitive(
    "$candidates (`probabilities` $probabilities^)? (`decision` $decision^)?",
    "%u = sched.sample_categorical [1, 4, 16] probabilities [0.5, 0.25, 0.25] decision 1\n"
    "%v = sched.sample_categorical [1, 4, 16]",
    gives={"value": "param"},
    check=_distributes,
    random=RANDOM,
    candidates=INTS,
    probabilities=FLOATS.or_else(None),
    decision=INT.or_else(None),
)
def sample_categorical(
    program: Program,
    random: Random,
    candidates: Sequence[int],
    probabilities: Sequence[float] | None = None,
    decision: int | None = None,
) -> Plan:
    """Choose one of several integers, with given probabilities.

        %v = sample_categorical [2, 4, 8]
      ->
        %v = sample_categorical [2, 4, 8] decision 1      // 4

    The decision is the position of the chosen integer; without probabilities, all have the same. Requires probabilities
    that sum to 1, and of a decision that it is a position. Elsewhere: TVM sample_categorical.
    """
    position = random.choices(range(len(candidates)), probabilities)[0] if decision is None else decision
    return Plan(program, params=(candidates[position],), decision=position)
