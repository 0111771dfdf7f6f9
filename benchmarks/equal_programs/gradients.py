"""The gradient of a convolution's weights; `in_steps` and `at_once` are those of docs/walks/equal_programs.md."""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.equal_programs.family import Array, Family, Spelled, choice, different, exact
from compiler import te
from compiler.te import Tensor


def gradient(made: Spelled, images: int, channels: int, filters: int, size: int) -> te.Function:
    """Return the te function of a spelling, with the spelling's name; the gradient that it reads has `size` rows and
    columns."""
    x = te.placeholder((images, channels, size + 2, size + 2), name="X")
    g = te.placeholder((images, filters, size, size), name="G")
    return te.function(made.__name__, [x, g], made(x, g))


def _axes(g: Tensor) -> tuple[Any, Any, Any]:
    """New reduce axes over the images, rows and columns of the gradient g."""
    n, _, h, w = g.shape
    return te.reduce_axis(n, "image"), te.reduce_axis(h, "h"), te.reduce_axis(w, "w")


def at_once(x: Tensor, g: Tensor) -> Tensor:
    """One reduction over images, rows and columns."""
    n, h, w = _axes(g)
    shape = (g.shape[1], x.shape[1], 3, 3)
    return te.compute(shape, lambda o, i, p, q: te.sum(x[n, i, p + h, q + w] * g[n, o, h, w], axis=[n, h, w]), "dW")


def in_steps(x: Tensor, g: Tensor) -> Tensor:
    """A convolution for each image, then the sum over the images, then a transpose."""
    image, h, w = _axes(g)
    (n, ci), co = x.shape[:2], g.shape[1]
    each = te.compute(
        (n, ci, co, 3, 3),
        lambda b, i, o, p, q: te.sum(x[b, i, p + h, q + w] * g[b, o, h, w], axis=[h, w]),
        name="each",
    )
    total = te.compute((ci, co, 3, 3), lambda i, o, p, q: te.sum(each[image, i, o, p, q], axis=image), name="total")
    return te.compute((co, ci, 3, 3), lambda o, i, p, q: total[i, o, p, q], name="dW")


def by_rows(x: Tensor, g: Tensor) -> Tensor:
    """A sum along each row, then over the rows of each image, then over the images."""
    n, h, w = _axes(g)
    shape = (x.shape[0], g.shape[1], x.shape[1], 3, 3)
    rows = te.compute(
        (*shape, g.shape[2]),
        lambda n, o, i, p, q, h: te.sum(x[n, i, p + h, q + w] * g[n, o, h, w], axis=w),
        name="rows",
    )
    images = te.compute(shape, lambda *i: te.sum(rows[(*i, h)], axis=h), name="images")
    return te.compute(shape[1:], lambda *i: te.sum(images[(n, *i)], axis=n), name="dW")


def turned_before(x: Tensor, g: Tensor) -> Tensor:
    """A sum for each image, transposed to filters by channels, then the sum over the images."""
    n, h, w = _axes(g)
    ci, co = x.shape[1], g.shape[1]
    each = te.compute(
        (x.shape[0], ci, co, 3, 3),
        lambda n, i, o, p, q: te.sum(g[n, o, h, w] * x[n, i, p + h, q + w], axis=[w, h]),
        name="each",
    )
    turned = te.nn.transpose(each, (0, 2, 1, 3, 4))
    return te.compute((co, ci, 3, 3), lambda *i: te.sum(turned[(n, *i)], axis=n), name="dW")


def turned_behind(x: Tensor, g: Tensor) -> Tensor:
    """One reduction to taps by channels by filters, then a transpose."""
    n, h, w = _axes(g)
    shape = (3, 3, x.shape[1], g.shape[1])
    dw = te.compute(shape, lambda p, q, i, o: te.sum(g[n, o, h, w] * x[n, i, p + h, q + w], axis=[w, n, h]), name="dW")
    return te.nn.transpose(dw, (3, 2, 0, 1))


def _swapped(x: Tensor, g: Tensor) -> Tensor:
    """One reduction with the factors exchanged and the reduce axes in another order."""
    n, h, w = _axes(g)
    shape = (g.shape[1], x.shape[1], 3, 3)
    return te.compute(shape, lambda o, i, p, q: te.sum(g[n, o, h, w] * x[n, i, p + h, q + w], axis=[w, n, h]), "dW")


def _flipped(x: Tensor, g: Tensor) -> Tensor:
    """A different program: `at_once` with the taps in reverse order."""
    return te.nn.flip(at_once(x, g), (2, 3))


def _value(x: Array, g: Array) -> Array:
    windows = np.lib.stride_tricks.sliding_window_view(x, g.shape[2:], axis=(2, 3))
    return np.einsum("nipqhw,nohw->oipq", windows, g)


FAMILIES = (
    Family(
        "gradient of weights",
        at_once,
        _value,
        {"X": (2, 3, 7, 7), "G": (2, 4, 5, 5)},
        {"X": (8, 16, 16, 16), "G": (8, 16, 14, 14)},
        {
            "in steps": choice(in_steps),
            "by rows": choice(by_rows),
            "turned before the sum": choice(turned_before),
            "turned behind it": choice(turned_behind),
            "factors swapped": exact(_swapped),
            "te.nn": exact(lambda x, g: te.nn.conv2d_grad_weight(x, g, (g.shape[1], x.shape[1], 3, 3))),
            "taps flipped": different(_flipped),
        },
    ),
)
