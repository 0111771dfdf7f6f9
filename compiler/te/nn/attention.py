"""Scaled dot-product attention."""

from __future__ import annotations

import math

from compiler.errors import TeError
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.index import Index
from compiler.te.nn.common import Indices, accumulator, check_equal, check_flag, check_float, check_number, check_tensor
from compiler.te.nn.normalisation import softmax
from compiler.te.tensor import Tensor, reduce_axis

_NAMES = {3: ("b",), 4: ("b", "h")}


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    causal: bool = False,
    scale: float | None = None,
    name: str = "attention",
) -> Tensor:
    """Y[b, h, m, :] = sum over n of softmax over n of (scale * Q[b, h, m, :] . K[b, h, n, :] + mask) * V[b, h, n, :].

    q is [B, H, M, D], k [B, G, N, D], v [B, G, N, E], or all without H and G; G divides H, and consecutive heads of q
    share one of k and v. The scale is 1 / sqrt(D) where it is not given. `causal` leaves out n > m. The mask is
    [M, N] or of q's rank (extent 1 where it is the same for all): numbers to add, or an i1 that is false where n is
    left out. Products are summed, and the softmax taken, in f32 of narrower floats; a row in which all is left out is
    NaN. Raises TeError. Source: Vaswani et al., Attention Is All You Need, 2017; as torch's
    scaled_dot_product_attention.
    """
    _check(q, k, v)
    check_flag("attention", "causal", causal)
    if mask is not None:
        check_tensor("attention", mask)
    wide, axes = accumulator(q.dtype), (*_NAMES[q.rank], "m", "n")
    shape = (*q.shape[:-1], k.shape[-2])
    share = q.shape[1] // k.shape[1] if q.rank == 4 else 1
    factor = 1.0 / math.sqrt(q.shape[-1]) if scale is None else check_number("attention", "the scale", scale)
    d, n = reduce_axis(q.shape[-1], "d"), reduce_axis(k.shape[-2], "n")

    def group(batch: tuple[Index, ...]) -> tuple[Index, ...]:
        return batch if share == 1 else (*batch[:-1], batch[-1] // share)

    def score(*i: Index) -> Expr:
        *batch, row, column = i
        return e.sum(e.cast(q[(*batch, row, d)], wide) * e.cast(k[(*group(tuple(batch)), column, d)], wide), axis=d)

    scores = compute(shape, score, f"{name}.scores", axes=axes)

    def masked(*i: Index) -> Expr:
        value = scores[i] * factor
        if mask is not None:
            entry = mask[_broadcast(mask, shape, i)]
            value = e.select(entry, value, -math.inf) if mask.dtype == "i1" else value + e.cast(entry, wide)
        return e.select(i[-1] <= i[-2], value, -math.inf) if causal else value

    if mask is not None:
        _check_mask(mask, shape, q.dtype)
    logits = compute(shape, masked, f"{name}.logits", axes=axes)
    weights = softmax(logits, -1, name=f"{name}.softmax")

    def mixed(*i: Index) -> Expr:
        *batch, row, column = i
        return e.sum(weights[(*batch, row, n)] * e.cast(v[(*group(tuple(batch)), n, column)], wide), axis=n)

    label = name if wide == q.dtype else f"{name}.wide"
    result = compute((*q.shape[:-1], v.shape[-1]), mixed, label, axes=(*axes[:-1], "e"))
    if wide == q.dtype:
        return result
    return compute(result.shape, lambda *i: e.cast(result[i], q.dtype), name, axes=(*axes[:-1], "e"))


def _check(q: Tensor, k: Tensor, v: Tensor) -> None:
    for tensor in (q, k, v):
        check_float("attention", tensor)
        if tensor.rank != q.rank or tensor.rank not in (3, 4):
            raise TeError(f"attention: '{tensor.name}' has shape {tensor.shape}, expected [B, H, M, D] or [B, M, D]")
        if tensor.dtype != q.dtype:
            raise TeError(f"attention: '{q.name}' is of {q.dtype}, '{tensor.name}' of {tensor.dtype}")
    check_equal("attention", f"the batches of '{q.name}' and '{k.name}'", q.shape[0], k.shape[0])
    check_equal("attention", f"the widths of '{q.name}' and '{k.name}'", q.shape[-1], k.shape[-1])
    if k.shape[:-1] != v.shape[:-1]:
        raise TeError(f"attention: '{k.name}' {k.shape} and '{v.name}' {v.shape} differ before the last dimension")
    if q.rank == 4 and q.shape[1] % k.shape[1]:
        raise TeError(f"attention: the {k.shape[1]} heads of '{k.name}' do not divide the {q.shape[1]} of '{q.name}'")


def _check_mask(mask: Tensor, shape: tuple[int, ...], dtype: str) -> None:
    full = shape[-mask.rank :] if mask.rank in (2, len(shape)) else ()
    if mask.rank != len(full) or not full or any(m not in (1, n) for m, n in zip(mask.shape, full, strict=True)):
        raise TeError(f"attention: the mask '{mask.name}' has shape {mask.shape}, the scores {shape}")
    if mask.dtype not in ("i1", dtype):
        raise TeError(f"attention: the mask '{mask.name}' is of {mask.dtype}, expected i1 or {dtype}")


def _broadcast(mask: Tensor, shape: tuple[int, ...], i: Indices) -> Indices:
    own = i[len(shape) - mask.rank :]
    return tuple(0 if size == 1 else index for size, index in zip(mask.shape, own, strict=True))
