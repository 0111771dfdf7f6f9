"""Laws of Winograd: compute convolutions of 3 by 3 taps with stride 1 by products of transformed tiles.

F(2x2, 3x3) needs 4 multiplications a result, F(4x4, 3x3) 2.25, the written form 9.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import prod, sqrt

from compiler import te
from compiler.alternatives.convolutions import Convolution, only_convolution
from compiler.alternatives.law import Conditions, Form, Law, LawScope, Rounding
from compiler.alternatives.splice import splice_function
from compiler.alternatives.transforms import F2, F4, TAPS, Transform, convolved
from compiler.dialects.functions import find_function
from compiler.graph.read import read
from compiler.graph.tree import Graph
from compiler.te import Tensor
from compiler.types.dtypes import TYPES

UNIT = 2.0**-24
"""The unit roundoff of float32."""
LARGEST = 1e33
"""The largest sum |x| * sum |w| for which no intermediate result of either form overflows: the factors of the
transforms multiply it by less than 1e5."""
TAIL = 1.6
"""The factor from (standard deviation of errors / of results) to (largest error / largest result) at `CONFIDENCE`: of
10,000 or more normal results, the largest error is at most 5.3 deviations, and the largest result at least 3.3."""
TRANSFORMED = 3.0
"""Vector instructions for each element of a transformed tile."""
BYTES_PER_CYCLE = 8.0
"""The bytes of weights loaded from memory in a cycle, if L2 does not hold them between calls."""


def winograd(graph: Graph, conditions: Conditions, transform: Transform) -> Iterator[Form]:
    """Yield the Winograd form of a group around an f32 convolution of 3 by 3 taps and constant weights, with at least a
    vector of channels and of filters; nothing for any other group and under `strict`.

    If sum |x| * sum |w| is at most LARGEST, no intermediate result overflows, and results are finite if those of the
    written form are. The guard of the form tests this; NaN fails it. `rounding` bounds the error of both forms.
    """
    conv = only_convolution(graph)
    if conv is None or conditions.policy == "strict" or not _is_meant(conv, conditions):
        return
    x, w = (te.placeholder(b.shape, "f32", b.name) for b in (conv.image, conv.weights))
    y = convolved(x, w, conv.pads, conv.rows, transform, conv.read, conv.written)
    form = splice_function(graph, conv.compute, te.function("form", [x, w], y))
    guard = _guard(conv, graph, te.function("guard", [x, w], _is_in_range(x, w)))
    gain = cycles(conv, conditions) / transformed_cycles(conv, transform, conditions)
    written = rounding(conv.weights.shape[1])
    yield Form(form, gain, rounding(conv.weights.shape[1], transform), written, guard)


def _guard(conv: Convolution, graph: Graph, of: te.Function) -> Graph:
    """The guard `of`, a function of image and weights, as a graph of inputs of `graph`: preceded by the nodes that
    compute the image."""
    guard = read(find_function(of.module))
    nodes = (*conv.before, *guard.nodes)
    needed = {name for node in nodes for name in node.operands}
    return replace(guard, inputs=tuple(value for value in graph.inputs if value.name in needed), nodes=nodes)


def _is_meant(conv: Convolution, conditions: Conditions) -> bool:
    """Whether the law applies: f32, 3 by 3 taps, constant weights, at least a vector of channels and of filters."""
    is_float = all(b.element == TYPES["f32"] for b in (conv.image, conv.weights, *conv.compute.results))
    filters, channels = conv.weights.shape[:2]
    fills_lanes = min(filters, channels) >= conditions.machine.lanes
    return is_float and fills_lanes and conv.taps == (TAPS, TAPS) and conv.weights.name in conditions.constants


def _is_in_range(x: Tensor, w: Tensor) -> Tensor:
    """A tensor of one element: 1.0 if sum |x| * sum |w| is at most LARGEST, else 0.0."""
    sizes = [_total(tensor) for tensor in (x, w)]
    largest, unit, zero = (te.const(value, "f32") for value in (LARGEST, 1.0, 0.0))
    return te.compute((1,), lambda i: te.select(sizes[0][i] * sizes[1][i] <= largest, unit, zero), name="in_range")


def _total(tensor: Tensor) -> Tensor:
    """A tensor of one element: the sum of absolute values, over all dimensions but the second first, since sums of rows
    are fast."""
    first, count, *extents = tensor.shape
    axes = [te.reduce_axis(size, f"r{n}") for n, size in enumerate((first, *extents))]
    element = te.reduce_axis(count, "n")
    sums = te.compute((count,), lambda n: te.sum(te.abs(tensor[(axes[0], n, *axes[1:])]), axis=axes), name="sizes")
    return te.compute((1,), lambda i: te.sum(sums[element], axis=element), name="size")


def cycles(conv: Convolution, conditions: Conditions) -> float:
    """The estimated cycles of the written form: its vector multiplications, and the loads of weights beyond L2."""
    products = conv.images * prod(conv.rows) * prod(conv.weights.shape[:2]) * TAPS**2
    return products / conditions.machine.lanes + _weights(conv, TAPS**2, conditions)


def transformed_cycles(conv: Convolution, transform: Transform, conditions: Conditions) -> float:
    """The estimated cycles of the form by `transform`: multiplications, transforms, and the loads of weights beyond
    L2."""
    (filters, channels), m = conv.weights.shape[:2], transform.results
    elements = conv.images * prod(-(-size // m) for size in conv.rows) * transform.points**2
    work = elements * (filters * channels + TRANSFORMED * (filters + channels))
    return work / conditions.machine.lanes + _weights(conv, transform.points**2, conditions)


def _weights(conv: Convolution, size: int, conditions: Conditions) -> float:
    bytes = 4 * size * prod(conv.weights.shape[:2])
    return bytes / BYTES_PER_CYCLE if bytes > conditions.machine.l2_bytes else 0.0


def rounding(channels: int, transform: Transform | None = None) -> Rounding:
    """The error bounds of a 3 by 3 convolution over `channels`: of the written form, or by a transform.

    Worst: gamma_n of a sum of n terms; a transform multiplies sums of absolute values by at most the square of
    max over outputs and taps of sum_a |A^T||G|(sum_i |B^T|), and adds the roundings of its own sums. Probable: partial
    sums grow as random walks, so that a sum of n terms has an error of UNIT * n / sqrt(6) standard deviations of a
    term; a transform scales the error by the square of sqrt(sum_a A^T^2 G^2 B^T^2), in units of one tap, where the
    written form has 9 taps.
    """
    terms = TAPS**2 * channels
    written = TAIL * UNIT * sqrt(terms / 6)
    if transform is None:
        return Rounding(_gamma(terms), written)
    transform_terms = 2 * (len(transform.input) + len(transform.input) + TAPS)
    worst = _amplification(transform) ** 2 * _gamma(channels + transform_terms)
    return Rounding(worst, written * _deviation(transform) ** 2 / TAPS**2)


def _gamma(terms: int) -> float:
    return terms * UNIT / (1 - terms * UNIT)


def _amplification(t: Transform) -> float:
    sizes = [_sum(row) for row in t.input]

    def at(row: Sequence[float], tap: int) -> float:
        return sum(abs(a * g[tap]) * size for a, g, size in zip(row, t.filter, sizes, strict=True))

    return max(at(row, tap) for row in t.output for tap in range(TAPS))


def _deviation(t: Transform) -> float:
    sizes = [_squares(g) * _squares(b) for g, b in zip(t.filter, t.input, strict=True)]
    return sqrt(max(sum(a * a * size for a, size in zip(row, sizes, strict=True)) for row in t.output))


def _sum(row: Sequence[float]) -> float:
    return sum(map(abs, row))


def _squares(row: Sequence[float]) -> float:
    return sum(value * value for value in row)


WINOGRAD_2 = Law("winograd-2x2", LawScope.GROUP, partial(winograd, transform=F2))
WINOGRAD_4 = Law("winograd-4x4", LawScope.GROUP, partial(winograd, transform=F4))
