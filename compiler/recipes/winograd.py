"""Winograd's convolution by blocks of tiles: transformed, multiplied and transformed back in L2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler.schedule.library.loops import along, in_vectors, inside, node_of, target_of
from compiler.schedule.schedule import Handle, Schedule, Size


@dataclass(frozen=True)
class WinogradBlocks:
    """The blocks of a convolution by Winograd's transforms, from the copy of the image to the product, and to the
    elementwise block that gives the result."""

    border: Handle
    columns: Handle
    input: Handle
    filter: Handle
    product: Handle
    rows: Handle
    output: Handle
    result: Handle


@dataclass(frozen=True)
class WinogradTiles:
    """Rows of tiles, and columns of them, that are worked on together; tiles and vectors of filters of a register
    tile."""

    rows: int
    columns: int
    tiles: Size
    vectors: int
    border_at_root: bool = True


def winograd(s: Schedule, blocks: WinogradBlocks, tiles: WinogradTiles, m: int, lanes: int) -> Handle:
    """Schedule a convolution by tiles."""
    b = blocks
    n, k, h, w = (along(s, b.result, axis) for axis in range(4))
    h0, h1 = s.split(h[0], [None, tiles.rows * m])
    k0, k1 = s.split(k[0], [None, lanes])
    w0, wt, w1 = s.split(w[0], [None, -(-tiles.columns * m // lanes) if tiles.columns * m > lanes else 1, min(lanes, tiles.columns * m)])
    s.reorder(*n, h0, w0, k0, h1, wt, w1, k1)
    s.compute_at(b.output, k0)
    t, z, p, q, v = (inside_along(s, b.output, axis, k0) for axis in range(5))
    s.reorder(*t, *z, *p, *q, *v)
    at = [*t, *z][-1]
    s.compute_at(b.rows, at)
    s.compute_at(b.product, w0)
    s.compute_at(b.input, w0)
    i, j, t, z, c = (inside_along(s, b.input, axis, w0) for axis in range(5))
    c0, c1 = s.split(c[0], [None, lanes])
    s.reorder(*t, *z, c0, *i, *j, c1)
    s.compute_at(b.columns, c0)
    for block, loop in ((b.columns, c0), (b.input, c0), (b.rows, at), (b.output, at)):
        in_vectors(s, inside(s, block, loop))
    in_vectors(s, [w1, k1])
    s.transform_layout(b.product, target_of(s, b.filter), tiles=[1, 1, 1, tiles.vectors * lanes], order=[0, 1, 3, 2, 4])
    i, j, t, z, k, c = (inside_along(s, b.product, axis, w0) for axis in range(6))
    both = [*t, *z]
    x = s.fuse(*both) if len(both) > 1 else both[0]
    t0, t1 = s.split(x, [None, tiles.tiles])
    l0, l1, l2 = s.split(k[0], [None, tiles.vectors, lanes])
    s.reorder(*i, *j, l0, t0, c[0], t1, l1, l2)
    in_vectors(s, [t1, l1, l2])
    s.decompose_reduction(b.product, c[0])
    if not tiles.border_at_root:
        s.compute_at(b.border, w0)
    n, y, z, c = (along(s, b.border, axis) for axis in range(4))
    z0, z1 = s.split(z[-1], [None, lanes])
    c0, c1 = s.split(c[-1], [None, lanes])
    s.reorder(c0, y[-1], z0, z1, c1)
    in_vectors(s, [z1, c1])
    return h0


def inside_along(s: Schedule, block: Handle, axis: int, at: Handle) -> list[Handle]:
    """The loops of a block inside another that bind an axis; none where it has extent 1."""
    return along(s, block, axis, at)
