"""Products as general panel times block (GEBP): packed panels, register tiles, the epilogue on tiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import gcd, prod

from compiler.analysis.order import step
from compiler.program.tree import Block
from compiler.recipes.draft import Alternative, Draft, in_order, labels
from compiler.recipes.elementwise import elementwise, is_costly
from compiler.recipes.packing import even, require_sizes
from compiler.recipes.packing import pack as pack_operand
from compiler.recipes.register_tile import accumulate, register_tile, vectors_of
from compiler.recipes.sizes import depth, evens, product_tile, rows_of, steps, width
from compiler.recipes.steps import (
    around,
    axes_of,
    in_vectors,
    nest,
    node_of,
    operands,
    own_loops,
    refusal,
    sums_pairs,
    target_of,
    vectorize_rows,
)
from compiler.schedule import Handle, Schedule, Size
from compiler.types.elements import element_bytes

MOST_ROWS = 14
MOST_DEPTH = 1024
FEW_ROWS = 16
AGAIN = 0.15
"""The cost of reading A again for each round of panels of B, relative to a panel: 0.05 to 0.35 by measurement."""
SHARE = 2
"""If B is larger than 1 / SHARE of L2, it is read once for all rows of an image, not once for each."""
PAGE, WAYS = 4096, 6
"""The bytes of a way of L1, and the most rows of A that stay in one set beside B and C."""
SHORT = 4
"""The least extent of k for which clearing and storing a register tile pays."""


def packed_product(draft: Draft, label: str) -> Iterator[Alternative]:
    """Yield schedules of C[.., m, n] += A[.., m, k] * B[.., k, n] by register and cache tiles, packings by preference;
    only the schedule as written, with the block alone, if n is shorter than half a vector or k than SHORT. Yields
    nothing for other blocks.

    An elementwise consumer is applied to finished tiles, or stored packed if it is the first operand of a product.
    """
    block = draft.block(label)
    m = rows_axis(block)
    if m is None or not _in_rows(draft, block, m):
        return
    if 2 * block.axes[-2].size < draft.lanes(label) or block.axes[-1].size < SHORT:
        yield Alternative("as written", partial(in_order, label=label))  # neither gains from a register tile
        return
    packs = _packs(draft, label, m)
    after = _epilogues(draft, label)
    ways = [(packs[0], after[0]), *((pack, after[0]) for pack in packs[1:]), *((packs[0], way) for way in after[1:])]
    for packing, way in ways:
        yield Alternative(
            f"{packing}{f', {way}' if way else ''}", partial(_apply, label=label, m=m, packing=packing, way=way)
        )


@dataclass(frozen=True)
class Packing:
    """The operands of a product that are packed. packed: their letters, of "ab"; an operand whose letter is missing
    is read in place. first: the letters of those that are packed before the nest. groups: whether several panels of
    A are packed together."""

    packed: str
    first: str = ""
    groups: bool = False

    def __str__(self) -> str:
        first = f", {self.first} first" if self.first else ""
        return f"gebp {self.packed or 'unpacked'}{first}{' in groups' if self.groups else ''}"


def is_product(block: Block) -> bool:
    """Return whether a block is a product C[.., m, n] += A[.., m, k] * B[.., k, n] with m, n, k as its last axes, of
    two buffers in any layouts, read without conditions; m or n may have extent 1."""
    return rows_axis(block) == len(block.axes) - 3 and block.reads[0].buffer != block.reads[1].buffer


def rows_axis(block: Block) -> int | None:
    """Return the number of the axis m of a product C[.., m, .., n] += A[.., m, .., k] * B[.., k, .., n] with n and k as
    its last axes, of two buffers or one in any layouts, read without conditions: the third last axis, of any extent,
    unless both operands or only B depend on it; else the last longer axis before that A alone depends on. None if
    there is none, and for other blocks."""
    if not sums_pairs(block) or len(block.axes) < 3:
        return None
    n, k = len(block.axes) - 2, len(block.axes) - 1
    if [axis.is_reduce for axis in block.axes[n - 1 :]] != [False, False, True]:
        return None
    if any(access.where for access in block.reads):
        return None
    moved = [axes_of(access) for access in block.reads]
    for m in range(n - 1, -1, -1):
        long = {axis for axis in (m, n, k) if block.axes[axis].size > 1}
        is_long = m in long or m == n - 1
        if (
            is_long
            and k in long
            and len(long) > 1
            and [axes & long for axes in moved] == [{m, k} & long, {n, k} & long]
        ):
            return m
    return None


def _in_rows(draft: Draft, block: Block, m: int) -> bool:
    """Return whether a product with rows along the axis number `m` has several columns n and, if it has only one row,
    reads B contiguously along n."""
    n = len(block.axes) - 2
    along = block.axes[m].size > 1 or step(draft.schedule.program, block.reads[1], n) == 1
    return block.axes[n].size > 1 and along


def _packs(draft: Draft, label: str, rows: int) -> list[Packing]:
    """Return the packings of a product whose m is the axis number `rows`, the best first; constants are packed
    beforehand, at no cost to the calls. An A that is stored in panels already is not packed.

    A is mostly read in place: a register tile broadcasts few rows, which stay in L1 for all panels of B.
    """
    block = draft.block(label)
    m, n, k = (block.axes[axis].size for axis in (rows, -2, -1))
    constants = draft.schedule.program.constants
    first = "".join(name for name, read in zip("ab", block.reads, strict=True) if read.buffer in constants)
    if block.reads[0].buffer in draft.panels:
        return [*([Packing("b", "b")] if "b" in first else []), Packing("b"), Packing("")]
    with_constants = [Packing(first, first), Packing("ab", first)] if first else []
    with_constants = list(dict.fromkeys(with_constants if "b" in first else with_constants[::-1]))
    packings_of_both = [] if first else [Packing("ab", "ab")]
    unpacked = [Packing("")] if step(draft.schedule.program, block.reads[1], len(block.axes) - 2) in (0, 1) else []
    if 4 * k * (m + n) <= draft.machine.l2_bytes // 2:
        return [*with_constants, *unpacked, Packing("ab"), Packing("b"), *packings_of_both]
    many = [Packing("ab", groups=True)] if m > 2 * MOST_ROWS else []
    return [*with_constants, Packing("b"), Packing("ab"), *many, *packings_of_both]


def _epilogues(draft: Draft, label: str) -> list[str]:
    """Return the ways to schedule a product's elementwise consumer, the best first; "" leaves it to other rules, alone
    without such a consumer."""
    consumer = draft.consumer(label)
    if consumer is None:
        return [""]
    following = draft.readers(consumer.label)
    written = consumer.writes[0].buffer
    chained = len(following) == 1 and is_product(following[0]) and following[0].reads[0].buffer == written
    return [*(["stored in panels"] if chained else []), "applied to tiles", ""]


def _apply(draft: Draft, label: str, m: int, packing: Packing, way: str) -> Sequence[str]:
    s, block = draft.schedule, draft.block(label)
    if m != len(block.axes) - 3:
        loops = s.get_loops(s.get_block(label))
        s.reorder(*loops[:m], *loops[m + 1 : -2], loops[m], *loops[-2:])
    consumer, lanes = draft.consumer(label), min(draft.lanes(label), block.axes[-2].size)
    tiles = _tiles(draft, block, m, lanes, packing.groups)
    a, b = (access.buffer for access in block.reads)
    copy = s.cache_read(s.get_block(label), b, "global", read=1) if a == b else None
    scheduled = tiled_gebp(s, s.get_block(label), tiles, lanes, packing.packed, packing.first)
    if copy is not None and "b" in packing.packed:
        s.inline(copy)  # into the packing
    elif copy is not None:
        elementwise(s, copy, lanes, 2)
    if consumer is not None and way == "stored in panels":
        store_packed(s, s.get_block(consumer.label), scheduled, tiles.rows, lanes)
        draft.panels[consumer.writes[0].buffer] = tiles.rows
    elif consumer is not None and way:
        apply_to_tiles(s, s.get_block(consumer.label), scheduled, lanes)
    before = None if "a" in packing.packed else draft.producer(block.reads[0].buffer)
    if before is not None or ("a" not in packing.packed and _conflicts(draft, block, m)):
        rows = draft.handle(before) or s.cache_read(s.get_block(label), block.reads[0].buffer, "global")
        s.compute_at(rows, scheduled.ic)
        elementwise(s, rows, lanes, 2)
    if draft.threads > 1:
        _parallel(draft, s.get_block(label), scheduled)
    return [label, *labels(before, consumer if way else None)]


def _conflicts(draft: Draft, block: Block, m: int) -> bool:
    """Return whether more rows of A, along the axis `m`, than WAYS lie a multiple of PAGE apart: they share a set of
    L1, and are copied."""
    row_stride = step(draft.schedule.program, block.reads[0], m)
    element = element_bytes(draft.schedule.program.buffers[block.reads[0].buffer].element)
    return block.axes[m].size > WAYS and row_stride is not None and row_stride > 0 and row_stride * element % PAGE == 0


def _images(draft: Draft, block: Block, m: int) -> int:
    """Return the number of loops just outside those over m, n and k on whose axes B does not depend, such as the
    rows of an image; 0 if B fits 1 / SHARE of L2. Inside the loops over tiles of B, they share one read of B. m: the
    number of the axis m."""
    b = block.reads[1]
    element = element_bytes(draft.schedule.program.buffers[b.buffer].element)
    if SHARE * prod(axis.size for axis in block.axes[-2:]) * element <= draft.machine.l2_bytes:
        return 0
    outer = [axis for axis in range(len(block.axes) - 2) if axis != m]
    moving = [place for place, axis in enumerate(outer) if any(axis in form.variables() for form in b.index)]
    return len(outer) - max(moving, default=-1) - 1


def _tiles(draft: Draft, block: Block, row_axis: int, lanes: int, groups: bool) -> GebpTiles:
    """Add the choices of a packed product with vectors of `lanes` (register tile, depth, panels, groups) to the draft,
    and return them as the product's tiles. row_axis: the number of the axis m. With `groups` several panels of A are
    packed together."""
    machine = draft.machine
    m, n, k = (block.axes[axis].size for axis in (row_axis, -2, -1))
    panels = draft.panels.get(block.reads[0].buffer)
    preferred_rows, vectors = product_tile(machine, m, n, lanes)
    element = machine.vector_bits // (8 * draft.lanes(block.label))
    rows: Size
    if panels is not None:
        rows = panels
        vectors = max(1, min(4, -(-n // lanes), (machine.registers - 1) // (draft.schedule.value(panels) + 1)))
    else:
        fitting = {r for v in range(1, 5) for r in rows_of(machine, v) if r <= min(m, MOST_ROWS)}
        rows = draft.choose(
            [r for r in fitting if r in (2, 3, 4, 6, 7, 8, 10, 12, 14, preferred_rows)] or [1], preferred_rows, "rows"
        )
    chosen = draft.choose(range(2, min(4, -(-n // lanes)) + 1) or [1], vectors, "vectors")
    kc = depth(machine, draft.schedule.value(rows), element)
    deep = draft.choose(evens(k, lanes, min(k, 4 * lanes), MOST_DEPTH), kc, "depth")
    count = -(-n // (lanes * draft.schedule.value(chosen)))
    columns = width(machine, draft.schedule.value(deep), element) // (lanes * draft.schedule.value(chosen))
    preferred_panels = panels_in_round(count, columns)
    across = draft.choose([*steps(count), preferred_panels], preferred_panels, "panels")
    row_tiles: Size = draft.choose([g for g in (2, 4, 8, 16) if g * preferred_rows <= m], 8, "groups") if groups else 1
    if not groups and m <= FEW_ROWS and panels is None:  # a panel of B is read once, for all rows
        row_tiles = -(-m // draft.schedule.value(rows))
    return GebpTiles(
        rows, chosen, deep, across, row_tiles, 0 if panels is not None else _images(draft, block, row_axis)
    )


def panels_in_round(count: int, fitting: int) -> int:
    """Return the number of panels of B in a round, at least 1, of `count` panels of which `fitting` fill half of L2.
    Panels that pad the last round are computed too, and each round reads A again; up to 7/8 of L2 costs nothing, by
    measurement."""
    most = max(1, min(count, 7 * fitting // 4))
    return min(range(1, most + 1), key=lambda panels: (-(-count // panels) * (panels + AGAIN), -panels))


def _parallel(draft: Draft, block: Handle, done: Gebp) -> None:
    """Make the loop over a batch parallel; without a batch, the loop over rows and those of packing outside it."""
    s = draft.schedule
    outer = s.get_loops(block)[0]
    if s.label(outer) != s.label(done.jc):
        s.parallel(outer)
        return
    s.parallel(done.rows)
    around = {s.label(h) for h in s.get_loops(block)}
    inside = {s.label(done.rows)}
    for pack in (done.pack_a, done.pack_b):
        loops = [] if pack is None else s.get_loops(pack)
        if loops and inside.isdisjoint(map(s.label, loops)):
            s.parallel(next(h for h in loops if s.label(h) not in around))


AHEAD = 8
"""The prefetch distance of B in the micro-kernel, in iterations of k: somewhat more than the latency of L2."""


@dataclass(frozen=True)
class Gebp:
    """The loops of a packed matmul by their names in BLIS: jc is over n, pc over k, ic over m; jr and ir are over
    register tiles, i and j inside one. `rows` is ic, or the loop over images outside it. pack_a, pack_b: the blocks
    that pack, None for an operand read in place. init: the block that sets the result to zero."""

    jc: Handle
    pc: Handle
    rows: Handle
    ic: Handle
    jr: Handle
    ir: Handle
    k: Handle
    i: Handle
    j: Handle
    pack_a: Handle | None
    pack_b: Handle | None
    init: Handle


def gebp(
    s: Schedule, block: Handle, mc: int, kc: int, nc: int, mr: int, nr: int, lanes: int = 16, pack: str = "ab"
) -> Gebp:
    """Schedule a matmul C[m, n] += A[m, k] * B[k, n] as general panel times block: three levels of cache tiles, both
    operands packed, and a register tile of mr rows and nr columns, in vectors of `lanes` along the columns.

        m { n { k { C } } }
      ->
        jc { pc { pack B[kc, nc] in panels of nr columns
          ic { pack A[mc, kc] in panels of mr rows
            jr { ir { C = 0 in the first round of pc
              k { i = mr unrolled { j = nr / lanes unrolled { lanes vectorized { C += A.pack * B.pack } } } } } } } } }

    The panels are padded with zeros where m or n is no multiple of mr or nr; guards keep the padding out of C. Cache
    tiles are evened out. mc = mr packs a row panel of A just before it is used. The next tile of C, and B some
    iterations of k ahead, are prefetched.

    Returns the loops. Requires loops m, n, k around the block, innermost in that order, A its first operand and B its
    second; `lanes` elements are a vector; `pack` names the operands to pack. Raises ScheduleError for fewer loops and a
    size below 1. Source: Goto and van de Geijn 2008; BLIS, Van Zee and van de Geijn 2015.
    """
    extents = [loop.extent for loop in s.program.enclosing(s.label(block))][-3:]
    if len(extents) < 3:
        nest(s, block, "gebp", fewest=3)
    m, n, k = extents
    require_sizes(s, block, "gebp", mc=mc, kc=kc, nc=nc, mr=mr, nr=nr, lanes=lanes)
    lanes = gcd(nr, lanes)
    tiles = GebpTiles(mr, nr // lanes, _depth(k, kc, lanes), even(n, nc, nr), even(m, mc, mr))
    return tiled_gebp(s, block, tiles, lanes, pack)


@dataclass(frozen=True)
class GebpTiles:
    """The tiles of a packed matmul, constants or parameters: `rows` and `vectors` of columns of a register tile,
    `depth` of a cache tile along k, and its register tiles along n (`panels`) and m (`groups`). `images` counts the
    loops just outside m that A depends on and B does not: they run inside those over cache tiles of B."""

    rows: Size
    vectors: Size
    depth: Size
    panels: Size
    groups: Size = 1
    images: int = 0


def tiled_gebp(
    s: Schedule, block: Handle, tiles: GebpTiles, lanes: int = 16, pack: str = "ab", first: str = ""
) -> Gebp:
    """Schedule a matmul as `gebp` by tiles that may be parameters; those for vectors, panels or groups must be above
    one. lanes: the elements of a vector. pack: the operands to pack, as letters. Operands in `first` are packed before
    the nest: best for constants, and for operands that fit a cache. Returns the loops. Raises ScheduleError for a block
    without two operands, and for a `pack` of other letters than a and b."""
    if not set(pack) <= set("ab"):
        raise refusal(s, block, "gebp", f"pack='{pack}' names other operands than a and b")
    *outer, m, n, k = nest(s, block, "gebp", fewest=3)
    images = outer[len(outer) - tiles.images :]
    if len(read := operands(s, block)) != 2:
        raise refusal(s, block, "gebp", f"a matmul has 2 operands, this has {len(read)}")
    panels_a = _panels(s, block, read[0], m, s.value(tiles.rows)) if "a" in pack else None
    panels_b = _panels(s, block, read[1], n, s.value(tiles.vectors) * lanes) if "b" in pack else None
    sizes = {n: [tiles.panels, *vectors_of(tiles.vectors, lanes)], m: [tiles.groups, tiles.rows], k: [tiles.depth]}
    tile = register_tile(s, [n, k, *images, m, n, m], [k], [m, n], sizes)
    (jc, pc, *images, ic, jr, ir), (k,), (i, *columns) = tile.around, tile.reduction, tile.tile
    columns_b = s.multiple(tiles.vectors, lanes)
    pack_b = _packed(s, block, panels_b, columns_b, None if "b" in first else pc, lanes)
    pack_a = _packed(s, block, panels_a, tiles.rows, None if "a" in first else ic, lanes)
    init = accumulate(s, block, tile)
    s.prefetch(ir if s.extent(ir) > 1 else jr, target_of(s, block), 1)
    if pack_b is not None:
        s.prefetch(k, target_of(s, pack_b), AHEAD)
    return Gebp(jc, pc, [*images, ic][0], ic, jr, ir, k, i, columns[-1], pack_a, pack_b, init)


def store_packed(s: Schedule, consumer: Handle, product: Gebp, rows: Size, lanes: int = 16) -> None:
    """Apply an elementwise consumer of a packed matmul to each tile when it is finished, and store its result as the
    next matmul reads its first operand: in panels of `rows` rows, transposed in registers in vectors of at most `lanes`
    columns.

        jr { C += A.pack * B.pack }  m { n { X = f(C) } }
      ->
        X as [m / rows][n][rows];  jr { C += A.pack * B.pack;  X = f(C) in the last round of pc }

    Requires an elementwise consumer that reads only the matmul's result and writes a temporary. A `gebp` that reads the
    temporary as its first operand leaves "a" out of `pack`, and has mr = rows.
    """
    s.reverse_compute_at(consumer, product.jr)
    target = target_of(s, consumer)
    s.transform_layout(consumer, target, tiles=[rows, 1])
    if not (loops := own_loops(s, consumer)):
        return
    *i, j = loops
    outer, vector = s.split(j, [None, min(lanes, s.extent(j))])
    s.reorder(outer, *i, vector)
    in_vectors(s, [*i, vector])


def apply_to_tiles(s: Schedule, consumer: Handle, product: Gebp, lanes: int = 16) -> None:
    """Apply an elementwise consumer of a packed matmul, such as a bias and an activation, to each finished tile.

        jr { ir { C += A.pack * B.pack } }  m { n { X = f(C) } }
      ->
        jr { ir { C += A.pack * B.pack;  X = f(C) in the last round of pc } }

    Its columns are vectorized by `lanes`; the rows of a tile are unrolled, unless the consumer has a mathematical
    function. Requires a consumer that reads each element of the matmul's result at the index that it writes.
    """
    s.reverse_compute_at(consumer, product.ir)
    vectorize_rows(s, consumer, lanes, not is_costly(node_of(s, consumer)))


@dataclass(frozen=True)
class _Panels:
    """An operand to pack in panels along its dimension `dim`: buffer, rank, and order of the packed dimensions."""

    buffer: str
    rank: int
    dim: int
    order: list[int]


def _panels(s: Schedule, block: Handle, buffer: str, loop: Handle, size: int) -> _Panels:
    """Return the panels of the operand `buffer` along the dimension that `loop` indexes, `size` rows or columns each.
    Panels come before the reduction dimension. B[k, n] in panels of 32 columns is B.pack[n / 32][k][32]: order 1, 0, 2.
    Raises ScheduleError unless the loop indexes one dimension and the reduction another."""
    node = node_of(s, block)
    number = next(node_around.number for handle, node_around in around(s, block) if s.label(handle) == s.label(loop))
    reduced = {n for n, axis in enumerate(node.axes) if axis.is_reduce}
    axes = {n for n, form in enumerate(node.bindings) if number in form.variables()}
    index = next(access.index for access in node.reads if access.buffer == buffer)
    dims = [d for d, form in enumerate(index) if form.variables() & axes]
    depths = [d for d, form in enumerate(index) if form.variables() & reduced]
    if len(dims) != 1 or not depths:
        reason = f"'{buffer}' is not indexed by loop '{s.label(loop)}' in one dimension and by the reduction"
        raise refusal(s, block, "gebp", reason)
    order = [d for d in range(len(index) + (size > 1)) if d != dims[0]]
    order.insert(min(dims[0], depths[0]), dims[0])
    return _Panels(buffer, len(index), dims[0], order)


def _packed(
    s: Schedule, block: Handle, panels: _Panels | None, size: Size, at: Handle | None, lanes: int
) -> Handle | None:
    """Pack an operand in panels of `size` rows or columns, by vectors of `lanes`, in the loop `at`, or before the nest
    if that is None. Return the block that packs; None, and do nothing, if `panels` is None."""
    if panels is None:
        return None
    tiles = [size if d == panels.dim else 1 for d in range(panels.rank)]
    return pack_operand(s, block, panels.buffer, tiles, panels.order, at, lanes)


def _depth(extent: int, tile: int, lanes: int) -> int:
    """Return the length of k, of `extent` iterations, in a cache tile of about `tile`: evened out and, if k is split
    and the result is not below `lanes`, rounded up to a multiple of `lanes`, at most `extent`."""
    depth = even(extent, tile, 1)
    return depth if depth == extent or depth < lanes else min(extent, -(-depth // lanes) * lanes)
