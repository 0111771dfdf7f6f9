"""The ways in which convolutions read their images: matched by the indices of the operands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from compiler.affine.linear import Linear, Quotient, variable
from compiler.analysis.order import step
from compiler.program.tree import Access, Block, Program

FEWEST = 4
"""The fewest filters of a convolution that is vectorized along filters."""


@dataclass(frozen=True)
class LastWindow:
    """The reads of a convolution Y[.., h, w, k] += X[.., h*S + r, w*S + q, ..] * W[k, .., r, q]; a depthwise
    convolution reads only channel k of X. `filters` is the dimension of W that k indexes. A transposed convolution
    reads X[.., (h - r) / S, ..] and W[k, .., h mod S + r, ..]: `strides` maps its axes h, w to S; else it is empty."""

    image: Access
    weights: Access
    filters: int
    is_depthwise: bool
    strides: Mapping[int, int]


def last_window(program: Program, block: Block) -> LastWindow | None:
    """Return the reads of a convolution whose result is contiguous along filters; None for other blocks. Requires two
    reads and at least two spatial axes. With one read the result is None."""
    k, w = block.spatial - 1, block.spatial - 2
    if step(program, block.writes[0], k) != 1 or block.axes[k].size < FEWEST:
        return None
    images = [access for access in block.reads if any(_slides(form, w) for form in access.index)]
    weights = next((a for a in block.reads if a not in images), None)
    if len(images) != 1 or weights is None or weights.where:
        return None
    moving = [form.variables() for form in weights.index]
    filters = [d for d, axes in enumerate(moving) if k in axes]
    along = step(program, images[0], k)
    quotients = [quotient for form in images[0].index for quotient in _quotients(form)]
    strides = {axis: quotient.divisor for quotient in quotients for axis in quotient.form.variables() if axis < k}
    phased = {axis for axis, stride in strides.items() if stride > 1}
    if len(filters) != 1 or along not in (0, 1) or any(axes & set(range(k)) - phased for axes in moving):
        return None
    return LastWindow(images[0], weights, filters[0], along == 1, strides)


def _slides(form: Linear, axis: int) -> bool:
    """Return whether an index combines an axis with another axis, its tap, or divides it by a stride."""
    moved = bool(form.coefficient(axis)) and len(form.variables()) > 1
    return axis in form.variables() and (moved or bool(_quotients(form)))


def strides_of_phases(block: Block) -> list[int]:
    """Return the strides of a transposed convolution, one for each dimension of the image, 1 for a dimension without a
    stride; empty for other blocks, and for images of less than one or more than three dimensions."""
    spatial = block.spatial
    image = next((a for a in block.reads if any(map(_quotients, a.index[2:]))), None)
    if image is None or not 3 <= spatial <= 5 or len(block.axes) != 2 * spatial - 1 or len(image.index) != spatial:
        return []
    if image.index[0] != variable(0) or image.index[1] != variable(spatial):
        return []
    strides = [_divisor(form) for form in image.index[2:]]
    plain = all(form.coefficient(2 + d) == 1 for d, form in enumerate(image.index[2:]) if strides[d] == 1)
    return strides if plain else []


def _quotients(form: Linear) -> list[Quotient]:
    """Return the floordiv terms of an index, without its mod terms: one for (h + 1) floordiv 2 - r."""
    return [atom for atom, _ in form.terms if isinstance(atom, Quotient) and not atom.is_mod]


def image_of(block: Block) -> Access | None:
    """Return the read of the image in a depthwise or grouped convolution, in whose channel dimension, and no other, the
    filter, axis 1, occurs; None for other blocks. Such a block has two reads and at least three spatial axes, and steps
    forward along the last dimension of the image."""
    last = block.spatial - 1
    images = [access for access in block.reads if access.index and last in access.index[-1].variables()]
    if block.spatial < 3 or len(images) != 1 or len(block.reads) != 2 or len(images[0].index) != block.spatial:
        return None
    moving = [form.variables() for form in images[0].index]
    channels_alone = 1 in moving[1] and all(1 not in axes for d, axes in enumerate(moving) if d != 1)
    steps = images[0].index[-1].coefficient(last)
    return images[0] if channels_alone and steps is not None and steps > 0 else None


def share_of(image: Access) -> int:
    """Return the number of filters that read the same channels, by the read that `image_of` returns: 1 if each filter
    has its own."""
    return _divisor(image.index[1])


def _divisor(form: Linear) -> int:
    """Return the divisor of the first floordiv term of an index; 1 without one."""
    return next((quotient.divisor for quotient in _quotients(form)), 1)


def pointwise_image(block: Block) -> Access | None:
    """Return the read of the image in a convolution without taps along its last dimension; None for other blocks, and
    for images of less than one or more than three dimensions. Only dimensions with taps may have a border."""
    spatial = block.spatial
    if not 3 <= spatial <= 5 or len(block.reads) != 2 or len(block.axes) <= spatial:
        return None
    tapped = tapped_dimensions(block)
    if tapped and (tapped == spatial - 2 or len(block.axes) != 2 * spatial - 1):
        return None
    taps = [{spatial + 1 + d} if d < tapped else set() for d in range(spatial - 2)]
    long = {n for n, axis in enumerate(block.axes) if axis.size > 1}
    bordered = set[int]().union(*({2 + d, *taps[d]} for d in range(tapped)))
    moving = [long & axes for axes in ({0}, {spatial}, *({2 + d, *tap} for d, tap in enumerate(taps)))]
    for image, weights in (block.reads, block.reads[::-1]):
        steps = [form.coefficient(2 + d) for d, form in enumerate(image.index[2:])]
        plain = len(image.index) == spatial and all(step is not None and step > 0 for step in steps)
        level = all(form.constant == 0 for form in image.index[2 + tapped :])
        inside = all(condition.form.variables() <= bordered for condition in image.where) and not weights.where
        moved, over = ([long & form.variables() for form in access.index] for access in (image, weights))
        filters_alone = over[:2] == [{1}, {spatial}] and set().union(*over[2:]) <= bordered
        if plain and level and inside and moved == moving and filters_alone:
            return image
    return None


def tapped_dimensions(block: Block) -> int:
    """Return the number of dimensions of an image up to the last dimension with several taps: 1 for taps of 3 x 1 x 1,
    and 0 without taps. Requires a convolution, whose reduction is over a channel axis and then over taps."""
    taps = [axis.size for axis in block.axes[block.spatial + 1 :]]
    return max((d + 1 for d, size in enumerate(taps) if size > 1), default=0)


def taps_of(block: Block) -> int:
    """Return the number of taps of a filter for each channel: 9 for 3 x 3, and 1 without taps. Requires a convolution,
    whose reduction is over a channel axis and then over taps."""
    return prod(axis.size for axis in block.axes[block.spatial + 1 :])


def is_gradient(block: Block) -> bool:
    """Return whether the first two axes of the result index dimension 1, the channels, of two operands of four
    dimensions each. In a convolution they are images and filters."""
    channels = [access.index[1].variables() for access in block.reads if len(access.index) == 4]
    return len(channels) == 2 and {0} in channels and any(1 in axes for axes in channels)
