"""Decompositions during tracing, to torch's core ATen set and the operators of UNDECOMPOSED, which have te forms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch._decomp import _core_aten_decompositions_post_autograd, core_aten_decompositions
from torch.export.exported_program import _override_composite_implicit_decomp

aten = torch.ops.aten


def _of_ranks(name: str) -> Iterator[Any]:
    """Yield aten's operators `{name}1d`, `{name}2d` and `{name}3d`."""
    return (getattr(aten, f"{name}{rank}d") for rank in (1, 2, 3))


_NEAREST = (*_of_ranks("upsample_nearest"), *_of_ranks("_upsample_nearest_exact"))
COMPOSITE = (
    aten.scaled_dot_product_attention.default,
    aten.matmul.default,
    aten.linear.default,
    *(operator.vec for operator in _NEAREST),
    aten.upsample_bilinear2d.vec,
)
"""Composite operators, which torch decomposes unless `keep_undecomposed` overrides it; they then lack gradients."""
UNDECOMPOSED = (
    *COMPOSITE,
    aten.addcdiv.default,
    aten.linspace.default,
    aten.linspace.Tensor_Tensor,
    aten.linspace.Tensor_Scalar,
    aten.linspace.Scalar_Tensor,
    aten.silu.default,
    aten.hardswish.default,
    aten.hardsigmoid.default,
    aten.softplus.default,
    aten.mish.default,
    aten._scaled_dot_product_flash_attention_for_cpu.default,
    aten._safe_softmax.default,
    *(operator.default for operator in (*_NEAREST, *_of_ranks("reflection_pad"), *_of_ranks("replication_pad"))),
    aten.stack.default,
    aten.tril.default,
    aten.triu.default,
    aten.roll.default,
)
"""Operators that are not decomposed, since the table of operators has a te form of each."""


@cache
def decompositions() -> dict[Any, Callable[..., Any]]:
    """Map operators to their decompositions for torch.export: torch's, without those of UNDECOMPOSED, and Strata's of
    the fast paths of encoder layers."""
    return _adjusted(core_aten_decompositions())


@cache
def captured_decompositions() -> dict[Any, Callable[..., Any]]:
    """Map operators to their decompositions for torch.compile: as in `decompositions`, but without those of composite
    operators, which torch has already decomposed in its graphs."""
    return _adjusted(_core_aten_decompositions_post_autograd())


def _adjusted(table: Mapping[Any, Callable[..., Any]]) -> dict[Any, Callable[..., Any]]:
    merged = {op: decomposition for op, decomposition in table.items() if op not in UNDECOMPOSED}
    merged[aten._transformer_encoder_layer_fwd.default] = _encoder_layer
    merged[aten._native_multi_head_attention.default] = _multi_head_attention
    return merged


@contextmanager
def keep_undecomposed() -> Iterator[None]:
    """Keep COMPOSITE operators whole in graphs that are traced in the context; such graphs have no gradients."""
    with _override_composite_implicit_decomp(dict.fromkeys(COMPOSITE, _no_decomposition)):
        yield


def _no_decomposition(*arguments: object, **named: object) -> object:
    return NotImplemented


def _split_heads(x: torch.Tensor, heads: int) -> torch.Tensor:
    batch, rows, width = x.shape
    return x.view(batch, rows, heads, width // heads).transpose(1, 2)


def _mask_of(mask: torch.Tensor | None, mask_type: int | None, q: torch.Tensor, heads: int) -> torch.Tensor | None:
    """Convert a mask of torch's fast paths to one of scaled_dot_product_attention: reshape it so that it broadcasts to
    [B, H, M, N], and invert a bool mask, in which True means a masked score; None without a mask.

    Type 0 is of shape [M, N], queries and keys; 1 is [B, N], padding; others are [B, H, M, N] or [B * H, M, N].
    """
    if mask is None:
        return None
    if mask_type == 1:
        mask = mask[:, None, None, :]
    elif mask.dim() == 3:
        mask = mask.view(q.shape[0], heads, *mask.shape[1:])
    return ~mask if mask.dtype == torch.bool else mask


def _multi_head_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: torch.Tensor,
    qkv_bias: torch.Tensor,
    proj_weight: torch.Tensor,
    proj_bias: torch.Tensor,
    mask: torch.Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> Any:
    """Decompose torch's fast path of multi-head attention to plain operators; return the output, and an empty tensor
    instead of the weights. NotImplemented if the weights are needed. `mask` and `mask_type` are those of `_mask_of`;
    `embed_dim` and `average_attn_weights` are not read."""
    if need_weights:
        return NotImplemented
    weights, biases = qkv_weight.chunk(3), qkv_bias.chunk(3)
    q, k, v = (
        _split_heads(torch.nn.functional.linear(x, w, b), num_head)
        for x, w, b in zip((query, key, value), weights, biases, strict=True)
    )
    heads = torch.nn.functional.scaled_dot_product_attention(q, k, v, _mask_of(mask, mask_type, q, num_head))
    merged_heads = heads.transpose(1, 2).reshape(query.shape)
    return torch.nn.functional.linear(merged_heads, proj_weight, proj_bias), query.new_empty(0)


def _encoder_layer(
    src: torch.Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: torch.Tensor,
    qkv_bias: torch.Tensor,
    proj_weight: torch.Tensor,
    proj_bias: torch.Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: torch.Tensor,
    norm_bias_1: torch.Tensor,
    norm_weight_2: torch.Tensor,
    norm_bias_2: torch.Tensor,
    ffn_weight_1: torch.Tensor,
    ffn_bias_1: torch.Tensor,
    ffn_weight_2: torch.Tensor,
    ffn_bias_2: torch.Tensor,
    mask: torch.Tensor | None = None,
    mask_type: int | None = None,
) -> torch.Tensor:
    """Decompose torch's fast path of an encoder layer to plain operators; `use_gelu` is gelu, else relu; `norm_first`:
    norms precede attention and feed-forward, else follow. `mask` and `mask_type` are those of `_mask_of`."""
    functional = torch.nn.functional

    def attention(x: torch.Tensor) -> torch.Tensor:
        output, _ = _multi_head_attention(
            x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, False, True, mask_type
        )
        return output

    def feed_forward(x: torch.Tensor) -> torch.Tensor:
        hidden = functional.linear(x, ffn_weight_1, ffn_bias_1)
        hidden = functional.gelu(hidden) if use_gelu else functional.relu(hidden)
        return functional.linear(hidden, ffn_weight_2, ffn_bias_2)

    def norm_1(x: torch.Tensor) -> torch.Tensor:
        return functional.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def norm_2(x: torch.Tensor) -> torch.Tensor:
        return functional.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    if norm_first:
        x = src + attention(norm_1(src))
        return x + feed_forward(norm_2(x))
    x = norm_1(src + attention(src))
    return norm_2(x + feed_forward(x))
