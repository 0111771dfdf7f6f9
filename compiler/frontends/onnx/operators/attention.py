"""Attention."""

from __future__ import annotations

from compiler.frontends.onnx.table import Node, handles
from compiler.te import nn
from compiler.te.tensor import Tensor

MASK, PAST_KEY, PAST_VALUE, LENGTHS, SCORES = 3, 4, 5, 6, 3
"""The positions of inputs, and of the output with the scores."""


@handles("Attention")
def attention(node: Node) -> list[Tensor] | None:
    """Return scaled dot-product attention with a mask and a cache: the result, then the keys and the values appended to
    those of the cache. Return None, for ONNX's function body, if the scores are used, with lengths or a precision of
    the softmax, and for a mask whose rank, dtype or extent nn.attention lacks."""
    if node.uses(SCORES) or node.has(LENGTHS) or node.attribute("softmax_precision") is not None:
        return None
    causal, softcap = bool(node.attribute("is_causal", 0)), node.attribute("softcap", 0.0)
    flat = node.tensor(0).rank == 3
    heads = [node.attribute(name) for name in ("q_num_heads", "kv_num_heads", "kv_num_heads")]
    q, k, v = (_split_heads(node.tensor(n), heads[n]) if flat else node.tensor(n) for n in range(3))
    past = node.tensor(PAST_KEY).shape[2] if node.has(PAST_KEY) else 0
    if past:
        k = nn.concat([node.tensor(PAST_KEY), k], 2, name=f"{node.name}.key")
        v = nn.concat([node.tensor(PAST_VALUE), v], 2, name=f"{node.name}.value")
    mask = node.optional(MASK)
    if mask is not None and (mask.shape[-1] != k.shape[2] or mask.rank > 4 or mask.dtype not in ("i1", q.dtype)):
        return None
    scale = node.attribute("scale")
    output = nn.attention(q, k, v, mask, causal, scale, past, softcap or None, name=node.name)
    return [_merge_heads(output, node.name) if flat else output, k, v]


def _split_heads(x: Tensor, heads: int) -> Tensor:
    """Split the last dimension of [B, M, H * D] into heads, and transpose to [B, H, M, D]."""
    batch, rows, width = x.shape
    return nn.transpose(nn.reshape(x, (batch, rows, heads, width // heads)), (0, 2, 1, 3), name=f"{x.name}.heads")


def _merge_heads(x: Tensor, name: str) -> Tensor:
    """Transpose [B, H, M, D] to [B, M, H, D], and fuse the heads: [B, M, H * D]."""
    batch, heads, rows, width = x.shape
    return nn.reshape(nn.transpose(x, (0, 2, 1, 3)), (batch, rows, heads * width), name=name)
