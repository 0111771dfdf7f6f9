"""Products of few rows on the threads of GPUs: the matrix is read once, by vectors, a few rows of it at a time.

Source: GEMV and thin GEMM of cuBLAS and of Triton's split-K kernels; limited by memory, so by loads in flight (Little).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from compiler.program.tree import Block
from compiler.recipes.draft import Alternative, Draft
from compiler.recipes.gpu.spread import in_parts, results_and_reduction, spread_sums
from compiler.recipes.gpu.vectors import WIDEST, runs_along, starts_at
from compiler.recipes.steps import axes_of, inside, nest, node_of, refusal, sums_pairs
from compiler.schedule import Handle, Schedule
from compiler.types.elements import element_bytes

MOST_ROWS, MOST_RESULTS = 16, 64
"""The most rows of the result, and the most results of a thread."""
STEPS = 64
"""The most elements of the other operand that a thread loads at once, by 4 to 8 for each row."""
ACROSS = 64
"""The threads of a block, side by side along the columns."""
_VECTOR = 4
LEAST_PART = 64
"""The fewest rows of the matrix in a part."""


def thin_products(draft: Draft, label: str) -> Iterator[Alternative]:
    """Yield the schedule of a product C[m, n] += A[m, k] * B[k, n] with at most MOST_ROWS rows by `thin_on_threads`, in
    so many parts of k that each multiprocessor has several blocks. Yields nothing for other blocks, without vectors of
    B, and if no parts give each multiprocessor a block."""
    block = draft.block(label)
    vector = _vector(draft.schedule, block) if is_thin(block) else 1
    if vector < 2:
        return
    rows, size, depth = block.axes[0].size, block.axes[1].size, block.axes[-1].size
    blocks = -(-size // (ACROSS * vector))
    wanted = (4 if rows <= 4 else 2) * draft.gpu.multiprocessors
    steps = max(4, min(8, STEPS // rows))
    lengths = [depth // n for n in range(1, depth // LEAST_PART + 1) if depth % (n * steps) == 0]
    enough = [length for length in lengths if depth // length * blocks >= wanted] or lengths[-1:]
    if not enough or depth // enough[0] * blocks < draft.gpu.multiprocessors:
        return
    after = draft.consumer(label)
    apply = partial(_apply, label=label, after=after, length=enough[0], vector=vector, steps=steps)
    yield Alternative(f"few rows, in parts of {enough[0]}", apply)


def is_thin(block: Block) -> bool:
    """Return whether a block is a product C[m, n] += A[m, k] * B[k, n] of at most MOST_ROWS rows, with B contiguous
    along n and A along k, with an init, and without guard and conditions."""
    if not sums_pairs(block) or block.guard or block.spatial != 2 or len(block.axes) != 3 or not block.has_init:
        return False
    if block.axes[0].size > MOST_ROWS or any(access.where for access in block.reads):
        return False
    unit = {n for n, axis in enumerate(block.axes) if axis.size == 1}
    by_axes = {frozenset(axes_of(access) - unit): access for access in block.reads}
    matrix, rows = by_axes.get(frozenset({1, 2})), by_axes.get(frozenset({0, 2} - unit))
    return matrix is not None and rows is not None and runs_along(matrix, 1) and runs_along(rows, 2)


def _vector(s: Schedule, block: Block) -> int:
    """Return the columns of a thread: a vector of the matrix, fewer where rows of it or of the result begin anywhere or
    a thread would have more than MOST_RESULTS results."""
    access = next(access for access in block.reads if runs_along(access, 1))
    vector = WIDEST // element_bytes(s.program.buffers[access.buffer].element)
    size, rows = block.axes[1].size, block.axes[0].size
    while vector > 1 and (size % vector or vector * rows > MOST_RESULTS or not starts_at(s.program, access, 1, vector)):
        vector //= 2
    return vector


def _apply(draft: Draft, label: str, after: Block | None, length: int, vector: int, steps: int) -> Sequence[str]:
    s = draft.schedule
    block, epilogue = s.get_block(label), draft.handle(after)
    if s.extent(nest(s, block, "thin_products")[-1]) == length:
        thin_on_threads(s, block, epilogue, vector, steps)
    else:
        thin_on_threads(s, in_parts(s, block, length), None, vector, steps)
        spread_sums(s, block, epilogue)
    return [label, *([after.label] if after is not None else [])]


def thin_on_threads(s: Schedule, block: Handle, epilogue: Handle | None, vector: int = 4, steps: int = 8) -> Handle:
    """Schedule a product of few rows for a GPU: a thread has all rows of `vector` neighbouring columns in registers,
    and loads `steps` vectors of the matrix before it uses them.

        m { n { k { C[m, n] += A[m, k] * B[k, n] } } }
      ->
        n.0 block_x { n.1 thread_x { alloc C.local
          k.0 { k.1 unrolled { B.local = B, vectorized; m, n.2 unrolled { C.local += A * B.local } } }  C = C.local } }

    Returns the loop over blocks. The epilogue, or without one a copy, stores the results. Parts of k, outside of m, are
    more blocks. Raises ScheduleError unless the block is a reduction with an implicit init over one loop, whose loops
    over results, at least two, come first. Requires that the last two of them are m and n, and extents that `vector`
    and `steps` divide.
    """
    results, along = results_and_reduction(s, block, "thin_on_threads")
    if len(results) < 2 or len(along) != 1:
        raise refusal(s, block, "thin_on_threads", "it is no product with loops over rows, columns and one reduction")
    out = epilogue if epilogue is not None else s.cache_write(block, "local")
    if epilogue is not None:
        s.set_scope(block, "local")
    *parts, m, n = results
    grid, thread, lane = s.split(n, [None, ACROSS, vector])
    outer, step = s.split(along[0], [None, steps])
    s.reorder(*parts, grid, thread, outer, step, m, lane)
    s.reverse_compute_at(out, thread)
    matrix = next(a.buffer for a in node_of(s, block).reads if runs_along(a, 1))
    others = [name for name in node_of(s, block).sources if name != matrix]
    for name, at, width in ((others[0], outer, _VECTOR), (matrix, step, vector)):
        copy = s.cache_read(block, name, "local")
        s.compute_at(copy, at)
        *rest, last = inside(s, copy, at)
        *rest, last = *rest, *(s.split(last, [None, width]) if s.extent(last) > width else [last])
        for loop in rest:
            s.unroll(loop)
        s.vectorize(last)
    for loop in (step, m, lane):
        s.unroll(loop)
    own = inside(s, out, thread)
    s.vectorize(own[-1])
    blocks = s.fuse(*parts, grid) if parts else grid
    s.bind(blocks, "block_x")
    s.bind(thread, "thread_x")
    return blocks
