"""Small te programs at random: a chain or small dag of computes over odd extents, for property tests."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from compiler import te
from compiler.elements import is_float, limits
from tests.operators.catalogue import numpy_dtype

P = te.placeholder
LARGEST = 100
"""How many elements a tensor has at most."""


DTYPES = ("f32", "f64", "f16", "bf16", "i8", "i16", "i32", "i64", "u8")


def program(rng: random.Random, computes: int | None = None, dtype: str | None = None) -> te.Function:
    """Some computes, each of an earlier tensor, mostly the last; one or more of them are outputs. By default one to
    four, mostly of f32 or i32."""
    return _Maker(rng, dtype).function(computes)


def arrays_for(function: te.Function, seed: int) -> list[np.ndarray[Any, Any]]:
    """Random inputs: floats between -1 and 1, small integers."""
    rng = np.random.default_rng(seed)
    found = []
    for tensor in function.inputs:
        if tensor.dtype == "i64":  # indices, some of them outside
            found.append(rng.integers(-2, 9, tensor.shape))
        elif is_float(tensor.dtype):
            found.append(rng.uniform(-1, 1, tensor.shape).astype(numpy_dtype(tensor.dtype)))
        else:
            found.append(rng.integers(-3, 4, tensor.shape).astype(numpy_dtype(tensor.dtype)))
    return found


class _Maker:
    """The tensors so far."""

    def __init__(self, rng: random.Random, dtype: str | None = None) -> None:
        self.rng = rng
        self.dtype = dtype or rng.choice(
            ("f32", "f32", "f32", "i32", "i32", rng.choice(("f64", "f16", "bf16", "i8", "u8", "i16")))
        )
        self.inputs: list[te.Tensor] = []
        self.indices: list[te.Tensor] = []
        self.made: list[te.Tensor] = []

    def function(self, computes: int | None) -> te.Function:
        """The function of some random computes."""
        rng = self.rng
        self.input(tuple(rng.choice((2, 3, 4, 5, 6, 7, 8, 9)) for _ in range(rng.choice((1, 2, 2, 2, 3)))))
        for _ in range(computes or rng.choice((1, 2, 2, 3, 3, 4))):
            self.add(self.source())
        others = [t for t in self.made[:-1] if rng.random() < 0.2]
        return te.function("program", [*self.inputs, *self.indices], [*others, self.made[-1]])

    def input(self, shape: tuple[int, ...], cut: bool = True) -> te.Tensor:
        """A new input, cut down where it is too large."""
        while cut and prod(shape) > LARGEST:
            shape = tuple(max(2, n - 1) for n in shape)
        tensor = P(shape, self.dtype, name=f"I{len(self.inputs)}")
        self.inputs.append(tensor)
        return tensor

    def source(self) -> te.Tensor:
        """A tensor to compute with: mostly the last one."""
        if not self.made:
            return self.inputs[0]
        return self.made[-1] if self.rng.random() < 0.75 else self.rng.choice([*self.inputs, *self.made])

    def like(self, x: te.Tensor) -> te.Tensor:
        """A tensor of the same shape: an earlier one, which is then read twice, or a new input."""
        known = [t for t in (*self.inputs, *self.made) if t.shape == x.shape and t is not x]
        return self.rng.choice(known) if known and self.rng.random() < 0.8 else self.input(x.shape, cut=False)

    def add(self, x: te.Tensor) -> None:
        """A random compute of a tensor."""
        for kind in self.rng.sample(KINDS, len(KINDS)):
            result = kind(self, x)
            if result is not None:
                self.made += [result] if isinstance(result, te.Tensor) else result
                return

    def name(self) -> str:
        """The name of the next tensor."""
        number = len(self.made)
        return "ABCDEFGHJKLM"[number] if number < 12 else f"M{number}"

    def compute(self, shape: tuple[int, ...], fn: Callable[..., Any]) -> Any:
        """A compute with axes i, j, k, l."""
        return te.compute(shape, fn, self.name(), axes=tuple("ijkl"[: len(shape)]))

    def index(self, shape: tuple[int, ...]) -> te.Tensor:
        """A new input of indices."""
        tensor = P(shape, "i64", name=f"N{len(self.indices)}")
        self.indices.append(tensor)
        return tensor

    def gather(self, shape: tuple[int, ...], fn: Callable[..., Any]) -> Any:
        """A gather with axes i, j, k, l."""
        axes = tuple("ijkl"[: len(shape)])
        return te.gather(shape, fn, self.name(), axes=axes, otherwise=self.rng.choice((0, 7)))

    def scalar(self, value: Any) -> Any:
        """Something elementwise of a value."""
        forms: list[Callable[[Any], Any]] = [
            lambda v: v * 2 + 1,
            lambda v: te.maximum(v, 0),
            lambda v: 3 - v,
            te.abs,
            lambda v: te.select(v > 0, v, v * 2),
        ]
        if is_float(self.dtype):
            forms += [te.tanh, te.sigmoid]
        others = ("f64", "f32") if is_float(self.dtype) else tuple(t for t in DTYPES if t not in ("f16", "bf16"))
        wider = self.rng.choice(others)  # of floats only wider ones: rounding makes two right programs differ
        forms.append(lambda v: te.cast(te.cast(v, wider) + 1, self.dtype) if self.dtype != "f64" else v + 1)
        return self.rng.choice(forms)(value)


Kind = Callable[[_Maker, te.Tensor], Any]


def elementwise(m: _Maker, x: te.Tensor) -> Any:
    """f(x)"""
    return m.compute(x.shape, lambda *i: m.scalar(x[i]))


def joined(m: _Maker, x: te.Tensor) -> Any:
    """f(x, y) of equal shapes"""
    y = m.like(x)
    return m.compute(x.shape, lambda *i: m.rng.choice((lambda a, b: a + b, lambda a, b: a * b, te.minimum))(x[i], y[i]))


def broadcast(m: _Maker, x: te.Tensor) -> Any:
    """x[i, j] + b[j]"""
    if x.rank < 2:
        return None
    b = m.input(x.shape[-1:])
    return m.compute(x.shape, lambda *i: x[i] + b[i[-1]])


def outer(m: _Maker, x: te.Tensor) -> Any:
    """x[i] * y[j]"""
    if x.rank != 1:
        return None
    y = m.like(x) if m.rng.random() < 0.5 else m.input((m.rng.randint(2, 6),))
    return m.compute((x.shape[0], y.shape[0]), lambda i, j: x[i] * y[j])


def transpose(m: _Maker, x: te.Tensor) -> Any:
    """x[j, i]"""
    if x.rank < 2:
        return None
    order = m.rng.sample(range(x.rank), x.rank)
    shape = tuple(x.shape[d] for d in order)
    return m.compute(shape, lambda *i: x[tuple(i[order.index(d)] for d in range(x.rank))])


def reduction(m: _Maker, x: te.Tensor) -> Any:
    """A reduction over one or two dimensions"""
    if x.rank == 0:
        return None
    dims = sorted(m.rng.sample(range(x.rank), min(x.rank, m.rng.choice((1, 1, 2)))))
    size = prod(x.shape[d] for d in dims)
    forms = [te.sum, te.sum, te.max, te.min] + ([te.prod] * 2 if size <= 9 else [])
    combine = m.rng.choice(forms)
    axes = {d: te.reduce_axis(x.shape[d], f"r{d}") for d in dims}
    kept = [d for d in range(x.rank) if d not in dims]

    def element(*i: Any) -> Any:
        at = {**dict(zip(kept, i, strict=True)), **axes}
        value = x[tuple(at[d] for d in range(x.rank))]
        return combine(value * 2 if m.rng.random() < 0.3 else value, axis=list(axes.values()))

    return m.compute(tuple(x.shape[d] for d in kept), element)


def two_reductions(m: _Maker, x: te.Tensor) -> Any:
    """The sum and the maximum of each row"""
    if x.rank < 2:
        return None
    r = te.reduce_axis(x.shape[-1], "r")
    first, second = m.compute(x.shape[:-1], lambda *i: (te.sum(x[(*i, r)], axis=r), te.max(x[(*i, r)] * 2, axis=r)))
    return m.compute(x.shape[:-1], lambda *i: first[i] + second[i])


def selection(m: _Maker, x: te.Tensor) -> Any:
    """The place of the greatest or least element along a dimension, as a number; with it, at times"""
    if not x.rank:
        return None
    d = m.rng.randrange(x.rank)
    exact = not is_float(m.dtype) or x in m.inputs  # a sum may be rounded otherwise, and its place be another
    if exact and m.rng.random() < 0.6:
        build = m.rng.choice((te.nn.argmax, te.nn.argmin))
        place = build(x, d, m.rng.random() < 0.3, name=m.name())
        m.made.append(place)
        result = m.compute(place.shape, lambda *i: te.cast(place[i], m.dtype))
        m.made.remove(place)
        return result
    r = te.reduce_axis(x.shape[d], "r")
    worst = (math.inf, -math.inf) if is_float(m.dtype) else limits(m.dtype)[::-1]
    span = te.combiner(lambda a, b: (te.minimum(a[0], b[0]), te.maximum(a[1], b[1])), worst)
    shape = (*x.shape[:d], *x.shape[d + 1 :])

    def element(*i: Any) -> Any:
        value = x[(*i[:d], r, *i[d:])]
        return te.reduce(span, (value, value * 2), axis=r)

    low, high = m.compute(shape, element)
    return m.compute(shape, lambda *i: high[i] - low[i]) if m.rng.random() < 0.7 else [low, high]


def two_results(m: _Maker, x: te.Tensor) -> Any:
    """Two tensors of one compute"""
    return list(m.compute(x.shape, lambda *i: (x[i] + 1, x[i] * 2)))


def product(m: _Maker, x: te.Tensor) -> Any:
    """x times a matrix"""
    if x.rank not in (1, 2):
        return None
    size = x.shape[-1]
    known = [
        t for t in (*m.inputs, *m.made) if t.rank == 2 and t.shape[0] == size and t.shape[1] * x.shape[0] <= LARGEST
    ]
    w = m.rng.choice(known) if known and m.rng.random() < 0.5 else m.input((size, m.rng.randint(2, 9)))
    if w.shape[0] != size:
        return None
    r = te.reduce_axis(size, "r")
    return m.compute((*x.shape[:-1], w.shape[1]), lambda *i: te.sum(x[(*i[:-1], r)] * w[r, i[-1]], axis=r))


def padded(m: _Maker, x: te.Tensor) -> Any:
    """x surrounded by a value"""
    widths = [(m.rng.randint(0, 2), m.rng.randint(0, 2)) for _ in x.shape]
    shape = [n + a + b for n, (a, b) in zip(x.shape, widths, strict=True)]
    if not x.rank or prod(shape) > LARGEST:
        return None
    return te.nn.pad(x, widths, m.rng.choice((0, 1)), name=m.name())


def halo(m: _Maker, x: te.Tensor) -> Any:
    """x[i - 1] + x[i] + x[i + 1], zero outside"""
    if not x.rank:
        return None
    d = m.rng.randrange(x.rank)
    source = x.padded(0)
    offsets = m.rng.choice(((-1, 0, 1), (-1, 1), (0, 2), (-2, 0)))

    def element(*i: Any) -> Any:
        parts = [source[(*i[:d], i[d] + o, *i[d + 1 :])] for o in offsets]
        return sum(parts[1:], parts[0])

    return m.compute(x.shape, element)


def stencil(m: _Maker, x: te.Tensor) -> Any:
    """x[i] + x[i + 1], where both are inside"""
    if not x.rank or max(x.shape) < 4:
        return None
    d = m.rng.choice([d for d in range(x.rank) if x.shape[d] >= 4])
    shape = tuple(n - 2 * (e == d) for e, n in enumerate(x.shape))

    def at(i: Any, o: int) -> Any:
        return x[(*i[:d], i[d] + o, *i[d + 1 :])]

    return m.compute(shape, lambda *i: at(i, 0) * 2 + at(i, 1) + at(i, 2))


def window(m: _Maker, x: te.Tensor) -> Any:
    """A convolution or pooling along the last dimension, with stride, dilation and padding"""
    if not x.rank:
        return None
    taps, stride, dilation, border = m.rng.randint(2, 3), m.rng.randint(1, 2), m.rng.randint(1, 2), m.rng.randint(0, 2)
    size = (x.shape[-1] + 2 * border - dilation * (taps - 1) - 1) // stride + 1
    if size < 1:
        return None
    w, r = m.input((taps,)), te.reduce_axis(taps, "r")
    source = x.padded(0)
    combine, weighted = m.rng.choice(((te.sum, True), (te.sum, True), (te.max, False)))

    def element(*i: Any) -> Any:
        value = source[(*i[:-1], i[-1] * stride + r * dilation - border)]
        return combine(value * w[r] if weighted else value, axis=r)

    result = m.compute((*x.shape[:-1], size), element)
    if not weighted:
        m.inputs.remove(w)
    return result


def selected(m: _Maker, x: te.Tensor) -> Any:
    """A read under a condition: a shift, or a triangle"""
    if not x.rank:
        return None
    if x.rank >= 2 and m.rng.random() < 0.5:
        return m.compute(x.shape, lambda *i: te.select(i[0] >= i[1], x[i], 0))
    by = m.rng.randint(1, 3)
    return m.compute(x.shape, lambda *i: te.select(i[0] >= by, x[(i[0] - by, *i[1:])], 1))


def reindexed(m: _Maker, x: te.Tensor) -> Any:
    """A flattened, repeated, reversed or strided tensor"""
    if not x.rank:
        return None
    n = x.shape[0]
    ways: list[Callable[[], Any]] = [
        lambda: m.compute((2 * n, *x.shape[1:]), lambda *i: x[(i[0] // 2, *i[1:])]),
        lambda: m.compute((n + 2, *x.shape[1:]), lambda *i: x[(i[0] % n, *i[1:])]),
        lambda: m.compute(x.shape, lambda *i: x[(n - 1 - i[0], *i[1:])]),
        lambda: m.compute((-(-n // 2), *x.shape[1:]), lambda *i: x[(2 * i[0], *i[1:])]),
    ]
    if x.rank == 2:
        ways.append(lambda: m.compute((prod(x.shape),), lambda i: x[i // x.shape[1], i % x.shape[1]]))
    return m.rng.choice(ways)()


def gathered(m: _Maker, x: te.Tensor) -> Any:
    """x at a data-dependent index in one or two dimensions; the index varies with one axis or all of them"""
    if not x.rank:
        return None
    index = m.index((m.rng.randint(2, 5),))
    ways: list[Callable[[], Any]] = [
        lambda: m.gather((index.shape[0], *x.shape[1:]), lambda *i: x.at(index[i[0]], *i[1:])),
        lambda: m.gather((*x.shape[:-1], index.shape[0]), lambda *i: x.at(*i[:-1], index[i[-1]])),
    ]
    if x.rank > 1:
        other = m.index(x.shape)
        ways.append(lambda: m.gather(x.shape, lambda *i: x.at(other[i], *i[1:])))
        ways.append(lambda: m.gather((index.shape[0], *x.shape[2:]), lambda *i: x.at(index[i[0]], index[i[0]], *i[1:])))
    return m.rng.choice(ways)()


def indexed(m: _Maker, x: te.Tensor) -> Any:
    """x plus an axis value"""
    return m.compute(x.shape, lambda *i: x[i] + te.cast(i[0] * 2 + 1, m.dtype)) if x.rank else None


KINDS: tuple[Kind, ...] = (
    elementwise,
    elementwise,
    joined,
    joined,
    broadcast,
    outer,
    transpose,
    reduction,
    reduction,
    two_reductions,
    two_results,
    selection,
    product,
    product,
    product,
    padded,
    halo,
    stencil,
    window,
    selected,
    reindexed,
    indexed,
    gathered,
    gathered,
)
