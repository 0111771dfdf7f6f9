"""Gathers, TopK, OneHot, Compress."""

from __future__ import annotations

import numpy as np

from compiler.frontends.onnx.operators.shape import axis_of
from compiler.frontends.onnx.table import Node, Refused, handles
from compiler.te import nn
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.index import Index
from compiler.te.tensor import Tensor
from compiler.types.dtypes import is_float


def indices_of(node: Node, position: int, extent: int) -> Tensor:
    """Return the input at a position as indices into `extent` elements; if constant, negative ones are wrapped. Raises
    Refused for a constant index out of bounds."""
    indices = node.value(position)
    if not isinstance(indices, Tensor):
        array = np.asarray(indices)
        if ((array < -extent) | (array >= extent)).any():
            raise Refused(f"an index is outside of the {extent} elements")
        return node.as_tensor(np.where(array < 0, array + extent, array).astype(np.int64))
    return indices


def _is_dynamic(node: Node) -> bool:
    """Return whether input 1, the indices, is computed by the model; its negative elements must be wrapped."""
    return isinstance(node.value(1), Tensor)


@handles("Gather")
def gather(node: Node) -> Tensor:
    """The slices of x at indices along an axis; the indices' dimensions replace the axis. Negative indices count from
    the end. Raises Refused for an axis out of range, and for a constant index out of bounds; a computed one reads 0."""
    x, indices = node.tensor(0), node.value(1)
    axis = axis_of(node, node.attribute("axis", 0), x.rank)
    if not isinstance(indices, Tensor) and np.size(indices) == 1:
        index = int(np.asarray(indices).reshape(-1)[0])
        if not -x.shape[axis] <= index < x.shape[axis]:
            raise Refused(f"the index {index} is outside of the {x.shape[axis]} elements")
        shape = (*x.shape[:axis], *np.shape(indices), *x.shape[axis + 1 :])
        position, inner = index % x.shape[axis], len(np.shape(indices))
        return compute(shape, lambda *i: x[(*i[:axis], position, *i[axis + inner :])], node.name)
    return nn.gather(x, indices_of(node, 1, x.shape[axis]), axis, wrap=_is_dynamic(node), name=node.name)


@handles("GatherElements")
def gather_elements(node: Node) -> Tensor:
    """x[..., indices[i], ...] for each index i of the result, with indices[i] in place of the axis's component.
    Negative indices count from the end. Raises Refused for an axis out of range, and for a constant index out of
    bounds; a computed one reads 0."""
    x = node.tensor(0)
    axis = axis_of(node, node.attribute("axis", 0), x.rank)
    indices, wrap = indices_of(node, 1, x.shape[axis]), _is_dynamic(node)
    if any(n != m for d, (n, m) in enumerate(zip(x.shape, indices.shape, strict=True)) if d != axis):
        x = nn.slice(x, [0] * x.rank, [None if d == axis else n for d, n in enumerate(indices.shape)])
    return nn.take_along_axis(x, indices, axis, wrap=wrap, name=node.name)


@handles("GatherND")
def gather_nd(node: Node) -> Tensor:
    """The slices of x at the tuples of indices in the last dimension of input 1; the first `batch_dims` dimensions are
    common to both inputs. Negative indices count from the end; one out of bounds reads 0."""
    return nn.gather_nd(node.tensor(0), node.tensor(1), node.attribute("batch_dims", 0), wrap=True, name=node.name)


@handles("TopK")
def top_k(node: Node) -> tuple[Tensor, Tensor]:
    """The k greatest or least elements along an axis in sorted order, and their indices. Raises Refused for a k that
    the model computes."""
    count, axis = node.integers(1, "the count")[0], node.attribute("axis", -1)
    return nn.topk(node.tensor(0), count, axis, bool(node.attribute("largest", 1)), name=node.name)


@handles("OneHot")
def one_hot(node: Node) -> Tensor:
    """Input 2's second value where the index along a new axis of extent `depth` is x or x + depth, else its first.
    Raises Refused for an axis out of range, and for a depth that the model computes."""
    indices, values = node.tensor(0), node.tensor(2)
    depth = node.integers(1, "the depth")[0]
    axis = axis_of(node, node.attribute("axis", -1), indices.rank + 1)
    if is_float(indices.dtype):
        indices = nn.cast(indices, "i64")
    shape = (*indices.shape[:axis], depth, *indices.shape[axis:])

    def element(*i: Index) -> Expr:
        index = e.cast(indices[(*i[:axis], *i[axis + 1 :])], "i64")
        class_index = e.cast(i[axis], "i64")
        is_class = e.equal(index, class_index) | e.equal(index + depth, class_index)
        return e.select(is_class, values[1], values[0])

    return compute(shape, element, node.name)


@handles("Compress")
def compress(node: Node) -> Tensor:
    """The slices along an axis (default: elements of the flat tensor) for which a constant condition is true. Raises
    Refused if there are none, and for a condition that the model computes."""
    x = node.tensor(0)
    selected = [int(n) for n in np.flatnonzero(node.constant(1, "the condition"))]
    if not selected:
        raise Refused("its result has no elements")
    axis = node.attribute("axis")
    source = x if axis is not None else nn.reshape(x, (-1,))
    positions = node.as_tensor(np.array(selected, np.int64))
    return nn.gather(source, positions, 0 if axis is None else axis, name=node.name)
