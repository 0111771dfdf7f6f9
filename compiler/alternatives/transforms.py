"""The transforms of Winograd's minimal filtering, and a convolution of 3 by 3 taps by them, as te."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compiler import te
from compiler.te import Tensor
from compiler.te.expr import Expr

TAPS = 3


@dataclass(frozen=True)
class Transform:
    """The matrices of F(m, 3) for tiles of m results: of the input B^T, of the filter G, of the output A^T.

    Source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015.
    """

    input: Sequence[Sequence[float]]
    filter: Sequence[Sequence[float]]
    output: Sequence[Sequence[float]]

    @property
    def results(self) -> int:
        """m: the results of a tile along one dimension."""
        return len(self.output)

    @property
    def points(self) -> int:
        """m + 2: the elements of a tile along one dimension."""
        return len(self.input)


F2 = Transform(
    input=((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1)),
    filter=((1, 0, 0), (1 / 2, 1 / 2, 1 / 2), (1 / 2, -1 / 2, 1 / 2), (0, 0, 1)),
    output=((1, 1, 1, 0), (0, 1, -1, -1)),
)
F4 = Transform(
    input=(
        (4, 0, -5, 0, 1, 0),
        (0, -4, -4, 1, 1, 0),
        (0, 4, -4, -1, 1, 0),
        (0, -2, -1, 2, 1, 0),
        (0, 2, -1, -2, 1, 0),
        (0, 4, 0, -5, 0, 1),
    ),
    filter=(
        (1 / 4, 0, 0),
        (-1 / 6, -1 / 6, -1 / 6),
        (-1 / 6, 1 / 6, -1 / 6),
        (1 / 24, 1 / 12, 1 / 6),
        (1 / 24, -1 / 12, 1 / 6),
        (0, 0, 1),
    ),
    output=((1, 1, 1, 1, 1, 0), (0, 1, -1, 2, -2, 0), (0, 1, 1, 4, 4, 0), (0, 1, -1, 8, -8, 1)),
)


def combined(rows: Sequence[Sequence[float]], row: Expr, element: Callable[[int], Expr]) -> Expr:
    """The sum of `rows[row][n] * element(n)`, without the zeros, as selects by the row, which is an axis: where that is
    unrolled, one of them is left."""
    value = _weighted(rows[-1], element)
    for n in reversed(range(len(rows) - 1)):
        value = te.select(row <= n, _weighted(rows[n], element), value)
    return value


def _weighted(row: Sequence[float], element: Callable[[int], Expr]) -> Expr:
    value: Expr | None = None
    for n in sorted((n for n, factor in enumerate(row) if factor), key=lambda n: row[n] < 0):  # so that none is negated
        term = element(n) if abs(row[n]) == 1 else element(n) * float(abs(row[n]))
        value = (term if row[n] > 0 else -term) if value is None else value + term if row[n] > 0 else value - term
    assert value is not None
    return value


def convolved(x: Tensor, w: Tensor, pads: tuple[int, int], image: tuple[int, int], transform: Transform) -> Tensor:
    """The convolution [n, k, h, w] of x [n, c, y, x] by w [k, c, 3, 3] with stride 1; `pads` are zeros before the first
    row and column, `image` the rows and columns of the result.

    Tiles of a row of tiles are columns of V; channels, and later filters, are contiguous. The rows of tiles of all
    images are one axis.
    """
    (batch, channels, height, width), filters = x.shape, w.shape[0]
    m, a = transform.results, transform.points
    down, across = (-(-size // m) for size in image)

    def border(n: Expr, y: Expr, z: Expr, c: Expr) -> Expr:
        row, column = y - pads[0], z - pads[1]
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        return te.select(inside, x[n, c, row, column], 0.0)

    def columns(t: Expr, z: Expr, i: Expr, b: Expr, c: Expr) -> Expr:
        n, y = (0, t) if batch == 1 else (t // down, t % down)
        return combined(transform.input, b, lambda j: p[n, y * m + i, z * m + j, c])

    r = te.reduce_axis(channels, "c")
    p = te.compute((batch, down * m + 2, across * m + 2, channels), border, name="border")
    d = te.compute((batch * down, across, a, a, channels), columns, name="columns")
    v = te.compute(
        (a, a, batch * down, across, channels),
        lambda i, b, t, z, c: combined(transform.input, i, lambda j: d[t, z, j, b, c]),
        name="input",
    )
    g = te.compute(
        (channels, filters, a, TAPS),
        lambda c, k, i, q: combined(transform.filter, i, lambda j: te.cast(w[k, c, j, q], "f64")),
        name="taps",
    )
    u = te.compute(
        (a, a, channels, filters),
        lambda i, b, c, k: te.cast(combined(transform.filter, b, lambda j: g[c, k, i, j]), "f32"),
        name="filter",
    )
    product = te.compute(
        (a, a, batch * down, across, filters),
        lambda i, b, t, z, k: te.sum(v[i, b, t, z, r] * u[i, b, r, k], axis=r),
        name="product",
    )
    e = te.compute(
        (batch * down, across, a, m, filters),
        lambda t, z, b, p_, k: combined(transform.output, p_, lambda i: product[i, b, t, z, k]),
        name="rows",
    )
    z = te.compute(
        (batch * down, across, m, m, filters),
        lambda t, z, p_, q, k: combined(transform.output, q, lambda b: e[t, z, b, p_, k]),
        name="output",
    )

    def result(n: Expr, k: Expr, h: Expr, w_: Expr) -> Expr:
        t = h // m if batch == 1 else n * down + h // m
        return z[t, w_ // m, h % m, w_ % m, k]

    return te.compute((batch, filters, *image), result, name="convolution")
