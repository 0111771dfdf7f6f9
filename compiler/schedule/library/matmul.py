"""Composites for matmuls: GEBP with a register tile, packed panels and prefetches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from compiler.schedule.library.loops import (
    around,
    cut,
    in_vectors,
    nest,
    node_of,
    operands,
    own_loops,
    refusal,
    target_of,
)
from compiler.schedule.library.packing import even, require_sizes
from compiler.schedule.library.packing import pack as pack_operand
from compiler.schedule.library.rows import is_costly
from compiler.schedule.schedule import Handle, Schedule, Size


@dataclass(frozen=True)
class Gebp:
    """The loops of a packed matmul by their names in BLIS (jc is over n, pc over k, ic over m; jr and ir are over
    register tiles, i and j inside one), the first of those over rows (ic, or a loop over images outside it), the blocks
    that pack, and the one that sets the result to zero."""

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
    operands packed, and a register tile of mr rows and nr columns, whose columns are vectors.

        m { n { k { C } } }
      ->
        jc { pc { pack B[kc, nc] in panels of nr columns
          ic { pack A[mc, kc] in panels of mr rows
            jr { ir { C = 0 in the first round of pc
              k { i = mr unrolled { j = nr / lanes unrolled { lanes vectorized { C += A.pack * B.pack } } } } } } } } }

    The panels are padded with zeros where m or n is no multiple of mr or nr; guards keep the padding out of C. Cache
    tiles are evened out, so that the last is no smaller than it must be. mc = mr packs a row panel of A just before
    it is used. The next tile of C, and B some iterations of k ahead, are prefetched.

    Requires loops m, n, k around the block, innermost in that order, A its first operand and B its second; `lanes`
    elements are a vector; `pack` names the operands to pack. Source: Goto and van de Geijn 2008; BLIS, Van Zee and van
    de Geijn 2015.
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
    `depth` of a cache tile along k, and how many register tiles it has along n (`panels`) and along m (`groups`).
    `images` is how many loops just outside m are over rows of A too, which a cache tile of B stays for."""

    rows: Size
    vectors: Size
    depth: Size
    panels: Size
    groups: Size = 1
    images: int = 0


def tiled_gebp(
    s: Schedule, block: Handle, tiles: GebpTiles, lanes: int = 16, pack: str = "ab", first: str = ""
) -> Gebp:
    """`gebp` with tiles that are taken as they are, parameters among them; a parameter that counts vectors, panels or
    groups is taken to be above one. Operands in `first` are packed whole, before all else: right for constants, and
    where they stay in a cache."""
    if not set(pack) <= set("ab"):
        raise refusal(s, block, "gebp", f"pack='{pack}' names other operands than a and b")
    *outer, m, n, k = nest(s, block, "gebp", fewest=3)
    images = outer[len(outer) - tiles.images :]
    a, b = _two(s, block)
    x = _operand(s, block, a, m) if "a" in pack else None
    y = _operand(s, block, b, n) if "b" in pack else None
    vectors = [] if tiles.vectors == 1 else [tiles.vectors]
    jc, jr, *columns = s.split(n, [None, tiles.panels, *vectors, lanes])
    ic, ir, i = s.split(m, [None, tiles.groups, tiles.rows])
    pc, k = s.split(k, [None, tiles.depth])
    s.reorder(jc, pc, *images, ic, jr, ir, k, i, *columns)
    pack_b = _packed(s, block, y, s.multiple(tiles.vectors, lanes), None if "b" in first else pc, lanes)
    pack_a = _packed(s, block, x, tiles.rows, None if "a" in first else ic, lanes)
    in_vectors(s, [i, *columns])
    init = s.decompose_reduction(block, k)
    s.prefetch(ir if s.extent(ir) > 1 else jr, target_of(s, block), 1)
    if pack_b is not None:
        s.prefetch(k, target_of(s, pack_b), AHEAD)
    return Gebp(jc, pc, images[0] if images else ic, ic, jr, ir, k, i, columns[-1], pack_a, pack_b, init)


AHEAD = 8
"""How many iterations ahead the micro-kernel asks for B: the latency of L2, and some."""


