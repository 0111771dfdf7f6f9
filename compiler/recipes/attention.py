"""Attention by rows of queries: two products and the softmax between them in one loop over query rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from compiler.recipes.draft import Alternative, Draft
from compiler.recipes.elementwise import is_costly
from compiler.recipes.packing import even, pack_panels
from compiler.recipes.product import is_product
from compiler.recipes.register_tile import Sizes, accumulate, register_tile, vectors_of
from compiler.recipes.rows import makes_result, shared_row
from compiler.recipes.sizes import step_cycles, steps
from compiler.recipes.steps import (
    by_axis,
    by_vectors,
    in_vectors,
    inside,
    nest,
    node_of,
    operand_over,
    other_operand,
    refusal,
    target_of,
)
from compiler.schedule import Handle, Schedule, Size

BLOCKS = 5
"""The fewest blocks of attention: scores, maximum, exponentials, sum, and result."""


def shared_rows(draft: Draft, label: str) -> Iterator[Alternative]:
    """Yield schedules of a program that ends with the second product of an attention, the block `label`, by rows of
    queries; register tiles of the widths with the fewest estimated cycles come first. Yields nothing if fewer than
    BLOCKS blocks are unscheduled, if the last of them is another block, and if it is no product."""
    if len(draft.left) < BLOCKS or draft.left[-1] != label or not is_product(draft.block(label)):
        return
    length, depth = draft.block(label).axes[-1].size, draft.block(label).axes[-2].size
    usual = attention_tiles(length, depth, draft.lanes(label))
    widths = sorted({2, 3, 4, usual.nr // usual.lanes}, key=lambda n: _price(draft, n, -(-depth // usual.lanes)))
    for vectors in widths:
        for grouped in dict.fromkeys((usual.group != 1, usual.group == 1)):
            name = f"rows of queries, {vectors} vectors{', in groups' if grouped else ''}"
            yield Alternative(name, partial(_apply, label=label, usual=usual, vectors=vectors, grouped=grouped))


def _price(draft: Draft, vectors: int, depth: int) -> tuple[float, float]:
    """Estimate the cycles, and the loads, for each accumulator and reduction step, of register tiles of `vectors`
    vectors that cover `depth` vectors of the result; padding of the last tile counts. Tuples compare cycles first."""
    rows = _rows(draft, vectors)
    sums, loads = rows * vectors, rows + vectors
    filled = -(-depth // vectors) * vectors / depth
    return filled * step_cycles(sums, loads) / sums, filled * loads / sums


def _rows(draft: Draft, vectors: int) -> int:
    """Return the largest number of query rows of a register tile with `vectors` vectors in a row: accumulators, a row
    of vectors and one more register fit."""
    return (draft.machine.registers - 1) // vectors - 1


def _apply(draft: Draft, label: str, usual: AttentionTiles, vectors: int, grouped: bool) -> Sequence[str]:
    s, queries = draft.schedule, draft.block(label).axes[-3].size
    most = min(_rows(draft, vectors), queries)
    rows = draft.choose(range(2, most + 1) or [1], most, "rows")
    group = draft.choose(steps(max(2, queries // most), (2, 4, 8)), 4, "group") if grouped else 1
    tiles = replace(usual, mr=rows, nr=vectors * usual.lanes, group=group)
    scheduled = attention(s, s.get_block(label), tiles)
    draft.parallel([*scheduled.heads, scheduled.group][0])
    return draft.left


AHEAD = 8
"""The prefetch distance of the rows of V, in keys."""


@dataclass(frozen=True)
class AttentionTiles:
    """The register tile of both products: `mr` queries by `nr` keys, or columns of the result, in vectors of `lanes`.
    `group`: the number of query tiles that share a loaded panel of keys. `mr` and `group` may be parameters above one.
    """

    mr: Size = 6
    nr: int = 64
    lanes: int = 16
    group: Size = 1

    def over(self, queries: int) -> AttentionTiles:
        """Return constant tiles limited to a number of queries, in groups of even sizes; tiles with a parameter as they
        are."""
        if not isinstance(self.mr, int) or not isinstance(self.group, int):
            return self
        groups = even(queries, self.group * self.mr, self.mr)
        return replace(self, mr=min(self.mr, queries), group=groups)


def attention_tiles(length: int, depth: int, lanes: int = 16) -> AttentionTiles:
    """Return the tiles for keys and values of [length, depth] in f32, with 32 vector registers of `lanes` elements.

    6 x 4 vectors, or 5 x 5, or 4 x 6, whichever divides the depth in the fewest panels: mr * n accumulators, n vectors
    of the second operand and one element of the first, which is 10 loads in 24 multiply-adds. Row panels are grouped if
    the keys and values of a head exceed half of an L2 of 2 MiB.

    >>> strata.recipes.attention_tiles(length=4096, depth=80)
    AttentionTiles(mr=5, nr=80, lanes=16, group=4)
    """
    vectors = -(-depth // lanes)
    columns = max(4, even(depth, 6 * lanes, lanes)) if vectors > 4 else 4
    return AttentionTiles(min(6, 31 // columns - 1), columns * lanes, lanes, 1 if 8 * length * depth <= 1 << 20 else 4)


@dataclass(frozen=True)
class Softmax:
    """The blocks before the second product of an attention, in order. scores: the first product. logits: the blocks
    between the scores and the maximum that write outputs of the function, in order; others are inlined. largest: the
    maxima of rows. powers: the exponentials. total: their sums. weights: the quotients."""

    scores: Handle
    logits: list[Handle]
    largest: Handle
    powers: Handle
    total: Handle
    weights: Handle


@dataclass(frozen=True)
class Attention:
    """The outer loops of a scheduled attention: over heads, and over groups of queries."""

    heads: list[Handle]
    group: Handle


def attention(s: Schedule, block: Handle, tiles: AttentionTiles | None = None) -> Attention:
    """Schedule softmax(scale * Q K^T) V by mr queries, whose scores, exponentials and weights stay in the cache.

        scores = Q K^T;  logits;  max;  exp;  sum;  weights = exp / sum;  O = weights V
      ->
        b { pack K in panels [n / nr][d][nr]
          m.0 { pack Q in panels [group][d][mr]
            n.0 { group { scores[mr, nr] = 0; d { mr x nr multiply-adds } } }
            m.1 = group {
              n.0 { mr unrolled { max over lanes } };  max over the lanes
              n.0 { mr unrolled { exp, and its sum over lanes } };  sum over the lanes
              e.0 { O[mr, nr] = 0
                n.0 { weights[mr, lanes] = exp / sum
                  n.1 { mr x nr multiply-adds of weights and V } } } } } }

    `block` is the second product; default tiles are those of `attention_tiles`. The scale, a mask and other elementwise
    computes between the scores and the softmax are recomputed where they are read. Only `lanes` columns of the weights
    exist at a time: the divisions of the next columns run while the multiply-adds of these are under way. The columns
    of the result are evened out over their panels. Only sums are reassociated.

    Blocks between the products may be outputs of the function: they are written, and read, for the rows of one
    iteration; outputs of reductions are copies. Weights that are an output are computed before the second product.

    Returns the outer loops. Requires the blocks of a softmax over the last axis (a maximum, the exponentials, their
    sum, their quotients) between two products, the loops of `block` as written: heads, if there are any, m, e, n.
    Source: Dao et al., FlashAttention, 2022 and Rabe and Staats 2021 for attention by rows of queries, without the
    online softmax: all scores of a row fit into the cache; register tiles as in BLIS. Raises ScheduleError for other
    programs, and for scores of one key or of depth one.
    """
    *heads, m, e, n = nest(s, block, "attention", fewest=3)
    tiles = tiles or attention_tiles(s.extent(n), s.extent(e))
    lanes, softmax = tiles.lanes, _blocks(s, block)
    _require_loops(s, block, softmax.scores)
    tiles = tiles.over(s.extent(m))
    stages = _stages(s, softmax)
    vectors = vectors_of(even(s.extent(e), tiles.nr, lanes), min(lanes, s.extent(e)))
    sizes: Sizes = {m: [tiles.group, tiles.mr], e: vectors, n: [min(lanes, s.extent(n))]}
    tile = register_tile(s, [*heads, m, m, e], [n, n], [m, e], sizes)
    (*_, group, rows, _), (panels, panel_lanes) = tile.around, tile.reduction
    if softmax.weights not in stages:
        s.compute_at(softmax.weights, panels)
        in_vectors(s, inside(s, softmax.weights, panels))
    for stage in reversed(stages):
        rows = _for_rows(s, stage, block, rows, tiles)
    *heads, group, rows = s.get_loops(block)[: len(heads) + 2]
    s.compute_at(softmax.scores, group)
    _scores(s, softmax.scores, heads[-1] if heads else None, group, tiles)
    accumulate(s, block, tile)
    _in_vectors(s, softmax, stages, rows, lanes)
    s.prefetch(panel_lanes, operand_over(s, block, node_of(s, block).spatial - 1), AHEAD)
    return Attention(heads, group)


def _blocks(s: Schedule, block: Handle) -> Softmax:
    """Return the blocks before the second product `block`, and inline other elementwise blocks between them. Raises
    ScheduleError for other programs."""
    weights = _only(s, block, [h for h in s.get_producers(block) if not _reduces(s, h)], "one block of weights")
    _inline_before(s, weights)
    total = _only(s, block, [h for h in s.get_producers(weights) if _reduces(s, h)], "one sum in the weights")
    powers = _only(s, block, s.get_producers(total), "one block of powers in the sum")
    _inline_before(s, powers)
    largest = _only(s, block, [h for h in s.get_producers(powers) if _reduces(s, h)][-1:], "a maximum in the powers")
    logits = _only(s, block, s.get_producers(largest), "one block of logits in the maximum")
    kept_handles: list[Handle] = []
    while not _reduces(s, logits):
        before = _only(s, block, s.get_producers(logits), "one block of scores in the logits")
        if makes_result(s, node_of(s, logits)):
            kept_handles.insert(0, logits)
        else:
            s.inline(logits)
        logits = before
    return Softmax(logits, kept_handles, largest, powers, total, weights)


def _inline_before(s: Schedule, block: Handle) -> None:
    """Inline the elementwise producers of a block that read a reduction, such as a difference or a reciprocal, except
    reductions, and those that write an output or have a costly operation such as exp."""
    for producer in s.get_producers(block):
        node = node_of(s, producer)
        reads_reduction = any(_reduces(s, before) for before in s.get_producers(producer))
        if reads_reduction and not (_reduces(s, producer) or makes_result(s, node) or is_costly(node)):
            s.inline(producer)


def _stages(s: Schedule, softmax: Softmax) -> list[Handle]:
    """Return the blocks to compute for some rows between the products, in order: without the scores, and without
    weights that are no output. Adds a copy, which stores the result, for each reduction that writes an output, and
    includes it."""
    stages: list[Handle] = []
    for block in (softmax.scores, *softmax.logits, softmax.largest, softmax.powers, softmax.total, softmax.weights):
        is_result = makes_result(s, node_of(s, block))
        if block != softmax.scores and (block != softmax.weights or is_result):
            stages.append(block)
        if is_result and _reduces(s, block):
            stages.append(s.cache_write(block))
    return stages


def _for_rows(s: Schedule, stage: Handle, block: Handle, rows: Handle, tiles: AttentionTiles) -> Handle:
    """Compute a stage for the rows of one iteration of `rows`; a stage that writes an output is merged into the loops
    of the second product `block`. Return the loop over rows, a new one after a merge."""
    if not makes_result(s, node_of(s, stage)):
        s.compute_at(stage, rows)
        return rows
    shape = [axis.size for axis in node_of(s, block).axes[:-2]]
    _add_single_loops(s, stage, shape)
    s.split(s.get_loops(stage)[len(shape) - 1], [None, tiles.group, tiles.mr])
    return shared_row(s, stage, block, rows)


def _add_single_loops(s: Schedule, stage: Handle, shape: Sequence[int]) -> None:
    """Add to a copy the loops of one iteration that it lacks: those of the dimensions of extent 1 in `shape`."""
    for n, size in enumerate(shape):
        loops = nest(s, stage, "attention")
        if size == 1 and n == len(loops):
            s.split(loops[-1], [None, 1])
        elif size == 1 and s.extent(loops[n]) > 1:
            s.split(loops[n], [1, None])


def _in_vectors(s: Schedule, softmax: Softmax, stages: Sequence[Handle], rows: Handle, lanes: int) -> None:
    """Vectorize the stages inside `rows` by `lanes`, and merge the loops of the exponentials and of their sum."""
    vectors: dict[Handle, Handle | None] = {}
    for stage in stages:
        vectors[stage] = (_over_lanes if _reduces(s, stage) else _by_vectors)(s, stage, rows, lanes)
    powers, total = vectors[softmax.powers], vectors[softmax.total]
    if powers is not None and total is not None:
        s.merge(powers, total)


def _require_loops(s: Schedule, block: Handle, scores: Handle) -> None:
    """Raise ScheduleError if the scores have one key or depth one: the loop over that axis would be missing."""
    for axis in node_of(s, scores).axes[-2:]:
        if axis.size == 1:
            reason = f"axis '{axis.label}' of the scores has one element: there is nothing to tile"
            raise refusal(s, block, "attention", reason)


def _only(s: Schedule, block: Handle, candidates: list[Handle], what: str) -> Handle:
    if len(candidates) != 1:
        raise refusal(s, block, "attention", f"there is not {what}: it ends no attention")
    return candidates[0]


def _reduces(s: Schedule, block: Handle) -> bool:
    return bool(node_of(s, block).combiners)


def _scores(s: Schedule, block: Handle, head: Handle | None, group: Handle, tiles: AttentionTiles) -> None:
    """Tile the first product in registers, with both operands packed, the keys in the loop `head` or, if it is None,
    before the nest; the rows of a group share a panel of keys."""
    *_, m, n, _ = range(len(node_of(s, block).axes))
    keys = operand_over(s, block, n)
    queries = other_operand(s, block, keys)
    row, (key,), depth = by_axis(s, block, group)[-3:]
    count, lanes = even(s.extent(key), tiles.nr, tiles.lanes), min(tiles.lanes, s.extent(key))
    sizes = {key: vectors_of(count, lanes), **{loop: [tiles.mr] for loop in row}}
    tile = register_tile(s, [key, *row], depth, [*row, key], sizes)
    pack_panels(s, block, keys, n, count * lanes, head, tiles.lanes)
    pack_panels(s, block, queries, m, tiles.mr if row else 1, group, tiles.lanes)
    accumulate(s, block, tile)


def _by_vectors(s: Schedule, block: Handle, rows: Handle, lanes: int) -> Handle:
    """Vectorize the columns of a block inside `rows` by `lanes`; return the loop over vectors, which is moved outside
    the rows."""
    *row, column = inside(s, block, rows)
    vectors, lane = by_vectors(s, column, lanes)
    s.reorder(vectors, *row, lane)
    in_vectors(s, [*row, lane])
    return vectors


def _over_lanes(s: Schedule, block: Handle, rows: Handle, lanes: int) -> Handle | None:
    """Reduce each row inside `rows` into a vector of `lanes` partial results, which are combined at the end; return the
    loop over vectors. Rows of at most one vector stay as they are: None.

    Rows are independent dependence chains, several of which are in flight.
    """
    *row, column = inside(s, block, rows)
    if s.extent(column) <= lanes:
        return None
    partial = s.rfactor(block, by_vectors(s, column, lanes)[1])
    buffer = target_of(s, partial)
    if row:
        s.lift_alloc(buffer, rows)
    s.transform_layout(partial, buffer, lambda lane, *dims: (*dims, lane))
    for loop in row:
        s.distribute(loop, partial)
    s.unroll(inside(s, block, rows)[-1])
    node = node_of(s, partial)
    reduced = next(n for n, axis in enumerate(node.axes) if axis.is_reduce)
    loops = by_axis(s, partial, rows)
    lane = loops[node.spatial - 1]
    vectors = [loop for loop in loops[reduced] if s.label(loop) not in map(s.label, lane)]
    columns = {s.label(loop) for loop in (*vectors, *lane)}
    row = [loop for loop in inside(s, partial, rows) if s.label(loop) not in columns]
    s.reorder(*vectors, *row, *lane)
    in_vectors(s, [*row, *lane])
    return vectors[0]
