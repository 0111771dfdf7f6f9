"""Composites for declared intrinsics (`compiler/intrinsics`): matmuls packed in groups of k."""

from __future__ import annotations

from xdsl.ir import Attribute

from compiler.intrinsics import INTRINSICS, find
from compiler.intrinsics.model import BF16
from compiler.recipes.register_tile import register_tile
from compiler.recipes.steps import (
    cut,
    in_vectors,
    inside,
    matmul_nest,
    node_of,
    operands,
    panels,
    refusal,
    target_of,
)
from compiler.schedule import Handle, Schedule


def quantised_gebp(
    s: Schedule, block: Handle, intrinsic: str, mc: int, kc: int, nc: int, mr: int, vectors: int
) -> None:
    """Schedule a matmul C[m, n] += A[m, k] * B[k, n] by an intrinsic for dot products of groups of k: three levels of
    cache tiles, operands packed so that a group is contiguous, and a register tile of `mr` rows and `vectors` vectors.

        m { n { k { C } } }
      ->
        jc { pc { pack B[kc, nc] to [n][k][16 n][4 k]
          ic { pack A[mc, kc] to [m][k][mr m][4 k]
            jr { ir { k { i = mr unrolled { v unrolled { j = 16 tensorized { g = 4 { C.tile += A.pack * B.pack } } } } }
                      C = C.tile } } } } }

    Remainders of m, n and k are padded with zeros, and the tile is stored without padding. If kc covers k, there is no
    pc and the tile starts from zero; else it is loaded and stored for each pc. Requires loops m, n, k around the block
    in that order, A its first operand and B its second, of the intrinsic's dtypes. Raises ScheduleError for an
    intrinsic that is no dot product of groups. Source: BLIS, Van Zee and van de Geijn 2015; FBGEMM, Khudia et al. 2021.
    All sizes are at least 1, mc and nc at least those of a register tile.
    """
    declared = find(intrinsic)
    if declared.form != "dot":
        raise refusal(s, block, "quantised_gebp", f"'{intrinsic}' is no dot product of groups")
    lanes, group = (axis.extent for axis in declared.axes)
    m, n, k = matmul_nest(s, block, "quantised_gebp")
    a, b = operands(s, block)
    v_count = min(vectors, -(-s.extent(n) // lanes))
    count, _ = panels(s.extent(n), nc, lanes * v_count)
    mr = min(mr, s.extent(m))
    steps = -(-s.extent(k) // group)
    blocks = -(-steps * group // kc)
    depth = [-(-steps // blocks)] if blocks > 1 else []
    sizes = {n: [count, v_count, lanes], m: panels(s.extent(m), mc, mr), k: [*depth, group]}
    tile = register_tile(s, [n, *([k] if depth else []), m, n, m], [k], [m, n, k], sizes)
    (*outer, ic, _, ir), (k,), (i, v, j, _) = tile.around, tile.reduction, tile.tile
    pack_b = s.pack(block, b, [group, lanes * v_count], [1, 0, 3, 2])
    s.compute_at(pack_b, outer[-1])
    pack_a = s.pack(block, a, [mr, group] if mr > 1 else [1, group])
    s.compute_at(pack_a, ic)
    _tile(s, block, outer[1] if depth else None, ir, k, v_count * lanes, lanes)
    s.unroll(i)
    s.unroll(v)
    s.tensorize(j, intrinsic)
    s.vectorize(s.get_loops(pack_a)[-1])
    _interleaved(s, pack_b, declared.reads[1].element)


def _tile(s: Schedule, block: Handle, pc: Handle | None, ir: Handle, k: Handle, size: int, lanes: int) -> None:
    """Accumulate a register tile of `size` columns, vectors of `lanes`, in a separate buffer during the loop `k`, and
    store it in the loop `ir`; with `pc`, load it from the result before. None for `pc`: it starts from zero."""
    if pc is None:
        out = s.cache_write(block)
        s.reverse_compute_at(out, ir)
        clear = s.decompose_reduction(block, k)
        in_vectors(s, s.get_loops(clear)[-3:])
        copies = [out]
    else:
        s.vectorize(s.get_loops(s.decompose_reduction(block, pc))[-1])
        copies = s.stage(ir, target_of(s, block))
    if s.program.buffers[target_of(s, block)].shape[-1] % size:
        s.storage_align(block, 0, size)
    for copy in copies:
        _vectors(s, copy, lanes)


def _interleaved(s: Schedule, pack: Handle, element: Attribute) -> None:
    """Replace the two innermost loops of the block `pack`, which packs groups of k, by the interleave intrinsic of the
    dtype `element`; with padding, or columns that are no multiple of 16, vectorize it group by group."""
    columns, group = s.get_loops(pack)[-2:]
    lanes = 16
    name = next(i.name for i in INTRINSICS.values() if i.form == "interleave" and i.target.element == element)
    if any(access.where for access in node_of(s, pack).reads) or s.extent(columns) % lanes:
        s.vectorize(group)
    else:
        s.tensorize(cut(s, columns, lanes)[-1], name)


def _vectors(s: Schedule, copy: Handle, lanes: int) -> None:
    """Vectorize a copy of a matrix along its columns by `lanes`; a copy of a single column has no such loop and stays
    as it is."""
    last = s.program.enclosing(s.label(copy))[-1]
    if last.number in node_of(s, copy).bindings[1].variables() and last.kind == "serial":
        s.vectorize(cut(s, s.get_loops(copy)[-1], lanes)[-1])


def tile_gebp(s: Schedule, block: Handle, mc: int, nc: int, rows: int = 2, columns: int = 2) -> None:
    """Schedule a matmul C[m, n] += A[m, k] * B[k, n] of bf16 in f32 for AMX: `rows` by `columns` tiles of sums of 16 by
    16 stay in tile registers while k runs, in steps of 32.

        m { n { k { C } } }
      ->
        jc { pack B[k, nc] to [n][k][16 k][16 n][2 k]
          ic { pack A[mc, k] to [m][k][16 m][32 k]
            jr { ir { clear C.fragment
                      k { i unrolled { j unrolled { C.fragment += A.pack * B.pack, tensorized } } }
                      C.local = C.fragment, tensorized; C = C.local } } } }

    Remainders of m, n and k are padded with zeros; C.local is stored without padding. `mc` and `nc`: the most rows of A
    and columns of B that are packed at a time, at least those of a register tile. Requires loops m, n, k around the
    block in that order, and A as its first operand, B as its second; raises ScheduleError for m or n below 16 and for
    more than 8 tiles: rows * columns + rows + columns. Source: Intel 64 and IA-32 Architectures Optimization Reference
    Manual, chapter on AMX; oneDNN's brgemm.
    """
    m, n, k = matmul_nest(s, block, "tile_gebp")
    if min(s.extent(m), s.extent(n)) < 16:
        reason = f"{s.extent(m)} x {s.extent(n)} is less than a tile of 16 x 16"
        raise refusal(s, block, "tile_gebp", reason)
    rows, columns = min(rows, -(-s.extent(m) // 16)), min(columns, -(-s.extent(n) // 16))
    if rows * columns + rows + columns > 8:
        reason = f"{rows} x {columns} tiles of sums and those of the operands are more than 8"
        raise refusal(s, block, "tile_gebp", reason)
    a, b = operands(s, block)
    across, down = panels(s.extent(n), nc, 16 * columns), panels(s.extent(m), mc, 16 * rows)
    sizes = {n: [across[0], columns, 16], m: [down[0], rows, 16], k: [16, 2]}
    tile = register_tile(s, [n, m, n, m], [k], [m, n, m, n, k], sizes)
    (jc, ic, _, ir), (k,), (i, j, ii, *_) = tile.around, tile.reduction, tile.tile
    pack_b = s.pack(block, b, [32, 16])
    s.compute_at(pack_b, jc)
    s.transform_layout(block, operands(s, block)[1], lambda k, n, p, q: (n, k, p // 2, q, p % 2))
    p, q = s.get_loops(pack_b)[-2:]
    p, group = s.split(p, [None, 2])
    s.reorder(p, q, group)
    pack_a = s.pack(block, a, [16, 32])
    s.compute_at(pack_a, ic)
    out = s.cache_write(block)
    s.reverse_compute_at(out, ir)
    local = target_of(s, block)
    store = s.cache_write(block, "fragment")
    for where, buffer in ((block, target_of(s, block)), (out, local)):
        s.transform_layout(where, buffer, lambda i, j: (i // 16, j // 16, i % 16, j % 16))
    clear = s.decompose_reduction(block, k)
    for nest in (clear, store):
        _tensorize_tiles(s, nest, ir, "tile.zero.f32" if nest is clear else "tile.store.f32")
    s.unroll(i)
    s.unroll(j)
    s.tensorize(ii, "tile.f32.bf16")
    _vectors(s, out, 16)
    s.vectorize(s.get_loops(pack_a)[-1])
    _interleaved(s, pack_b, BF16)


def _tensorize_tiles(s: Schedule, block: Handle, around: Handle, intrinsic: str) -> None:
    """Replace each tile of 16 x 16 of a block inside the loop `around` by the intrinsic of that name, and unroll the
    loops over tiles, which are split off first for `tile.store.f32`."""
    loops = inside(s, block, around)
    if intrinsic == "tile.store.f32":
        (i, ii), (j, jj) = (s.split(loop, [None, 16]) for loop in loops)
        s.reorder(i, j, ii, jj)
        loops = [i, j, ii, jj]
    for loop in loops[:-2]:
        s.unroll(loop)
    s.tensorize(loops[-2], intrinsic)
