"""Products of matrices."""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.equal_programs.family import Array, Family, apart, choice, different, exact, speed
from compiler import te
from compiler.te import Tensor

nn: Any = te.nn


def _of_transposes(a: Tensor, b: Tensor) -> Tensor:
    """A B as the product of two transposed tensors that matmul reads transposed again."""
    at, bt = nn.transpose(a, (1, 0)), nn.transpose(b, (1, 0))
    return nn.matmul(at, bt, transpose_a=True, transpose_b=True)


def _transposed(a: Tensor, b: Tensor) -> Tensor:
    """(B^T A^T)^T."""
    return nn.transpose(nn.matmul(b, a, transpose_a=True, transpose_b=True), (1, 0))


def _swapped(a: Tensor, b: Tensor) -> Tensor:
    k = te.reduce_axis(a.shape[1], "k")
    return te.compute((a.shape[0], b.shape[1]), lambda i, j: te.sum(b[k, j] * a[i, k], axis=k))


def _by_blocks(a: Tensor, b: Tensor) -> Tensor:
    """A B with its sum over k as a sum over two axes, of k / 4 and 4 iterations."""
    (m, k), n = a.shape, b.shape[1]
    left, right = nn.reshape(a, (m, k // 4, 4)), nn.reshape(b, (k // 4, 4, n))
    p, q = te.reduce_axis(k // 4, "p"), te.reduce_axis(4, "q")
    return te.compute((m, n), lambda i, j: te.sum(left[i, p, q] * right[p, q, j], axis=[p, q]))


def _in_halves(a: Tensor, b: Tensor) -> Tensor:
    """A B as the sum of two products, of the halves of k."""
    (m, k), n = a.shape, b.shape[1]
    first = nn.matmul(nn.slice(a, (0, 0), (m, k // 2)), nn.slice(b, (0, 0), (k // 2, n)))
    return nn.add(first, nn.matmul(nn.slice(a, (0, k // 2), (m, k)), nn.slice(b, (k // 2, 0), (k, n))))


def _by_columns(a: Tensor, b: Tensor) -> Tensor:
    """A B as two products by halves of B's columns, side by side."""
    k, half = b.shape[0], b.shape[1] // 2
    parts = [nn.matmul(a, nn.slice(b, (0, at), (k, at + half))) for at in (0, half)]
    return nn.concat(parts, 1)


def _bias(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return nn.add(nn.matmul(x, w), b)


def _bias_broadcast(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return nn.add(nn.broadcast_to(nn.reshape(b, (1, -1)), (x.shape[0], w.shape[1])), nn.matmul(x, w))


def _bias_column(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """x w + b as one product: a column of ones beside x, b as a row below w."""
    ones = te.constant(np.ones((x.shape[0], 1), np.float32), name="ones")
    return nn.matmul(nn.concat([x, ones], 1), nn.concat([w, nn.reshape(b, (1, -1))], 0))


def _bias_of_rows(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return nn.add(nn.matmul(x, w), nn.reshape(b, (-1, 1)))


def _rows(x: Tensor, w: Tensor) -> Tensor:
    """X W for a batch of matrices X, as one product of all their rows by W."""
    return nn.reshape(nn.matmul(nn.reshape(x, (-1, x.shape[2])), w), (*x.shape[:2], w.shape[1]))


def _batches(x: Tensor, w: Tensor) -> Tensor:
    """X W for a batch of matrices X, as one compute over batch, row and column."""
    k = te.reduce_axis(x.shape[2], "k")
    return te.compute((*x.shape[:2], w.shape[1]), lambda b, i, j: te.sum(x[b, i, k] * w[k, j], axis=k))


def _broadcast_weights(x: Tensor, w: Tensor) -> Tensor:
    """X W for a batch of matrices X, by batch_matmul with W broadcast to the batch."""
    return nn.batch_matmul(x, nn.broadcast_to(nn.reshape(w, (1, *w.shape)), (x.shape[0], *w.shape)))


def _left_to_right(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    return nn.matmul(nn.matmul(nn.matmul(a, b), c), d)


def _right_to_left(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    return nn.matmul(a, nn.matmul(b, nn.matmul(c, d)))


def _from_both_ends(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    return nn.matmul(nn.matmul(a, b), nn.matmul(c, d))


def _transposed_chain(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    """A B C D as (D^T C^T B^T A^T)^T, from the left to the right."""
    made = nn.matmul(d, c, transpose_a=True, transpose_b=True)
    made = nn.matmul(nn.matmul(made, b, transpose_b=True), a, transpose_b=True)
    return nn.transpose(made, (1, 0))


def _other_order(a: Tensor, b: Tensor) -> Tensor:
    return nn.matmul(b, a)


def _product_value(a: Array, b: Array) -> Array:
    return a @ b


FAMILIES = (
    Family(
        "product",
        nn.matmul,
        _product_value,
        {"A": (8, 8), "B": (8, 8)},
        {"A": (384, 384), "B": (384, 384)},
        {
            "factors swapped": exact(_swapped),
            "of transposed tensors": exact(_of_transposes),
            "transpose of (B^T A^T)": exact(_transposed),
            "the sum over two axes": exact(_by_blocks),
            "halves of the columns, joined": apart(_by_columns),
            "halves of the sum, added": choice(_in_halves),
            "B A": different(_other_order),
            "A B^T": different(lambda a, b: nn.matmul(a, b, transpose_b=True)),
        },
    ),
    Family(
        "product with a bias",
        _bias,
        lambda x, w, b: x @ w + b,
        {"X": (5, 6), "W": (6, 5), "b": (5,)},
        {"X": (128, 256), "W": (256, 128), "b": (128,)},
        {
            "the bias broadcast, first": exact(_bias_broadcast),
            "the bias as a row of the weights": apart(_bias_column),
            "a bias of rows": different(_bias_of_rows),
        },
    ),
    Family(
        "rows in batches",
        _rows,
        lambda x, w: x @ w,
        {"X": (3, 4, 5), "W": (5, 6)},
        {"X": (8, 32, 256), "W": (256, 256)},
        {
            "a product for each batch": speed(_batches),
            "a batch of one matrix": speed(_broadcast_weights),
        },
    ),
    Family(
        "chain of products",
        _left_to_right,
        lambda a, b, c, d: np.linalg.multi_dot([a, b, c, d]),
        {"A": (9, 2), "B": (2, 7), "C": (7, 3), "D": (3, 5)},
        {"A": (300, 35), "B": (35, 400), "C": (400, 50), "D": (50, 200)},
        {
            "from the right to the left": choice(_right_to_left),
            "from both ends": choice(_from_both_ends),
            "transposed": choice(_transposed_chain),
        },
        policy="fast",
    ),
)
