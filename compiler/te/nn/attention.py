"""Scaled dot-product attention, rotary embeddings."""

from __future__ import annotations

import math

from compiler.support.errors import TeError
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.index import Index, compared
from compiler.te.nn.common import (
    Indices,
    accumulator,
    astype,
    check_equal,
    check_flag,
    check_float,
    check_number,
    check_tensor,
)
from compiler.te.nn.normalisation import softmax_over
from compiler.te.tensor import Tensor, reduce_axis

_NAMES = {3: ("b",), 4: ("b", "h")}


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    causal: bool = False,
    scale: float | None = None,
    offset: int = 0,
    softcap: float | None = None,
    name: str = "attention",
) -> Tensor:
    """Y[b, h, m, :] = sum over n of softmax over n of (scale * Q[b, h, m, :] . K[b, h, n, :] + mask) * V[b, h, n, :].

    q is [B, H, M, D], k [B, G, N, D], v [B, G, N, E], or all without H and G, of one float dtype; G divides H, and H /
    G consecutive heads of q share one of k and v. The scale is 1 / sqrt(D) by default. `causal` masks n > m + offset;
    without it `offset` has no effect. The mask broadcasts to the scores [B, H, M, N]: addends of q's dtype, or an i1
    that is false for masked n. A softcap above 0 maps scores s to softcap * tanh(s / softcap) before the mask. Sums and
    softmax are in f32 for narrower floats. A row whose scores are all masked yields 0. Raises TeError for other
    arguments. Source: Vaswani et al., Attention Is All You Need, 2017; as torch's scaled_dot_product_attention.
    """
    _check(q, k, v)
    cap = _check_options(causal, offset, softcap)
    acc_dtype, axes = accumulator(q.dtype), (*_NAMES[q.rank], "m", "n")
    shape = (*q.shape[:-1], k.shape[-2])
    _check_mask(mask, shape, q.dtype)
    heads_per_group = q.shape[1] // k.shape[1] if q.rank == 4 else 1
    factor = 1.0 / math.sqrt(q.shape[-1]) if scale is None else check_number("attention", "the scale", scale)
    d, n = reduce_axis(q.shape[-1], "d"), reduce_axis(k.shape[-2], "n")

    def kv_index(batch: tuple[Index, ...]) -> tuple[Index, ...]:
        return batch if heads_per_group == 1 else (*batch[:-1], batch[-1] // heads_per_group)

    def score(*i: Index) -> Expr:
        *batch, row, column = i
        return e.sum(
            e.cast(q[(*batch, row, d)], acc_dtype) * e.cast(k[(*kv_index(tuple(batch)), column, d)], acc_dtype), axis=d
        )

    scores = compute(shape, score, f"{name}.scores", axes=axes)

    def masked(*i: Index) -> Expr:
        value = scores[i] * factor
        if cap is not None:
            value = e.tanh(value * (1.0 / cap)) * cap
        if mask is not None:
            entry = mask[_broadcast_index(mask, shape, i)]
            value = e.select(entry, value, -math.inf) if mask.dtype == "i1" else value + e.cast(entry, acc_dtype)
        return e.select(i[-1] <= (i[-2] + offset if offset else i[-2]), value, -math.inf) if causal else value

    logits = compute(shape, masked, f"{name}.logits", axes=axes)
    guarded = mask is not None or (causal and offset < 0)
    weights = softmax_over(logits, logits.rank - 1, f"{name}.softmax", guarded)

    def output_element(*i: Index) -> Expr:
        *batch, row, column = i
        return e.sum(weights[(*batch, row, n)] * e.cast(v[(*kv_index(tuple(batch)), n, column)], acc_dtype), axis=n)

    label = name if acc_dtype == q.dtype else f"{name}.wide"
    output = compute((*q.shape[:-1], v.shape[-1]), output_element, label, axes=(*axes[:-1], "e"))
    return astype(output, q.dtype, name)


def _check_options(causal: bool, offset: int, softcap: float | None) -> float | None:
    """Raise TeError for invalid options; return the softcap as a float, or None."""
    check_flag("attention", "causal", causal)
    cap = None if softcap is None else check_number("attention", "the softcap", softcap)
    if isinstance(offset, bool) or not isinstance(offset, int) or (cap is not None and cap <= 0):
        raise TeError(
            f"attention: the offset is {offset!r} and the softcap {softcap!r}: an integer, and a number above 0"
        )
    return cap


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


def _check_mask(mask: Tensor | None, shape: tuple[int, ...], dtype: str) -> None:
    if mask is None:
        return
    check_tensor("attention", mask)
    mask_shape = shape[len(shape) - mask.rank :]
    if mask.rank > len(shape) or any(m not in (1, n) for m, n in zip(mask.shape, mask_shape, strict=True)):
        raise TeError(f"attention: the mask '{mask.name}' has shape {mask.shape}, the scores {shape}")
    if mask.dtype not in ("i1", dtype):
        raise TeError(f"attention: the mask '{mask.name}' is of {mask.dtype}, expected i1 or {dtype}")


def _broadcast_index(mask: Tensor, shape: tuple[int, ...], i: Indices) -> Indices:
    mask_index = i[len(shape) - mask.rank :]
    return tuple(0 if size == 1 else index for size, index in zip(mask.shape, mask_index, strict=True))


def rotary_embedding(
    x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool = False, name: str = "rotary_embedding"
) -> Tensor:
    """Rotate the pairs (X[..., j], X[..., j + R]) by the angle with cosine cos[..., j] and sine sin[..., j].

    Y[..., j] = X[..., j] * cos - X[..., j + R] * sin; Y[..., j + R] = X[..., j + R] * cos + X[..., j] * sin. cos and
    sin have R elements in the last dimension, at most half of X's, and broadcast; with `interleaved` the pairs are 2j
    and 2j + 1. Elements from 2R on are copied. Computed in f32 for narrower floats. Raises TeError for other arguments.
    Source: Su et al., RoFormer, 2021.
    """
    operator = "rotary_embedding"
    acc_dtype = accumulator(check_float(operator, x).dtype)
    check_flag(operator, "interleaved", interleaved)
    for table in (cos, sin):
        table_shape = x.shape[x.rank - check_float(operator, table).rank :]
        fits = 0 < table.rank <= x.rank and 2 * table.shape[-1] <= x.shape[-1]
        if not fits or any(m not in (1, n) for m, n in zip(table.shape[:-1], table_shape[:-1], strict=True)):
            raise TeError(f"{operator}: '{table.name}' of shape {table.shape} does not fit '{x.name}' {x.shape}")
    check_equal(operator, f"the extents of '{cos.name}' and '{sin.name}'", cos.shape[-1], sin.shape[-1])
    half, extent = cos.shape[-1], x.shape[-1]

    def entry(table: Tensor, i: tuple[Index, ...], pair: Index) -> Expr:
        outer = _broadcast_index(table, x.shape, i)[:-1]
        return e.cast(e.select(pair < half, table[(*outer, pair)], 0), acc_dtype)

    def element(*i: Index) -> Expr:
        j = i[-1]
        partner = j + 1 - (j % 2) * 2 if interleaved else (j + half) % (2 * half)
        is_first, pair = (compared(j % 2, "==", 0), j // 2) if interleaved else (j < half, j % half)
        value = e.cast(x[i], acc_dtype)
        partner_value = e.cast(e.select(partner < extent, x[(*i[:-1], partner)], 0), acc_dtype)
        turned = e.select(is_first, -partner_value, partner_value)
        rotated = value * entry(cos, i, pair) + turned * entry(sin, i, pair)
        return e.cast(e.select(j < 2 * half, rotated, value) if 2 * half < extent else rotated, x.dtype)

    return compute(x.shape, element, name)
