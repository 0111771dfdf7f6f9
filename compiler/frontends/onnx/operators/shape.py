"""Operators that move elements, such as Reshape, Concat and Slice."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from compiler.frontends.onnx.operators.elementwise import broadcast
from compiler.frontends.onnx.table import Array, Node, Refused, Value, handler, handles, register, shape_of
from compiler.te import nn
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.index import Index
from compiler.te.tensor import Tensor
from compiler.types.dtypes import DTYPES


def axis_of(node: Node, axis: int, rank: int) -> int:
    """Return an axis of a tensor of that rank as non-negative. Raises Refused for an axis out of range."""
    if not -rank <= axis < rank:
        raise Refused(f"axis {axis} is none of {rank}")
    return axis % rank


@handles("Shape")
def shape(node: Node) -> Array:
    """The input's extents from `start` to `end`, a constant vector of i64."""
    extents = shape_of(node.value(0))
    return np.array(extents[node.attribute("start", 0) : node.attribute("end", None)], np.int64)


@handles("Size")
def size(node: Node) -> Array:
    """The input's number of elements, a constant i64."""
    return np.array(math.prod(shape_of(node.value(0))), np.int64)


@handles("Reshape")
def reshape(node: Node) -> Tensor:
    """Reshape in row-major order to a constant shape: -1 is inferred, and 0 copies the input's extent of that dimension
    unless `allowzero` is set. Raises Refused for a shape that the model computes, TeError for one that does not fit."""
    x, extents = node.tensor(0), node.integers(1, "the shape")
    if not node.attribute("allowzero", 0):
        extents = [x.shape[d] if n == 0 and d < x.rank else n for d, n in enumerate(extents)]
    return nn.reshape(x, extents, name=node.name)


@handles("Flatten")
def flatten(node: Node) -> Tensor:
    """Fuse the dimensions before the axis to one, and those from it on to another. Raises Refused for an axis out of
    range, which is up to the rank."""
    x = node.tensor(0)
    axis = node.attribute("axis", 1)
    if axis != x.rank:  # all dimensions, and one of extent 1
        axis = axis_of(node, axis, x.rank)
    return nn.reshape(x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])), name=node.name)


@handles("Unsqueeze")
def unsqueeze(node: Node) -> Tensor:
    """Insert dimensions of extent 1, so that they are the listed axes of the result. Raises Refused for an axis out of
    range, one listed twice, and axes that the model computes."""
    x, axes = node.tensor(0), node.integer_list("axes", 1) or []
    rank = x.rank + len(axes)
    new_dims = {axis_of(node, axis, rank) for axis in axes}
    if len(new_dims) < len(axes):
        raise Refused(f"the axes {list(axes)} name one twice")
    extents = iter(x.shape)
    return nn.reshape(x, [1 if d in new_dims else next(extents) for d in range(rank)], name=node.name)


register(
    __name__,
    {
        "ReverseSequence": handler(nn.reverse_sequence, tensors=2, time_axis=0, batch_axis=1),
        "Squeeze": lambda node: nn.squeeze(node.tensor(0), node.integer_list("axes", 1), name=node.name),
        "Tile": lambda node: nn.tile(node.tensor(0), node.integers(1, "the counts"), name=node.name),
        "Transpose": handler(nn.transpose, perm=None),
    },
)


@handles("Concat")
def concat(node: Node) -> Tensor:
    """Concatenate along an axis; inputs without elements are skipped."""
    tensors = [node.as_tensor(value) for value in node.values if value is not None and 0 not in shape_of(value)]
    return nn.concat(tensors, node.attribute("axis"), name=node.name)


def empty_array(shape: Sequence[int], dtype: str) -> Array:
    """Return an array of a shape with an extent 0, which te's tensors cannot have."""
    return np.zeros(shape, DTYPES[dtype].array)


