"""Rules: from a program to scripts with open choices, which are its search space.

attention.py    attention by rows of queries
gradient.py     gradients of convolutions' weights
convolution.py  convolutions as implicit GEMM
depthwise.py    depthwise and grouped convolutions by vectors of pixels
pointwise.py    convolutions of one tap over packed pixels, alternatives to implicit GEMM
thin.py         a large matrix times few vectors, read as it lies
product.py      products by packed panels and register tiles
moving.py       transposes by blocks in registers, pooling, what LLVM moves better
rows.py         elementwise functions, softmax and norms by rows, sums by partial sums
tiles.py        any reduction by multi-level tiles
warp.py         GPUs: products on tensor cores
reduction.py    GPUs: rows, columns and scalars by the threads of one block or of several
gpu.py          GPUs: tiles on blocks and threads, rows on blocks, the rest spread over threads
parts.py        long reductions into few results, on several threads
template.py     from hand-written scripts with open choices to sketches
recording.py    from functions of a Schedule to such scripts
derivation.py   from rules to sketches

A rule is a generator function of a draft and a block: it yields the ways to deal with that block, the most promising
first. `RULES` are tried in order, each on the blocks that are left, in the order of the program.
"""

from collections.abc import Mapping, Sequence

from compiler.recipes.channels_last import filters_in_lanes
from compiler.recipes.draft import Alternative, Draft, Rule
from compiler.recipes.winograd import transformed_tiles
from compiler.space.rules.attention import shared_rows
from compiler.space.rules.convolution import implicit_gemm
from compiler.space.rules.depthwise import vectors_of_pixels
from compiler.space.rules.gpu import on_threads, rows_on_blocks, tiled_on_threads
from compiler.space.rules.gradient import taps_in_registers
from compiler.space.rules.moving import as_written, transposed, windows
from compiler.space.rules.parts import sums_in_parts
from compiler.space.rules.product import packed_product
from compiler.space.rules.reduction import products_of_few, reduced_together
from compiler.space.rules.rows import by_rows, chains, elementwise, partial_sums
from compiler.space.rules.thin import thin_product
from compiler.space.rules.tiles import tiled_reduction
from compiler.space.rules.warp import on_warps
from compiler.support.plugins import Extended

_CPU_RULES: tuple[Rule, ...] = (
    shared_rows,
    taps_in_registers,
    transformed_tiles,
    chains,
    filters_in_lanes,
    vectors_of_pixels,
    implicit_gemm,
    sums_in_parts,
    thin_product,
    packed_product,
    windows,
    by_rows,
    tiled_reduction,
    partial_sums,
    transposed,
    as_written,
    elementwise,
)
_GPU_RULES: tuple[Rule, ...] = (
    chains,
    on_warps,
    products_of_few,
    tiled_on_threads,
    rows_on_blocks,
    reduced_together,
    on_threads,
)
RULES: Sequence[Rule] = Extended("search rule", _CPU_RULES)
"""The rules of the CPU: plugins' rules, then ours, the most specific first."""
GPU_RULES: Sequence[Rule] = Extended("GPU search rule", _GPU_RULES)
"""The rules of GPUs: plugins' rules, then ours, the most specific first."""

RULES_OF: Mapping[str, Sequence[Rule]] = {"cpu": RULES, "gpu": GPU_RULES}
"""The rules by families of machines."""

__all__ = ["GPU_RULES", "RULES", "RULES_OF", "Alternative", "Draft", "Rule"]
