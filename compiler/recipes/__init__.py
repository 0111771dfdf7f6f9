"""Recipes: a file for each family of programs, with its matcher, the sizes that suit a machine, and its schedules.

rules.py         the rules of each family of machines, in their order
draft.py         `Draft`: a schedule under construction by rules; `Alternative`; `Rule`
sizes.py         sizes that caches and registers suggest
steps.py         queries and steps that recipes share; contiguous
packing.py       operands packed in panels, by vectors: pack_panels, copy_in_vectors
attention.py     attention by rows of queries: two products and the softmax between them
gradient.py      gradients of convolutions' weights, taps and output channels in registers: conv_grad_weight
winograd.py      convolutions by Winograd's transforms
images.py        the ways in which convolutions read their images, matched by indices
convolution.py   the rule of convolutions: a schedule for each way of reading, and the sizes of its register tile
channels_last.py nests of convolutions with channels last: filters in lanes
depthwise.py     nests of depthwise and grouped convolutions by vectors of pixels: by_pixels
implicit_gemm.py nests of convolutions: implicit_gemm, tiled_convolution, by_phases, pointwise, pointwise_by_filters
reduction.py     any reduction: by multi-level tiles, in parts on threads or in the lanes of vectors: row_reduction
thin.py          a large matrix times few vectors, read in its layout: dots, streams
product.py       products by packed panels and register tiles: gebp, tiled_gebp, store_packed, apply_to_tiles
tensor.py        products by declared dot products and tiles: quantised_gebp, tile_gebp
moving.py        transposes by blocks in registers, pooling, and blocks that LLVM moves better: transposed, windows
rows.py          softmax, norms and statistics: all that a row needs just before it: by_rows
register_tile.py the nest of products, convolutions and other reductions
elementwise.py   elementwise functions: elementwise
gpu/             the recipes of GPUs

A rule is a generator function of a draft and a block: it yields the ways to schedule that block, the most promising
first. A composite is a short function of `Schedule`'s primitives, in the manner of Exo's standard library; this package
exports those for users. A call is recorded as the primitives that it makes, so scripts need no composites.
The loops and blocks that a composite names in its result stay addressable. All raise ScheduleError at a primitive that
is refused; earlier steps stay applied. Tile sizes above a loop's extent are cut to it.
"""

from compiler.recipes.attention import Attention, AttentionTiles, attention, attention_tiles
from compiler.recipes.depthwise import PixelTiles, by_pixels
from compiler.recipes.elementwise import elementwise
from compiler.recipes.gpu.convolution import convolve_on_threads
from compiler.recipes.gpu.finish import ThreadTiles
from compiler.recipes.gpu.reduction import reduce_columns, reduce_rows
from compiler.recipes.gpu.rows import rows_on_threads
from compiler.recipes.gpu.spread import in_parts, spread
from compiler.recipes.gpu.thin import thin_on_threads
from compiler.recipes.gpu.tiles import cooperative_fetch, tile_on_threads
from compiler.recipes.gpu.transposes import transpose_on_threads
from compiler.recipes.gpu.warp import WarpTiles, tile_on_warps
from compiler.recipes.gpu.windows import convolve_on_warps
from compiler.recipes.gradient import Gradient, GradientTiles, conv_grad_weight
from compiler.recipes.implicit_gemm import (
    ConvolutionTiles,
    PointwiseTiles,
    by_phases,
    implicit_gemm,
    pointwise,
    pointwise_by_filters,
    tiled_convolution,
)
from compiler.recipes.moving import transposed, windows
from compiler.recipes.packing import copy_in_vectors, even, pack_panels
from compiler.recipes.product import Gebp, GebpTiles, apply_to_tiles, gebp, store_packed, tiled_gebp
from compiler.recipes.reduction import row_reduction
from compiler.recipes.rows import by_rows
from compiler.recipes.steps import contiguous, operands
from compiler.recipes.tensor import quantised_gebp, tile_gebp
from compiler.recipes.thin import ThinTile, dots, streams

# fmt: off
__all__ = [
    "Attention", "AttentionTiles", "ConvolutionTiles", "Gebp", "GebpTiles", "Gradient", "GradientTiles", "PixelTiles",
    "PointwiseTiles", "ThinTile", "ThreadTiles", "WarpTiles", "apply_to_tiles", "attention", "attention_tiles",
    "by_phases", "by_pixels", "by_rows", "contiguous", "conv_grad_weight", "convolve_on_threads", "convolve_on_warps",
    "cooperative_fetch", "copy_in_vectors", "dots", "elementwise", "even", "gebp", "implicit_gemm", "in_parts",
    "operands", "pack_panels", "pointwise", "pointwise_by_filters", "quantised_gebp", "reduce_columns", "reduce_rows",
    "row_reduction", "rows_on_threads", "spread", "store_packed", "streams", "thin_on_threads", "tile_gebp",
    "tile_on_threads", "tile_on_warps", "tiled_convolution", "tiled_gebp", "transpose_on_threads", "transposed",
    "windows",
]
# fmt: on
