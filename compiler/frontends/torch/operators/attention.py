"""Scaled dot-product attention."""

from __future__ import annotations

from compiler.frontends.torch.operators.elements import reshape, to_dtype
from compiler.frontends.torch.table import Call, Unsupported, check_default, operator
from compiler.te import nn
from compiler.te.tensor import Tensor


@operator("scaled_dot_product_attention")
def scaled_dot_product_attention(
    call: Call,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(scale Q K' + mask) V for each head; a row with all scores masked is 0. attn_mask: addends, or an i1 that
    is false for masked scores. `is_causal` and `scale` are those of te.nn.attention. Raises Unsupported for dropout,
    for ranks below 3 or that differ, for batches, or without `enable_gqa` heads, that would have to be broadcast, and
    for a mask with batch dimensions if the query has more than two."""
    check_default("dropout_p", dropout_p, 0.0)
    if query.rank < 3 or len({query.rank, key.rank, value.rank}) > 1:
        raise Unsupported(f"attention of tensors of {query.rank}, {key.rank} and {value.rank} dimensions")
    q, k, v = (_fold_batch(t, f"{call.name}.{label}") for t, label in ((query, "q"), (key, "k"), (value, "v")))
    if not q.shape[0] == k.shape[0] == v.shape[0] or (q.rank == 4 and q.shape[1] != k.shape[1] and not enable_gqa):
        raise Unsupported("attention whose batches are broadcast")
    mask = None if attn_mask is None else _mask(call, attn_mask, query, q.rank)
    output = nn.attention(q, k, v, mask, is_causal, scale, name=call.name)
    return to_dtype(reshape(output, call.shape, f"{call.name}.shaped"), call.dtype, call.name)


def _fold_batch(tensor: Tensor, name: str) -> Tensor:
    """Fuse the leading dimensions of a tensor to one so that it has rank 4; return rank 4 and less unchanged."""
    return tensor if tensor.rank <= 4 else nn.reshape(tensor, (-1, *tensor.shape[-3:]), name)


def _mask(call: Call, mask: Tensor, query: Tensor, rank: int) -> Tensor:
    """Prepend dimensions of extent 1 to a mask, up to `rank`, or up to 2 if it has no batch; cast addends to the
    query's dtype. Raises Unsupported for a mask with batch dimensions if the query has more than two."""
    if query.rank > 4 and mask.rank > 2:
        raise Unsupported("a mask of attention with more than two batch dimensions")
    typed = mask if mask.dtype == "i1" else to_dtype(mask, query.dtype, f"{call.name}.mask")
    if typed.rank > 2:
        return nn.reshape(typed, (1,) * (rank - typed.rank) + typed.shape, f"{call.name}.mask")
    return nn.reshape(typed, (1,) * (2 - typed.rank) + typed.shape, f"{call.name}.mask") if typed.rank < 2 else typed


@operator("_scaled_dot_product_flash_attention_for_cpu")
def flash_attention(
    call: Call,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor | None, ...]:
    """scaled_dot_product_attention, with its refusals, and None for the log-sum-exps, which only gradients need."""
    output = scaled_dot_product_attention(call, query, key, value, attn_mask, dropout_p, is_causal, scale)
    return output, None
