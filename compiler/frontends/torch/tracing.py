"""The operators that graphs consist of: torch's core ATen set, with those kept whole that te has as a whole."""

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
    """The operators of images of one, two and three dimensions."""
    return (getattr(aten, f"{name}{rank}d") for rank in (1, 2, 3))


_NEAREST = (*_of_ranks("upsample_nearest"), *_of_ranks("_upsample_nearest_exact"))
WHOLE = (
    aten.scaled_dot_product_attention.default,
    aten.matmul.default,
    aten.linear.default,
    *(operator.vec for operator in _NEAREST),
    aten.upsample_bilinear2d.vec,
)
"""Operators that torch takes apart before anybody sees them, unless told not to; they have no gradients then."""
KEPT = (
    *WHOLE,
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
"""Operators whose te form is better than that of their decomposition."""


@cache
def decompositions() -> dict[Any, Callable[..., Any]]:
    """What torch.export makes of other operators."""
    return _with_ours(core_aten_decompositions())


@cache
def decompositions_of_captured() -> dict[Any, Callable[..., Any]]:
    """Composite operators that graphs of torch.compile no longer contain."""
    return _with_ours(_core_aten_decompositions_post_autograd())


def _with_ours(table: Mapping[Any, Callable[..., Any]]) -> dict[Any, Callable[..., Any]]:
    merged = {op: parts for op, parts in table.items() if op not in KEPT}
    merged[aten._transformer_encoder_layer_fwd.default] = _encoder_layer
    merged[aten._native_multi_head_attention.default] = _multi_head_attention
    return merged


@contextmanager
def kept_whole() -> Iterator[None]:
    """While graphs without gradients are traced: operators of WHOLE stay."""
    with _override_composite_implicit_decomp(dict.fromkeys(WHOLE, _stays)):
        yield


def _stays(*arguments: object, **named: object) -> object:
    return NotImplemented


def _projected(x: torch.Tensor, heads: int) -> torch.Tensor:
    batch, rows, width = x.shape
    return x.view(batch, rows, heads, width // heads).transpose(1, 2)


def _mask_of(mask: torch.Tensor | None, mask_type: int | None, q: torch.Tensor, heads: int) -> torch.Tensor | None:
    """A mask of torch's fast paths, true or added where scores are left out, as scaled_dot_product_attention's.

    Type 0 is of queries and keys, 1 of the padding of each sequence, 2 of batch, heads, queries and keys.
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
    """torch's fast path of multi-head attention, in plain operators."""
    if need_weights:
        return NotImplemented
    weights, biases = qkv_weight.chunk(3), qkv_bias.chunk(3)
    q, k, v = (
        _projected(torch.nn.functional.linear(x, w, b), num_head)
        for x, w, b in zip((query, key, value), weights, biases, strict=True)
    )
    heads = torch.nn.functional.scaled_dot_product_attention(q, k, v, _mask_of(mask, mask_type, q, num_head))
    joined = heads.transpose(1, 2).reshape(query.shape)
    return torch.nn.functional.linear(joined, proj_weight, proj_bias), query.new_empty(0)


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
    """torch's fast path of an encoder layer, in plain operators."""
    functional = torch.nn.functional

    def attended(x: torch.Tensor) -> torch.Tensor:
        output, _ = _multi_head_attention(
            x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, False, True, mask_type
        )
        return output

    def fed(x: torch.Tensor) -> torch.Tensor:
        hidden = functional.linear(x, ffn_weight_1, ffn_bias_1)
        hidden = functional.gelu(hidden) if use_gelu else functional.relu(hidden)
        return functional.linear(hidden, ffn_weight_2, ffn_bias_2)

    def first(x: torch.Tensor) -> torch.Tensor:
        return functional.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def second(x: torch.Tensor) -> torch.Tensor:
        return functional.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    if norm_first:
        x = src + attended(first(src))
        return x + fed(second(x))
    x = first(src + attended(src))
    return second(x + fed(x))
