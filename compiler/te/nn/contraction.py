"""Matrix products and convolutions."""

from __future__ import annotations

from typing import Any

from compiler.errors import TeError
from compiler.te import expr as e
from compiler.te.nn.common import borders, check_equal, check_rank, pair, window_size
from compiler.te.tensor import Tensor, compute, reduce_axis


def matmul(a: Tensor, b: Tensor, transpose_a: bool = False, transpose_b: bool = False, name: str = "matmul") -> Tensor:
    """C[m, n] = sum over k of A[m, k] * B[k, n].

    a is [M, K], or [K, M] with transpose_a; b is [K, N], or [N, K] with transpose_b; the result is [M, N]. Raises
    TeError where the extents of k differ.
    """
    check_rank("matmul", a, 2, "rows, columns")
    check_rank("matmul", b, 2, "rows, columns")
    rows, inner = a.shape[::-1] if transpose_a else a.shape
    inner_b, columns = b.shape[::-1] if transpose_b else b.shape
    check_equal("matmul", f"the extents of k in '{a.name}' and '{b.name}'", inner, inner_b)
    k = reduce_axis(inner, "k")

    def element(m: Any, n: Any) -> e.Expr:
        left = a[k, m] if transpose_a else a[m, k]
        right = b[n, k] if transpose_b else b[k, n]
        return e.sum(left * right, axis=k)

    result: Tensor = compute((rows, columns), element, name)
    return result


def batch_matmul(
    a: Tensor, b: Tensor, transpose_a: bool = False, transpose_b: bool = False, name: str = "batch_matmul"
) -> Tensor:
    """C[i, m, n] = sum over k of A[i, m, k] * B[i, k, n], for a and b of rank 3; as matmul for each i."""
    check_rank("batch_matmul", a, 3, "batch, rows, columns")
    check_rank("batch_matmul", b, 3, "batch, rows, columns")
    check_equal("batch_matmul", f"the batches of '{a.name}' and '{b.name}'", a.shape[0], b.shape[0])
    rows, inner = a.shape[:0:-1] if transpose_a else a.shape[1:]
    inner_b, columns = b.shape[:0:-1] if transpose_b else b.shape[1:]
    check_equal("batch_matmul", f"the extents of k in '{a.name}' and '{b.name}'", inner, inner_b)
    k = reduce_axis(inner, "k")

    def element(i: Any, m: Any, n: Any) -> e.Expr:
        left = a[i, k, m] if transpose_a else a[i, m, k]
        right = b[i, n, k] if transpose_b else b[i, k, n]
        return e.sum(left * right, axis=k)

    result: Tensor = compute((a.shape[0], rows, columns), element, name)
    return result


def dense(x: Tensor, w: Tensor, bias: Tensor | None = None, name: str = "dense") -> Tensor:
    """Y[m, n] = sum over k of X[m, k] * W[n, k], plus bias[n] where there is one; w is [N, K]."""
    product = matmul(x, w, transpose_b=True, name=name)
    if bias is None:
        return product
    check_rank("dense", bias, 1, "columns")
    check_equal("dense", f"the columns of '{w.name}' and '{bias.name}'", w.shape[0], bias.shape[0])
    result: Tensor = compute(product.shape, lambda m, n: product[m, n] + bias[n], f"{name}.bias")
    return result


def conv2d(
    x: Tensor,
    w: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    name: str = "conv2d",
) -> Tensor:
    """Y[n, o, h, w] = sum over c, r, s of X[n, g + c, h*stride + r*dilation - top, ...] * W[o, c, r, s].

    x is [N, C, H, W], w is [O, C / groups, R, S], bias is [O]; padding is an integer, (height, width), or (top,
    left, bottom, right), of zeros. Output channel o reads the channels of its group. Raises TeError.
    """
    check_rank("conv2d", x, 4, "N, C, H, W")
    check_rank("conv2d", w, 4, "O, C / groups, R, S")
    sh, sw = pair("conv2d", "stride", stride, 1)
    dh, dw = pair("conv2d", "dilation", dilation, 1)
    top, left, bottom, right = borders("conv2d", padding)
    batch, channels, height, width = x.shape
    filters, depth, kh, kw = w.shape
    if not isinstance(groups, int) or groups < 1 or channels % groups or filters % groups:
        raise TeError(f"conv2d: {groups!r} groups do not divide {channels} channels and {filters} filters")
    check_equal("conv2d", f"the channels of a group and of '{w.name}'", channels // groups, depth)
    oh = window_size("conv2d", height, kh, sh, dh, top + bottom)
    ow = window_size("conv2d", width, kw, sw, dw, left + right)
    c, r, s = reduce_axis(depth, "c"), reduce_axis(kh, "r"), reduce_axis(kw, "s")
    source: Any = x.padded(0) if any((top, left, bottom, right)) else x
    share = filters // groups

    def element(n: Any, o: Any, h: Any, w_: Any) -> e.Expr:
        channel = c if groups == 1 else (o // share) * depth + c
        value = source[n, channel, h * sh + r * dh - top, w_ * sw + s * dw - left]
        return e.sum(value * w[o, c, r, s], axis=(c, r, s))

    result: Tensor = compute((batch, filters, oh, ow), element, name, axes=("n", "o", "h", "w"))
    if bias is None:
        return result
    check_rank("conv2d", bias, 1, "O")
    check_equal("conv2d", f"the filters of '{w.name}' and '{bias.name}'", filters, bias.shape[0])
    biased: Tensor = compute(result.shape, lambda n, o, h, w: result[n, o, h, w] + bias[o], f"{name}.bias")
    return biased
