"""Composite schedules: short functions of `Schedule`'s primitives, in the manner of Exo's standard library.

loops.py        contiguous           the loop along which operands are contiguous innermost
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

from compiler.schedule.library.attention import Attention as Attention
from compiler.schedule.library.attention import AttentionTiles as AttentionTiles
from compiler.schedule.library.attention import attention as attention
from compiler.schedule.library.attention import attention_tiles as attention_tiles
from compiler.schedule.library.convolution import ConvolutionTiles as ConvolutionTiles
from compiler.schedule.library.convolution import by_phases as by_phases
from compiler.schedule.library.convolution import implicit_gemm as implicit_gemm
from compiler.schedule.library.convolution import strides_of_phases as strides_of_phases
from compiler.schedule.library.convolution import tiled_convolution as tiled_convolution
from compiler.schedule.library.gpu import ThreadTiles as ThreadTiles
from compiler.schedule.library.gpu import cooperative_fetch as cooperative_fetch
from compiler.schedule.library.gpu import spread as spread
from compiler.schedule.library.gpu import tile_on_threads as tile_on_threads
from compiler.schedule.library.gradient import Gradient as Gradient
from compiler.schedule.library.gradient import GradientTiles as GradientTiles
from compiler.schedule.library.gradient import conv_grad_weight as conv_grad_weight
from compiler.schedule.library.loops import contiguous as contiguous
from compiler.schedule.library.loops import operands as operands
from compiler.schedule.library.matmul import Gebp as Gebp
from compiler.schedule.library.matmul import GebpTiles as GebpTiles
from compiler.schedule.library.matmul import apply_to_tiles as apply_to_tiles
from compiler.schedule.library.matmul import gebp as gebp
from compiler.schedule.library.matmul import store_packed as store_packed
from compiler.schedule.library.matmul import tiled_gebp as tiled_gebp
from compiler.schedule.library.moving import transposed as transposed
from compiler.schedule.library.moving import windows as windows
from compiler.schedule.library.packing import copy_in_vectors as copy_in_vectors
from compiler.schedule.library.packing import even as even
from compiler.schedule.library.packing import pack_panels as pack_panels
from compiler.schedule.library.pixels import PixelTiles as PixelTiles
from compiler.schedule.library.pixels import by_pixels as by_pixels
from compiler.schedule.library.pixels import image_of as image_of
from compiler.schedule.library.pixels import share_of as share_of
from compiler.schedule.library.pointwise import PointwiseTiles as PointwiseTiles
from compiler.schedule.library.pointwise import pointwise as pointwise
from compiler.schedule.library.pointwise import pointwise_by_filters as pointwise_by_filters
from compiler.schedule.library.pointwise import pointwise_image as pointwise_image
from compiler.schedule.library.pointwise import tapped_dimensions as tapped_dimensions
from compiler.schedule.library.reduction import in_parts as in_parts
from compiler.schedule.library.reduction import reduce_columns as reduce_columns
from compiler.schedule.library.reduction import reduce_rows as reduce_rows
from compiler.schedule.library.reduction import rows_on_threads as rows_on_threads
from compiler.schedule.library.rows import by_rows as by_rows
from compiler.schedule.library.rows import elementwise as elementwise
from compiler.schedule.library.rows import is_costly as is_costly
from compiler.schedule.library.rows import is_long as is_long
from compiler.schedule.library.rows import row_reduction as row_reduction
from compiler.schedule.library.rows import units_outside as units_outside
from compiler.schedule.library.streaming import ThinTile as ThinTile
from compiler.schedule.library.streaming import dots as dots
from compiler.schedule.library.streaming import streams as streams
from compiler.schedule.library.tensor import quantised_gebp as quantised_gebp
from compiler.schedule.library.tensor import tile_gebp as tile_gebp
from compiler.schedule.library.warp import WarpTiles as WarpTiles
from compiler.schedule.library.warp import tile_on_warps as tile_on_warps

__all__ = sorted(name for name, value in globals().items() if callable(value))
