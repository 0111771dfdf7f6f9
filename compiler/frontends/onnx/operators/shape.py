"""Operators that move elements."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from compiler.frontends.onnx.operators.elementwise import broadcast
from compiler.frontends.onnx.table import Node, Refused, Value, enter, handles, plain, shape_of
from compiler.frontends.onnx.types import Array
from compiler.te import nn
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.index import Index
from compiler.te.tensor import Tensor
from compiler.types.elements import DTYPES


def axis_of(node: Node, axis: int, rank: int) -> int:
    """An axis counted from 0. Raises Refused for an axis out of range."""
    if not -rank <= axis < rank:
        raise Refused(f"axis {axis} is none of {rank}")
    return axis % rank


@handles("Shape")
def shape(node: Node) -> Array:
    """The extents, or a range of them: known ahead."""
    extents = shape_of(node.value(0))
    return np.array(extents[node.attribute("start", 0) : node.attribute("end", None)], np.int64)


@handles("Size")
def size(node: Node) -> Array:
    """The number of elements: known ahead."""
    return np.array(math.prod(shape_of(node.value(0))), np.int64)


@handles("Reshape")
def reshape(node: Node) -> Tensor:
    """The elements in row-major order under another shape; 0 keeps an extent, -1 is inferred."""
    x, wanted = node.tensor(0), node.integers(1, "the shape")
    if not node.attribute("allowzero", 0):
        wanted = [x.shape[d] if n == 0 and d < x.rank else n for d, n in enumerate(wanted)]
    return nn.reshape(x, wanted, name=node.name)


@handles("Flatten")
def flatten(node: Node) -> Tensor:
    """Two dimensions: those before the axis, and the others."""
    x, axis = node.tensor(0), node.attribute("axis", 1)
    axis = axis + x.rank if axis < 0 else axis
    return nn.reshape(x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])), name=node.name)


@handles("Unsqueeze")
def unsqueeze(node: Node) -> Tensor:
    """With dimensions of extent 1 where the axes say."""
    x, axes = node.tensor(0), node.list_of("axes", 1) or []
    rank = x.rank + len(axes)
    places = {axis_of(node, axis, rank) for axis in axes}
    extents = iter(x.shape)
    return nn.reshape(x, [1 if d in places else next(extents) for d in range(rank)], name=node.name)


enter(
    __name__,
    {
        "ReverseSequence": plain(nn.reverse_sequence, tensors=2, time_axis=0, batch_axis=1),
        "Squeeze": lambda node: nn.squeeze(node.tensor(0), node.list_of("axes", 1), name=node.name),
        "Tile": lambda node: nn.tile(node.tensor(0), node.integers(1, "the counts"), name=node.name),
        "Transpose": plain(nn.transpose, perm=None),
    },
)


@handles("Concat")
def concat(node: Node) -> Tensor:
    """One behind the other along an axis; parts without elements count for nothing."""
    parts = [node.as_tensor(value) for value in node.values if value is not None and 0 not in shape_of(value)]
    return nn.concat(parts, node.attribute("axis"), name=node.name)


def empty(shape: Sequence[int], dtype: str) -> Array:
    """A value without elements, which is known."""
    return np.zeros(shape, DTYPES[dtype].array)


@handles("Split")
def split(node: Node) -> list[Value]:
    """The parts along an axis: of stated extents, or alike but for the last."""
    x = node.tensor(0)
    axis = axis_of(node, node.attribute("axis", 0), x.rank)
    sizes = node.list_of("split", 1)
    if sizes is None:
        count = len(node.outputs)
        part = -(-x.shape[axis] // count)
        sizes = [min(part, x.shape[axis] - n * part) for n in range(count)]
    parts, start = list[Value](), 0
    for number, extent in enumerate(sizes):
        if not extent:
            parts.append(empty([0 if d == axis else n for d, n in enumerate(x.shape)], x.dtype))
            continue
        parts.append(part_of(x, axis, start, extent, node.name if number == 0 else f"{node.name}.{number}"))
        start += extent
    return parts


def part_of(x: Tensor, axis: int, start: int, extent: int, name: str) -> Tensor:
    """Some elements of a tensor along an axis."""
    starts, stops = [0] * x.rank, [*x.shape]
    starts[axis], stops[axis] = start, start + extent
    return nn.slice(x, starts, stops, name=name)


@handles("Slice")
def slice(node: Node) -> Value:
    """Python's slices of some dimensions."""
    x = node.tensor(0)
    starts, stops = node.integers(1, "where it starts"), node.integers(2, "where it stops")
    axes = node.integers(3, "its axes") if node.has(3) else list(range(len(starts)))
    steps = node.integers(4, "its steps") if node.has(4) else [1] * len(starts)
    begins, by = [0] * x.rank, [1] * x.rank
    ends: list[int | None] = [None] * x.rank
    left = list(x.shape)
    for start, stop, axis, step in zip(starts, stops, axes, steps, strict=True):
        d = axis_of(node, axis, x.rank)
        extent = x.shape[d]
        first = max(start + extent, 0 if step > 0 else -1) if start < 0 else min(start, extent - (step < 0))
        last = max(stop + extent, -1 if step < 0 else 0) if stop < 0 else min(stop, extent)
        begins[d], ends[d], by[d] = max(first, 0), None if last < 0 else last, step
        left[d] = len(range(first, last, step))
    if not all(left):
        return empty(left, x.dtype)
    return nn.slice(x, begins, ends, by, name=node.name)


