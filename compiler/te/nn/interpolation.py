"""Source coordinates and interpolation weights of a resized dimension."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

MODES = ("nearest", "linear", "cubic")
COORDINATES = (
    "half_pixel",
    "asymmetric",
    "align_corners",
    "pytorch_half_pixel",
    "half_pixel_symmetric",
    "tf_crop_and_resize",
)
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")

Weights = dict[int, float]
"""Maps source indices to their weights in an output element; absent indices have weight 0."""


@dataclass(frozen=True)
class Resizing:
    """The resize of one dimension from `extent` to `size` elements; `scale` may differ slightly from their ratio.
    roi: the start and the end of the region, in units of extent - 1. The other fields are the options of `resize`."""

    extent: int
    size: int
    scale: float
    mode: str
    coordinates: str
    rounding: str
    cubic: float
    exclude_outside: bool
    antialias: bool
    roi: tuple[float, float]

    @property
    def is_identity(self) -> bool:
        """Whether each output element i is source element i."""
        plain = self.coordinates != "tf_crop_and_resize" or self.roi == (0.0, 1.0)
        return self.size == self.extent and self.scale == 1 and plain

    def coordinate(self, i: int, real: type[np.floating[Any]] = np.float64) -> float:
        """Return output i's source coordinate, computed in `real`: extent 4, size 8, half_pixel, i = 1 -> 0.25."""
        output, scale = real(i), real(self.scale)
        width = scale * self.extent
        centre = (output + 0.5) / scale - 0.5
        match self.coordinates:
            case "align_corners":
                return 0.0 if width == 1 else float(output * (self.extent - 1) / (width - 1))
            case "asymmetric":
                return float(output / scale)
            case "tf_crop_and_resize":
                start, end = (real(bound) * (self.extent - 1) for bound in self.roi)
                length = end - start
                return float(start + (length / 2 if width == 1 else output * length / (width - 1)))
            case "pytorch_half_pixel" if width == 1:
                return -0.5
            case "half_pixel_symmetric":
                return float(self.extent / 2 * (1 - self.size / width) + centre)
        return float(centre)

    @property
    def slopes(self) -> list[Fraction]:
        """Candidate slopes of the affine map from output to source elements, for `fit_windows`."""
        cropped = self.coordinates == "tf_crop_and_resize"
        return slopes(self.extent, self.size, self.coordinate(1) - self.coordinate(0) if cropped else 1 / self.scale)

    def is_outside(self, i: int) -> bool:
        """Return whether output i has the extrapolation value: tf_crop_and_resize, and a coordinate out of bounds."""
        return self.coordinates == "tf_crop_and_resize" and not 0 <= self.coordinate(i) <= self.extent - 1

    def nearest(self, i: int) -> int:
        """Return output i's nearest source element, computed in f32 as in onnxruntime, since rounding decides ties."""
        position = self.coordinate(i, np.float32)
        low, fraction = math.floor(position), position - math.floor(position)
        rounds_up = {
            "floor": False,
            "ceil": fraction > 0,
            "round_prefer_floor": fraction > 0.5,
            "round_prefer_ceil": fraction >= 0.5,
        }[self.rounding]
        return min(max(low + rounds_up, 0), self.extent - 1)

    def weights(self, i: int) -> Weights:
        """Return the weights of output i; those beyond an end are added to the end's, or dropped (exclude_outside).
        With exclude_outside or antialias their sum is made 1. Extent 4, size 8, linear, half_pixel, i = 2: {0: 0.25,
        1: 0.75}."""
        position = self.coordinate(i)
        kernel = _triangle if self.mode == "linear" else _cubic(self.cubic)
        shrink = min(self.scale, 1.0) if self.antialias else 1.0
        reach = (1 if self.mode == "linear" else 2) / shrink
        weights: Weights = {}
        for index in range(math.floor(position - reach), math.ceil(position + reach) + 1):
            weight = kernel(abs(position - index) * shrink)
            if weight == 0 or (self.exclude_outside and not 0 <= index < self.extent):
                continue
            inside = min(max(index, 0), self.extent - 1)
            weights[inside] = weights.get(inside, 0.0) + weight
        total = sum(weights.values())
        if not weights or total == 0:
            return {min(max(round(position), 0), self.extent - 1): 1.0}
        divisor = total if self.exclude_outside or self.antialias else 1.0
        return {index: weight / divisor for index, weight in weights.items()}


def _triangle(gap: float) -> float:
    return max(0.0, 1.0 - gap)


def _cubic(a: float) -> Callable[[float], float]:
    """Return Keys' cubic kernel with coefficient a, a function of the distance from a source element. Source: Cubic
    Convolution Interpolation for Digital Image Processing, 1981."""

    def kernel(gap: float) -> float:
        if gap <= 1:
            return ((a + 2) * gap - (a + 3)) * gap * gap + 1
        return ((a * gap - 5 * a) * gap + 8 * a) * gap - 4 * a if gap < 2 else 0.0

    return kernel


@dataclass(frozen=True)
class AffineWindows:
    """Windows of `length` elements of one dimension; window i begins at element (slope * i + offset) // divisor."""

    slope: int
    offset: int
    divisor: int
    length: int

    def start(self, i: int) -> int:
        """Return the index of the first element of window i."""
        return (self.slope * i + self.offset) // self.divisor


def fit_windows(first: Sequence[int], last: Sequence[int], slopes: Sequence[Fraction]) -> AffineWindows:
    """Return the shortest affine windows of which window i includes first[i] to last[i]; `slopes` are the candidates.
    Example: first [0, 2, 4], last [1, 3, 5], slopes [2] -> start 2 * i, length 2."""
    length = max(high - low for low, high in zip(first, last, strict=True)) + 1
    while True:
        for slope in slopes:
            numerator, denominator = slope.numerator, slope.denominator
            lowest = max(denominator * (high - length + 1) - numerator * i for i, high in enumerate(last))
            highest = min(denominator * low + denominator - 1 - numerator * i for i, low in enumerate(first))
            if lowest <= highest:
                return AffineWindows(numerator, (lowest + highest) // 2, denominator, length)
        length += 1


def slopes(extent: int, size: int, step: float) -> list[Fraction]:
    """Return candidate slopes of a map from `size` outputs to `extent` source elements about `step` apart: the ratio of
    extents, that of aligned corners, `step` as a fraction, and 0."""
    corners = [Fraction(extent - 1, size - 1)] if size > 1 else []
    return [Fraction(extent, size), *corners, Fraction(step).limit_denominator(1 << 12), Fraction(0)]
