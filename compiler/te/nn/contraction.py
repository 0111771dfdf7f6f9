"""Matrix products."""

from __future__ import annotations

from collections.abc import Callable

from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.index import Index
from compiler.te.nn.common import accumulator, check_equal, check_flag, check_rank, product, result_dtype, rounded
from compiler.te.tensor import Tensor, reduce_axis


def matmul(
    a: Tensor,
    b: Tensor,
    transpose_a: bool = False,
    transpose_b: bool = False,
    dtype: str | None = None,
    name: str = "matmul",
) -> Tensor:
    """C[m, n] = sum over k of A[m, k] * B[k, n].

    a is [M, K], or [K, M] with transpose_a; b is [K, N], or [N, K] with transpose_b; the result is [M, N]. Sums are
    formed in f32 of narrower floats and in i32 of narrower integers (u32 of u16), which may be of two dtypes, as u8
    and i8; `dtype` is that of the result: a's of floats, that of the sums of integers. Raises TeError where the extents
    of k differ.
    """
    check_rank("matmul", a, 2, "rows, columns")
    check_rank("matmul", b, 2, "rows, columns")
    check_flag("matmul", "transpose_a", transpose_a)
    check_flag("matmul", "transpose_b", transpose_b)
    rows, inner = a.shape[::-1] if transpose_a else a.shape
    inner_b, columns = b.shape[::-1] if transpose_b else b.shape
    check_equal("matmul", f"the extents of k in '{a.name}' and '{b.name}'", inner, inner_b)
    k = reduce_axis(inner, "k")

    def element(m: Index, n: Index) -> Expr:
        left = a[k, m] if transpose_a else a[m, k]
        right = b[n, k] if transpose_b else b[k, n]
        return e.sum(product(left, right, accumulator(a.dtype)), axis=k)

    return _summed("matmul", (rows, columns), element, a.dtype, dtype, name)


def _summed(
    operator: str,
    shape: tuple[int, ...],
    element: Callable[..., Expr],
    operand_dtype: str,
    dtype: str | None,
    name: str,
) -> Tensor:
    """Sums in their accumulator's dtype, rounded where the result is of another."""
    wanted = result_dtype(operator, operand_dtype, dtype)
    sums = compute(shape, element, name if wanted == accumulator(operand_dtype) else f"{name}.sum")
    return rounded(sums, wanted, name)


def batch_matmul(
    a: Tensor,
    b: Tensor,
    transpose_a: bool = False,
    transpose_b: bool = False,
    dtype: str | None = None,
    name: str = "batch_matmul",
) -> Tensor:
    """C[i, m, n] = sum over k of A[i, m, k] * B[i, k, n], for a and b of rank 3; as matmul for each i."""
    check_rank("batch_matmul", a, 3, "batch, rows, columns")
    check_rank("batch_matmul", b, 3, "batch, rows, columns")
    check_flag("batch_matmul", "transpose_a", transpose_a)
    check_flag("batch_matmul", "transpose_b", transpose_b)
    check_equal("batch_matmul", f"the batches of '{a.name}' and '{b.name}'", a.shape[0], b.shape[0])
    rows, inner = a.shape[:0:-1] if transpose_a else a.shape[1:]
    inner_b, columns = b.shape[:0:-1] if transpose_b else b.shape[1:]
    check_equal("batch_matmul", f"the extents of k in '{a.name}' and '{b.name}'", inner, inner_b)
    k = reduce_axis(inner, "k")

    def element(i: Index, m: Index, n: Index) -> Expr:
        left = a[i, k, m] if transpose_a else a[i, m, k]
        right = b[i, n, k] if transpose_b else b[i, k, n]
        return e.sum(product(left, right, accumulator(a.dtype)), axis=k)

    return _summed("batch_matmul", (a.shape[0], rows, columns), element, a.dtype, dtype, name)


def dense(x: Tensor, w: Tensor, bias: Tensor | None = None, dtype: str | None = None, name: str = "dense") -> Tensor:
    """Y[m, n] = sum over k of X[m, k] * W[n, k], plus bias[n] where there is one; w is [N, K]; dtypes as matmul."""
    if bias is None:
        return matmul(x, w, transpose_b=True, dtype=dtype, name=name)
    check_rank("dense", x, 2, "rows, columns")
    wanted, wide = result_dtype("dense", x.dtype, dtype), accumulator(x.dtype)
    sums = matmul(x, w, transpose_b=True, dtype=wide, name=name if wanted == wide else f"{name}.sum")
    check_rank("dense", bias, 1, "columns")
    check_equal("dense", f"the columns of '{w.name}' and '{bias.name}'", w.shape[0], bias.shape[0])

    def biased(m: Index, n: Index) -> Expr:
        return e.cast(sums[m, n] + e.cast(bias[n], wide), wanted)

    return compute(sums.shape, biased, f"{name}.bias")
