"""Sliding windows over images of one to three dimensions, for convolutions and pooling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from inspect import getdoc, signature
from typing import Concatenate, ParamSpec

from compiler.support.errors import TeError
from compiler.te.expr import Number
from compiler.te.index import Axis, Index
from compiler.te.nn.common import Sizes, check_tensor, per_dim
from compiler.te.tensor import Padded, Tensor, reduce_axis

P = ParamSpec("P")

SPATIAL = {1: ("w",), 2: ("h", "w"), 3: ("d", "h", "w")}
"""The names of an image's axes by its rank."""
TAPS = {1: ("s",), 2: ("r", "s"), 3: ("q", "r", "s")}
"""The names of a window's axes by its rank."""


def image_rank(operator: str, x: Tensor) -> int:
    """Return the number of image dimensions of x. Raises TeError unless x is [N, C, and one to three of them]."""
    rank = check_tensor(operator, x).rank - 2
    if rank not in SPATIAL:
        raise TeError(f"{operator}: '{x.name}' has shape {x.shape}, expected [N, C, and an image of 1 to 3 dimensions]")
    return rank


def layout(labels: Sequence[str]) -> str:
    """Format the names of axes as the extents of a layout: h, w -> "H, W"."""
    return ", ".join(label.upper() for label in labels)


def for_rank(build: Callable[Concatenate[int, P], Tensor], rank: int) -> Callable[P, Tensor]:
    """Specialise an operator to images of a rank. Its docstring, and the default of its last parameter, the name, are
    templates: `{rank}`; `{hw}` is the image's axes, `{HW}` their extents, `{h}` the first axis; `{rs}`, `{RS}`, `{r}`
    are the window's. The operator raises TypeError for arguments that do not fit its own signature."""
    image, taps = SPATIAL[rank], TAPS[rank]
    fields = {"rank": rank, "hw": ", ".join(image), "HW": layout(image), "h": image[0]}
    fields |= {"rs": ", ".join(taps), "RS": layout(taps), "r": taps[0]}
    _, *parameters, last = signature(build).parameters.values()
    name = last.default.format(**fields)
    own_signature = signature(build).replace(parameters=[*parameters, last.replace(default=name)])

    @wraps(build)
    def operator(*args: P.args, **kwargs: P.kwargs) -> Tensor:
        try:
            bound = own_signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}() {error}") from None
        bound.apply_defaults()
        return build(rank, *bound.args, **bound.kwargs)

    operator.__name__ = operator.__qualname__ = name
    operator.__doc__ = (getdoc(build) or "").format(**fields)
    operator.__signature__ = own_signature  # type: ignore[attr-defined]
    return operator


def row_major(index: Sequence[Index], image: Sequence[int]) -> Index:
    """Flatten an index in row-major order: (1, 2) in (3, 4) -> 1 * 4 + 2."""
    flat = index[0]
    for component, size in zip(index[1:], image[1:], strict=True):
        flat = flat * size + component
    return flat


@dataclass(frozen=True)
class Window:
    """A sliding window: sizes, strides, dilations, and the padding before and after the image, one a dimension.

    With `ceil` a last window may exceed the padding, if it begins before the padding after the image.
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
        """The reduce axes over the window, one a dimension."""
        return tuple(reduce_axis(size, label) for size, label in zip(self.sizes, TAPS[len(self.sizes)], strict=True))

    @property
    def is_padded(self) -> bool:
        """Whether windows may reach beyond the image: there is padding, or `ceil`."""
        return self.ceil or any((*self.before, *self.after))

    def spans(self) -> list[int]:
        """Return the extent of the dilated window in each dimension."""
        return [dilation * (size - 1) + 1 for dilation, size in zip(self.dilations, self.sizes, strict=True)]

    def output_extents(self, image: Sequence[int]) -> tuple[int, ...]:
        """Return the number of windows over an image in each dimension. Raises TeError if the padded image has none."""
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
        """Return whether a window reaches beyond the padding after an image, as with `ceil`."""
        counts = self.output_extents(image)
        extents = zip(counts, self.strides, self.spans(), image, self.before, self.after, strict=True)
        return any((n - 1) * stride + span > sum(room) for n, stride, span, *room in extents)

    def input_indices(self, output: Sequence[Index]) -> list[Index]:
        """Return the image index of the window at an output index, an expression of the axes `taps`."""
        steps = zip(output, self.strides, self.taps, self.dilations, self.before, strict=True)
        return [i * stride + (tap if step == 1 else tap * step) - before for i, stride, tap, step, before in steps]

    def padded_input(self, x: Tensor, outside: Number) -> Tensor | Padded:
        """Return x, or if windows may reach beyond it a view that is `outside` there."""
        return x.padded(outside) if self.is_padded else x


def window(
    operator: str, sizes: Sequence[int], stride: Sizes, padding: Sizes, dilation: Sizes = 1, ceil: bool = False
) -> Window:
    """Build a Window from options that are an integer or one for each dimension; padding also all before and then all
    after. `ceil`: see Window. Raises TeError for other values."""
    rank = len(sizes)
    strides = per_dim(operator, "stride", stride, 1, rank)
    dilations = per_dim(operator, "dilation", dilation, 1, rank)
    return Window(operator, tuple(sizes), strides, dilations, *split_padding(operator, padding, rank), ceil)


def split_padding(operator: str, padding: Sizes, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the paddings before and those after the dimensions, from an integer, one for each dimension, or all before
    and then all after. Raises TeError for other values."""
    if isinstance(padding, tuple | list) and len(padding) == 2 * rank:
        paddings = per_dim(operator, "padding", padding, 0, 2 * rank)
        return paddings[:rank], paddings[rank:]
    per_side = per_dim(operator, "padding", padding, 0, rank)
    return per_side, per_side