def store_packed(s: Schedule, consumer: Handle, product: Gebp, rows: Size, lanes: int = 16) -> None:
    """Apply an elementwise consumer of a packed matmul to each tile when it is finished, and store its result as the
    next matmul reads its first operand: in panels of `rows` rows, transposed in registers.

        jr { C += A.pack * B.pack }  m { n { X = f(C) } }
      ->
        X as [m / rows][n][rows];  jr { C += A.pack * B.pack;  X = f(C) in the last round of pc }

    Requires a consumer that reads the matmul's result alone at its own indices, into a temporary. A `gebp` that reads
    the temporary as its first operand leaves "a" out of `pack`, and has mr = rows.
    """
    s.reverse_compute_at(consumer, product.jr)
    target = target_of(s, consumer)
    s.transform_layout(consumer, target, tiles=[rows, 1])
    *i, j = own_loops(s, consumer) or [product.jr]
    if s.label(j) == s.label(product.jr):
        return
    outer, vector = s.split(j, [None, min(lanes, s.extent(j))])
    s.reorder(outer, *i, vector)
    in_vectors(s, [*i, vector])


def apply_to_tiles(s: Schedule, consumer: Handle, product: Gebp, lanes: int = 16) -> None:
    """Apply an elementwise consumer of a packed matmul, such as a bias and an activation, to each finished tile.

        jr { ir { C += A.pack * B.pack } }  m { n { X = f(C) } }
      ->
        jr { ir { C += A.pack * B.pack;  X = f(C) in the last round of pc } }

    A consumer with a mathematical function has a loop over the rows of a tile, others are unrolled. Requires a consumer
    that reads the matmul's result at its own indices.
    """
    s.reverse_compute_at(consumer, product.ir)
    *i, j = own_loops(s, consumer) or [product.ir]
    if s.label(j) == s.label(product.ir):
        return
    in_vectors(s, [*([] if is_costly(node_of(s, consumer)) else i), *cut(s, j, lanes)])


@dataclass(frozen=True)
class _Operand:
    """An operand: the dimension that the rows, or columns, of the result index, and the first that k does."""

    buffer: str
    dim: int
    first: int
    rank: int


def _two(s: Schedule, block: Handle) -> Sequence[str]:
    read = operands(s, block)
    if len(read) != 2:
        raise refusal(s, block, "gebp", f"a matmul has 2 operands, this has {len(read)}")
    return read


def _operand(s: Schedule, block: Handle, buffer: str, loop: Handle) -> _Operand:
    """An operand of a matmul, as a loop over rows or columns indexes it."""
    node = node_of(s, block)
    number = next(node_around.number for handle, node_around in around(s, block) if s.label(handle) == s.label(loop))
    reduced = {n for n, axis in enumerate(node.axes) if axis.is_reduce}
    axes = {n for n, form in enumerate(node.bindings) if number in form.variables()}
    access = next(a for a in node.reads if a.buffer == buffer)
    dims = [d for d, form in enumerate(access.index) if form.variables() & axes]
    depths = [d for d, form in enumerate(access.index) if form.variables() & reduced]
    if len(dims) != 1 or not depths:
        reason = f"'{buffer}' is not indexed by loop '{s.label(loop)}' in one dimension and by the reduction"
        raise refusal(s, block, "gebp", reason)
    return _Operand(buffer, dims[0], depths[0], len(access.index))


def _packed(
    s: Schedule, block: Handle, operand: _Operand | None, size: Size, at: Handle | None, lanes: int
) -> Handle | None:
    """Pack an operand in panels of that many rows or columns, each with the reduction running through it: the part that
    a loop needs just inside it, or the whole beforehand. Nothing if no operand is to be packed."""
    if operand is None:
        return None
    tiles = [size if d == operand.dim else 1 for d in range(operand.rank)]
    order = [d for d in range(operand.rank + (s.value(size) > 1)) if d != operand.dim]
    order.insert(min(operand.dim, operand.first), operand.dim)
    return pack_operand(s, block, operand.buffer, tiles, at, lanes, order)


def _depth(extent: int, tile: int, lanes: int) -> int:
    """The length of k in a cache tile: evened out, and whole vectors where it is cut at all."""
    depth = even(extent, tile, 1)
    return depth if depth == extent or depth < lanes else min(extent, -(-depth // lanes) * lanes)
