"""The transforms of Winograd's minimal filtering, and the convolution of 3 by 3 taps that uses them, as te."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from compiler import te
from compiler.alternatives.layouts.layout import ImageLayout
from compiler.te import Tensor
from compiler.te.expr import Expr
from compiler.te.index import Index

TAPS = 3

At = Callable[[int], Expr]
Rows = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Transform:
    """The matrices of F(m, 3): B^T for the input, G for the filter, A^T for the output.

    Source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015.
    """

    input: Rows
    filter: Rows
    output: Rows

    @property
    def results(self) -> int:
        """m, the number of results of a tile along one dimension."""
        return len(self.output)

    @property
    def points(self) -> int:
        """m + 2, the number of input elements of a tile along one dimension."""
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


@dataclass(frozen=True)
class Tiles:
    """The tiles of a result: `down` rows of `across` tiles for each of `images`; a tile has m x m results."""

    transform: Transform
    images: int
    down: int
    across: int

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows of tiles of all images, and the number of tiles in a row."""
        return self.images * self.down, self.across

    def row(self, image: Index, row: Index) -> Index:
        """The number, over all images, of the row of tiles that has row `row` of the results of an image."""
        inner = row // self.transform.results
        return inner if self.images == 1 else image * self.down + inner


def convolved(
    x: Tensor,
    w: Tensor,
    pads: tuple[int, int],
    image: tuple[int, int],
    transform: Transform,
    read: ImageLayout,
    written: ImageLayout,
) -> Tensor:
    """The convolution [n, k, ..., h, w] of x [n, c, ..., y, x] by w [k, c, ..., 3, 3] with stride 1.

    `pads` are the numbers of zeros before the first row and column, `image` the numbers of rows and columns of the
    result, `read` and `written` the layouts of x and of the result. Filters have one tap along a dimension `...`. Tiles
    are transformed, multiplied with the transformed filters at each point, and transformed back; channels, and later
    filters, are the last dimension. Filters are transformed in float64 and rounded once.
    """
    m = transform.results
    between = [x.shape[d] for d in read.pixels[:-2]]
    tiles = Tiles(transform, prod((x.shape[0], *between)), -(-image[0] // m), -(-image[1] // m))
    products = _multiplied(_input(_border(x, pads, tiles, read), tiles), _filter(w, transform), tiles)
    result = _output(products, tiles)

    def element(*index: Index) -> Expr:
        *depth, row, column = (index[d] for d in written.pixels)
        number = index[0] * prod(between) + depth[0] if depth else index[0]
        return result[tiles.row(number, row), column // m, row % m, column % m, index[written.channels]]

    shape = written.arranged((x.shape[0], w.shape[0], *between, *image))
    return te.compute(shape, element, name="convolution")


def _border(x: Tensor, pads: tuple[int, int], tiles: Tiles, layout: ImageLayout) -> Tensor:
    """Return the images of x as [image, y, x, c], padded with zeros, `pads` in front, to whole tiles; `layout` is that
    of x."""
    channels, (*depth, height, width) = x.shape[layout.channels], (x.shape[d] for d in layout.pixels)
    m = tiles.transform.results

    def element(image: Index, y: Index, z: Index, c: Index) -> Expr:
        row, column = y - pads[0], z - pads[1]
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        indices = (image // depth[0], c, image % depth[0]) if depth else (image, c)
        return te.select(inside, x[layout.arranged((*indices, row, column))], 0.0)

    return te.compute((tiles.images, tiles.down * m + 2, tiles.across * m + 2, channels), element, name="border")


def _input(border: Tensor, tiles: Tiles) -> Tensor:
    """The transformed tiles [i, j, row of tiles, tile, c], where (i, j) is a point of the tile."""
    t, channels = tiles.transform, border.shape[-1]
    m, points = t.results, t.points

    def column(row: Index, tile: Index, i: Index, j: Index, c: Index) -> Expr:
        image, y = (0, row) if tiles.images == 1 else (row // tiles.down, row % tiles.down)
        return combined(t.input, j, lambda n: border[image, y * m + i, tile * m + n, c])

    columns = te.compute((*tiles.shape, points, points, channels), column, name="columns")
    return te.compute(
        (points, points, *tiles.shape, channels),
        lambda i, j, row, tile, c: combined(t.input, i, lambda n: columns[row, tile, n, j, c]),
        name="input",
    )


def _filter(w: Tensor, t: Transform) -> Tensor:
    """The transformed filters [i, j, c, k] in f32, where (i, j) is a point of the tile."""
    filters, channels, *between = w.shape[:-2]
    between = [0 for _ in between]
    taps = te.compute(
        (channels, filters, t.points, TAPS),
        lambda c, k, i, s: combined(t.filter, i, lambda r: te.cast(w[(k, c, *between, r, s)], "f64")),
        name="taps",
    )
    return te.compute(
        (t.points, t.points, channels, filters),
        lambda i, j, c, k: te.cast(combined(t.filter, j, lambda s: taps[c, k, i, s]), "f32"),
        name="filter",
    )


def _multiplied(tiles_in: Tensor, filters: Tensor, tiles: Tiles) -> Tensor:
    """The products [i, j, row of tiles, tile, k] of tiles and filters at each point (i, j), summed over the
    channels."""
    points, channels, count = tiles.transform.points, *filters.shape[2:]
    c = te.reduce_axis(channels, "c")
    return te.compute(
        (points, points, *tiles.shape, count),
        lambda i, j, row, tile, k: te.sum(tiles_in[i, j, row, tile, c] * filters[i, j, c, k], axis=c),
        name="product",
    )


def _output(products: Tensor, tiles: Tiles) -> Tensor:
    """The products transformed back to results [row of tiles, tile, p, q, k], at position (p, q) of the tile."""
    t, count = tiles.transform, products.shape[-1]
    rows = te.compute(
        (*tiles.shape, t.points, t.results, count),
        lambda row, tile, j, p, k: combined(t.output, p, lambda i: products[i, j, row, tile, k]),
        name="rows",
    )
    return te.compute(
        (*tiles.shape, t.results, t.results, count),
        lambda row, tile, p, q, k: combined(t.output, q, lambda j: rows[row, tile, j, p, k]),
        name="output",
    )


def combined(rows: Rows, row: Index, element: At) -> Expr:
    """The sum over n of `rows[row][n] * element(n)`, without terms of coefficient zero. `row` is an axis, so that the
    result is a chain of selects; unrolling the axis leaves one operand."""
    value = _weighted(rows[-1], element)
    for n in reversed(range(len(rows) - 1)):
        value = te.select(row <= n, _weighted(rows[n], element), value)
    return value


def _weighted(row: Sequence[float], element: At) -> Expr:
    """The sum of elements times the coefficients of a row. Positive terms come first and negative ones are subtracted,
    so that nothing is negated if there is a positive term."""
    terms = [(f < 0, element(n) if abs(f) == 1 else element(n) * float(abs(f))) for n, f in enumerate(row) if f]
    (is_negative, first), *further_terms = sorted(terms, key=lambda term: term[0])
    value = -first if is_negative else first
    for is_negative, term in further_terms:
        value = value - term if is_negative else value + term
    return value
