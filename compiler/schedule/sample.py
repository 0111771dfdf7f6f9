"""The open choices: drawn at random where no decision is given, and the decision is written into the op."""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, i64

from compiler.analysis.legal import Step
from compiler.dialects.sched import choice
from compiler.program.tree import Program
from compiler.schedule.plan import Plan, block_place, loop_place, refuse
from compiler.schedule.state import INLINE, ROOT, State


def perfect_tiles(extent: int, parts: int, innermost: int) -> list[tuple[int, ...]]:
    """All ways to write an extent as a product of so many factors, the last at most `innermost`."""
    if parts == 1:
        return [(extent,)] if extent <= innermost else []
    found = []
    for factor in range(1, extent + 1):
        if extent % factor == 0:
            found += [(factor, *rest) for rest in perfect_tiles(extent // factor, parts - 1, innermost)]
    return found


def perfect_tile(state: State, op: choice.SamplePerfectTileOp) -> Plan:
    """Choose factors whose product is a loop's extent, the innermost at most `innermost`.

        %t0, %t1 = sample_perfect_tile %i        // the extent of i is 10
      ->
        %t0, %t1 = sample_perfect_tile %i decision [2, 5]

    Drawn evenly from all ways to factor the extent. Requires an extent that has such factors, and of a decision that
    its product is the extent. Elsewhere: TVM sample_perfect_tile.
    """
    loop = state.loop(op, op.loop)
    if not op.params:
        refuse("sample_perfect_tile", loop_place(state.program, loop), "it needs at least one factor")
    extent = state.program.loops[loop].extent
    if op.decision is not None:
        factors = tuple(int(f) for f in op.decision.get_values())
        product = 1
        for factor in factors:
            product *= factor
        if product != extent:
            reason = f"the decision {list(factors)} is no perfect tile of its extent {extent}"
            refuse("sample_perfect_tile", loop_place(state.program, loop), reason)
    else:
        ways = perfect_tiles(extent, len(op.params), op.innermost.value.data)
        if not ways:
            reason = f"its extent {extent} has no perfect tile with an innermost factor up to {op.innermost.value.data}"
            refuse("sample_perfect_tile", loop_place(state.program, loop), reason)
        factors = state.random.choice(ways)
        op.properties["decision"] = DenseArrayBase.from_list(i64, factors)
    return Plan(Step(state.program), params=factors)


def categorical(state: State, op: choice.SampleCategoricalOp) -> Plan:
    """Choose one of several integers, with given probabilities.

        %v = sample_categorical [2, 4, 8]
      ->
        %v = sample_categorical [2, 4, 8] decision 1      // 4

    The decision is the position of the chosen one. Requires probabilities that sum to 1, and of a decision that it is
    a position. Elsewhere: TVM sample_categorical.
    """
    candidates = [int(c) for c in op.candidates.get_values()]
    if op.decision is None:
        chances = None if op.probabilities is None else [p.value.data for p in op.probabilities]
        position = state.random.choices(range(len(candidates)), chances)[0]
        op.properties["decision"] = IntegerAttr(position, i64)
    else:
        position = op.decision.value.data
    return Plan(Step(state.program), params=(candidates[position],))


def multiple(state: State, op: choice.MultipleOp) -> Plan:
    """A multiple of a parameter.

        %v = sample_categorical [1, 2, 4] decision 1
        %n = multiple %v by 16                      // 32

    Requires a positive factor. Elsewhere: MLIR's affine maps of transform parameters, TVM's PrimExpr of sampled values.
    """
    return Plan(Step(state.program), params=(state.param(op, op.param) * op.factor.value.data,))


def product(state: State, op: choice.ProductOp) -> Plan:
    """The product of parameters.

        %rows = sample_categorical [1, 2, 4] decision 1
        %columns = sample_categorical [8, 16, 32] decision 2
        %threads = product %rows, %columns          // 64

    Elsewhere: MLIR's affine maps of transform parameters, TVM's PrimExpr of sampled values.
    """
    first, *others = (state.param(op, value) for value in op.params)
    for other in others:
        first = first * other
    return Plan(Step(state.program), params=(first,))


def locations(program: Program, label: str) -> list[int]:
    """The loops at which a block can be computed: those around all its consumers and not around itself."""
    written = {access.buffer for access in program.blocks[label].writes}
    around = [
        [loop.number for loop in program.enclosing(reader.label)]
        for name in written
        for reader in program.readers[name]
        if reader.label != label
    ]
    if not around:
        return []
    own = {loop.number for loop in program.enclosing(label)}
    shared = set(around[0]).intersection(*around[1:]) - own
    return [number for number in around[0] if number in shared]


def location(state: State, op: choice.SampleLocationOp) -> Plan:
    """Choose the loop at which a block is computed.

        %at = sample_location %t                 // all consumers of T are in loops i, j
      ->
        %at = sample_location %t decision 0      // at i

    The candidates are the loops around all consumers and not around the block itself, outermost first. The decision
    -1 leaves the block where it is, -2, which is never drawn, inlines it; compute_at and reverse_compute_at know
    both. Requires of a decision that it is -2, -1 or the position of a candidate. Elsewhere: TVM
    sample_compute_location, Halide's autoscheduler.
    """
    label = state.block(op, op.block)
    found = locations(state.program, label)
    if op.decision is None:
        op.properties["decision"] = IntegerAttr(state.random.randrange(ROOT, len(found)), i64)
    assert op.decision is not None
    decision = op.decision.value.data
    if decision >= len(found):
        reason = f"the decision {decision} is none of its {len(found)} locations"
        refuse("sample_location", block_place(label), reason)
    return Plan(Step(state.program), loops=(found[decision] if decision >= 0 else decision,))


__all__ = [
    "INLINE",
    "ROOT",
    "categorical",
    "location",
    "locations",
    "multiple",
    "perfect_tile",
    "perfect_tiles",
    "product",
]
