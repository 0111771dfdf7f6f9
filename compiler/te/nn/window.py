"""Windows over images of one to three dimensions, as convolutions and pooling move them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from inspect import getdoc, signature
from typing import Concatenate, ParamSpec

from compiler.support.errors import TeError
from compiler.te.expr import Number
from compiler.te.index import Axis, Index
from compiler.te.nn.common import Sizes, check_tensor, several
from compiler.te.tensor import Padded, Tensor, reduce_axis

P = ParamSpec("P")

SPATIAL = {1: ("w",), 2: ("h", "w"), 3: ("d", "h", "w")}
"""The axes of an image."""
TAPS = {1: ("s",), 2: ("r", "s"), 3: ("q", "r", "s")}
"""The axes of a window."""


def image_rank(operator: str, x: Tensor) -> int:
    """The number of an image's dimensions. Raises TeError unless x is [N, C, and one to three of them]."""
    rank = check_tensor(operator, x).rank - 2
    if rank not in SPATIAL:
        raise TeError(f"{operator}: '{x.name}' has shape {x.shape}, expected [N, C, and an image of 1 to 3 dimensions]")
    return rank


def listed(labels: Sequence[str]) -> str:
    """Axes as the extents of a layout: `H, W`."""
    return ", ".join(label.upper() for label in labels)


def of_rank(build: Callable[Concatenate[int, P], Tensor], rank: int) -> Callable[P, Tensor]:
    """The operator that `build` makes for images of a rank. The documentation of that, and the default of its last
    parameter, the name, say `{rank}`; `{hw}` for the axes of an image, `{HW}` for their extents, `{h}` for the first;
    and `{rs}`, `{RS}`, `{r}` for those of a window."""
    image, taps = SPATIAL[rank], TAPS[rank]
    words = {"rank": rank, "hw": ", ".join(image), "HW": listed(image), "h": image[0]}
    words |= {"rs": ", ".join(taps), "RS": listed(taps), "r": taps[0]}
    _, *parameters, last = signature(build).parameters.values()
    name = last.default.format(**words)
    own = signature(build).replace(parameters=[*parameters, last.replace(default=name)])

    @wraps(build)
    def operator(*args: P.args, **kwargs: P.kwargs) -> Tensor:
        try:
            given = own.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}() {error}") from None
        given.apply_defaults()
        return build(rank, *given.args, **given.kwargs)

    operator.__name__ = operator.__qualname__ = name
    operator.__doc__ = (getdoc(build) or "").format(**words)
    operator.__signature__ = own  # type: ignore[attr-defined]
    return operator


def row_major(places: Sequence[Index], image: Sequence[int]) -> Index:
    """Places in an image as one place in row-major order."""
    flat = places[0]
    for place, size in zip(places[1:], image[1:], strict=True):
        flat = flat * size + place
    return flat


@dataclass(frozen=True)
class Window:
    """The sizes of a window, its strides and dilations, and the padding before and after the image, one a dimension.

    With `ceil` a last window may reach beyond the padding, if it begins before the padding after the image.
    """

    operator: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    ceil: bool = False

    @cached_property
    def taps(self) -> tuple[Axis, ...]:
        """The reduce axes over the window."""
        return tuple(reduce_axis(size, label) for size, label in zip(self.sizes, TAPS[len(self.sizes)], strict=True))

    @property
    def is_padded(self) -> bool:
        """Whether windows reach beyond the image."""
        return self.ceil or any((*self.before, *self.after))

    def spans(self) -> list[int]:
        """What a window covers of each dimension."""
        return [dilation * (size - 1) + 1 for dilation, size in zip(self.dilations, self.sizes, strict=True)]

    def positions(self, image: Sequence[int]) -> tuple[int, ...]:
        """The number of positions along each dimension of an image. Raises TeError where a window does not fit once."""
        counts = []
        for d, (size, span) in enumerate(zip(image, self.spans(), strict=True)):
            padding = self.before[d] + self.after[d]
            if span > size + padding:
                raise TeError(
                    f"{self.operator}: a window of {self.sizes[d]} does not fit an extent of {size} padded by {padding}"
                )
            stride, room = self.strides[d], size + padding - span
            steps = -(-room // stride) if self.ceil else room // stride
            overshot = self.ceil and steps * stride >= size + self.before[d]
            counts.append(steps + 1 - overshot)
        return tuple(counts)

    def overshoots(self, image: Sequence[int]) -> bool:
        """Whether a window reaches beyond the padding after an image."""
        last = zip(self.positions(image), self.strides, self.spans(), image, self.before, self.after, strict=True)
        return any((n - 1) * stride + span > sum(room) for n, stride, span, *room in last)

    def places(self, at: Sequence[Index]) -> list[Index]:
        """The index of each tap in the image, of the window at a position."""
        steps = zip(at, self.strides, self.taps, self.dilations, self.before, strict=True)
        return [i * stride + (tap if step == 1 else tap * step) - before for i, stride, tap, step, before in steps]

    def source(self, x: Tensor, outside: Number) -> Tensor | Padded:
        """The image, with a value outside of it."""
        return x.padded(outside) if self.is_padded else x


def window(
    operator: str, sizes: Sequence[int], stride: Sizes, padding: Sizes, dilation: Sizes = 1, ceil: bool = False
) -> Window:
    """A window, from an integer or one for each dimension; padding also for both sides of each. Raises TeError."""
    rank = len(sizes)
    strides = several(operator, "stride", stride, 1, rank)
    dilations = several(operator, "dilation", dilation, 1, rank)
    return Window(operator, tuple(sizes), strides, dilations, *borders(operator, padding, rank), ceil)


def borders(operator: str, padding: Sizes, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Padding before and after each dimension, from an integer, one for each dimension, or all of both."""
    if isinstance(padding, tuple | list) and len(padding) == 2 * rank:
        both = several(operator, "padding", padding, 0, 2 * rank)
        return both[:rank], both[rank:]
    each = several(operator, "padding", padding, 0, rank)
    return each, each
