"""Matrix products."""

from __future__ import annotations

import math
from collections.abc import Sequence

from compiler.support.errors import TeError
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr, Reduce
from compiler.te.index import Index
from compiler.te.nn.common import accumulator, astype, check_equal, check_flag, check_rank, product, result_dtype
from compiler.te.nn.shape import reshape
from compiler.te.tensor import Tensor, reduce_axis
from compiler.types.dtypes import is_float


def matmul(
    a: Tensor,
    b: Tensor,
    transpose_a: bool = False,
    transpose_b: bool = False,
    dtype: str | None = None,
    name: str = "matmul",
) -> Tensor:
    """C[m, n] = sum over k of A[m, k] * B[k, n].

    a is [M, K], or [K, M] with transpose_a; b is [K, N], or [N, K] with transpose_b; the result is [M, N]. Sums are in
    f32 for narrower floats and in i32 for narrower integers (u32 for u16), whose dtypes may differ, as u8 and i8. The
    default `dtype` of the result is a's for floats, that of the sums for integers. Raises TeError for extents or dtypes
    that do not match.
    """
    return _product("matmul", ("m", "n"), a, b, transpose_a, transpose_b, dtype, name)


def _product(
    operator: str,
    axes: Sequence[str],
    a: Tensor,
    b: Tensor,
    transpose_a: bool,
    transpose_b: bool,
    dtype: str | None,
    name: str,
) -> Tensor:
    """Multiply the matrices in the last two dimensions of a and b, stored transposed if so flagged, for each index of
    the first, equal dimensions. Raises TeError for extents or dtypes that do not match."""
    layout = "rows, columns" if len(axes) == 2 else "batch, rows, columns"
    for tensor in (a, b):
        check_rank(operator, tensor, len(axes), layout)
    check_flag(operator, "transpose_a", transpose_a)
    check_flag(operator, "transpose_b", transpose_b)
    for left_extent, right_extent in zip(a.dims[:-2], b.dims[:-2], strict=True):
        check_equal(operator, f"the batches of '{a.name}' and '{b.name}'", left_extent, right_extent)
    rows, inner = a.dims[-2:][::-1] if transpose_a else a.dims[-2:]
    inner_b, columns = b.dims[-2:][::-1] if transpose_b else b.dims[-2:]
    check_equal(operator, f"the extents of k in '{a.name}' and '{b.name}'", inner, inner_b)
    k = reduce_axis(inner, "k")

    def element(*i: Index) -> Expr:
        *batch, m, n = i
        left = a[(*batch, k, m) if transpose_a else (*batch, m, k)]
        right = b[(*batch, n, k) if transpose_b else (*batch, k, n)]
        return e.sum(product(left, right, accumulator(a.dtype)), axis=k)

    out_dtype = result_dtype(operator, a.dtype, dtype)
    label = name if out_dtype == accumulator(a.dtype) else f"{name}.sum"
    return astype(compute((*a.dims[:-2], rows, columns), element, label, axes=axes), out_dtype, name)


def batch_matmul(
    a: Tensor,
    b: Tensor,
    transpose_a: bool = False,
    transpose_b: bool = False,
    dtype: str | None = None,
    name: str = "batch_matmul",
) -> Tensor:
    """C[i, m, n] = sum over k of A[i, m, k] * B[i, k, n], for a and b of rank 3; the rest as matmul. Raises TeError for
    other arguments."""
    return _product("batch_matmul", ("i", "m", "n"), a, b, transpose_a, transpose_b, dtype, name)


