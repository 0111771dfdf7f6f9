"""A sum of rows in parts, which the last block to arrive adds up: by hand, for tests."""

from __future__ import annotations

import compiler
from compiler import te
from compiler.recipes.gpu.spread import in_parts
from compiler.schedule import Schedule


def rows_in_parts(rows: int = 6, length: int = 32, parts: int = 4, threads: int = 2) -> Schedule:
    """Y[i] = exp(sum of X[i, k]): blocks over tiles of `threads` rows along x and over parts along y."""
    x, k = te.placeholder((rows, length), name="X"), te.reduce_axis(length, "k")
    c = te.compute((rows,), lambda i: te.sum(x[i, k], axis=k), name="C")
    s = Schedule(compiler.lower(te.function("rows", [x], te.compute((rows,), lambda i: te.exp(c[i]), name="Y"))))
    partial = in_parts(s, s.get_block("C"), length // parts)
    part, row, _ = s.get_loops(partial)
    tile, thread = s.split(row, [None, threads])
    s.reorder(tile, part, thread)
    s.set_scope("C", "local")
    sums, *_ = s.get_loops("C")
    s.reverse_compute_at("Y", sums)
    sums, lane = s.split(sums, [None, threads])
    grid = s.merge(tile, sums)
    for loop, kind in ((grid, "block_x"), (part, "block_y"), (thread, "thread_x"), (lane, "thread_x")):
        s.bind(loop, kind)
    return s
