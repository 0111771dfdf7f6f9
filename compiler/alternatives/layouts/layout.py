"""The order of an image's dimensions: plain, or channels last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class ImageLayout:
    """The order of an image's `rank` dimensions: [n, c, ..., h, w], or with `is_last` [n, ..., h, w, c]."""

    is_last: bool
    rank: int

    @property
    def channels(self) -> int:
        """The position of the channels: the last dimension, or the second."""
        return self.rank - 1 if self.is_last else 1

    @property
    def pixels(self) -> range:
        """The positions of the dimensions along the image, such as rows and columns."""
        return range(1, self.rank - 1) if self.is_last else range(2, self.rank)

    def arranged(self, dimensions: Sequence[T]) -> tuple[T, ...]:
        """Reorder a sequence for dimensions [n, c, ..., h, w] to the order of the layout."""
        image, channels, *pixels = dimensions
        return (image, *pixels, channels) if self.is_last else (image, channels, *pixels)


def channels_last(dimensions: Sequence[T]) -> tuple[T, ...]:
    """Reorder a sequence for dimensions [n, c, ..., h, w] to [n, ..., h, w, c]."""
    return ImageLayout(True, len(dimensions)).arranged(dimensions)
