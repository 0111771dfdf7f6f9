"""Matrix products."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from compiler.frontends.torch.operators.elements import Operand, pointwise, read, reshape, to_dtype
from compiler.frontends.torch.table import Call, operator
from compiler.te import nn
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Reduce
from compiler.te.index import Axis, Index
from compiler.te.nn.common import Indices, accumulator
from compiler.te.nn.reduction import reduce_dims
from compiler.te.tensor import Tensor, reduce_axis


def _register_products(name: str, biased_name: str, multiply: Callable[..., Tensor]) -> None:
    """Register x y as operator `name`, and beta bias + alpha x y as `biased_name`; `multiply` is the te product."""

    def product(call: Call, x: Tensor, y: Tensor) -> Tensor:
        sums = multiply(x, y, dtype=accumulator(x.dtype), name=f"{call.name}.sum")
        return to_dtype(sums, call.dtype, call.name)

    def biased(call: Call, bias: Tensor, x: Tensor, y: Tensor, beta: float = 1, alpha: float = 1) -> Tensor:
        return _add_bias(call, multiply(x, y, dtype=accumulator(x.dtype), name=f"{call.name}.sum"), bias, beta, alpha)

    operator(name)(product)
    operator(biased_name)(biased)


_register_products("mm", "addmm", nn.matmul)
_register_products("bmm", "baddbmm", nn.batch_matmul)


def _add_bias(call: Call, sums: Tensor, bias: Operand, beta: float, alpha: float) -> Tensor:
    if beta == 0:
        return pointwise(call, lambda s: s if alpha == 1 else s * alpha, sums)
    return pointwise(call, lambda s, b: (s if alpha == 1 else s * alpha) + (b if beta == 1 else b * beta), sums, bias)


@operator("addmv")
def addmv(call: Call, bias: Tensor, x: Tensor, y: Tensor, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta bias + alpha x y for a matrix x and a vector y."""
    column = nn.expand_dims(y, -1, f"{call.name}.column")
    sums = nn.matmul(x, column, dtype=accumulator(x.dtype), name=f"{call.name}.sum")
    return _add_bias(call, nn.reshape(sums, call.shape, f"{call.name}.row"), bias, beta, alpha)


@operator("addbmm")
def addbmm(call: Call, bias: Tensor, x: Tensor, y: Tensor, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta bias + alpha sum_b x[b] y[b] for batches of matrices."""
    b, k, acc_dtype = reduce_axis(x.shape[0], "b"), reduce_axis(x.shape[2], "k"), accumulator(x.dtype)

    def element(m: Index, n: Index) -> Reduce:
        return e.sum(e.cast(x[b, m, k], acc_dtype) * e.cast(y[b, k, n], acc_dtype), axis=(b, k))

    return _add_bias(call, compute((x.shape[1], y.shape[2]), element, f"{call.name}.sum"), bias, beta, alpha)


@operator("_trilinear")
def trilinear(
    call: Call,
    x: Tensor,
    y: Tensor,
    z: Tensor,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> Tensor:
    """Sum x y z over the dimensions `sumdim`, which are dropped; the product is elementwise with broadcasting, after
    dimensions of extent 1 are inserted at the positions in each tensor's `expand` list. `unroll_dim` has no effect."""
    inputs = [_expanded(call, t, dims, n) for n, (t, dims) in enumerate(((x, expand1), (y, expand2), (z, expand3)))]
    shape = np.broadcast_shapes(*(t.shape for t in inputs))
    acc_dtype = accumulator(x.dtype)

    def element(i: Indices, axes: tuple[Axis, ...]) -> Reduce:
        a, b, c = (read(t, i, acc_dtype) for t in inputs)
        return e.sum(a * b * c, axis=axes)

    return to_dtype(reduce_dims(shape, sorted(sumdim), False, element, f"{call.name}.sum"), call.dtype, call.name)


def _expanded(call: Call, x: Tensor, dims: Sequence[int], number: int) -> Tensor:
    shape = list(x.shape)
    for d in sorted(dims):
        shape.insert(d, 1)
    return reshape(x, tuple(shape), f"{call.name}.operand{number}")


@operator("linear")
def linear(call: Call, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x times the transposed weight, plus a bias, if there is one."""
    rows = nn.reshape(x, (-1, x.shape[-1]), f"{call.name}.rows") if x.rank != 2 else x
    sums = nn.matmul(rows, weight, transpose_b=True, dtype=accumulator(x.dtype), name=f"{call.name}.sum")
    result = reshape(sums, call.shape, f"{call.name}.shaped")
    return to_dtype(result, call.dtype, call.name) if bias is None else _add_bias(call, result, bias, 1, 1)


@operator("matmul", "dot", "vdot", "mv")
def matmul(call: Call, x: Tensor, y: Tensor) -> Tensor:
    """The product of the matrices in the last two dimensions, with broadcast batches; vectors are a row or a column."""
    left = nn.expand_dims(x, 0, f"{call.name}.row") if x.rank == 1 else x
    right = nn.expand_dims(y, -1, f"{call.name}.column") if y.rank == 1 else y
    if right.rank == 2 and left.rank > 2:
        rows = nn.reshape(left, (-1, left.shape[-1]), f"{call.name}.rows")
        sums = nn.matmul(rows, right, dtype=accumulator(x.dtype), name=f"{call.name}.sum")
    else:
        sums = _batched(call, left, right)
    return to_dtype(reshape(sums, call.shape, f"{call.name}.shaped"), call.dtype, call.name)


def _batched(call: Call, x: Tensor, y: Tensor) -> Tensor:
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    k, acc_dtype = reduce_axis(x.shape[-1], "k"), accumulator(x.dtype)

    def index_of(tensor: Tensor, batch_index: Sequence[Index], last: tuple[Index, Index]) -> tuple[Index | int, ...]:
        batch_index = batch_index[len(batch_index) - tensor.rank + 2 :]
        first = [0 if n == 1 else index for n, index in zip(tensor.shape[:-2], batch_index, strict=True)]
        return (*first, *last)

    def element(*at: Index) -> Reduce:
        *first, m, n = at
        left, right = x[index_of(x, first, (m, k))], y[index_of(y, first, (k, n))]
        return e.sum(e.cast(left, acc_dtype) * e.cast(right, acc_dtype), axis=k)

    return compute((*batch, x.shape[-2], y.shape[-1]), element, f"{call.name}.sum")