def dense(x: Tensor, w: Tensor, bias: Tensor | None = None, dtype: str | None = None, name: str = "dense") -> Tensor:
    """Y[m, n] = sum over k of X[m, k] * W[n, k] + bias[n]; x is [M, K], w [N, K], bias [N] (None: 0); dtypes as for
    matmul. Raises TeError for extents or dtypes that do not match."""
    if bias is None:
        return matmul(x, w, transpose_b=True, dtype=dtype, name=name)
    check_rank("dense", x, 2, "rows, columns")
    out_dtype, acc_dtype = result_dtype("dense", x.dtype, dtype), accumulator(x.dtype)
    sums = matmul(x, w, transpose_b=True, dtype=acc_dtype, name=name if out_dtype == acc_dtype else f"{name}.sum")
    check_rank("dense", bias, 1, "columns")
    check_equal("dense", f"the columns of '{w.name}' and '{bias.name}'", w.dims[0], bias.dims[0])

    def biased(m: Index, n: Index) -> Expr:
        return e.cast(sums[m, n] + e.cast(bias[n], acc_dtype), out_dtype)

    return compute(sums.dims, biased, f"{name}.bias")


def broadcast_matmul(a: Tensor, b: Tensor, name: str, dtype: str | None = None) -> Tensor:
    """numpy's matmul of two tensors, with the dtypes of te.nn.matmul. Raises TeError for a tensor of rank 0, and for
    extents or dtypes that do not match."""
    if a.rank == 0 or b.rank == 0:
        scalar = a if a.rank == 0 else b
        raise TeError(f"matmul: '{scalar.name}' has no dimensions; * multiplies by a number")
    left = reshape(a, (1, *a.shape)) if a.rank == 1 else a
    right = reshape(b, (*b.shape, 1)) if b.rank == 1 else b
    shape = [*left.shape[:-1], right.shape[-1]]
    if right.rank == 2:
        rows = left if left.rank == 2 else reshape(left, (math.prod(left.shape[:-1]), left.shape[-1]))
        products = matmul(rows, right, dtype=dtype, name=name)
    elif left.rank == right.rank == 3 and left.shape[0] == right.shape[0]:
        products = batch_matmul(left, right, dtype=dtype, name=name)
    else:
        products = _batched(left, right, name, dtype)
        shape = [*products.shape]
    shape = [n for d, n in enumerate(shape) if not (a.rank == 1 and d == len(shape) - 2)]
    shape = shape[:-1] if b.rank == 1 else shape
    return products if list(products.shape) == shape else reshape(products, shape, name=name)


def _batched(a: Tensor, b: Tensor, name: str, dtype: str | None) -> Tensor:
    """Multiply the matrices in the last two dimensions; leading dimensions broadcast. Raises TeError for extents or
    dtypes that do not match."""
    if a.shape[-1] != b.shape[-2]:
        raise TeError(f"matmul: the matrices {a.shape} and {b.shape} do not fit")
    rank = max(a.rank, b.rank) - 2
    batches = [(1,) * (rank + 2 - t.rank) + t.shape[:-2] for t in (a, b)]
    if any(m != n and 1 not in (m, n) for m, n in zip(*batches, strict=True)):
        raise TeError(f"matmul: the matrices {a.shape} and {b.shape} do not broadcast")
    shape = [max(m, n) for m, n in zip(*batches, strict=True)]
    k, acc_dtype = reduce_axis(a.shape[-1], "k"), accumulator(a.dtype)

    def batch_of(t: Tensor, batch: Sequence[Index]) -> list[Index | int]:
        own_batch = batch[rank - (t.rank - 2) :] if t.rank > 2 else ()
        return [0 if n == 1 else i for n, i in zip(t.shape[:-2], own_batch, strict=True)]

    def element(*i: Index) -> Reduce:
        *batch, m, n = i
        return e.sum(product(a[(*batch_of(a, batch), m, k)], b[(*batch_of(b, batch), k, n)], acc_dtype), axis=k)

    out_dtype = dtype or (a.dtype if is_float(a.dtype) else acc_dtype)
    axes = [*(f"b{d}" for d in range(rank)), "m", "n"]
    products = compute((*shape, a.shape[-2], b.shape[-1]), element, name, axes=axes)
    return astype(products, out_dtype, name)