@handles("Split")
def split(node: Node) -> list[Value]:
    """Split along an axis into parts of listed extents, or else of equal ones except for the last; a part without
    elements is a constant. Raises Refused for an axis out of range, and for extents that the model computes."""
    x = node.tensor(0)
    axis = axis_of(node, node.attribute("axis", 0), x.rank)
    sizes = node.integer_list("split", 1)
    if sizes is None:
        count = len(node.outputs)
        part_extent = -(-x.shape[axis] // count)
        sizes = [min(part_extent, x.shape[axis] - n * part_extent) for n in range(count)]
    pieces, start = list[Value](), 0
    for number, extent in enumerate(sizes):
        if not extent:
            pieces.append(empty_array([0 if d == axis else n for d, n in enumerate(x.shape)], x.dtype))
            continue
        pieces.append(slice_axis(x, axis, start, extent, node.name if number == 0 else f"{node.name}.{number}"))
        start += extent
    return pieces


def slice_axis(x: Tensor, axis: int, start: int, extent: int, name: str) -> Tensor:
    """The elements [start, start + extent) along an axis."""
    starts, stops = [0] * x.rank, [*x.shape]
    starts[axis], stops[axis] = start, start + extent
    return nn.slice(x, starts, stops, name=name)


@handles("Slice")
def slice(node: Node) -> Value:
    """Slice the listed axes, by default the first ones, as Python does; a result without elements is a constant. Raises
    Refused for an axis out of range, and for bounds, axes or steps that the model computes."""
    x = node.tensor(0)
    starts, stops = node.integers(1, "where it starts"), node.integers(2, "where it stops")
    axes = node.integers(3, "its axes") if node.has(3) else list(range(len(starts)))
    steps = node.integers(4, "its steps") if node.has(4) else [1] * len(starts)
    begins, strides = [0] * x.rank, [1] * x.rank
    ends: list[int | None] = [None] * x.rank
    extents = list(x.shape)
    for start, stop, axis, step in zip(starts, stops, axes, steps, strict=True):
        d = axis_of(node, axis, x.rank)
        extent = x.shape[d]
        first = max(start + extent, 0 if step > 0 else -1) if start < 0 else min(start, extent - (step < 0))
        last = max(stop + extent, -1 if step < 0 else 0) if stop < 0 else min(stop, extent)
        begins[d], ends[d], strides[d] = max(first, 0), None if last < 0 else last, step
        extents[d] = len(range(first, last, step))
    if not all(extents):
        return empty_array(extents, x.dtype)
    return nn.slice(x, begins, ends, strides, name=node.name)


@handles("Expand")
def expand(node: Node) -> Tensor:
    """Broadcast to the common shape of the input's and a constant one. Raises Refused for an extent below 1, and for a
    shape that the model computes."""
    target = node.integers(1, "the shape")
    if any(n < 1 for n in target):
        raise Refused("its result has no elements")
    return broadcast(node.tensor(0), tuple(target), node.name)


@handles("DepthToSpace", "SpaceToDepth")
def blocks(node: Node) -> Tensor | None:
    """DepthToSpace or SpaceToDepth; None unless the image has two dimensions."""
    x, mode = node.tensor(0), node.attribute("mode", "DCR")
    move = nn.depth_to_space if node.operator == "DepthToSpace" else nn.space_to_depth
    return move(x, node.attribute("blocksize"), mode, name=node.name) if x.rank == 4 else None


@handles("Trilu")
def trilu(node: Node) -> Tensor:
    """Keep the elements of each matrix with column - row >= k if `upper`, the default, else <= k; the others become
    zero. k is input 1, 0 by default, a constant or computed by the model."""
    x, upper = node.tensor(0), bool(node.attribute("upper", 1))
    diagonal = node.value(1) if node.has(1) else np.zeros((), np.int64)
    if isinstance(diagonal, Tensor):
        return _dynamic_trilu(x, nn.reshape(diagonal, ()), upper, node.name)
    offset = int(diagonal.reshape(-1)[0])
    offset = max(-max(x.shape) - 1, min(offset, max(x.shape) + 1))
    return (nn.triu if upper else nn.tril)(x, offset, name=node.name)


def _dynamic_trilu(x: Tensor, offset: Tensor, upper: bool, name: str) -> Tensor:
    """Keep the elements of each matrix with column - row >= `offset` if `upper`, else <= `offset`; the others become
    zero. The model computes the offset, a tensor without dimensions."""

    def element(*i: Index) -> Expr:
        distance, limit = e.cast(i[-1] - i[-2], "i64"), e.cast(offset[()], "i64")
        return e.select(distance >= limit if upper else distance <= limit, x[i], 0)

    return compute(x.shape, element, name)


@handles("Pad")
def pad(node: Node) -> Tensor:
    """Pad the listed axes, by default all, with a constant value, or in another mode of nn.pad. Raises Refused for
    widths, axes or a value of the mode `constant` that the model computes, and for an axis out of range."""
    x = node.tensor(0)
    padding = node.integers(1, "the padding")
    axes = node.integers(3, "its axes") if node.has(3) else list(range(x.rank))
    widths = [(0, 0)] * x.rank
    for number, axis in enumerate(axes):
        widths[axis_of(node, axis, x.rank)] = (padding[number], padding[number + len(axes)])
    value, mode = node.number(2) if node.has(2) else 0, node.attribute("mode", "constant")
    if value is None and mode == "constant":
        raise Refused("the value that it pads with is computed by the model")
    return nn.pad(x, widths, 0 if value is None else value, mode, name=node.name)


@handles("Col2Im")
def col2im(node: Node) -> Tensor:
    """Sum overlapping windows, the columns of the input, to images, as nn.fold. Raises Refused for shapes that the
    model computes."""
    size, kernel = node.integers(1, "the image's shape"), node.integers(2, "the window's shape")
    rank = len(size)
    strides, dilations = (node.attribute(name) or [1] * rank for name in ("strides", "dilations"))
    pads = node.attribute("pads") or [0] * (2 * rank)
    return nn.fold(node.tensor(0), size, kernel, strides, pads, dilations, name=node.name)
