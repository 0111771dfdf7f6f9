"""Loads and stores of up to 128 bits by the threads of GPUs, where rows begin at multiples of that."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from compiler.affine.condition import Condition
from compiler.program.tree import Access, Block, Program
from compiler.recipes.gpu.spread import WARP
from compiler.recipes.steps import inside, node_of
from compiler.schedule import Handle, Schedule
from compiler.types.elements import element_bytes

WIDEST = 16
"""The most bytes of a load or store of a thread."""


def vector_along(program: Program, blocks: Sequence[Block], private: Collection[str] = ()) -> int:
    """Return the elements of the widest vectors by which threads can access memory along the last axes of blocks: of at
    most WIDEST bytes, at least one for each thread of a warp, where all accesses along the axes begin and end at
    multiples of it. 1 if one does not. Requires blocks with axes. Accesses of `private` buffers are in registers."""
    along = [
        (access, len(block.axes) - 1)
        for block in blocks
        for access in (*block.reads, *block.writes)
        if runs_along(access, len(block.axes) - 1) and access.buffer not in private
    ]
    widths = [element_bytes(program.buffers[access.buffer].element) for access, _ in along]
    vector = WIDEST // max(widths, default=WIDEST)
    lengths = {block.axes[-1].size for block in blocks}

    def is_whole(vector: int) -> bool:
        fits = all(vector * WARP <= length and length % vector == 0 for length in lengths)
        fits = fits and all(_holds_together(condition, vector) for block in blocks for condition in block.guard)
        return fits and all(starts_at(program, access, axis, vector) for access, axis in along)

    while vector > 1 and not is_whole(vector):
        vector //= 2
    return max(1, vector)


def runs_along(access: Access, axis: int) -> bool:
    """Return whether an access without a condition moves by one element from iteration to iteration of an axis, which
    indexes the last dimension alone."""
    if access.where or not access.index or access.index[-1].coefficient(axis) != 1:
        return False
    return all(axis not in form.variables() for form in access.index[:-1])


def _holds_together(condition: Condition, multiple: int) -> bool:
    """Return whether a condition is true in all or in none of `multiple` neighbouring iterations of a loop that begin
    at a multiple of that: 7 - 4*i - j is for 4 iterations of j. Requires a factor of -1 of the loop. False for an
    equality and for other variables with a factor of 1 or -1."""
    steps = [factor for _, factor in condition.form.terms if abs(factor) != 1]
    is_alone = len(condition.form.terms) - len(steps) <= 1
    return is_alone and not condition.equal and all(n % multiple == 0 for n in (condition.form.constant + 1, *steps))


def starts_at(program: Program, access: Access, axis: int, multiple: int) -> bool:
    """Return whether an access that `runs_along` an axis begins at multiples of `multiple` elements in each row."""
    form, shape = access.index[-1], program.buffers[access.buffer].shape
    steps = [form.constant, *(factor for atom, factor in form.terms if atom != axis), *shape[1:][-1:]]
    return all(step % multiple == 0 for step in steps)


def load_vectors(s: Schedule, block: Handle, at: Handle) -> None:
    """Load the elements of global memory that an iteration of the loop `at` reads contiguously along the last axis of a
    block by vectors, into registers; reads under a condition and buffers that the block writes are left out.

      at { v = 4 { C[] += A[4*at + v] } }
    ->
      at { v = 4 vectorized { A.local[v] = A[4*at + v] }  v = 4 { C[] += A.local[v] } }
    """
    node = node_of(s, block)
    for number, access in enumerate(node.reads):
        is_global = s.program.buffers[access.buffer].scope == "global"
        if not is_global or access.buffer in node.targets or not runs_along(access, len(node.axes) - 1):
            continue
        copy = s.cache_read(block, access.buffer, "local", number)
        s.compute_at(copy, at)
        s.vectorize(inside(s, copy, at)[-1])


def store_vectors(s: Schedule, copy: Handle, at: Handle) -> None:
    """Store the results of an iteration of the loop `at` by a vector; `copy` is the block that copies them from
    registers. Requires that the innermost loop of the copy inside `at` is over the elements of the vector."""
    s.reverse_compute_at(copy, at)
    s.vectorize(inside(s, copy, at)[-1])
