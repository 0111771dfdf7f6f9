"""Products on the tensor cores of GPUs: warps multiply MMA tiles of f16, bf16 and tf32."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import gcd, prod

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineExpr

from compiler.intrinsics import find
from compiler.intrinsics.warp import COLUMNS, LANES, ROWS
from compiler.program.tree import Block
from compiler.recipes.draft import Alternative, Draft, labels
from compiler.recipes.gpu.spread import spread_on_threads
from compiler.recipes.gpu.tiles import cooperative_fetch, overlapped, pad_rows
from compiler.recipes.register_tile import register_tile
from compiler.recipes.steps import around, fused, inside, nest, node_of, operands, refusal, target_of
from compiler.schedule import Handle, Schedule, Size

DEPTH = 16
"""The extent of an MMA tile along k."""
FIRST: dict[type[Attribute], int] = {Float16Type: 75, BFloat16Type: 80}
"""Map a dtype to the first architecture, sm_NN, whose tensor cores multiply it."""
MOST_WARPS, MOST_MATRICES, MOST_PANEL = 4, 8, 4
"""The most warps of a block and MMA tiles of a warp along an axis, and the most MMA tiles of a panel along k."""
FEWEST, MOST_FETCHED = 16, 32
"""The fewest iterations along each axis of a product that is padded, and the most loads of an unrolled fetch."""
FIRST_COPY, MOST_STAGES, PADDING = 80, 4, 8
"""The first architecture, sm_NN, with asynchronous copies; the most buffers of an operand; and the elements that pad a
row of a buffer."""


def on_warps(draft: Draft, label: str) -> Iterator[Alternative]:
    """Yield schedules of a matmul of f16 or bf16 with sums in f32 on tensor cores: fragments in registers, panels in
    shared memory, fetched rounds ahead or not, and the epilogue on finished tiles. Extents are FEWEST or more, or whole
    MMA tiles. Yields nothing for other blocks, for operands of two dtypes, and for a dtype that the GPU's tensor cores
    lack.

    Source: CUTLASS; MetaSchedule's multi-level tiling with tensor intrinsics (Shao et al., NeurIPS 2022).
    """
    block = draft.block(label)
    program = draft.schedule.program
    elements = {type(program.buffers[access.buffer].element) for access in block.reads}
    sizes = [axis.size for axis in block.axes]
    if len(elements) != 1 or not elements <= FIRST.keys() or len(sizes) < 3 or block.spatial != len(sizes) - 1:
        return
    if product_order(block) is None:
        return
    (element,) = elements
    if not (_is_even(sizes) or min(sizes[-3:]) >= FEWEST) or int(draft.gpu.arch.removeprefix("sm_")) < FIRST[element]:
        return
    after = draft.consumer(label)
    with_ = f", with '{after.label}'" if after is not None else ""
    copies_run_ahead = int(draft.gpu.arch.removeprefix("sm_")) >= FIRST_COPY
    for stages in (MOST_STAGES, 2, 1) if copies_run_ahead else (2, 1):
        ahead = {1: "", 2: ", a round ahead"}.get(stages, ", rounds ahead")
        yield Alternative(
            f"on tensor cores{ahead}{with_}", partial(_apply, label=label, after=after, most_stages=stages)
        )


def product_order(block: Block) -> tuple[int, bool] | None:
    """Return the position of A among the reads of a product of A[m, k] and B, and whether B is B[n, k] (True) or
    B[k, n] (False); None for other blocks. k may be several axes, and an operand may lack those of a batch."""
    m, n, k = {block.spatial - 2}, {block.spatial - 1}, {*range(block.spatial, len(block.axes))}
    if len(block.reads) != 2 or block.spatial < 2 or not k:
        return None
    dims = [["".join(_names(form.variables(), m, n, k)) for form in access.index] for access in block.reads]
    order = [re.sub("k+(?=.*k)", "", "".join(each)) for each in dims]  # of taps and channels, the last dimension
    for first in (0, 1):
        if order[first] == "mk" and order[1 - first] in ("kn", "nk"):
            return first, order[1 - first] == "nk"
    return None


def _names(axes: set[int], m: set[int], n: set[int], k: set[int]) -> list[str]:
    """Return the names "m", "n" and "k", in this order, of the sets m, n and k that have a member among `axes`."""
    return [name for name, numbers in (("m", m), ("n", n), ("k", k)) if axes & numbers]


def _apply(draft: Draft, label: str, after: Block | None, most_stages: int) -> Sequence[str]:
    s = draft.schedule
    block = s.get_block(label)
    *_, m, n, k = s.get_loops(block)
    extents = [s.extent(loop) for loop in s.get_loops(block)]
    is_even = _is_even(extents)
    is_stored = after is not None or not is_even
    tiles_m, tiles_n = _preferred(draft, extents, is_even, is_stored)
    (warps_m, m_), (warps_n, n_) = (
        _cut(draft, loop, edge, preferred, is_even)
        for loop, edge, preferred in ((m, ROWS, tiles_m), (n, COLUMNS, tiles_n))
    )
    panels = s.extent(k) // DEPTH if s.extent(k) % DEPTH == 0 else 2
    panel = draft.choose([1, *_powers(panels, MOST_PANEL)], 2, "panel")
    epilogue = draft.handle(after)
    if any(s.program.buffers[name].shape[-1] % 2 for name in operands(s, block)):
        most_stages = min(most_stages, 2)  # no asynchronous copy is that short
    tiles = WarpTiles((warps_m, warps_n), (m_, n_), panel, twice=most_stages > 1)
    stages = stages_that_fit(draft, tiles, most_stages, is_stored) if tiles.twice else 2
    tile_on_warps(s, block, epilogue, replace(tiles, stages=stages))
    return [label, *labels(after)]


def _is_even(extents: Sequence[int]) -> bool:
    """Return whether MMA tiles divide the last extents, m, n and k, without a remainder, into fewer than 8 tiles along
    m and 16 along n or into multiples of these."""
    m, n, k = extents[-3:]
    counts = ((m // ROWS, 8), (n // COLUMNS, 16))
    fitting = all(count < most or count % most == 0 for count, most in counts)
    return fitting and m % ROWS == n % COLUMNS == k % DEPTH == 0


def _preferred(draft: Draft, extents: Sequence[int], is_even: bool, is_stored: bool) -> tuple[int, int]:
    """Return the default MMA tiles of a warp along m and n, for `extents` [.., m, n, k]: 4 and 8, or fewer, at least 2,
    until two buffers of the operands, and sums that are stored, fit in the shared memory of a block and, of a product
    that is padded (not `is_even`), until there are blocks of 2 x 2 warps for half of the multiprocessors."""
    *many, m, n, _ = extents
    tiles = [_at_most(4, m, 2 * ROWS), _at_most(8, n, 2 * COLUMNS)]
    while max(tiles) > 2:
        rows, columns = 2 * ROWS * tiles[0], 2 * COLUMNS * tiles[1]
        blocks = -(-m // rows) * -(-n // columns) * prod(many)
        size = 4 * rows * columns + 2 * _buffer_bytes(rows, columns, 2 * DEPTH)
        fits = not is_stored or size <= draft.gpu.block_shared_bytes
        if fits and (is_even or 2 * blocks >= draft.gpu.multiprocessors):
            break
        tiles[tiles[1] > tiles[0]] //= 2
    return tiles[0], tiles[1]


def _at_most(tiles: int, extent: int, edge: int) -> int:
    """Return the fewest tiles, a power of two from 2 to `tiles`, with which a block, of `edge` elements a tile, has all
    of an extent; `tiles` if that is less."""
    while tiles > 2 and tiles // 2 * edge >= extent:
        tiles //= 2
    return tiles


def padded_tiles(draft: Draft, extents: Sequence[int]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the warps of a block and the MMA tiles of a warp, each along m and n, of a product of `extents` [.., m, n,
    k] that is padded."""
    matrices_m, matrices_n = _preferred(draft, extents, is_even=False, is_stored=True)
    warps, matrices = [], []
    for extent, edge, most in ((extents[-3], ROWS, matrices_m), (extents[-2], COLUMNS, matrices_n)):
        count = 1 << (-(-extent // edge) - 1).bit_length()
        warps.append(min(2, count))
        matrices.append(max(1, min(most, count // warps[-1])))
    return (warps[0], warps[1]), (matrices[0], matrices[1])


def _buffer_bytes(m: int, n: int, k: int) -> int:
    """Return the most bytes of a panel of both operands, of m rows, n columns and k elements deep, with elements of two
    bytes and PADDING elements more in each row, whether B lies along n or along k."""
    return 2 * max(m * (k + PADDING) + k * (n + PADDING), (m + n) * (k + PADDING))


def stages_that_fit(draft: Draft, tiles: WarpTiles, most: int, is_stored: bool) -> int:
    """Return how many buffers of both operands fit in half the shared memory of a multiprocessor, or in that of a block
    if two do not: from 2, even if they do not fit, to `most`. is_stored: sums go through shared memory."""
    s = draft.schedule
    pairs = zip(tiles.warps, tiles.matrices, (ROWS, COLUMNS), strict=True)
    (m, n), k = [s.value(warps) * s.value(each) * edge for warps, each, edge in pairs], s.value(tiles.panel) * DEPTH
    buffer = _buffer_bytes(m, n, k)
    sums, limit = 4 * m * n if is_stored else 0, draft.gpu.block_shared_bytes
    if sums + 2 * buffer <= draft.gpu.shared_bytes // 2:
        limit = min(limit, draft.gpu.shared_bytes // 2)
    return max(2, min(most, (limit - sums) // buffer))


def _cut(draft: Draft, loop: Handle, edge: int, preferred: int, is_even: bool) -> tuple[Size, Size]:
    """Return, as choices of the draft, the warps of a block and the MMA tiles of a warp along a loop, for MMA tiles of
    `edge` elements, by default `preferred` a warp: powers of two that divide the number of MMA tiles, above 1 if
    possible, since the nest that clears the sums would lack a loop of one iteration; in a product that is padded (not
    `is_even`), up to the next power of two."""
    matrices = -(-draft.schedule.extent(loop) // edge)
    matrices = matrices if is_even else 1 << (matrices - 1).bit_length()
    warps = _powers(matrices, MOST_WARPS)
    matrices_each = _powers(matrices // warps[-1], MOST_MATRICES)
    return draft.choose(warps, 2, "warps"), draft.choose(matrices_each, preferred, "matrices")


def _powers(number: int, most: int) -> list[int]:
    """Return the powers of two from 2 to `most` that divide a number; [1] if there are none."""
    return [1 << bits for bits in range(1, most.bit_length()) if number % (1 << bits) == 0] or [1]


KINDS: dict[type[Attribute], str] = {Float16Type: "f16", BFloat16Type: "bf16", Float32Type: "tf32"}
"""Map a dtype to its name in the names of intrinsics."""
ROW_BITS = 128
"""The bits of a row that a thread addresses in ldmatrix; rows must begin at multiples of it."""


@dataclass(frozen=True)
class WarpTiles:
    """Tiles of a matmul on tensor cores. warps, matrices: the warps of a block and the MMA tiles of a warp, along m and
    n. panel: the MMA tiles of a panel along k. vector: the elements that a thread fetches at once.

    twice: operands are double-buffered: the next panel is fetched while this one is computed. stages: the buffers of
    each operand then, for stages - 1 panels ahead; ignored without `twice`.
    """

    warps: tuple[Size, Size]
    matrices: tuple[Size, Size]
    panel: Size
    vector: int = 8
    twice: bool = False
    stages: int = 2


def tile_on_warps(s: Schedule, block: Handle, epilogue: Handle | None, tiles: WarpTiles) -> None:
    """Schedule a matmul C[m, n] += A[m, k] * B[k, n] or B[n, k], or a batch of matmuls, for the tensor cores of a GPU.

        m { n { k { C } } }  m { n { D } }
      ->
        m.0_n.0 block_x { alloc C.fragment
          warp thread_y { clear C.fragment, tensorized }
          k.0 { fetch A.shared; fetch B.shared
            warp thread_y { k.1 { A.fragment = A.shared; B.fragment = B.shared, tensorized
                                  m.2, n.2 unrolled { C.fragment += A.fragment * B.fragment, tensorized } } } }
          warp thread_y { C.shared = C.fragment, tensorized }
          thread_y { thread_x { D = f(C.shared) } } }

    f16 and bf16 are summed up in f32; f32 is converted to tf32 under fast floating point, with B contiguous along k.
    Rows of fetched tiles are padded to begin in different banks. With `twice` panels are fetched rounds ahead; barriers
    wait for the groups of copies that their round reads. Without an epilogue the sums are stored directly. Raises
    ScheduleError for other blocks than such a product. Requires loops m, n, k around the block in that order, inside
    those of a batch; and an epilogue that reads only C, elementwise. Tiles that exceed an extent are fetched with zeros
    there, and their sums stored through shared memory. Source: CUTLASS; NVIDIA's PTX ISA, mma and ldmatrix.
    """
    tile_product(s, block, epilogue, tiles, ())


def tile_product(
    s: Schedule,
    block: Handle,
    epilogue: Handle | None,
    tiles: WarpTiles,
    copies: Sequence[Handle],
    at_once: Sequence[int] = (),
    taps: int = 0,
) -> None:
    """Schedule a product on tensor cores as `tile_on_warps` does, with copies of its operands. `epilogue`: the
    elementwise consumer of the product; None stores the sums directly. copies: the blocks that copy its operands, which
    are inlined into the fetches. at_once: the elements of A and of B that a thread fetches at once, by default as many
    of `tiles.vector` as divide a row. taps: the number of loops over taps just outside k."""
    loops = nest(s, block, "tile_on_warps", fewest=3 + taps)
    *many, m, n = loops[: len(loops) - 1 - taps]
    *tap_loops, k = loops[len(loops) - 1 - taps :]
    kind, is_transposed = _kind(s, block)
    multiply = find(f"mma.f32.{kind}")
    depth = next(axis.extent for axis in multiply.axes if axis.label == "k")
    (warps_m, warps_n), (matrices_m, matrices_n) = tiles.warps, tiles.matrices
    rows = [s.program.buffers[name].shape[-1] for name in _operands(s, block)]
    rounded, pads = _rounded(s, (m, n, k), tiles, depth), list[Handle]()
    if rounded != [s.extent(loop) for loop in (m, n, k)]:
        epilogue = epilogue if epilogue is not None else s.cache_write(block, "shared")
        pads, (m, n, k) = _with_zeros(s, block, (m, n, k), rounded)
    names = _operands(s, block)
    sizes = {m: [warps_m, matrices_m, ROWS], n: [warps_n, matrices_n, COLUMNS], k: [tiles.panel, depth]}
    tile = register_tile(s, [m, n, *tap_loops, k, m, n], [k], [m, n, m, n, k], sizes)
    (m0, n0, *rounds, m1, n1), (k1,), (m2, n2, m3, *_) = tile.around, tile.reduction, tile.tile
    k0 = fused(s, rounds)
    threads = (s.product(*tiles.warps), LANES)
    if epilogue is not None:
        s.set_scope(block, "shared")
        s.reverse_compute_at(epilogue, n0)
    store = s.cache_write(block, "fragment")
    if epilogue is None:
        s.reverse_compute_at(store, n0)
    s.transform_layout(
        block, target_of(s, block), lambda *b: (*b[:-2], b[-2] // ROWS, b[-1] // COLUMNS, b[-2] % ROWS, b[-1] % COLUMNS)
    )
    at_once = at_once or [gcd(tiles.vector, row) for row in rows]
    each = zip(names, at_once, strict=True)
    fetches = [cooperative_fetch(s, block, name, k0, threads, vector) for name, vector in each]
    for fetch, name, vector in zip(fetches, names, at_once, strict=True):
        pad_rows(s, fetch, ROW_BITS // getattr(s.program.buffers[name].element, "bitwidth", ROW_BITS))
        if vector == 1:
            _unroll_fetch(s, fetch, k0)
    for copy in (*pads, *copies):
        s.inline(copy)
    _load_operands(s, block, k1, kind, is_transposed, two_tiles=s.value(matrices_n) % 2 == 0)
    clear = s.decompose_reduction(block, k0)
    _on_warps(s, _alike(s, clear, (m1, n1)), _alike(s, clear, (m2, n2)), _alike(s, clear, (m3,))[0], "mma.zero.f32")
    _store(s, store, tiles.warps)
    if epilogue is not None:
        spread_on_threads(s, s.fuse(*s.get_loops(epilogue)[-2:]), threads, _at_once(s, epilogue))
    if tiles.twice:
        overlapped(s, k0, fetches, tiles.stages, unrolled=True)
    s.unroll(k1)
    _on_warps(s, (m1, n1), (m2, n2), m3, multiply.name)
    s.bind(s.fuse(*many, m0, n0), "block_x")


def _kind(s: Schedule, block: Handle) -> tuple[str, bool]:
    """Return the dtype of a matmul's operands by its name in intrinsics, and whether B is contiguous along k. Raises
    ScheduleError for other blocks."""
    node = node_of(s, block)
    elements = [s.program.buffers[access.buffer].element for access in node.reads]
    order = product_order(node)
    kind = KINDS.get(type(elements[0])) if len({*elements}) == 1 and len(elements) == 2 else None
    if kind is None or order is None:
        reason = "it is no product of A[m, k] and B[k, n] or B[n, k] in f16, bf16 or f32"
        raise refusal(s, block, "tile_on_warps", reason)
    if kind == "tf32" and not order[1]:
        raise refusal(s, block, "tile_on_warps", "B in f32 has to lie along k")
    return kind, order[1]


def _operands(s: Schedule, block: Handle) -> list[str]:
    """Return the buffers of A and B, in this order. Requires a product that `product_order` recognises."""
    order = product_order(node_of(s, block))
    assert order is not None
    return list(operands(s, block))[:: -1 if order[0] else 1]


def _at_once(s: Schedule, block: Handle) -> int:
    """Return the number of elements that a thread computes at once in an elementwise block: 4 if all that it accesses
    have 32 bits, else 2; 1 if this does not divide the last axis."""
    node = node_of(s, block)
    touched = [s.program.buffers[access.buffer].element for access in (*node.reads, *node.writes)]
    at_once = 4 if all(getattr(element, "bitwidth", 64) == 32 for element in touched) else 2
    return at_once if node.axes[-1].size % at_once == 0 else 1


def _rounded(s: Schedule, loops: Sequence[Handle], tiles: WarpTiles, depth: int) -> list[int]:
    """Return the extents of the loops m, n and k, rounded up to multiples of the tiles; `depth` is that of an MMA
    tile."""
    sizes = [(*pair, edge) for *pair, edge in zip(tiles.warps, tiles.matrices, (ROWS, COLUMNS), strict=True)]
    steps = [prod(map(s.value, tile)) for tile in (*sizes, (tiles.panel, depth))]
    return [-(-s.extent(loop) // step) * step for loop, step in zip(loops, steps, strict=True)]


def _with_zeros(
    s: Schedule, block: Handle, loops: Sequence[Handle], extents: Sequence[int]
) -> tuple[list[Handle], list[Handle]]:
    """Lengthen the loops m, n and k to `extents`, none of which is less than before, in a product whose sums are
    temporary; its operands are read through copies with zeros beyond their edges. Return the copies and the loops."""
    node, copies = node_of(s, block), []
    axes = ({node.spatial - 2}, {node.spatial - 1}, {*range(node.spatial, len(node.axes))})
    for access in node.reads:
        tiles = [1] * len(access.index)
        for d, (form, size) in enumerate(zip(access.index, s.program.buffers[access.buffer].shape, strict=True)):
            later = set().union(*(each.variables() for each in access.index[d + 1 :]))
            for loop, extent, numbers in zip(loops, extents, axes, strict=True):
                if form.variables() & numbers and not later & numbers:
                    tiles[d] = size + extent - s.extent(loop)
        copies.append(s.pack(block, access.buffer, tiles))
    tails = ("pad", "pad", "guard")
    return copies, [s.split(loop, [n], tail=tail)[0] for loop, n, tail in zip(loops, extents, tails, strict=True)]


def _store(s: Schedule, store: Handle, warps: tuple[Size, Size]) -> None:
    """Schedule the warps of a block of threads to store the MMA tiles of their sums."""
    i, j = s.get_loops(store)[-2:]
    i1, i2, i3 = s.split(i, [warps[0], None, ROWS])
    j1, j2, j3 = s.split(j, [warps[1], None, COLUMNS])
    s.reorder(i1, j1, i2, j2, i3, j3)
    _on_warps(s, (i1, j1), (i2, j2), i3, "mma.store.f32")


def _unroll_fetch(s: Schedule, fetch: Handle, at: Handle) -> None:
    """Unroll the serial loops of at most MOST_FETCHED iterations of a fetch inside the loop `at`, so that its loads do
    not wait for each other."""
    handles = [s.label(loop) for loop in inside(s, fetch, at)]
    for handle, loop in around(s, fetch):
        if loop.label in handles and loop.kind == "serial" and loop.extent <= MOST_FETCHED:
            s.unroll(handle)


def _load_operands(s: Schedule, block: Handle, at: Handle, kind: str, is_transposed: bool, two_tiles: bool) -> None:
    """Load the MMA tiles of both operands in each iteration of the loop `at`; of B two at once if `two_tiles`, but for
    tf32. `kind`: the dtype's name in intrinsics; `is_transposed`: B is contiguous along k."""
    order = product_order(node_of(s, block))
    assert order is not None
    _load(s, block, order[0], at, ROWS, f"mma.load.a.{kind}", _LAYOUTS[0, False], along_k=False)
    at_once = 2 if two_tiles and kind != "tf32" else 1
    load_b = f"mma.load.b{'2' * (at_once - 1)}.{kind}{'.t' * is_transposed}"
    layout = _LAYOUTS[1, not is_transposed]
    _load(s, block, 1 - order[0], at, COLUMNS, load_b, layout, along_k=not is_transposed, at_once=at_once)


def _load(
    s: Schedule,
    block: Handle,
    position: int,
    at: Handle,
    size: int,
    intrinsic: str,
    layout: Callable[..., tuple[AffineExpr, ...]],
    along_k: bool,
    at_once: int = 1,
) -> None:
    """Load the part of the operand at `position` that an iteration of the loop `at` reads to fragments, by MMA tiles of
    `size` rows, `at_once` of them with an `intrinsic`. `along_k`: whether the rows of the tile's layout run along k."""
    load = s.cache_read(block, operands(s, block)[position], "fragment")
    s.compute_at(load, at)
    s.transform_layout(block, operands(s, block)[position], layout)
    matrix = s.get_loops(load)[-2:]
    many, *tiles, matrix[along_k] = s.split(matrix[along_k], [None, *([at_once] if at_once > 1 else []), size])
    s.reorder(many, *tiles, *matrix)
    s.unroll(many)
    s.tensorize([*tiles, *matrix][0], intrinsic)


_LAYOUTS: dict[tuple[int, bool], Callable[..., tuple[AffineExpr, ...]]] = {
    (0, False): lambda *b: (*b[:-2], b[-2] // ROWS, b[-2] % ROWS, b[-1]),
    (1, True): lambda *b: (*b[:-2], b[-1] // COLUMNS, b[-2], b[-1] % COLUMNS),
    (1, False): lambda *b: (*b[:-2], b[-2] // COLUMNS, b[-1], b[-2] % COLUMNS),
}
"""The index map to MMA tiles of each operand, by its position and by `along_k` of `_load`."""


def _alike(s: Schedule, block: Handle, loops: Sequence[Handle]) -> list[Handle]:
    """Return the loops around a block that have the labels of `loops`; labels without such a loop are skipped."""
    by_label = {s.label(loop): loop for loop in s.get_loops(block)}
    return [by_label[s.label(loop)] for loop in loops if s.label(loop) in by_label]


def _on_warps(s: Schedule, warps: Sequence[Handle], matrices: Sequence[Handle], matrix: Handle, intrinsic: str) -> None:
    """Bind `warps`, fused, to thread_y, unless there are none; unroll the loops `matrices` over MMA tiles, and
    tensorize the nest `matrix` by `intrinsic`."""
    if warps:
        s.bind(fused(s, warps), "thread_y")
    for loop in matrices:
        s.unroll(loop)
    s.tensorize(matrix, intrinsic)
