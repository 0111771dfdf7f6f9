"""Convolutions and poolings."""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from benchmarks.equal_programs.family import Array, Family, choice, different, exact, speed
from compiler import te
from compiler.te import Tensor

nn: Any = te.nn


def _convolution(x: Tensor, w: Tensor) -> Tensor:
    return nn.conv2d(x, w, padding=1)


def _padded(x: Tensor) -> Tensor:
    return nn.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])


def _in_sums(x: Tensor, w: Tensor) -> Tensor:
    """A 3x3 convolution as three sums: over the taps of a row, then over the rows of taps, then over the channels."""
    padded = _padded(x)
    n, c, height, width = x.shape
    p, q, i = te.reduce_axis(3, "p"), te.reduce_axis(3, "q"), te.reduce_axis(c, "i")
    shape = (n, w.shape[0], height, width)
    rows = te.compute(
        (*shape, c, 3), lambda n, o, y, v, i, p: te.sum(padded[n, i, y + p, v + q] * w[o, i, p, q], axis=q)
    )
    taps = te.compute((*shape, c), lambda *at: te.sum(rows[(*at, p)], axis=p))
    return te.compute(shape, lambda *at: te.sum(taps[(*at, i)], axis=i))


def _shifted(x: Tensor, w: Tensor) -> Tensor:
    """A 3x3 convolution as the sum of nine products over channels, one for each tap, of shifted images."""
    padded = _padded(x)
    n, c, height, width = x.shape
    parts: list[Tensor] = []
    for p in range(3):
        for q in range(3):
            i = te.reduce_axis(c, "i")

            def element(b: Any, o: Any, y: Any, v: Any, p: int = p, q: int = q, i: Any = i) -> Any:
                return te.sum(padded[b, i, y + p, v + q] * w[o, i, p, q], axis=i)

            parts.append(te.compute((n, w.shape[0], height, width), element))
    return reduce(nn.add, parts)


def _im2col(x: Tensor, w: Tensor) -> Tensor:
    """A 3x3 convolution as one product by the windows as columns of a matrix, for each image."""
    columns, filters = nn.unfold(x, 3, padding=1), nn.reshape(w, (w.shape[0], -1))
    n, k, places = columns.shape
    r = te.reduce_axis(k, "r")
    y = te.compute((n, w.shape[0], places), lambda b, o, at: te.sum(filters[o, r] * columns[b, r, at], axis=r))
    return nn.reshape(y, (n, w.shape[0], *x.shape[2:]))


def _im2col_matmul(x: Tensor, w: Tensor) -> Tensor:
    """A 3x3 convolution of one image by te.nn.matmul: filters times the windows as columns of a matrix."""
    columns = nn.reshape(nn.unfold(x, 3, padding=1), (-1, x.shape[2] * x.shape[3]))
    y = nn.matmul(nn.reshape(w, (w.shape[0], -1)), columns)
    return nn.reshape(y, (1, w.shape[0], *x.shape[2:]))


def _cropped(x: Tensor, w: Tensor) -> Tensor:
    """A 3x3 convolution padded by 2 instead of 1, whose border is sliced off."""
    y = nn.conv2d(x, w, padding=2)
    return nn.slice(y, (0, 0, 1, 1), (*y.shape[:2], y.shape[2] - 1, y.shape[3] - 1))


def _flipped(x: Tensor, w: Tensor) -> Tensor:
    return nn.conv2d(x, nn.flip(w, (2, 3)), padding=1)


def _of_convolution(x: Array, w: Array) -> Array:
    x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return np.einsum("nchwrs,ocrs->nohw", np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3)), w)


def _pointwise_product(x: Tensor, w: Tensor) -> Tensor:
    """A 1x1 convolution of one image by te.nn.matmul: filters times the image as a matrix of channels by pixels."""
    n, c, height, width = x.shape
    y = nn.matmul(nn.reshape(w, (w.shape[0], c)), nn.reshape(x, (c, height * width)))
    return nn.reshape(y, (n, w.shape[0], height, width))


def _pointwise_einsum(x: Tensor, w: Tensor) -> Tensor:
    n, c, height, width = x.shape
    i = te.reduce_axis(c, "i")
    shape = (n, w.shape[0], height, width)
    return te.compute(shape, lambda b, o, y, v: te.sum(w[o, i, 0, 0] * x[b, i, y, v], axis=i))


def _pool_by_reshape(x: Tensor) -> Tensor:
    n, c, height, width = x.shape
    return nn.max(nn.reshape(x, (n, c, height // 2, 2, width // 2, 2)), (3, 5))


def _pool_by_slices(x: Tensor) -> Tensor:
    """Max pooling 2x2 as the maximum of four slices of step 2."""
    parts = [nn.slice(x, (0, 0, p, q), (None,) * 4, (1, 1, 2, 2)) for p in (0, 1) for q in (0, 1)]
    return nn.maximum(nn.maximum(parts[0], parts[1]), nn.maximum(parts[2], parts[3]))


def _pool_in_steps(x: Tensor) -> Tensor:
    """Max pooling 2x2 as pooling 1x2, then 2x1."""
    return nn.max_pool2d(nn.max_pool2d(x, (1, 2), (1, 2)), (2, 1), (2, 1))


def _of_pooling(x: Array) -> Array:
    n, c, height, width = x.shape
    return x.reshape(n, c, height // 2, 2, width // 2, 2).max((3, 5))


FAMILIES = (
    Family(
        "convolution",
        _convolution,
        _of_convolution,
        {"X": (1, 3, 5, 6), "W": (4, 3, 3, 3)},
        {"X": (1, 64, 28, 28), "W": (64, 64, 3, 3)},
        {
            "padded, then without padding": exact(lambda x, w: nn.conv2d(_padded(x), w)),
            "more padding, then sliced": exact(_cropped),
            "windows as columns, then a product": exact(_im2col),
            "windows as columns, then matmul": exact(_im2col_matmul),
            "flipped twice": exact(lambda x, w: nn.flip(nn.conv2d(nn.flip(x, 3), nn.flip(w, 3), padding=1), 3)),
            "in three sums": choice(_in_sums),
            "nine shifted products": choice(_shifted),
            "flipped taps": different(_flipped),
            "padded at one side": different(lambda x, w: nn.conv2d(nn.pad(x, [(0, 0), (0, 0), (2, 0), (2, 0)]), w)),
            "padded with ones": different(
                lambda x, w: nn.conv2d(nn.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], value=1.0), w)
            ),
        },
    ),
    Family(
        "convolution of one tap",
        nn.conv2d,
        lambda x, w: np.einsum("nchw,oc->nohw", x, w[:, :, 0, 0]),
        {"X": (1, 3, 4, 5), "W": (6, 3, 1, 1)},
        {"X": (1, 128, 28, 28), "W": (128, 128, 1, 1)},
        {
            "as a sum over channels": exact(_pointwise_einsum),
            "as a product": speed(_pointwise_product),
        },
    ),
    Family(
        "pooling",
        lambda x: nn.max_pool2d(x, 2, 2),
        _of_pooling,
        {"X": (2, 3, 4, 6)},
        {"X": (1, 64, 56, 56)},
        {
            "as maxima of a reshape": exact(_pool_by_reshape),
            "of rows, then of columns": choice(_pool_in_steps),
            "of four slices": choice(_pool_by_slices),
            "windows apart by one": different(
                lambda x: nn.slice(nn.max_pool2d(x, 2, 1), (0,) * 4, (None, None, x.shape[2] // 2, x.shape[3] // 2))
            ),
        },
    ),
)
