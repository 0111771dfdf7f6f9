"""The rules of each family of machines: from a program to scripts with open choices, which are its search space.

They are tried in order, each on the unscheduled blocks, in program order.
"""

from collections.abc import Mapping, Sequence

from compiler.recipes.attention import shared_rows
from compiler.recipes.convolution import convolution
from compiler.recipes.draft import Alternative, Draft, Rule
from compiler.recipes.elementwise import chains, vectors
from compiler.recipes.gpu.attention import streamed_on_threads, streamed_on_warps
from compiler.recipes.gpu.convolution import convolution_by_windows
from compiler.recipes.gpu.reduction import products_of_few, reduced_together
from compiler.recipes.gpu.rows import rows_on_blocks
from compiler.recipes.gpu.spread import on_threads
from compiler.recipes.gpu.thin import thin_products
from compiler.recipes.gpu.tiles import tiled_on_threads
from compiler.recipes.gpu.transposes import transposes_on_threads
from compiler.recipes.gpu.warp import on_warps
from compiler.recipes.gpu.windows import convolution_on_warps
from compiler.recipes.moving import as_written, pooling, transposes
from compiler.recipes.product import packed_product
from compiler.recipes.reduction import sums_in_parts, tiled_reduction
from compiler.recipes.rows import normalised_rows
from compiler.recipes.thin import thin_product
from compiler.recipes.winograd import transformed_tiles
from compiler.support.plugins import Extended

_CPU_RULES: tuple[Rule, ...] = (
    shared_rows,
    transformed_tiles,
    chains,
    convolution,
    sums_in_parts,
    thin_product,
    packed_product,
    pooling,
    normalised_rows,
    tiled_reduction,
    transposes,
    as_written,
    vectors,
)
_GPU_RULES: tuple[Rule, ...] = (
    streamed_on_warps,
    streamed_on_threads,
    chains,
    on_warps,
    thin_products,
    products_of_few,
    convolution_on_warps,
    convolution_by_windows,
    tiled_on_threads,
    rows_on_blocks,
    reduced_together,
    transposes_on_threads,
    on_threads,
)
RULES: Sequence[Rule] = Extended("search rule", _CPU_RULES)
"""The rules of the CPU: plugins' rules, then the built-in ones, the most specific first."""
GPU_RULES: Sequence[Rule] = Extended("GPU search rule", _GPU_RULES)
"""The rules of GPUs: plugins' rules, then the built-in ones, the most specific first."""

RULES_OF: Mapping[str, Sequence[Rule]] = {"cpu": RULES, "gpu": GPU_RULES}
"""Map a family of machines to its rules."""
FORM_RULES_OF: Mapping[str, Sequence[Rule]] = {"gpu": (streamed_on_warps, streamed_on_threads)}
"""Map a family of machines to the rules of groups in another form: a form that these do not schedule is not used."""

FORMER_NAMES: Mapping[str, str] = {
    "filters_in_lanes": "convolution",
    "partial_sums": "tiled_reduction",
    "taps_in_registers": "convolution",
    "vectors_of_pixels": "convolution",
}
"""Map the name of a former rule, which older scripts include, to the rule that has its ways."""

__all__ = ["FORMER_NAMES", "FORM_RULES_OF", "GPU_RULES", "RULES", "RULES_OF", "Alternative", "Draft", "Rule"]
