"""What tensor cores want: products of narrow floats by MMA tiles, which warps multiply."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from xdsl.dialects.builtin import BFloat16Type, Float16Type
from xdsl.ir import Attribute

from compiler.intrinsics.warp import COLUMNS, ROWS
from compiler.program.tree import Block
from compiler.recipes.draft import Alternative, Draft
from compiler.schedule import library
from compiler.schedule.library import WarpTiles
from compiler.schedule.schedule import Handle, Size

DEPTH = 16
"""The extent of an MMA tile along k."""
FIRST: dict[type[Attribute], int] = {Float16Type: 75, BFloat16Type: 80}
"""The first architecture whose tensor cores multiply a dtype."""
MOST_WARPS, MOST_MATRICES, MOST_PANEL = 4, 8, 4
"""The most warps of a block and MMA tiles of a warp along an axis, and MMA tiles along k of a panel."""


def on_warps(draft: Draft, label: str) -> Iterator[Alternative]:
    """A matmul of f16 or bf16, summed up in f32: warps multiply MMA tiles, which lie in registers; panels are
    fetched by all threads, also a round ahead; what comes after is done on finished tiles.

    Source: CUTLASS; MetaSchedule's multi-level tiling with tensor intrinsics (Shao et al., NeurIPS 2022).
    """
    block = draft.block(label)
    program = draft.schedule.program
    elements = {type(program.buffers[access.buffer].element) for access in block.reads}
    sizes = [axis.size for axis in block.axes]
    if len(elements) != 1 or not elements <= FIRST.keys() or len(sizes) < 3 or not _is_product(block):
        return
    (element,) = elements
    even = sizes[-3] % ROWS == sizes[-2] % COLUMNS == sizes[-1] % DEPTH == 0
    if not even or int(draft.gpu.arch.removeprefix("sm_")) < FIRST[element]:
        return
    after = draft.consumer(label)
    with_, then = (f", with '{after.label}'", after.label) if after is not None else ("", None)
    for twice in (True, False):
        name = f"on tensor cores{', a round ahead' if twice else ''}{with_}"
        yield Alternative(name, partial(_on_warps, label=label, after=then, twice=twice))


def _is_product(block: Block) -> bool:
    """Whether it multiplies matrices, or many of them, as `tile_on_warps` does."""
    order = [[form.variables() for form in access.index] for access in block.reads]
    *many, m, n, k = [{axis} for axis in range(len(block.axes))]
    is_summed = [axis.is_reduce for axis in block.axes] == [*(False for _ in many), False, False, True]
    return is_summed and len(order) == 2 and order[0] == [*many, m, k] and order[1] in ([*many, k, n], [*many, n, k])


def _on_warps(draft: Draft, label: str, after: str | None, twice: bool) -> Sequence[str]:
    s = draft.schedule
    block = s.get_block(label)
    *_, m, n, k = s.get_loops(block)
    (warps_m, m_), (warps_n, n_) = _cut(draft, m, ROWS, 4), _cut(draft, n, COLUMNS, 8)
    panel = draft.choose([1, *_powers(s.extent(k) // DEPTH, MOST_PANEL)], 2, "panel")
    epilogue = s.get_block(after) if after is not None else None
    library.tile_on_warps(s, block, epilogue, WarpTiles((warps_m, warps_n), (m_, n_), panel, twice=twice))
    return [label, *([after] if after is not None else [])]


def _cut(draft: Draft, loop: Handle, edge: int, wanted: int) -> tuple[Size, Size]:
    """The warps of a block and the MMA tiles of a warp along an axis, powers of two that divide it. Each is more
    than one if it can be: a loop of one iteration would be missing in the nest that clears the sums."""
    matrices = draft.schedule.extent(loop) // edge
    warps = _powers(matrices, MOST_WARPS)
    matrices_each = _powers(matrices // warps[-1], MOST_MATRICES)
    return draft.choose(warps, 2, "warps"), draft.choose(matrices_each, wanted, "matrices")


def _powers(number: int, most: int) -> list[int]:
    """The powers of two that divide a number, but one."""
    return [1 << bits for bits in range(1, most.bit_length()) if number % (1 << bits) == 0] or [1]
