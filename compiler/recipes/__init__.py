"""Recipes: one file a family of programs, with what it matches, the sizes that a machine suggests, and the schedule.

rules.py         the rules of each family of machines, in their order
draft.py         `Draft`: what a rule writes on; `Alternative`; `Rule`
sizes.py         sizes that caches and registers suggest
steps.py         queries and steps that recipes share; contiguous
packing.py       operands packed in panels, by vectors: pack_panels, copy_in_vectors
attention.py     attention by rows of queries: two products and the softmax between them
gradient.py      gradients of convolutions' weights, taps and output channels in registers: conv_grad_weight
winograd.py      convolutions by Winograd's transforms
channels_last.py convolutions with channels last: filters in lanes
depthwise.py     depthwise and grouped convolutions by vectors of pixels: by_pixels
convolution.py   which register tiles a convolution gets
implicit_gemm.py their nests: implicit_gemm, tiled_convolution, by_phases, pointwise, pointwise_by_filters
parts.py         long reductions in parts, on threads or in the lanes of vectors: row_reduction
thin.py          a large matrix times few vectors, read as it lies: dots, streams
product.py       products by packed panels and register tiles: gebp, tiled_gebp, store_packed, apply_to_tiles
tensor.py        products by declared dot products and tiles: quantised_gebp, tile_gebp
moving.py        transposes by blocks in registers, pooling, and blocks that LLVM moves better: transposed, windows
rows.py          softmax, norms and statistics: all that a row needs just before it: by_rows
register_tile.py the nest of products and convolutions, and any reduction by multi-level tiles
elementwise.py   elementwise functions: elementwise
gpu/             the recipes of GPUs

A rule is a generator function of a draft and a block: it yields the ways to deal with that block, the most promising
first. A composite is a short function of `Schedule`'s primitives, in the manner of Exo's standard library; here stand
the composites that users call. Each call is recorded as the primitives that it makes, so scripts need no composites.
The loops and blocks that a composite names in its result stay addressable. All raise ScheduleError at a primitive that
is refused; earlier steps stay applied. Tile sizes above a loop's extent are cut to it.
"""

from compiler.recipes.attention import Attention as Attention
from compiler.recipes.attention import AttentionTiles as AttentionTiles
from compiler.recipes.attention import attention as attention
from compiler.recipes.attention import attention_tiles as attention_tiles
from compiler.recipes.depthwise import PixelTiles as PixelTiles
from compiler.recipes.depthwise import by_pixels as by_pixels
from compiler.recipes.elementwise import elementwise as elementwise
from compiler.recipes.gpu.reduction import in_parts as in_parts
from compiler.recipes.gpu.reduction import reduce_columns as reduce_columns
from compiler.recipes.gpu.reduction import reduce_rows as reduce_rows
from compiler.recipes.gpu.rows import rows_on_threads as rows_on_threads
from compiler.recipes.gpu.threads import ThreadTiles as ThreadTiles
from compiler.recipes.gpu.threads import cooperative_fetch as cooperative_fetch
from compiler.recipes.gpu.threads import spread as spread
from compiler.recipes.gpu.threads import tile_on_threads as tile_on_threads
from compiler.recipes.gpu.warp import WarpTiles as WarpTiles
from compiler.recipes.gpu.warp import tile_on_warps as tile_on_warps
from compiler.recipes.gradient import Gradient as Gradient
from compiler.recipes.gradient import GradientTiles as GradientTiles
from compiler.recipes.gradient import conv_grad_weight as conv_grad_weight
from compiler.recipes.implicit_gemm import ConvolutionTiles as ConvolutionTiles
from compiler.recipes.implicit_gemm import PointwiseTiles as PointwiseTiles
from compiler.recipes.implicit_gemm import by_phases as by_phases
from compiler.recipes.implicit_gemm import implicit_gemm as implicit_gemm
from compiler.recipes.implicit_gemm import pointwise as pointwise
from compiler.recipes.implicit_gemm import pointwise_by_filters as pointwise_by_filters
from compiler.recipes.implicit_gemm import tiled_convolution as tiled_convolution
from compiler.recipes.moving import transposed as transposed
from compiler.recipes.moving import windows as windows
from compiler.recipes.packing import copy_in_vectors as copy_in_vectors
from compiler.recipes.packing import even as even
from compiler.recipes.packing import pack_panels as pack_panels
from compiler.recipes.parts import row_reduction as row_reduction
from compiler.recipes.product import Gebp as Gebp
from compiler.recipes.product import GebpTiles as GebpTiles
from compiler.recipes.product import apply_to_tiles as apply_to_tiles
from compiler.recipes.product import gebp as gebp
from compiler.recipes.product import store_packed as store_packed
from compiler.recipes.product import tiled_gebp as tiled_gebp
from compiler.recipes.rows import by_rows as by_rows
from compiler.recipes.steps import contiguous as contiguous
from compiler.recipes.steps import operands as operands
from compiler.recipes.tensor import quantised_gebp as quantised_gebp
from compiler.recipes.tensor import tile_gebp as tile_gebp
from compiler.recipes.thin import ThinTile as ThinTile
from compiler.recipes.thin import dots as dots
from compiler.recipes.thin import streams as streams

__all__ = sorted(name for name, value in globals().items() if callable(value))
