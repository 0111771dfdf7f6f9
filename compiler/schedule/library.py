"""Composite schedules: short functions of `Schedule`'s primitives, in the manner of Exo's standard library.

block_tile           every loop of a block split, tiles outside
vectorize_inner      the innermost loop split and vectorized
parallelize_outer    the outermost loops fused and run on threads
gebp                 a matmul packed and register-tiled as in BLIS
cooperative_fetch    threads copy a tile to shared memory together
tile_and_bind        a matmul for a GPU: block tiles, thread tiles, shared panels

Each call is recorded as the primitives that it makes, so scripts need no composites. The loops and blocks that a
composite names in its result stay addressable. All raise ScheduleError where one of their primitives is refused;
what came before that one stays applied. Tile sizes above a loop's extent are cut to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler.errors import ScheduleError
from compiler.schedule.schedule import Handle, Schedule


@dataclass(frozen=True)
class Tiles:
    """The loops of a tiled nest: those over the tiles, and those inside a tile, each in the order of the nest."""

    outer: list[Handle]
    inner: list[Handle]


@dataclass(frozen=True)
class Gebp:
    """The loops of a packed matmul by their names in BLIS (jc is over n, pc over k, ic over m; jr and ir are over
    register tiles, i and j inside one), and the blocks that pack."""

    jc: Handle
    pc: Handle
    ic: Handle
    jr: Handle
    ir: Handle
    k: Handle
    i: Handle
    j: Handle
    pack_a: Handle
    pack_b: Handle


@dataclass(frozen=True)
class GpuTiles:
    """The loops of a matmul on a GPU: over blocks, over threads, over the panels of k, inside one thread; and the
    blocks that fetch the panels."""

    blocks: list[Handle]
    threads: list[Handle]
    panel: Handle
    inner: list[Handle]
    fetches: list[Handle]


def block_tile(s: Schedule, block: Handle, sizes: Sequence[int]) -> Tiles:
    """Split each loop of a block by its size, and run the tiles outside.

        i = 30 { j = 20 { C(i, j) } }            // sizes 8, 4
      ->
        i.0 = 4 { j.0 = 5 { i.1 = 8 { j.1 = 4 { if 8*i.0 + i.1 < 30: C } } } }

    `sizes` is one tile size a loop around the block, outermost first; without one, an innermost loop stays whole
    inside the tiles. Requires perfectly nested serial loops whose order is free (reductions are). Source: Halide tile,
    Exo stdlib tile_loops, Lam, Rothberg and Wolf 1991.
    """
    loops = nest(s, block, "block_tile", least=len(sizes))
    pairs = [s.split(loop, [None, min(size, s.extent(loop))]) for loop, size in zip(loops, sizes, strict=False)]
    tiles = Tiles([outer for outer, _ in pairs], [inner for _, inner in pairs] + loops[len(pairs) :])
    s.reorder(*tiles.outer, *tiles.inner)
    return tiles


def vectorize_inner(s: Schedule, block: Handle, width: int) -> Handle:
    """Split the innermost loop around a block by a vector's width and vectorize the inner part.

        i = 20 { D(i) }                          // width 8
      ->
        i.0 = 3 { i.1 = 8 vectorized { if 8*i.0 + i.1 < 20: D } }

    A loop that is no longer than the width is vectorized whole. Gives the vectorized loop. Requires that the
    innermost loop is no reduction. Source: Halide vectorize(x, width), Exo stdlib vectorize.
    """
    inner = nest(s, block, "vectorize_inner")[-1]
    if s.extent(inner) > width:
        inner = s.split(inner, [None, width])[1]
    s.vectorize(inner)
    return inner


def parallelize_outer(s: Schedule, block: Handle, count: int = 1) -> Handle:
    """Fuse the outermost loops around a block and run them on several threads.

        i = 4 { j = 6 { k = 8 { C } } }          // count 2
      ->
        i_j = 24 parallel { k = 8 { C } }

    Gives the parallel loop. Requires that the loops are perfectly nested and carry no dependence. Source: TVM's
    parallelize-vectorize-unroll rule (Ansor, OSDI 2020).
    """
    loops = nest(s, block, "parallelize_outer", least=count)[:count]
    outer = s.fuse(*loops) if len(loops) > 1 else loops[0]
    s.parallel(outer)
    return outer


def gebp(s: Schedule, block: Handle, mc: int, kc: int, nc: int, mr: int, nr: int) -> Gebp:
    """Schedule a matmul C[m, n] += A[m, k] * B[k, n] as general panel times block: three levels of cache tiles, both
    operands packed, and a register tile whose columns are vectors.

        m { n { k { C } } }
      ->
        jc { pc { pack B[kc, nc] in panels of nr columns
          ic { pack A[mc, kc] in panels of mr rows
            jr { ir { k { i = mr unrolled { j = nr vectorized { C += A.pack * B.pack } } } } } } } }

    The panels are padded with zeros where m or n is no multiple of mr or nr; guards keep the padding out of C.
    Requires loops m, n, k around the block in that order, A its first operand and B its second; mc is a multiple of
    mr, nc of nr. Source: Goto and van de Geijn 2008; BLIS, Van Zee and van de Geijn 2015.
    """
    m, n, k = matmul_nest(s, block, "gebp")
    a, b = operands(s, block)
    jc, jr, j = s.split(n, [None, *panels(s.extent(n), nc, nr)])
    ic, ir, i = s.split(m, [None, *panels(s.extent(m), mc, mr)])
    pc, k = s.split(k, [None, min(kc, s.extent(k))])
    s.reorder(jc, pc, ic, jr, ir, k, i, j)
    pack_b = s.pack(block, b, [1, nr], [1, 0, 2] if nr > 1 else [1, 0])
    s.compute_at(pack_b, pc)
    pack_a = s.pack(block, a, [mr, 1])
    s.compute_at(pack_a, ic)
    s.unroll(i)
    s.vectorize(j)
    return Gebp(jc, pc, ic, jr, ir, k, i, j, pack_a, pack_b)


def cooperative_fetch(
    s: Schedule, block: Handle, buffer: str, at_loop: Handle, threads: int, vector: int = 1, scope: str = "shared"
) -> Handle:
    """Let the threads of a GPU block copy what a loop's iteration reads of a buffer, a vector each at a time.

        k.0 { C reads A }
      ->
        k.0 { alloc A.shared shared
              i.0 { i.1 = threads thread_x { i.2 = vector vectorized { A.shared[...] = A[...] } } }
              C reads A.shared }

    Gives the block that copies; a single element is left to be copied as it is. Requires that `block` reads the
    buffer inside `at_loop`, that no loop bound to thread_x is around that, and that nothing there writes the buffer.
    Source: TVM's cooperative fetching (MetaSchedule's multi-level tiling with reuse), CUTLASS's threadblock iterators.
    """
    fetch = s.cache_read(block, buffer, scope)
    s.compute_at(fetch, at_loop)
    loops = s.get_loops(fetch)
    own = loops[[s.label(loop) for loop in loops].index(s.label(at_loop)) + 1 :]
    if not own:
        return fetch
    whole = s.fuse(*own) if len(own) > 1 else own[0]
    _, thread, lanes = s.split(whole, [None, threads, vector])
    s.bind(thread, "thread_x")
    if vector > 1:
        s.vectorize(lanes)
    return fetch


def tile_and_bind(
    s: Schedule, block: Handle, block_tile: tuple[int, int], thread_tile: tuple[int, int], panel: int, vector: int = 1
) -> GpuTiles:
    """Schedule a matmul C[m, n] += A[m, k] * B[k, n] for a GPU: a tile of C a block, a smaller one a thread in
    registers, panels of A and B fetched to shared memory by all threads of a block.

        m { n { k { C } } }
      ->
        m.0 block_y { n.0 block_x { alloc C.local local
          k.0 { fetch A.shared; fetch B.shared
            m.1_n.1 thread_x { k.1 { m.2 unrolled { n.2 unrolled { C.local += A.shared * B.shared } } } } }
          ax0_ax1 thread_x { ... C = C.local } } }

    `block_tile` and `thread_tile` are rows and columns, `panel` the length of k that is fetched at once, `vector` how
    many elements a thread fetches at once. A thread stores what it has computed. Requires loops m, n, k around the
    block in that order, and block tiles of several rows and columns that are multiples of the thread tiles.
    Source: Volkov and Demmel 2008; CUTLASS.
    """
    m, n, k = matmul_nest(s, block, "tile_and_bind")
    if min(*block_tile, s.extent(m), s.extent(n)) < 2:
        raise ScheduleError("a block's tile has one row or one column", "tile_and_bind", f"block '{s.label(block)}'")
    m0, m1, m2 = s.split(m, [None, *panels(s.extent(m), block_tile[0], thread_tile[0])])
    n0, n1, n2 = s.split(n, [None, *panels(s.extent(n), block_tile[1], thread_tile[1])])
    k0, k1 = s.split(k, [None, min(panel, s.extent(k))])
    s.reorder(m0, n0, k0, m1, n1, k1, m2, n2)
    out = s.cache_write(block, "local")
    s.reverse_compute_at(out, n0)
    threads = s.extent(m1) * s.extent(n1)
    fetches = [cooperative_fetch(s, block, name, k0, threads, vector) for name in operands(s, block)]
    store = _thread_tiles(s, s.get_loops(out)[-2:], thread_tile)
    thread = s.fuse(m1, n1)
    for loop, binding in ((m0, "block_y"), (n0, "block_x"), (thread, "thread_x"), (store, "thread_x")):
        s.bind(loop, binding)
    s.unroll(m2)
    s.unroll(n2)
    return GpuTiles([m0, n0], [thread, store], k0, [k1, m2, n2], fetches)


def _thread_tiles(s: Schedule, loops: Sequence[Handle], tile: tuple[int, int]) -> Handle:
    """The loop over the thread tiles of two loops."""
    (rows, row), (columns, column) = (s.split(loop, [None, size]) for loop, size in zip(loops, tile, strict=True))
    s.reorder(rows, columns, row, column)
    return s.fuse(rows, columns)


def panels(extent: int, tile: int, register: int) -> list[int]:
    """A cache tile as a number of register tiles, no more than the extent needs, and the register tile."""
    return [min(tile // register, -(-extent // register)), register]


def nest(s: Schedule, block: Handle, composite: str, least: int = 1) -> list[Handle]:
    """The loops around a block, outermost first. Raises ScheduleError where there are fewer than `least`."""
    loops = s.get_loops(block)
    if len(loops) < least:
        raise ScheduleError(f"it has {len(loops)} loops, not {least}", composite, f"block '{s.label(block)}'")
    return loops


def matmul_nest(s: Schedule, block: Handle, composite: str) -> list[Handle]:
    """The loops m, n, k of a matmul. Raises ScheduleError where there are not three, or not two operands."""
    loops, read = nest(s, block, composite), operands(s, block)
    if len(loops) != 3 or len(read) != 2:
        reason = f"a matmul has 3 loops and 2 operands, this has {len(loops)} and {len(read)}"
        raise ScheduleError(reason, composite, f"block '{s.label(block)}'")
    return loops


def operands(s: Schedule, block: Handle) -> list[str]:
    """The names of the buffers that a block reads, in the order of its operands."""
    return s.program.blocks[s.label(block)].sources
