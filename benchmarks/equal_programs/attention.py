"""Attention, and projections before it."""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.equal_programs.family import Array, Family, different, exact, speed
from compiler import te
from compiler.te import Tensor

nn: Any = te.nn


def _scale(q: Tensor) -> float:
    return 1.0 / math.sqrt(q.shape[-1])


def _scores(q: Tensor, k: Tensor) -> Tensor:
    return nn.batch_matmul(q, k, transpose_b=True)


def _by_ops(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """softmax(Q K^T / sqrt(d)) V by batch_matmul, mul, softmax and batch_matmul."""
    return nn.batch_matmul(nn.softmax(nn.mul(_scores(q, k), _scale(q))), v)


def _softmax_by_hand(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = nn.mul(_scores(q, k), _scale(q))
    powers = nn.exp(nn.sub(scores, nn.max(scores, 2, keepdims=True)))
    return nn.batch_matmul(nn.div(powers, nn.sum(powers, 2, keepdims=True)), v)


def _scaled_before(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return nn.batch_matmul(nn.softmax(_scores(nn.mul(q, _scale(q)), k)), v)


def _divided(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention whose scores are divided by sqrt(d), a power of two for the sizes here, instead of multiplied by 1 /
    sqrt(d)."""
    return nn.batch_matmul(nn.softmax(nn.div(_scores(q, k), math.sqrt(q.shape[-1]))), v)


def _transposed_keys(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = nn.mul(nn.batch_matmul(q, nn.transpose(k, (0, 2, 1))), _scale(q))
    return nn.batch_matmul(nn.softmax(scores), v)


def _in_four_dimensions(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention of operands reshaped to a batch of one, [1, heads, rows, depth], and back."""
    y = nn.attention(*(nn.reshape(t, (1, *t.shape)) for t in (q, k, v)))
    return nn.reshape(y, q.shape)


def _normalised_behind(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention that multiplies the powers e^(score - maximum) by V, and divides by their sum afterwards."""
    scores = nn.mul(_scores(q, k), _scale(q))
    powers = nn.exp(nn.sub(scores, nn.max(scores, 2, keepdims=True)))
    return nn.div(nn.batch_matmul(powers, v), nn.sum(powers, 2, keepdims=True))


def in_one_pass(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention with the maximum, the sum and the weighted sum of a row in one reduction, by a combiner of triples.
    Source: Dao et al., FlashAttention, 2022."""
    scores, n = nn.mul(_scores(q, k), _scale(q)), te.reduce_axis(k.shape[1], "n")

    def combine(a: Any, b: Any) -> Any:
        greater = a[0] > b[0]
        scale = te.exp(te.select(greater, b[0] - a[0], a[0] - b[0]))
        sums = (te.select(greater, x + y * scale, x * scale + y) for x, y in zip(a[1:], b[1:], strict=True))
        return te.select(greater, a[0], b[0]), *sums

    online = te.combiner(combine, identity=(-math.inf, 0.0, 0.0))

    def element(h: Any, i: Any, c: Any) -> Any:
        return te.reduce(online, (scores[h, i, n], te.const(1.0, "f32"), v[h, n, c]), axis=n)

    _, total, mixed = te.compute((*q.shape[:2], v.shape[2]), element, name="online")
    return nn.div(mixed, total)


def _unscaled(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return nn.batch_matmul(nn.softmax(_scores(q, k)), v)


def _soft_queries(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """A different program: its softmax is along the queries, not the keys."""
    return nn.batch_matmul(nn.softmax(nn.mul(_scores(q, k), _scale(q)), 1), v)


def _of_attention(q: Array, k: Array, v: Array, causal: bool = False) -> Array:
    scores = np.einsum("hmd,hnd->hmn", q, k) / math.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tri(*scores.shape[1:]) > 0, scores, -np.inf)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("hmn,hnd->hmd", powers / powers.sum(-1, keepdims=True), v)


def _causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return nn.attention(q, k, v, causal=True)


def _selected(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = nn.mul(_scores(q, k), _scale(q))
    logits = te.compute(scores.shape, lambda h, m, n: te.select(n <= m, scores[h, m, n], -math.inf), name="masked")
    return nn.batch_matmul(nn.softmax(logits), v)


def _selected_otherwise(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention whose mask selects -inf where n > m, instead of the score where n <= m."""
    scores = nn.mul(_scores(q, k), _scale(q))
    logits = te.compute(scores.shape, lambda h, m, n: te.select(n > m, -math.inf, scores[h, m, n]), name="masked")
    return nn.batch_matmul(nn.softmax(logits), v)


def _mask_added(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention whose mask is a constant of zeros and -inf, added to the scores."""
    size = (q.shape[1], k.shape[1])
    mask = te.constant(np.where(np.tri(*size) > 0, 0, -np.inf).astype(np.float32), name="mask")
    return nn.batch_matmul(nn.softmax(nn.add(nn.mul(_scores(q, k), _scale(q)), mask)), v)


def _strictly_before(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return nn.attention(q, k, v, causal=True, offset=1)


def _heads_apart(x: Tensor, heads: int) -> Tensor:
    m, width = x.shape
    return nn.transpose(nn.reshape(x, (m, heads, width // heads)), (1, 0, 2))


def _heads_together(y: Tensor) -> Tensor:
    heads, m, d = y.shape
    return nn.reshape(nn.transpose(y, (1, 0, 2)), (m, heads * d))


def _by_heads(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention of four heads, each on a quarter of adjacent columns, split and joined by reshapes and transposes."""
    return _heads_together(nn.attention(*(_heads_apart(t, 4) for t in (q, k, v))))


def _heads_in_maps(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention of four heads whose products read column h * depth + d of head h, without a reshape."""
    (m, width), n, depth = q.shape, k.shape[0], q.shape[1] // 4
    d, r = te.reduce_axis(depth, "d"), te.reduce_axis(n, "r")
    scores = te.compute((4, m, n), lambda h, i, j: te.sum(q[i, h * depth + d] * k[j, h * depth + d], axis=d))
    weights = nn.softmax(nn.mul(scores, 1.0 / math.sqrt(depth)))
    mixed = te.compute((4, m, depth), lambda h, i, c: te.sum(weights[h, i, r] * v[r, h * depth + c], axis=r))
    return te.compute((m, width), lambda i, c: mixed[c // depth, i, c % depth])


def _heads_interleaved(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """A different program: head h has the columns h, h + 4, h + 8 and so on, not adjacent ones."""

    def apart(x: Tensor) -> Tensor:
        return nn.transpose(nn.reshape(x, (x.shape[0], x.shape[1] // 4, 4)), (2, 0, 1))

    return _heads_together(nn.attention(*map(apart, (q, k, v))))


def _of_heads(q: Array, k: Array, v: Array) -> Array:
    q_heads, k_heads, v_heads = (t.reshape(t.shape[0], 4, -1).transpose(1, 0, 2) for t in (q, k, v))
    return _of_attention(q_heads, k_heads, v_heads).transpose(1, 0, 2).reshape(q.shape)


def _three_products(x: Tensor, *weights: Tensor) -> list[Tensor]:
    return [nn.matmul(x, w) for w in weights]


def _joined(x: Tensor, *weights: Tensor) -> list[Tensor]:
    """x W for each weight: one product by the weights side by side, cut into slices."""
    y, n = nn.matmul(x, nn.concat(weights, 1)), weights[0].shape[1]
    return [nn.slice(y, (0, at * n), (None, (at + 1) * n)) for at in range(len(weights))]


def _stacked(x: Tensor, *weights: Tensor) -> list[Tensor]:
    """x W for each weight: one compute over the stacked weights, cut into slices."""
    stacked, (m, k), n = nn.stack(weights), x.shape, weights[0].shape[1]
    r = te.reduce_axis(k, "r")
    y = te.compute((len(weights), m, n), lambda w, i, j: te.sum(x[i, r] * stacked[w, r, j], axis=r))
    return [nn.reshape(nn.slice(y, (at, 0, 0), (at + 1, None, None)), (m, n)) for at in range(len(weights))]


def _interleaved(x: Tensor, *weights: Tensor) -> list[Tensor]:
    """A different program: one product by the weights side by side, of which each result takes every n-th column."""
    y, count = nn.matmul(x, nn.concat(weights, 1)), len(weights)
    return [nn.slice(y, (0, at), (None, None), (1, count)) for at in range(count)]


def _parts(*arrays: Any) -> Any:
    x, *weights = arrays
    return tuple(x @ w for w in weights)


FAMILIES = (
    Family(
        "attention",
        nn.attention,
        _of_attention,
        dict.fromkeys("QKV", (2, 5, 4)),
        dict.fromkeys("QKV", (8, 256, 64)),
        {
            "product, scale, softmax, product": exact(_by_ops),
            "of transposed keys": exact(_transposed_keys),
            "in four dimensions": exact(_in_four_dimensions),
            "divided by a power of two": exact(_divided),
            "scaled before the product": speed(_scaled_before),
            "softmax by hand": speed(_softmax_by_hand),
            "normalised behind the product": speed(_normalised_behind),
            "in one pass": speed(in_one_pass),
            "without the scale": different(_unscaled),
            "softmax along the queries": different(_soft_queries),
        },
    ),
    Family(
        "causal attention",
        _causal,
        lambda q, k, v: _of_attention(q, k, v, causal=True),
        dict.fromkeys("QKV", (2, 5, 4)),
        dict.fromkeys("QKV", (8, 256, 64)),
        {
            "a select": speed(_selected),
            "the condition turned round": speed(_selected_otherwise),
            "a mask added": speed(_mask_added),
            "one more column": different(_strictly_before),
        },
    ),
    Family(
        "heads",
        _by_heads,
        _of_heads,
        dict.fromkeys("QKV", (5, 16)),
        dict.fromkeys("QKV", (128, 256)),
        {
            "in the indices of the products": exact(_heads_in_maps),
            "of each fourth column": different(_heads_interleaved),
        },
    ),
    Family(
        "three projections",
        _three_products,
        _parts,
        {"X": (4, 6)} | {f"W{n}": (6, 5) for n in range(3)},
        {"X": (128, 256)} | {f"W{n}": (256, 256) for n in range(3)},
        {
            "joined, then sliced": exact(_joined),
            "stacked": exact(_stacked),
            "joined, then each third column": different(_interleaved),
        },
    ),
)
