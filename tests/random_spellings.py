"""Programs with a random place for each law that gives equal programs one text; at times the law may not apply."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from compiler import te

P, Tensor, Random = te.placeholder, te.Tensor, random.Random
nn: Any = te.nn


def _function(made: Any, *inputs: Any) -> te.Function:
    return te.function("spelled", list(inputs), made)


def reduced_reshape(rng: Random) -> te.Function:
    """A reduction over a dimension of a reshape or of two."""
    shape = [rng.randint(2, 4) for _ in range(rng.randint(2, 4))]
    at = rng.randrange(len(shape) - 1)
    x = P(tuple(shape), name="X")
    y = nn.reshape(x, (*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :]))
    if rng.random() < 0.3:
        y = nn.reshape(y, (prod(shape[:2]), *shape[2:])) if len(shape) > 2 else nn.exp(y)
    return _function(rng.choice((nn.sum, nn.max))(y, rng.randrange(y.rank)), x)


def columns(rng: Random) -> te.Function:
    """A convolution by windows as columns, as one matrix or for a batch, and the shape of its result."""
    n, c, o, size, k = rng.randint(1, 2), rng.randint(1, 3), rng.randint(1, 3), rng.randint(3, 5), rng.randint(1, 3)
    x, w = P((n, c, size, size + 1), name="X"), P((o, c, k, k), name="W")
    unfolded, filters = nn.unfold(x, k, padding=rng.randint(0, 1)), nn.reshape(w, (o, -1))
    r, places = te.reduce_axis(c * k * k, "r"), unfolded.shape[2]
    y = te.compute((n, o, places), lambda b, f, at: te.sum(unfolded[b, r, at] * filters[f, r], axis=r))
    rows = rng.choice([d for d in range(1, places + 1) if places % d == 0])
    return _function(nn.reshape(y, (n, o, rows, places // rows)) if rng.random() < 0.8 else y, x, w)


def digits(rng: Random) -> te.Function:
    """A reduction whose axes are digits of one index, or overlap."""
    outer, inner = rng.randint(2, 4), rng.randint(2, 4)
    step = rng.choice((inner, inner, inner, inner + 1))
    x, w = P((3, step * (outer - 1) + inner), name="X"), P((step * (outer - 1) + inner,), name="W")
    p, q = te.reduce_axis(outer, "p"), te.reduce_axis(inner, "q")
    place = p * step + q
    other = place if rng.random() < 0.8 else q * outer + p if step == inner else q
    return _function(te.compute((3,), lambda i: te.sum(x[i, place] * w[other], axis=[p, q])), x, w)


def backwards(rng: Random) -> te.Function:
    """A convolution of a row, its taps forwards or backwards in either operand."""
    size, taps = rng.randint(3, 6), rng.randint(2, 4)
    x, w, s = P((size + taps - 1,), name="X"), P((taps,), name="W"), te.reduce_axis(taps, "s")
    ahead, turned = rng.random() < 0.5, rng.random() < 0.5

    def element(i: Any) -> Any:
        return te.sum(x[i + s if ahead else i - s + taps - 1] * w[-s + taps - 1 if turned else s], axis=s)

    return _function(te.compute((size,), element), x, w)


def viewed(rng: Random) -> te.Function:
    """A view of a product, of a sum or of an elementwise compute; at times its source is read as well."""
    m, n, k = (rng.randint(2, 5) for _ in range(3))
    a, b = P((m, k), name="A"), P((k, n), name="B")
    y = nn.matmul(a, b)
    y = rng.choice((lambda t: t, nn.exp, nn.relu))(y)
    ways: list[Callable[[Any], Any]] = [
        lambda t: nn.transpose(t, (1, 0)),
        lambda t: nn.flip(t, rng.randrange(2)),
        lambda t: nn.slice(t, (0, 1), (None, None)) if t.shape[1] > 1 else t,
        lambda t: nn.slice(t, (0, 0), (None, None), (1, 2)),
        lambda t: nn.reshape(t, (-1,)),
        lambda t: te.compute(t.shape[:1], lambda i: t[i, 0]),
    ]
    made = rng.choice(ways)(y)
    if made.rank == 2 and rng.random() < 0.4:
        made = rng.choice(ways[:4])(rng.choice((nn.exp, lambda t: t))(made))
    both = [made, nn.relu(y)] if rng.random() < 0.2 and made is not y else made
    return _function(both, a, b)


def transposed_products(rng: Random) -> te.Function:
    """A product that others read transposed, or as it is."""
    m, n, k, d = (rng.randint(2, 5) for _ in range(4))
    a, b = P((m, k), name="A"), P((k, n), name="B")
    product = nn.matmul(a, b)
    turned = rng.random() < 0.7
    c = P((m, d) if turned else (n, d), name="C")
    made = nn.matmul(product, c, transpose_a=turned)
    return _function([made, nn.sum(product, 0)] if rng.random() < 0.2 else made, a, b, c)


def soft_columns(rng: Random) -> te.Function:
    """A softmax of a transpose, transposed back or not."""
    x = P((rng.randint(2, 5), rng.randint(2, 5)), name="X")
    y = nn.softmax(nn.transpose(x, (1, 0)), rng.randrange(2))
    return _function(nn.transpose(y, (1, 0)) if rng.random() < 0.8 else y, x)


def joined(rng: Random) -> te.Function:
    """A compute of a concatenation, read in windows that may overlap."""
    sizes, rows = [rng.randint(1, 3) for _ in range(rng.randint(2, 3))], rng.randint(2, 4)
    parts = [P((rows, size), name=f"W{n}") for n, size in enumerate(sizes)]
    x = P((2, rows), name="X")
    y = nn.matmul(x, nn.concat(parts, 1)) if rng.random() < 0.6 else nn.exp(nn.concat(parts, 1))
    starts = [sum(sizes[:n]) for n in range(len(sizes))]
    cut = rng.random() < 0.8
    windows = [(at, at + n if cut else min(at + n + 1, sum(sizes))) for at, n in zip(starts, sizes, strict=True)]
    read = [nn.slice(y, (0, low), (None, high)) for low, high in windows]
    made = [nn.neg(part) if rng.random() < 0.5 else part for part in read]
    return _function(made, x, *parts)


def arithmetic(rng: Random) -> te.Function:
    """An expression with signs and literals."""
    x, y = P((4, 5), name="X"), P((4, 5), name="Y")
    literals = (1.0, -1.0, 2.0, 4.0, 0.125, 3.0, 0.0, -0.0)

    def expression(i: Sequence[Any], depth: int) -> Any:
        if depth == 0 or rng.random() < 0.15:
            return rng.choice((x, y))[tuple(i)]
        first = expression(i, depth - 1)
        second = rng.choice((first, te.const(rng.choice(literals), "f32"), expression(i, depth - 1)))
        ways: list[Callable[[], Any]] = [
            lambda: first + second,
            lambda: first - second,
            lambda: first * second,
            lambda: -first,
            lambda: first / te.const(rng.choice(literals[:6]), "f32"),
            lambda: te.const(rng.choice(literals), "f32") - first,
        ]
        return rng.choice(ways)()

    return _function(te.compute((4, 5), lambda *i: expression(i, rng.randint(1, 4))), x, y)


def powers_twice(rng: Random) -> te.Function:
    """A mathematical function in a sum and in another compute, of the same values or of others."""
    m, n = rng.randint(2, 5), rng.randint(2, 5)
    x, top, k = P((m, n), name="X"), P((m,), name="T"), te.reduce_axis(n, "k")
    other = rng.choice((x, x, x, P((m, n), name="Z")))
    factor = rng.choice((1.0, 1.0, 3.0))
    total = te.compute((m,), lambda i: te.sum(te.exp(x[i, k] - top[i]), axis=k), name="total")
    made = te.compute((m, n), lambda i, j: te.exp(other[i, j] * factor - top[i]) + total[i], name="Y")
    made = te.compute((m, n), lambda i, j: te.exp(other[i, j] - top[i]) + total[i]) if factor == 1 else made
    return _function(made, x, top, *([] if other is x else [other]))


def pointwise(rng: Random) -> te.Function:
    """A convolution of one tap as a sum over channels."""
    n, c, o, size = rng.randint(1, 2), rng.randint(2, 3), rng.randint(2, 3), rng.randint(2, 4)
    x, w, i = P((n, c, size, size), name="X"), P((o, c, 1, 1), name="W"), te.reduce_axis(c, "i")
    shape = (n, o, size, size)
    return _function(te.compute(shape, lambda b, f, y, v: te.sum(w[f, i, 0, 0] * x[b, i, y, v], axis=i)), x, w)


KINDS = (
    reduced_reshape,
    columns,
    digits,
    backwards,
    viewed,
    transposed_products,
    soft_columns,
    joined,
    arithmetic,
    powers_twice,
    pointwise,
)


def spelled(seed: int) -> te.Function:
    """A random program, of each kind in turns."""
    return KINDS[seed % len(KINDS)](random.Random(seed))
