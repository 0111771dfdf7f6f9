"""Calls of torch's operators, each on small tensors: what the front end's table is tested with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

Case = tuple[Callable[..., Any], tuple[Any, ...]]
_SEED = torch.Generator().manual_seed(0)


def floats(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Normal numbers."""
    return torch.randn(shape, generator=_SEED).to(dtype)


def positive(*shape: int) -> torch.Tensor:
    """Numbers between 0.5 and 1.5."""
    return torch.rand(shape, generator=_SEED) + 0.5


def integers(*shape: int, low: int = -9, high: int = 10, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    """Integers between two."""
    return torch.randint(low, high, shape, generator=_SEED).to(dtype)


x, y, p, q = floats(3, 4), floats(4), positive(3, 4), torch.rand(3, 4, generator=_SEED) * 1.8 - 0.9
i, j, b = integers(3, 4), integers(3, 4, low=1), floats(3, 4) > 0
image, one = floats(2, 4, 6, 8), floats(1, 3, 5, 5)
scores, heads = floats(2, 5, 7), floats(2, 3, 5, 4)

# fmt: off
POINTWISE: dict[str, Case] = {
    "unary": (
        lambda a: (
            a.abs(), a.neg(), a.relu(), a.sigmoid(), a.tanh(), a.exp(), a.floor(), a.ceil(), a.round(), a.trunc(),
            a.sin(), a.cos(), a.erf(), a.sign(), a.atan(), a.expm1(), a.sinh(), a.cosh(), a.asinh(), a.square(),
            torch.erfc(a), torch.frac(a), torch.exp2(a), torch.tan(a),
        ),
        (x,),
    ),
    "of positive numbers": (
        lambda a: (a.log(), a.sqrt(), a.rsqrt(), a.reciprocal(), a.log1p(), a.log2(), a.log10(), a.pow(1.7), a**-1),
        (p,),
    ),
    "of shares": (lambda a: (a.acos(), a.asin(), a.atanh()), (q,)),
    "activations": (
        lambda a: (
            F.gelu(a), F.gelu(a, approximate="tanh"), F.silu(a), F.mish(a), F.elu(a, 0.7), F.selu(a), F.celu(a),
            F.leaky_relu(a), F.hardswish(a), F.hardsigmoid(a), F.hardtanh(a), F.relu6(a), F.softplus(a, 2, 1.5),
            F.softsign(a), F.logsigmoid(a), F.hardshrink(a), F.softshrink(a), F.tanhshrink(a), F.threshold(a, 0.1, 9),
            F.prelu(a, a[0, :1].abs()), F.glu(a),
        ),
        (x,),
    ),
    "arithmetic": (
        lambda a, c: (
            a + c, a - c, a * c, a / c, a + 1, 2 - a, a * 0.5, a / 3, a / 4, torch.add(a, c, alpha=2),
            torch.sub(a, c, alpha=0.5), torch.maximum(a, c), torch.minimum(a, c), torch.atan2(a, c), a**2, a**3,
            torch.hypot(a, c), torch.addcmul(a, a, c), torch.addcdiv(a, a, c), torch.lerp(a, a * 2, 0.3), a // c,
            a % 0.7, torch.fmod(a, 0.7), a.clamp(-0.5, 0.5), a.clamp(min=0.1), torch.clamp(a, c - 1, c + 1),
            torch.logaddexp(a, c.expand(3, 4)), torch.nan_to_num(a), torch.rsub(a, 1), torch.copysign(a, a) * 0,
        ),
        (x, y),
    ),
    "of integers": (
        lambda a, c: (
            a + c, a - c, a * c, a / c, a + 1, a // 3, a % 3, torch.fmod(a, 3),
            torch.div(a, 3, rounding_mode="trunc"),
            a.abs(), -a, a.sign(), a**2, a.clamp(-2, 2), torch.maximum(a, c), a * 0.5, a + True, a.sqrt().isnan(),
        ),
        (i, j),
    ),
    "bits": (
        lambda a, c: (
            a & c, a | 5, a ^ c, ~a, a << 2, a >> 1, a.to(torch.uint8) >> 2, a**9, (a > 0) & True, (a > 0) ^ (c > 3),
        ),
        (i, j),
    ),
    "comparisons": (
        lambda a, c: (a == c, a != c, a < c, a <= c, a > c, a >= c, a > 0, a.isnan(), a.isinf(), a.isfinite()),
        (x, y),
    ),
    "of truth values": (
        lambda a, c: (
            a & c, a | c, a ^ c, ~a, a.logical_and(c), a.logical_or(c), a.logical_not(), a.logical_xor(c), a + c,
            a * c,
            a.any(), a.all(), a.any(1), a.all(0, keepdim=True), a.sum(), a == c, a.int(), a.float() * 2, a.sum(1) / 2,
        ),
        (b, ~b.flip(0)),
    ),
    "choices": (
        lambda a, m: (
            torch.where(m, a, -a), torch.where(m, a, 0.0), a.masked_fill(m, -1e9), torch.where(m, 1.0, 0.0),
            a.masked_fill(m, float("-inf")), a.tril(), a.triu(1), torch.tril(a > 0),
        ),
        (x, b),
    ),
    "promotion": (
        lambda a, n, t: (
            a + n, n + 1.5, a * t, n * t, a + t.to(torch.float64).sum(), t + n, a.to(torch.float64) + a,
            n / n.abs().add(1),
            a > n, n > 2.5, t == n, torch.where(t, n, a), a.int(), a.double(), n.to(torch.uint8),
            n.to(torch.int8) + n,
        ),
        (x, i, b),
    ),
    "zero dimensions": (lambda a: (a.sum() + 1, a.sum() * a, a.mean().sqrt(), a[0, 0] + a[1, 1],
    a.sum().unsqueeze(0)), (p,)),
}
MATRICES: dict[str, Case] = {
    "products": (
        lambda a, w, v: (a @ w, a.t() @ a, torch.mm(a, w), a @ v, v @ w, v @ v, torch.outer(v, v), torch.mv(a, v)),
        (x, floats(4, 5), y),
    ),
    "batches": (
        lambda a, c, w: (
            a @ c, a @ w, torch.bmm(a, c), a[0] @ c, torch.einsum("bij,bjk->bik", a, c),
            torch.matmul(a.unsqueeze(1), c),
            torch.baddbmm(a @ c, a, c, beta=0.5, alpha=2), torch.einsum("bij,kj->bik", a, w.t()),
        ),
        (floats(2, 3, 4), floats(2, 4, 5), floats(4, 6)),
    ),
    "linear": (
        lambda a, c, w, v: (F.linear(a, w, v), F.linear(c, w), torch.addmm(v, a, w.t(), beta=2, alpha=0.5)),
        (x[:, :4], scores[..., :4], floats(4, 4), y),
    ),
    "attention": (
        lambda a, m: (
            F.scaled_dot_product_attention(a, a, a),
            F.scaled_dot_product_attention(a, a, a, is_causal=True, scale=0.3),
            F.scaled_dot_product_attention(a, a, a, attn_mask=m),
            F.scaled_dot_product_attention(a, a, a, attn_mask=m.float()),
            F.scaled_dot_product_attention(a, a, a, attn_mask=m & (m.sum(1) > 2)[:, None]),
            F.scaled_dot_product_attention(a, a, a, torch.where(m & (m.sum(1) > 2)[:, None], 0.0, -torch.inf)),
            F.scaled_dot_product_attention(a[0], a[0], a[0]),
            F.scaled_dot_product_attention(a, a[:, :1], a[:, :1], enable_gqa=True),
            F.scaled_dot_product_attention(a[None], a[None], a[None]),
        ),
        (heads, torch.tensor([[True] * (n + 1) + [False] * (4 - n) for n in range(5)])),
    ),
    "convolutions": (
        lambda a, w, v, g, d: (
            F.conv2d(a, w, v, padding=1), F.conv2d(a, w, stride=2, dilation=(1, 2)), F.conv2d(a, g, groups=2),
            F.conv2d(a, d, v, groups=4, padding="same"),
            F.conv_transpose2d(a, w.transpose(0, 1), stride=2, padding=1),
            F.conv1d(a[:, :, 0], w[:, :, 0], padding=1),
            F.conv_transpose1d(a[:, :, 0], w[:, :, 0], stride=2, output_padding=1),
            F.conv3d(a[:, :, None], w[:, :, None]),
        ),
        (image, floats(4, 4, 3, 3), floats(4), floats(4, 2, 3, 3), floats(4, 1, 3, 3)),
    ),
}
ROWS: dict[str, Case] = {
    "softmax": (lambda a: (a.softmax(-1), a.softmax(0), a.log_softmax(1), a.logsumexp(1), F.softmin(a, 1)), (x,)),
    "norms": (
        lambda a, w, v: (
            F.layer_norm(a, (8,), w, v), F.layer_norm(a, (6, 8)), F.group_norm(a, 2),
            F.group_norm(a, 2, w[:4], v[:4]),
            F.instance_norm(a), F.batch_norm(a, None, None, w[:4], v[:4], training=True),
            F.batch_norm(a, v[:4], w[:4].abs() + 1, w[:4], v[:4]), F.rms_norm(a, (8,), w),
            F.normalize(a, dim=1),
        ),
        (image, floats(8), floats(8)),
    ),
    "reductions": (
        lambda a: (
            a.sum(), a.sum(1), a.sum((0, 2), keepdim=True), a.mean(), a.mean(-1), a.prod(1), a.amax((0, 1)),
            a.amin(2),
            a.max(), a.min(), a.max(1)[0], a.max(1)[1], a.min(2)[1], a.argmax(), a.argmax(1),
            a.argmin(2, keepdim=True),
            a.var(), a.var(1), a.std((0, 2)), torch.var_mean(a, 2)[1], a.norm(), a.norm(dim=1), a.norm(1, dim=2),
            torch.linalg.vector_norm(a, float("inf"), 1), a.sum(dtype=torch.float64), torch.count_nonzero(a > 0),
        ),
        (scores,),
    ),
    "pooling": (
        lambda a: (
            F.max_pool2d(a, 2), F.max_pool2d(a, 3, 2, 1), F.avg_pool2d(a, 2),
            F.avg_pool2d(a, 3, 2, 1, count_include_pad=False),
            F.adaptive_avg_pool2d(a, 1), F.adaptive_avg_pool2d(a, (3, 4)), F.avg_pool1d(a[0], 2),
            F.max_pool1d(a[0], 2),
            F.max_pool2d(a[0], 2), F.max_pool3d(a, 2), F.adaptive_max_pool2d(a, 2) * 1,
            F.max_pool2d(a, 3, 2, ceil_mode=True), F.max_pool2d(a, 2, dilation=2), F.adaptive_avg_pool2d(a, (4, 5)),
            F.avg_pool2d(a, 3, 2, ceil_mode=True), F.max_pool2d(a, 2, return_indices=True)[1],
        ),
        (image,),
    ),
    "of wide floats": (lambda a: (F.local_response_norm(a, 3), F.avg_pool3d(a, 2)), (image,)),
    "orders": (
        lambda a: (
            a.sort(1)[0], a.sort(2, descending=True)[1], a.topk(3, 1)[0], a.topk(2, largest=False)[1], a.cumsum(1),
            a.cumprod(0), (a > 0).cumsum(2), a.argsort(1), a.sort(dim=1, stable=True)[1],
        ),
        (scores,),
    ),
    "losses": (
        lambda a, c, t: (
            F.mse_loss(a, c), F.l1_loss(a, c), F.smooth_l1_loss(a, c), F.cross_entropy(a, c.softmax(1)),
            F.huber_loss(a, c),
            F.binary_cross_entropy_with_logits(a, c.sigmoid()), F.kl_div(a.log_softmax(1), c.softmax(1)),
            F.cross_entropy(a, t), F.nll_loss(a.log_softmax(1), t, reduction="sum"), F.cosine_similarity(a, c),
        ),
        (x, floats(3, 4), integers(3, low=0, high=4)),
    ),
}
MOVES: dict[str, Case] = {
    "views": (
        lambda a: (
            a.view(2, 35), a.reshape(-1), a.permute(2, 0, 1), a.transpose(0, 1), a[0], a[:, 1:3], a[..., ::2],
            a[:, -1],
            a.unsqueeze(1), a.unsqueeze(1).squeeze(1), a[:, :, :1].expand(2, 5, 3), a.flip(1), a.roll(2, 1),
            a.repeat(1, 2, 1),
            torch.cat([a, a * 2], 1), torch.stack([a, a + 1], -1), a.split(2, 1)[1], a.chunk(2, 2)[0], a.unbind(1)[2],
            a.diagonal(0, 1, 2), a.unfold(1, 3, 2), a.flatten(1), a.movedim(0, 2), a.narrow(2, 1, 3), a.tile(2, 1, 1),
            torch.repeat_interleave(a, 2, 1), F.pad(a, (1, 2)), F.pad(a, (-1, 1, 0, 2), value=3), a.swapaxes(0, 2),
            torch.tensor_split(a, 2, 2)[1], a.rot90(), torch.hstack([a, a]), a.contiguous().clone(), a.T.sum(0),
        ),
        (scores,),
    ),
    "pads and resizes": (
        lambda a: (
            F.pad(a, (1, 2, 2, 1), mode="reflect"), F.pad(a, (1, 2, 2, 1), mode="replicate"),
            F.pad(a, (1, 1, 1, 1), mode="circular"),
            F.interpolate(a, scale_factor=2), F.interpolate(a, (9, 5)),
            F.interpolate(a, scale_factor=2, mode="bilinear"),
            F.interpolate(a, (9, 7), mode="bilinear", align_corners=True), F.pixel_shuffle(a, 2),
            F.pixel_unshuffle(a, 2),
            F.channel_shuffle(a, 2), F.unfold(a, 3), F.interpolate(a, scale_factor=0.5, mode="nearest"),
        ),
        (image,),
    ),
    "creation": (
        lambda a: (
            a + torch.arange(4), a * torch.zeros(4), torch.ones_like(a) + a, torch.full((3, 4), 2.5) - a,
            a + torch.eye(3, 4),
            torch.arange(0, 1, 0.25) + a, a.new_zeros(3, 4) + a, torch.linspace(0, 1, 4) * a,
            torch.tensor([1.0, 2, 3, 4]) * a,
            torch.empty_like(a).fill_(3), torch.arange(3) * 2, a + torch.arange(False, 4, True),
        ),
        (x,),
    ),
    "indices": (
        lambda a, n, w: (
            F.embedding(n, w), a[n], a[:, n], a[n, n], a.index_select(1, n[0]), a.gather(0, n[:, :3] % 3), a[[0, 2]],
            a[:, [1, -1]], F.one_hot(n, 5), torch.take_along_dim(a, n[:, :1], 1), a[n[0], :, None],
        ),
        (x, integers(3, 3, low=0, high=3), floats(9, 5)),
    ),
    "writes": (lambda a: _written(a), (x,)),
}

# fmt: on


def _written(a: torch.Tensor) -> tuple[torch.Tensor, ...]:
    copy = a.clone()
    copy[1] = 7
    copy[:, 1:3] += 2
    copy[::2].mul_(3)
    second = copy.t()
    second.add_(1)
    return copy, second, copy.view(-1)[3:7]


CASES = {**POINTWISE, **MATRICES, **ROWS, **MOVES}
