"""Composite schedules: short functions of `Schedule`'s primitives, in the manner of Exo's standard library.

loops.py        block_tile           every loop of a block split, tiles outside
                vectorize_inner      the innermost loop split and vectorized
                parallelize_outer    the outermost loops fused and run on threads
                contiguous           the loop along which operands are contiguous innermost
packing.py      pack_panels          an operand packed in panels, by vectors
                copy_in_vectors      the nest of a copy, by vectors, transposed in registers where it must be
matmul.py       gebp                 a matmul packed and register-tiled as in BLIS
                tiled_gebp           the same with tiles as given, which may be open choices
                store_packed         an elementwise consumer writes what the next matmul reads as packed
                apply_to_tiles       an elementwise consumer works on each finished tile
streaming.py    dots                 a matrix times few vectors, sums by vectors along the reduction
                streams              a matrix times few vectors, its rows added to the results
convolution.py  implicit_gemm        a convolution as a matmul over a padded image, with its epilogue
                tiled_convolution    the same with tiles as given, which may be open choices
                by_phases            a transposed convolution as one for each phase of its strides
pixels.py       by_pixels            a depthwise or grouped convolution by vectors of pixels
pointwise.py    pointwise            a convolution of one tap as a product over vectors of pixels
                pointwise_by_filters the same with vectors of filters, over the pixels of all rows
gradient.py     conv_grad_weight     the gradient of a convolution's weights, taps and output channels in registers
attention.py    attention            two products and the softmax between them, some rows at a time
rows.py         by_rows              softmax, norms, statistics: all that a row needs just before it
                elementwise          the innermost loop by several vectors
                row_reduction        a reduction into several vectors of partial results
                units_outside        loops of one iteration outside the others
moving.py       transposed           a transpose by blocks in registers
                windows              pooling: windows inside the borders apart from those across
tensor.py       quantised_gebp       a matmul packed in groups, its innermost nest one dot product of groups
                tile_gebp            a matmul packed in groups, its innermost nest one product of tiles
gpu.py          cooperative_fetch    threads copy a tile to shared memory together
                tile_on_threads      any reduction for a GPU, by multi-level tiles, with what comes after
                spread               any block, its results on threads
reduction.py    rows_on_threads      softmax, norms: a row for each block of threads
                reduce_rows          a result of a reduction for each block of threads
                reduce_columns       neighbouring results by neighbouring threads, several for each
                in_parts             a reduction cut into parts, which another kernel adds up
warp.py         tile_on_warps        a matmul for the tensor cores of a GPU

Each call is recorded as the primitives that it makes, so scripts need no composites. The loops and blocks that a
composite names in its result stay addressable. All raise ScheduleError at a primitive that is refused; earlier steps
stay applied. Tile sizes above a loop's extent are cut to it.
"""

from compiler.schedule.library.attention import Attention, AttentionTiles, attention, attention_tiles
from compiler.schedule.library.convolution import (
    ConvolutionTiles,
    ImplicitGemm,
    by_phases,
    implicit_gemm,
    strides_of_phases,
    tiled_convolution,
)
from compiler.schedule.library.gpu import (
    OnThreads,
    ThreadTiles,
    cooperative_fetch,
    spread,
    tile_on_threads,
)
from compiler.schedule.library.gradient import Gradient, GradientTiles, conv_grad_weight
from compiler.schedule.library.loops import (
    Tiles,
    block_tile,
    contiguous,
    matmul_nest,
    nest,
    operands,
    panels,
    parallelize_outer,
    vectorize_inner,
)
from compiler.schedule.library.matmul import (
    Gebp,
    GebpTiles,
    apply_to_tiles,
    gebp,
    store_packed,
    tiled_gebp,
)
from compiler.schedule.library.moving import transposed, windows
from compiler.schedule.library.packing import copy_in_vectors, even, pack_panels
from compiler.schedule.library.pixels import ByPixels, PixelTiles, by_pixels, image_of, share_of
from compiler.schedule.library.pointwise import (
    Pointwise,
    PointwiseTiles,
    pointwise,
    pointwise_by_filters,
    pointwise_image,
)
from compiler.schedule.library.reduction import in_parts, reduce_columns, reduce_rows, rows_on_threads
from compiler.schedule.library.rows import by_rows, elementwise, is_costly, is_long, row_reduction, units_outside
from compiler.schedule.library.streaming import ThinTile, dots, streams
from compiler.schedule.library.tensor import QuantisedGebp, TileGebp, quantised_gebp, tile_gebp
from compiler.schedule.library.warp import OnWarps, WarpTiles, tile_on_warps

__all__ = [
    "Attention",
    "AttentionTiles",
    "ByPixels",
    "ConvolutionTiles",
    "Gebp",
    "GebpTiles",
    "Gradient",
    "GradientTiles",
    "ImplicitGemm",
    "OnThreads",
    "OnWarps",
    "PixelTiles",
    "Pointwise",
    "PointwiseTiles",
    "QuantisedGebp",
    "ThinTile",
    "ThreadTiles",
    "TileGebp",
    "Tiles",
    "WarpTiles",
    "apply_to_tiles",
    "attention",
    "attention_tiles",
    "block_tile",
    "by_phases",
    "by_pixels",
    "by_rows",
    "contiguous",
    "conv_grad_weight",
    "cooperative_fetch",
    "copy_in_vectors",
    "dots",
    "elementwise",
    "even",
    "gebp",
    "image_of",
    "implicit_gemm",
    "in_parts",
    "is_costly",
    "is_long",
    "matmul_nest",
    "nest",
    "operands",
    "pack_panels",
    "panels",
    "parallelize_outer",
    "pointwise",
    "pointwise_by_filters",
    "pointwise_image",
    "quantised_gebp",
    "reduce_columns",
    "reduce_rows",
    "row_reduction",
    "rows_on_threads",
    "share_of",
    "spread",
    "store_packed",
    "streams",
    "strides_of_phases",
    "tile_gebp",
    "tile_on_threads",
    "tile_on_warps",
    "tiled_convolution",
    "tiled_gebp",
    "transposed",
    "units_outside",
    "vectorize_inner",
    "windows",
]
