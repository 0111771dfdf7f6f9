"""Ops that move elements: broadcasts, permutations, slices, padding, concatenation."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.lowering.stablehlo_to_te.call import HloCall
from compiler.lowering.stablehlo_to_te.table import handles
from compiler.te import nn
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr, const
from compiler.te.index import Condition, Index, IndexLike
from compiler.te.tensor import Tensor


def filled_like(call: HloCall, x: Tensor) -> Tensor | None:
    """Return a tensor of the result's shape filled with the number that all elements of x are known to be equal to;
    None if there is none."""
    number = call.number(x)
    if number is None:
        return None
    return call.known.add_number(compute(call.shape, lambda *i: const(number, x.dtype), call.name), number)


@handles("broadcast_in_dim")
def _broadcast_in_dim(call: HloCall) -> Tensor:
    x, shape = call.operands[0], call.shape
    dims = call.dims("broadcast_dimensions", len(shape), [])
    if len(dims) != x.rank or any(n not in (1, shape[d]) for n, d in zip(x.shape, dims, strict=True)):
        raise call.refused(f"broadcasts the shape {x.shape} along {dims} to {shape}")
    if shape == x.shape and dims == sorted(dims):
        return x
    filled = filled_like(call, x)
    if filled is not None:
        return filled

    def element(*i: Index) -> Expr:
        return x[tuple(0 if n == 1 else i[d] for n, d in zip(x.shape, dims, strict=True))]

    return compute(shape, element, call.name)


@handles("broadcast")
def _broadcast(call: HloCall) -> Tensor:
    x = call.operands[0]
    return compute(call.shape, lambda *i: call.at(x, *i[len(i) - x.rank :]), call.name)


@handles("reshape")
def _reshape(call: HloCall) -> Tensor:
    x = call.operands[0]
    if x.shape == call.shape:
        return x
    filled = filled_like(call, x)
    return nn.reshape(x, call.shape, call.name) if filled is None else filled


@handles("transpose")
def _transpose(call: HloCall) -> Tensor:
    x = call.operands[0]
    order = call.dims("permutation", x.rank)
    swapped = call.conversion.swapped.get(x)
    if swapped is not None and len(order) == x.rank and order[-1] != x.rank - 1:
        x, places = swapped()
        order = [places[d] for d in order]
    return nn.transpose(x, order, call.name)


@handles("reverse")
def _reverse(call: HloCall) -> Tensor:
    x = call.operands[0]
    return nn.flip(x, call.dims("dimensions", x.rank), call.name)


@handles("concatenate")
def _concatenate(call: HloCall) -> Tensor:
    (dim,) = call.dims("dimension", len(call.shape))
    return nn.concat(list(call.operands), dim, call.name)


@handles("slice")
def _slice(call: HloCall) -> Tensor:
    x = call.operands[0]
    starts, limits = (call.per_dim(f"{name}_indices", x.rank, 0) for name in ("start", "limit"))
    strides = call.per_dim("strides", x.rank, 1)
    for d, (start, limit, stride) in enumerate(zip(starts, limits, strides, strict=True)):
        if not 0 <= start < limit <= x.shape[d] or stride < 1:
            raise call.refused(f"takes {start}:{limit}:{stride} of dimension {d} of the shape {x.shape}")
    return nn.slice(x, starts, limits, strides, call.name)


@handles("pad")
def _pad(call: HloCall) -> Tensor:
    """Return the operand with padding before, after and between elements; negative widths crop. Raises LoweringError if
    the widths do not give the stated shape."""
    x, value = call.operands
    low, high, interior = (call.per_dim(f"{name}", x.rank, 0) for name in _PADDING)
    shape = tuple(
        before + after + n + gap * (n - 1) for n, before, after, gap in zip(x.shape, low, high, interior, strict=True)
    )
    if any(gap < 0 for gap in interior) or shape != call.shape:
        raise call.refused(f"pads the shape {x.shape} to {shape} by low = {low}, high = {high}, interior = {interior}")
    placed = Placed(x.shape, low, [gap + 1 for gap in interior])

    def element(*i: Index) -> Expr:
        return placed.read(call, x, i, call.at(value))

    return compute(shape, element, call.name)


_PADDING = ("edge_padding_low", "edge_padding_high", "interior_padding")


class Placed:
    """The embedding of a box of `extents` in a larger tensor: element i of a dimension is at start + i * stride."""

    def __init__(self, extents: Sequence[int], starts: Sequence[int], strides: Sequence[int]) -> None:
        self.extents, self.starts, self.strides = extents, starts, strides

    def read(self, call: HloCall, x: Tensor, index: Sequence[Index], otherwise: Expr) -> Expr:
        """Return the element of x, the box, at an index of the larger tensor; `otherwise` where there is no element of
        x. A box of rank 0 is read itself."""
        conditions: list[Condition] = []
        position: list[IndexLike] = []
        for i, extent, start, stride in zip(index, self.extents, self.starts, self.strides, strict=True):
            moved = i - start if start else i
            conditions += [moved >= 0, moved < (extent - 1) * stride + 1]
            conditions += [e.equal(moved % stride, 0)] if stride != 1 else []
            position.append(moved if stride == 1 else moved // stride)
        inside = e.all_of(*conditions) if conditions else None
        if inside is None:
            return call.at(x)
        number = call.number(x)
        read = const(number, x.dtype) if number is not None else e.select(inside, x[tuple(position)], 0)
        return e.select(inside, read, otherwise)
