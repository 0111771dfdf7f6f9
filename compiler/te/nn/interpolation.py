"""Where the places of a resized dimension lie in the original one, and which elements they are made of."""

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
"""The share of each element in one place."""


@dataclass(frozen=True)
class Resizing:
    """How one dimension is resized: from an extent to a size by a scale, which may differ a little from their ratio."""

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
        """Whether each place is the element of that place."""
        plain = self.coordinates != "tf_crop_and_resize" or self.roi == (0.0, 1.0)
        return self.size == self.extent and self.scale == 1 and plain

    def place(self, i: int, real: type[np.floating[Any]] = np.float64) -> float:
        """Where a place lies in the original dimension, computed in a dtype."""
        at, scale = real(i), real(self.scale)
        width = scale * self.extent
        centre = (at + 0.5) / scale - 0.5
        match self.coordinates:
            case "align_corners":
                return 0.0 if width == 1 else float(at * (self.extent - 1) / (width - 1))
            case "asymmetric":
                return float(at / scale)
            case "tf_crop_and_resize":
                start, end = (real(bound) * (self.extent - 1) for bound in self.roi)
                length = end - start
                return float(start + (length / 2 if width == 1 else at * length / (width - 1)))
            case "pytorch_half_pixel" if width == 1:
                return -0.5
            case "half_pixel_symmetric":
                return float(self.extent / 2 * (1 - self.size / width) + centre)
        return float(centre)

    @property
    def slopes(self) -> list[Fraction]:
        """The slopes that its places may have."""
        cropped = self.coordinates == "tf_crop_and_resize"
        return slopes(self.extent, self.size, self.place(1) - self.place(0) if cropped else 1 / self.scale)

    def is_outside(self, i: int) -> bool:
        """Whether a place has a value of its own, as outside of a region."""
        return self.coordinates == "tf_crop_and_resize" and not 0 <= self.place(i) <= self.extent - 1

    def nearest(self, i: int) -> int:
        """The element of a place, computed in f32: as onnxruntime does, it decides between neighbours."""
        at = self.place(i, np.float32)
        low, share = math.floor(at), at - math.floor(at)
        up = {
            "floor": False,
            "ceil": share > 0,
            "round_prefer_floor": share > 0.5,
            "round_prefer_ceil": share >= 0.5,
        }[self.rounding]
        return min(max(low + up, 0), self.extent - 1)

    def weights(self, i: int) -> Weights:
        """The elements that a place is made of, beyond the ends the outermost ones."""
        at = self.place(i)
        kernel = _triangle if self.mode == "linear" else _cubic(self.cubic)
        shrink = min(self.scale, 1.0) if self.antialias else 1.0
        reach = (1 if self.mode == "linear" else 2) / shrink
        shares: Weights = {}
        for index in range(math.floor(at - reach), math.ceil(at + reach) + 1):
            share = kernel(abs(at - index) * shrink)
            if share == 0 or (self.exclude_outside and not 0 <= index < self.extent):
                continue
            inside = min(max(index, 0), self.extent - 1)
            shares[inside] = shares.get(inside, 0.0) + share
        total = sum(shares.values())
        if not shares or total == 0:
            return {min(max(round(at), 0), self.extent - 1): 1.0}
        divisor = total if self.exclude_outside or self.antialias else 1.0
        return {index: share / divisor for index, share in shares.items()}


def _triangle(gap: float) -> float:
    return max(0.0, 1.0 - gap)


def _cubic(a: float) -> Callable[[float], float]:
    """Keys' kernel, Cubic Convolution Interpolation for Digital Image Processing, 1981."""

    def kernel(gap: float) -> float:
        if gap <= 1:
            return ((a + 2) * gap - (a + 3)) * gap * gap + 1
        return ((a * gap - 5 * a) * gap + 8 * a) * gap - 4 * a if gap < 2 else 0.0

    return kernel


@dataclass(frozen=True)
class Line:
    """Starts of windows of a length, as (slope * i + offset) // divisor."""

    slope: int
    offset: int
    divisor: int
    length: int

    def start(self, i: int) -> int:
        """Where the window of a place begins."""
        return (self.slope * i + self.offset) // self.divisor


def line(first: Sequence[int], last: Sequence[int], slopes: Sequence[Fraction]) -> Line:
    """The shortest windows on a line such that each contains the elements from first to last of its place."""
    length = max(high - low for low, high in zip(first, last, strict=True)) + 1
    while True:
        for slope in slopes:
            a, c = slope.numerator, slope.denominator
            lowest = max(c * (high - length + 1) - a * i for i, high in enumerate(last))
            highest = min(c * low + c - 1 - a * i for i, low in enumerate(first))
            if lowest <= highest:
                return Line(a, (lowest + highest) // 2, c, length)
        length += 1


def slopes(extent: int, size: int, step: float) -> list[Fraction]:
    """The slopes that places of an extent in another size may have, which are about a step apart."""
    corners = [Fraction(extent - 1, size - 1)] if size > 1 else []
    return [Fraction(extent, size), *corners, Fraction(step).limit_denominator(1 << 12), Fraction(0)]
