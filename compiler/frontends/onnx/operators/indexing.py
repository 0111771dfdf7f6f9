"""Reads at indices, and selections."""

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
from compiler.types.elements import is_float


def indices_of(node: Node, position: int, extent: int) -> Tensor:
    """Indices along an axis; known ones count from 0. Raises Refused for one that is outside."""
    given = node.value(position)
    if not isinstance(given, Tensor):
        array = np.asarray(given)
        if ((array < -extent) | (array >= extent)).any():
            raise Refused(f"an index is outside of the {extent} elements")
        return node.as_tensor(np.where(array < 0, array + extent, array).astype(np.int64))
    return given


def _wrap(node: Node) -> bool:
    """Whether indices below 0 may come, which count from the end: where data give them."""
    return isinstance(node.value(1), Tensor)


@handles("Gather")
def gather(node: Node) -> Tensor:
    """Elements along an axis, at indices."""
    x, given = node.tensor(0), node.value(1)
    axis = axis_of(node, node.attribute("axis", 0), x.rank)
    if not isinstance(given, Tensor) and np.size(given) == 1:
        place = int(np.asarray(given).reshape(-1)[0])
        if not -x.shape[axis] <= place < x.shape[axis]:
            raise Refused(f"the index {place} is outside of the {x.shape[axis]} elements")
        shape = (*x.shape[:axis], *np.shape(given), *x.shape[axis + 1 :])
        at, inner = place % x.shape[axis], len(np.shape(given))
        return compute(shape, lambda *i: x[(*i[:axis], at, *i[axis + inner :])], node.name)
    return nn.gather(x, indices_of(node, 1, x.shape[axis]), axis, wrap=_wrap(node), name=node.name)


@handles("GatherElements")
def gather_elements(node: Node) -> Tensor:
    """An index of its own for each element."""
    x = node.tensor(0)
    axis = axis_of(node, node.attribute("axis", 0), x.rank)
    indices, wrap = indices_of(node, 1, x.shape[axis]), _wrap(node)
    if any(n != m for d, (n, m) in enumerate(zip(x.shape, indices.shape, strict=True)) if d != axis):
        x = nn.slice(x, [0] * x.rank, [None if d == axis else n for d, n in enumerate(indices.shape)])
    return nn.take_along_axis(x, indices, axis, wrap=wrap, name=node.name)


@handles("GatherND")
def gather_nd(node: Node) -> Tensor:
    """Slices at tuples of indices."""
    return nn.gather_nd(node.tensor(0), node.tensor(1), node.attribute("batch_dims", 0), wrap=True, name=node.name)


@handles("TopK")
def top_k(node: Node) -> tuple[Tensor, Tensor]:
    """The greatest or least elements along an axis, and their places."""
    count, axis = node.integers(1, "the count")[0], node.attribute("axis", -1)
    return nn.topk(node.tensor(0), count, axis, bool(node.attribute("largest", 1)), name=node.name)


@handles("OneHot")
def one_hot(node: Node) -> Tensor:
    """One of two values: where the index along a new axis is the stated one, or elsewhere."""
    indices, values = node.tensor(0), node.tensor(2)
    depth = node.integers(1, "the depth")[0]
    axis = axis_of(node, node.attribute("axis", -1), indices.rank + 1)
    if is_float(indices.dtype):
        indices = nn.cast(indices, "i64")
    shape = (*indices.shape[:axis], depth, *indices.shape[axis:])

    def element(*i: Index) -> Expr:
        at = e.cast(indices[(*i[:axis], *i[axis + 1 :])], "i64")
        place = e.cast(i[axis], "i64")
        hit = e.equal(at, place) | e.equal(at + depth, place)
        return e.select(hit, values[1], values[0])

    return compute(shape, element, node.name)


@handles("Compress")
def compress(node: Node) -> Tensor:
    """The elements where a known condition holds."""
    x = node.tensor(0)
    chosen = [int(n) for n in np.flatnonzero(node.known(1, "the condition"))]
    if not chosen:
        raise Refused("its result has no elements")
    axis = node.attribute("axis")
    source = x if axis is not None else nn.reshape(x, (-1,))
    places = node.as_tensor(np.array(chosen, np.int64))
    return nn.gather(source, places, 0 if axis is None else axis, name=node.name)
