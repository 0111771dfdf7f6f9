"""Convolutions with channels last: filters in lanes, pixels of a row in a register tile."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from math import prod

from compiler.recipes.images import LastWindow
from compiler.recipes.implicit_gemm import pack_filters
from compiler.recipes.packing import copy_in_vectors
from compiler.recipes.register_tile import register_tile, vectors_of
from compiler.recipes.steps import by_axis, in_vectors, node_of, vectorize_rows
from compiler.schedule import Handle, Schedule, Size

MOST_UNROLLED = 80
"""The most multiplications of a depthwise tile with all taps unrolled: more code is not faster and compiles slowly."""


def channels_last(
    s: Schedule, block: Handle, epilogue: Handle | None, window: LastWindow, sizes: tuple[Size, Size], lanes: int
) -> list[Handle]:
    """Schedule a convolution by register tiles of pixels of a row, and vectors of filters, as many as in `sizes`: the
    pixels, and the vectors of `lanes` elements.

        n { h { w { k { c { r { q { C } } } } } } }  n { h { w { k { D(C) } } } }
      ->
        pad X;  pack W
        n { k.0 { h { w.0 { C = 0
          r { q { c { w.1 = pixels unrolled { k.1 = vectors unrolled { k.2 = lanes vectorized { C } } } } } }
          D } } } }

    A depthwise convolution has no c; its X is padded inside k.0, for a vector of channels, and its taps are unrolled,
    only those of a row if all are too much code. A transposed convolution has a nest for each phase of its strides, and
    D after all of them. Without an epilogue D is a copy. Returns the loop over panels of filters and, for a dense
    convolution, the loop over rows.
    Source: `implicit_gemm`, without its transposes in registers.
    """
    pixel_count, vectors = sizes
    if epilogue is None:
        epilogue = s.cache_write(block)
    pad = s.pad(block, window.image.buffer) if window.image.where else None
    if pad is not None and not window.is_depthwise:
        copy_in_vectors(s, pad, lanes)
    pack_filters(s, block, window.weights, window.filters, s.multiple(vectors, lanes), taps_first=True)
    spatial = node_of(s, block).spatial
    loops = by_axis(s, block)
    phases = [] if window.is_depthwise else _split_phases(s, loops, window.strides)
    *outer, row, pixels, filters = chain(*loops[:spatial])
    channels, *taps = chain(*loops[spatial:])
    reduction = [channels, *taps] if window.is_depthwise else [*taps, channels]
    levels = {pixels: [pixel_count], filters: vectors_of(vectors, lanes)}
    tile = register_tile(s, [*outer, filters, row, *phases, pixels], reduction, [pixels, filters], levels)
    panel, inside = tile.around[len(outer)], tile.around[-1]
    if pad is not None and window.is_depthwise:
        s.compute_at(pad, panel)
        copy_in_vectors(s, pad, lanes)
    s.reverse_compute_at(epilogue, row if phases else inside)
    vectorize_rows(s, epilogue, lanes, not phases)
    if window.is_depthwise:
        is_small = s.value(pixel_count) * prod(map(s.extent, reduction)) <= MOST_UNROLLED
        for tap in reduction if is_small else reduction[-1:]:
            s.unroll(tap)
    in_vectors(s, tile.tile)
    return [panel] if window.is_depthwise else [panel, row]


def _split_phases(s: Schedule, loops: list[list[Handle]], strides: Mapping[int, int]) -> list[Handle]:
    """Split the loops along the image, in place in `loops`, by the strides of a transposed convolution, which its axes
    are mapped to; return the loops over phases. A stride of 1, and an axis without a loop, is skipped."""
    phases = []
    for axis, stride in sorted(strides.items()):
        if stride > 1 and loops[axis]:
            outer, phase = s.split(loops[axis][0], [None, stride])
            loops[axis] = [outer]
            phases.append(phase)
    return phases
