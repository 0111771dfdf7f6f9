"""Elements of MMA tiles that a thread computes with itself, as those of a softmax between two products.

A thread of a warp holds fixed elements of a tile, as `TileLayout` says. A fragment that blocks outside tensorized nests
touch is *open*: the buffer has the scalars of a thread, [tiles..., registers, 2], and a tensorized nest takes all
registers of a tile at once.

    C.fragment[16, 8] at [x / 4 + 8 r, 2 (x mod 4) + e], x on the threads of a warp  ->  C.fragment[r, e]

Source: NVIDIA's PTX ISA, "Matrix fragments for mma.m16n8k16".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler.affine import linear as lin
from compiler.affine.linear import Linear
from compiler.intrinsics.warp import LANES, QUAD
from compiler.program.tree import Block, Loop, Program
from compiler.support.errors import LoweringError

MATRIX = 8
"""The rows and columns of the matrices of 16 bits, or pairs of accumulators, that make a tile."""


@dataclass(frozen=True)
class TileLayout:
    """The layout of a tile in the registers of a warp: thread x has the elements at x / 4 + 8 r of one dimension, and
    at 2 (x mod 4) + e + 8 q of the other, in register r + `across` * q, as element e. `is_column`: whether the pairs
    run along columns, as in operand a and the accumulator, or along rows, as in operand b."""

    across: int
    is_column: bool = True


LAYOUTS = {"a": TileLayout(across=2), "b": TileLayout(across=1, is_column=False), "c": TileLayout(across=2)}
"""Map a kind of fragment to its layout, for elements of 16 bits and accumulators of f32."""


def is_open(program: Program, name: str) -> bool:
    """Return whether a block outside tensorized nests accesses a fragment; false for buffers of another scope."""
    blocks = (*program.readers[name], *program.writers[name])
    return program.buffers[name].scope == "fragment" and any(not is_tensorized(program, block) for block in blocks)


def is_tensorized(program: Program, block: Block) -> bool:
    """Return whether a block is in a tensorized nest."""
    return any(loop.kind == "tensorized" for loop in program.enclosing(block.label))


def warp_loop(program: Program, block: Block) -> Loop:
    """Return the loop around a block that is bound to the threads of a warp. Raises LoweringError if there is none of
    32 iterations along x."""
    for loop in program.enclosing(block.label):
        if loop.kind == "thread_x" and loop.extent == LANES:
            return loop
    reason = f"outside a tensorized nest and a loop over the {LANES} threads of a warp"
    raise LoweringError(f"block '{block.label}' touches a fragment {reason}")


def thread_element(kind: str, index: Sequence[Linear], lane: int, ranges: lin.Ranges, subject: str) -> list[Linear]:
    """Return the register, and the element in it (0 or 1), of the tile element at the row and column `index`, in a
    fragment of `kind` a, b or c, for the thread `lane` of a warp. Raises LoweringError, which names `subject`, unless
    the thread owns this element at all values of the loops."""
    layout, x = LAYOUTS[kind], lin.variable(lane)
    group, pair = index if layout.is_column else reversed(index)
    group_rest = group - lin.floordiv(x, QUAD, ranges)
    pair_rest = pair - lin.mod(x, QUAD, ranges).scaled(2)
    matrix, zero = _by_matrices(group_rest)
    next_matrix, element = _by_matrices(pair_rest)
    is_own = zero == lin.constant(0) and not any(form.depends_on(lane) for form in (matrix, next_matrix, element))
    if not is_own or lin.bounds(element, ranges) not in ((0, 0), (1, 1), (0, 1)):
        raise LoweringError(f"{subject} touches elements of a fragment that other threads of the warp hold")
    return [matrix + next_matrix.scaled(layout.across), element]


def _by_matrices(form: Linear) -> tuple[Linear, Linear]:
    """Divide a form into 8 q + e, term by term: return q and e, which may exceed 7. 8 r + 16 v + e  ->  r + 2 v, e."""
    whole, rest = divmod(form.constant, MATRIX)
    quotient, element = lin.constant(whole), lin.constant(rest)
    for atom, factor in form.terms:
        if factor % MATRIX == 0:
            quotient = quotient + Linear(((atom, factor // MATRIX),))
        else:
            element = element + Linear(((atom, factor),))
    return quotient, element