@handles("Expand")
def expand(node: Node) -> Tensor:
    """Broadcast with a shape."""
    wanted = node.integers(1, "the shape")
    if any(n < 1 for n in wanted):
        raise Refused("its result has no elements")
    return broadcast(node.tensor(0), tuple(wanted), node.name)


@handles("DepthToSpace", "SpaceToDepth")
def blocks(node: Node) -> Tensor | None:
    """Blocks of channels as blocks of the image, or these as channels; None unless images have two dimensions."""
    x, mode = node.tensor(0), node.attribute("mode", "DCR")
    move = nn.depth_to_space if node.operator == "DepthToSpace" else nn.space_to_depth
    return move(x, node.attribute("blocksize"), mode, name=node.name) if x.rank == 4 else None


@handles("Trilu")
def trilu(node: Node) -> Tensor:
    """The upper or the lower triangle of matrices, zeros elsewhere."""
    x, upper = node.tensor(0), bool(node.attribute("upper", 1))
    given = node.value(1) if node.has(1) else np.zeros((), np.int64)
    if isinstance(given, Tensor):
        return _trilu(x, nn.reshape(given, ()), upper, node.name)
    offset = int(given.reshape(-1)[0])
    offset = max(-max(x.shape) - 1, min(offset, max(x.shape) + 1))
    return (nn.triu if upper else nn.tril)(x, offset, name=node.name)


def _trilu(x: Tensor, offset: Tensor, upper: bool, name: str) -> Tensor:
    """A triangle whose diagonal data decide."""

    def element(*i: Index) -> Expr:
        place, limit = e.cast(i[-1] - i[-2], "i64"), e.cast(offset[()], "i64")
        return e.select(place >= limit if upper else place <= limit, x[i], 0)

    return compute(x.shape, element, name)


@handles("Pad")
def pad(node: Node) -> Tensor:
    """Padded with a value, or as the mode says."""
    x = node.tensor(0)
    stated = node.integers(1, "the padding")
    axes = node.integers(3, "its axes") if node.has(3) else list(range(x.rank))
    widths = [(0, 0)] * x.rank
    for number, axis in enumerate(axes):
        widths[axis_of(node, axis, x.rank)] = (stated[number], stated[number + len(axes)])
    value, mode = node.number(2) if node.has(2) else 0, node.attribute("mode", "constant")
    if value is None and mode == "constant":
        raise Refused("the value that it pads with is computed by the model")
    return nn.pad(x, widths, 0 if value is None else value, mode, name=node.name)


@handles("Col2Im")
def col2im(node: Node) -> Tensor:
    """Columns of windows summed up to an image."""
    size, kernel = node.integers(1, "the image's shape"), node.integers(2, "the window's shape")
    rank = len(size)
    strides, dilations = (node.attribute(name) or [1] * rank for name in ("strides", "dilations"))
    pads = node.attribute("pads") or [0] * (2 * rank)
    return nn.fold(node.tensor(0), size, kernel, strides, pads, dilations, name=node.name)
