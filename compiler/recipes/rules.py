"""The rules of each family of machines: from a program to scripts with open choices, which are its search space.

They are tried in order, each on the unscheduled blocks, in program order.
"""

from collections.abc import Mapping, Sequence

from compiler.recipes.attention import shared_rows
from compiler.recipes.channels_last import filters_in_lanes
from compiler.recipes.convolution import convolution
from compiler.recipes.depthwise import vectors_of_pixels
from compiler.recipes.draft import Alternative, Draft, Rule
from compiler.recipes.elementwise import chains, vectors
from compiler.recipes.gpu.reduction import products_of_few, reduced_together
from compiler.recipes.gpu.rows import rows_on_blocks
from compiler.recipes.gpu.threads import on_threads, tiled_on_threads
from compiler.recipes.gpu.warp import on_warps
from compiler.recipes.gradient import taps_in_registers
from compiler.recipes.moving import as_written, pooling, transposes
from compiler.recipes.parts import partial_sums, sums_in_parts
from compiler.recipes.product import packed_product
from compiler.recipes.register_tile import tiled_reduction
from compiler.recipes.rows import normalised_rows
from compiler.recipes.thin import thin_product
from compiler.recipes.winograd import transformed_tiles
from compiler.support.plugins import Extended

_CPU_RULES: tuple[Rule, ...] = (
    shared_rows,
    taps_in_registers,
    transformed_tiles,
    chains,
    filters_in_lanes,
    vectors_of_pixels,
    convolution,
    sums_in_parts,
    thin_product,
    packed_product,
    pooling,
    normalised_rows,
    tiled_reduction,
    partial_sums,
    transposes,
    as_written,
    vectors,
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
"""The rules of the CPU: plugins' rules, then the built-in ones, the most specific first."""
GPU_RULES: Sequence[Rule] = Extended("GPU search rule", _GPU_RULES)
"""The rules of GPUs: plugins' rules, then the built-in ones, the most specific first."""

RULES_OF: Mapping[str, Sequence[Rule]] = {"cpu": RULES, "gpu": GPU_RULES}
"""Map a family of machines to its rules."""

__all__ = ["GPU_RULES", "RULES", "RULES_OF", "Alternative", "Draft", "Rule"]
