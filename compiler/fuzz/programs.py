"""Small te programs at random: a chain or small dag of computes over odd extents, for property tests."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any

import numpy as np

from compiler import te
from compiler.types.dtypes import DTYPES as ROWS
from compiler.types.dtypes import is_float, limits

P = te.placeholder
LARGEST = 100
"""The default of `largest` of `program`."""
EXTENTS = (2, 3, 4, 5, 6, 7, 8, 9)
"""The default of the extents from which those of the first input are drawn."""


DTYPES = ("f32", "f64", "f16", "bf16", "i8", "i16", "i32", "i64", "u8")


def _numpy_dtype(dtype: str) -> np.dtype[Any]:
    """numpy's dtype of an element type; that of bf16 is of ml_dtypes."""
    if dtype == "bf16":
        import ml_dtypes  # noqa: F401  # it gives numpy the name bfloat16

    return np.dtype(ROWS[dtype].numpy)


def program(
    rng: random.Random,
    computes: int | None = None,
    dtype: str | None = None,
    views: bool = False,
    constants: float = 0.0,
    extents: Sequence[int] = EXTENTS,
    largest: int = LARGEST,
) -> te.Function:
    """A random te function, built by `computes` random kinds (None or 0: one to four) of one or several computes, each
    of an earlier tensor, mostly the last; one or more are outputs. `dtype`: of the elements, None for a random one,
    mostly f32 or i32. With `views`, half of the kinds move elements only. `constants`: the probability that an input is
    a constant instead. `extents`: those of the first input, at random. `largest`: the most elements of a new input, a
    product and a padded, repeated or concatenated tensor; others may be larger."""
    return _Maker(rng, dtype, KINDS + VIEWS if views else KINDS, constants, extents, largest).function(computes)


def branches(rng: random.Random, computes: int, dtype: str = "i32") -> te.Function:
    """A random te function of `computes` computes: products of rows with square matrices, and concatenations of their
    results, which several computes read or which are outputs."""
    size = rng.choice((3, 4, 16))
    weights = [P((size, size), dtype, name=f"W{n}") for n in range(2)]
    start = P((rng.randint(1, 3), size), dtype, name="X")
    made, joined = [start], list[te.Tensor]()
    for number in range(computes):
        parts = rng.choices(made[-6:], k=rng.randint(2, 3))
        if number > 1 and rng.random() < 0.4 and sum(part.shape[0] for part in parts) <= 24:
            made.append(te.nn.concat(parts, 0, f"J{number}"))
            joined.append(made[-1])
        else:
            source = rng.choice(joined[-2:] * 3 + made[-3:])
            made.append(te.nn.matmul(source, rng.choice(weights), name=f"M{number}"))
    outputs = [t for t in made[1:-1] if rng.random() < (0.3 if t in joined else 0.1)]
    return te.function("branches", [start, *weights], [*outputs, made[-1]])


def conditions(rng: random.Random) -> te.Function:
    """A random te function of selects, nested and combined, on conditions of axes and of tables of truth values, which
    are inputs or computed."""
    shape = rng.randint(3, 6), rng.randint(3, 6)
    given = [P(shape, "i32", name="X"), P(shape, "i1", name="M")]
    values, tables = given[:1], given[1:]

    def condition(i: Any, depth: int = 0) -> Any:
        row, column = i
        if depth < 2 and rng.random() < 0.2:
            return rng.choice((te.all_of, te.any_of))(condition(i, depth + 1), condition(i, depth + 1))
        if rng.random() < 0.5:
            return rng.choice(tables)[i]
        ways = (row >= column, row <= column, column >= 2, (row >= 1) & (column >= 1), te.not_equal(row, column))
        return rng.choice(ways)

    def chosen(*i: Any) -> Any:
        value = values[-1][i] * rng.choice((1, 2))
        inner = te.select(condition(i), value, rng.choice((0, 7))) if rng.random() < 0.4 else value
        value = te.select(condition(i), inner, rng.choice((0, 7)))
        return value + te.select(condition(i), rng.choice(values)[i], 3) if rng.random() < 0.3 else value

    for name in "ABCDEF"[: rng.randint(2, 5)]:
        kind, source = rng.random(), rng.choice((values, values, tables))[-1].padded(rng.choice((0, 1)))
        if kind < 0.2:
            tables.append(te.compute(shape, lambda *i: te.any_of(condition(i)), name))
        elif kind < 0.35:
            shifted = te.compute(shape, lambda i, j, source=source: source[i - 1, j], name)
            (tables if shifted.dtype == "i1" else values).append(shifted)
        else:
            values.append(te.compute(shape, chosen, name))
    r = te.reduce_axis(shape[1], "r")
    output = te.compute(shape[:1], lambda i: rng.choice((te.max, te.sum))(values[-1][i, r], axis=r), "R")
    return te.function("conditions", given, [output, *(t for t in values[1:] if rng.random() < 0.2)])


def arrays_for(function: te.Function, seed: int) -> list[np.ndarray[Any, Any]]:
    """Random arrays of the shapes and dtypes of a function's inputs, in order, with elements in the ranges of
    `random_arrays`."""
    return random_arrays([(tensor.shape, tensor.dtype) for tensor in function.inputs], seed)


def random_arrays(rows: Iterable[tuple[Sequence[int], str]], seed: int) -> list[np.ndarray[Any, Any]]:
    """Random arrays of shapes and dtypes: floats from -1 to 1; i64, which are indices, from -2 to 8; other integers
    from -3 to 3, converted to the dtype."""
    rng = np.random.default_rng(seed)
    collected = []
    for shape, dtype in rows:
        if dtype == "i64":  # indices, some of them outside
            collected.append(rng.integers(-2, 9, shape))
        elif is_float(dtype):
            collected.append(rng.uniform(-1, 1, shape).astype(_numpy_dtype(dtype)))
        else:
            collected.append(rng.integers(-3, 4, shape).astype(_numpy_dtype(dtype)))
    return collected


class _Maker:
    """A random program under construction: its inputs, those of indices, and the tensors computed so far (`made`).
    kinds: the functions that add a compute, of which a repeated one is more likely. The other parameters are those of
    `program`."""

    def __init__(
        self,
        rng: random.Random,
        dtype: str | None,
        kinds: Sequence[Kind],
        constants: float = 0.0,
        extents: Sequence[int] = EXTENTS,
        largest: int = LARGEST,
    ) -> None:
        self.rng = rng
        self.extents = extents
        self.largest = largest
        self.kinds = kinds
        self.constants = constants
        self.dtype = dtype or rng.choice(
            ("f32", "f32", "f32", "i32", "i32", rng.choice(("f64", "f16", "bf16", "i8", "u8", "i16")))
        )
        self.inputs: list[te.Tensor] = []
        self.indices: list[te.Tensor] = []
        self.made: list[te.Tensor] = []

    def function(self, computes: int | None) -> te.Function:
        """Add `computes` random kinds of computes (None or 0: one to four), and return the te function, whose outputs
        are the last tensor and a random fifth of the others."""
        rng = self.rng
        self.input(tuple(rng.choice(self.extents) for _ in range(rng.choice((1, 2, 2, 2, 3)))))
        for _ in range(computes or rng.choice((1, 2, 2, 3, 3, 4))):
            self.add(self.source())
        others = [t for t in self.made[:-1] if rng.random() < 0.2]
        given = [t for t in (*self.inputs, *self.indices) if t.source is None]
        return te.function("program", given, [*others, self.made[-1]])

    def input(self, shape: tuple[int, ...], cut: bool = True) -> te.Tensor:
        """Add an input, or a constant instead. With `cut`, its extents are reduced until it has at most `largest`
        elements."""
        while cut and prod(shape) > self.largest:
            shape = tuple(max(2, n - 1) for n in shape)
        tensor = P(shape, self.dtype, name=f"I{len(self.inputs)}")
        self.inputs.append(self.stated(tensor))
        tensor = self.inputs[-1]
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
        """Add the tensors of a compute of x: of the first kind, in random order, that applies to it."""
        for kind in self.rng.sample(self.kinds, len(self.kinds)):
            output = kind(self, x)
            if output is not None:
                self.made += [output] if isinstance(output, te.Tensor) else output
                return

    def name(self) -> str:
        number = len(self.made)
        return "ABCDEFGHJKLM"[number] if number < 12 else f"M{number}"

    def compute(self, shape: tuple[int, ...], fn: Callable[..., Any]) -> Any:
        """A compute with axes i, j, k, l."""
        return te.compute(shape, fn, self.name(), axes=tuple("ijkl"[: len(shape)]))

    def index(self, shape: tuple[int, ...]) -> te.Tensor:
        """A new input of indices."""
        self.indices.append(self.stated(P(shape, "i64", name=f"N{len(self.indices)}")))
        return self.indices[-1]

    def stated(self, tensor: te.Tensor) -> te.Tensor:
        """Return an input as is, or with the probability `constants` a constant of its name: many zeros and ones, or
        any elements."""
        if not self.constants or self.rng.random() >= self.constants:
            return tensor
        (elements,) = arrays_for(te.function("f", [tensor], [tensor]), self.rng.randrange(2**32))
        if self.rng.random() < 0.5 and tensor.dtype != "i64":
            table = (0, 0, 1, 1, 2) if tensor.dtype == "u8" else (0, 0, 1, -1, 2)
            elements = np.array(self.rng.choices(table, k=prod(tensor.shape))).reshape(tensor.shape)
        return te.constant(elements.astype(_numpy_dtype(tensor.dtype)), name=tensor.name)

    def gather(self, shape: tuple[int, ...], fn: Callable[..., Any]) -> Any:
        """A gather with axes i, j, k, l, which reads 0 or 7 outside of the table."""
        axes = tuple("ijkl"[: len(shape)])
        return te.gather(shape, fn, self.name(), axes=axes, otherwise=self.rng.choice((0, 7)))

    def scalar(self, value: Any) -> Any:
        """Return a random elementwise expression of a value."""
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
    """f(x) for a random elementwise f."""
    return m.compute(x.shape, lambda *i: m.scalar(x[i]))


def joined(m: _Maker, x: te.Tensor) -> Any:
    """f(x, y) for a tensor y of x's shape; f is a sum, a product or a minimum."""
    y = m.like(x)
    return m.compute(x.shape, lambda *i: m.rng.choice((lambda a, b: a + b, lambda a, b: a * b, te.minimum))(x[i], y[i]))


def broadcast(m: _Maker, x: te.Tensor) -> Any:
    """x[..., j] + b[j] for a new input b; None for x of rank below 2."""
    if x.rank < 2:
        return None
    b = m.input(x.shape[-1:])
    return m.compute(x.shape, lambda *i: x[i] + b[i[-1]])


def outer(m: _Maker, x: te.Tensor) -> Any:
    """x[i] * y[j] for an earlier tensor or a new input y; None unless x is a vector."""
    if x.rank != 1:
        return None
    y = m.like(x) if m.rng.random() < 0.5 else m.input((m.rng.randint(2, 6),))
    return m.compute((x.shape[0], y.shape[0]), lambda i, j: x[i] * y[j])


def transpose(m: _Maker, x: te.Tensor) -> Any:
    """x with its dimensions in a random order; None for x of rank below 2."""
    if x.rank < 2:
        return None
    order = m.rng.sample(range(x.rank), x.rank)
    shape = tuple(x.shape[d] for d in order)
    return m.compute(shape, lambda *i: x[tuple(i[order.index(d)] for d in range(x.rank))])


def reduction(m: _Maker, x: te.Tensor) -> Any:
    """A reduction of x or 2 * x over one or two dimensions; None without dimensions."""
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
    """The sum of each row of x plus the maximum of each row of 2 * x, reductions of one compute; None for x of rank
    below 2."""
    if x.rank < 2:
        return None
    r = te.reduce_axis(x.shape[-1], "r")
    first, second = m.compute(x.shape[:-1], lambda *i: (te.sum(x[(*i, r)], axis=r), te.max(x[(*i, r)] * 2, axis=r)))
    return m.compute(x.shape[:-1], lambda *i: first[i] + second[i])


def selection(m: _Maker, x: te.Tensor) -> Any:
    """argmax or argmin along a dimension, cast to the dtype; or the least of x and the greatest of 2 * x in one
    reduction, as a list, or their difference. None without dimensions."""
    if not x.rank:
        return None
    d = m.rng.randrange(x.rank)
    exact = not is_float(m.dtype) or x in m.inputs  # a sum may be rounded otherwise, and its place be another
    if exact and m.rng.random() < 0.6:
        build = m.rng.choice((te.nn.argmax, te.nn.argmin))
        place = build(x, d, m.rng.random() < 0.3, name=m.name())
        m.made.append(place)
        output = m.compute(place.shape, lambda *i: te.cast(place[i], m.dtype))
        m.made.remove(place)
        return output
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
    """x + 1 and 2 * x, two tensors of one compute, as a list."""
    return list(m.compute(x.shape, lambda *i: (x[i] + 1, x[i] * 2)))


def product(m: _Maker, x: te.Tensor) -> Any:
    """x times a matrix, an earlier tensor or a new input; None unless x is a vector or a matrix, and if a new input is
    cut to other extents."""
    if x.rank not in (1, 2):
        return None
    size = x.shape[-1]
    known = [
        t for t in (*m.inputs, *m.made) if t.rank == 2 and t.shape[0] == size and t.shape[1] * x.shape[0] <= m.largest
    ]
    w = m.rng.choice(known) if known and m.rng.random() < 0.5 else m.input((size, m.rng.randint(2, 9)))
    if w.shape[0] != size:
        return None
    r = te.reduce_axis(size, "r")
    return m.compute((*x.shape[:-1], w.shape[1]), lambda *i: te.sum(x[(*i[:-1], r)] * w[r, i[-1]], axis=r))


def padded(m: _Maker, x: te.Tensor) -> Any:
    """x with 0 to 2 elements of value 0 or 1 on each side; None without dimensions, and for a result over `largest`."""
    widths = [(m.rng.randint(0, 2), m.rng.randint(0, 2)) for _ in x.shape]
    shape = [n + a + b for n, (a, b) in zip(x.shape, widths, strict=True)]
    if not x.rank or prod(shape) > m.largest:
        return None
    return te.nn.pad(x, widths, m.rng.choice((0, 1)), name=m.name())


def halo(m: _Maker, x: te.Tensor) -> Any:
    """The sum of two or three elements of x at offsets along a dimension, such as -1, 0 and 1; zero outside. None
    without dimensions."""
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
    """2 * x[i] + x[i + 1] + x[i + 2] along a dimension, where all three are inside; None without a dimension of extent
    4 or more."""
    if not x.rank or max(x.shape) < 4:
        return None
    d = m.rng.choice([d for d in range(x.rank) if x.shape[d] >= 4])
    shape = tuple(n - 2 * (e == d) for e, n in enumerate(x.shape))

    def at(i: Any, o: int) -> Any:
        return x[(*i[:d], i[d] + o, *i[d + 1 :])]

    return m.compute(shape, lambda *i: at(i, 0) * 2 + at(i, 1) + at(i, 2))


def window(m: _Maker, x: te.Tensor) -> Any:
    """A convolution or pooling along the last dimension, with stride, dilation and padding; None without dimensions,
    and for a result without elements."""
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

    output = m.compute((*x.shape[:-1], size), element)
    if not weighted:
        m.inputs.remove(w)
    return output


def selected(m: _Maker, x: te.Tensor) -> Any:
    """A read of x under a condition, else a number: a shift along the first dimension, or a triangle. None without
    dimensions."""
    if not x.rank:
        return None
    if x.rank >= 2 and m.rng.random() < 0.5:
        return m.compute(x.shape, lambda *i: te.select(i[0] >= i[1], x[i], 0))
    by = m.rng.randint(1, 3)
    return m.compute(x.shape, lambda *i: te.select(i[0] >= by, x[(i[0] - by, *i[1:])], 1))


def reindexed(m: _Maker, x: te.Tensor) -> Any:
    """x with its first dimension repeated, continued periodically, reversed or strided, or a matrix flattened; None
    without dimensions."""
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
    """x at a data-dependent index in one or two dimensions; the index varies with one axis or all of them. None without
    dimensions."""
    if not x.rank:
        return None
    index = m.index((m.rng.randint(2, 5),))
    ways: list[Callable[[], Any]] = [
        lambda: m.gather((index.shape[0], *x.shape[1:]), lambda *i: x.at(index[i[0]], *i[1:])),
        lambda: m.gather((*x.shape[:-1], index.shape[0]), lambda *i: x.at(*i[:-1], index[i[-1]])),
    ]
    if x.rank > 1:
        second = m.index(x.shape)
        ways.append(lambda: m.gather(x.shape, lambda *i: x.at(second[i], *i[1:])))
        ways.append(lambda: m.gather((index.shape[0], *x.shape[2:]), lambda *i: x.at(index[i[0]], index[i[0]], *i[1:])))
    return m.rng.choice(ways)()


def indexed(m: _Maker, x: te.Tensor) -> Any:
    """x plus the value 2 * i + 1 of its first axis i; None without dimensions."""
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


def reshaped(m: _Maker, x: te.Tensor) -> Any:
    """x under another shape: dimensions split, joined, of extent 1; None for a shape of more than four dimensions, or
    of none."""
    extents = [n for size in x.shape for n in _factors(m.rng, size)]
    joined = [extents[0]] if extents else []
    for n in extents[1:]:
        if m.rng.random() < 0.4:
            joined[-1] *= n
        else:
            joined.append(n)
    if len(joined) < 4 and m.rng.random() < 0.4:
        joined.insert(m.rng.randint(0, len(joined)), 1)
    return te.nn.reshape(x, joined, m.name()) if 0 < len(joined) <= 4 else None


def _factors(rng: random.Random, size: int) -> tuple[int, ...]:
    collected = [n for n in (2, 3) if size % n == 0 and size > n]
    factor = rng.choice(collected) if collected and rng.random() < 0.6 else 0
    return (factor, size // factor) if factor else (size,)


def sliced(m: _Maker, x: te.Tensor) -> Any:
    """A slice of x along a dimension, sometimes strided or reversed; None without dimensions."""
    if not x.rank:
        return None
    d = m.rng.randrange(x.rank)
    starts, stops, steps = [0] * x.rank, list(x.shape), [1] * x.rank
    starts[d], stops[d] = m.rng.randrange(x.shape[d]), m.rng.randint(1, x.shape[d])
    if starts[d] >= stops[d]:
        starts[d], stops[d] = 0, x.shape[d]
    steps[d] = m.rng.choice((1, 1, 2))
    part = te.nn.slice(x, starts, stops, steps, m.name())
    m.made.append(part)
    turned = te.nn.flip(part, d, m.name()) if m.rng.random() < 0.3 else part
    m.made.remove(part)
    return turned


def repeated(m: _Maker, x: te.Tensor) -> Any:
    """x once or twice along a new first dimension; None for x above half of `largest`, or of rank above 3."""
    if prod(x.shape) * 2 > m.largest or x.rank > 3:
        return None
    return te.nn.broadcast_to(x, (m.rng.randint(1, 2), *x.shape), m.name())


def concatenated(m: _Maker, x: te.Tensor) -> Any:
    """The concatenation of x, a tensor of its shape and perhaps x again, or of x with itself; or a slice of that, which
    may lie in one part. None without dimensions, and for x above half of `largest`."""
    if not x.rank or prod(x.shape) * 2 > m.largest:
        return None
    d = m.rng.randrange(x.rank)
    both = te.nn.concat([x, m.like(x), x][: m.rng.randint(2, 3)] if m.rng.random() < 0.8 else [x, x], d, m.name())
    if m.rng.random() < 0.4:
        return both
    m.made.append(both)
    start = m.rng.choice((0, x.shape[d], m.rng.randrange(both.shape[d])))
    starts, stops = [0] * x.rank, list(both.shape)
    starts[d], stops[d] = start, min(both.shape[d], start + m.rng.randint(1, x.shape[d]))
    part = te.nn.slice(both, starts, stops, None, m.name())
    m.made.remove(both)
    return part


def surrounded(m: _Maker, x: te.Tensor) -> Any:
    """x padded, then shifted along the first dimension, with the same value or another one outside; None if `padded`
    is."""
    value = m.rng.choice((0, 0, 1))
    inner = padded(m, x)
    if inner is None:
        return None
    m.made.append(inner)
    source, by = inner.padded(value), m.rng.randint(-2, 2)
    output = m.compute(inner.shape, lambda *i: source[(i[0] + by, *i[1:])])
    m.made.remove(inner)
    return output


def copied(m: _Maker, x: te.Tensor) -> Any:
    """A copy of x."""
    return m.compute(x.shape, lambda *i: x[i])


def again(m: _Maker, x: te.Tensor) -> Any:
    """f(x, y) - g(x, y), where g is f with operands in another order, sometimes with another constant; sometimes a list
    of both values and the difference."""
    y, seed = m.like(x), m.rng.random()
    left = m.compute(
        x.shape, lambda *i: x[i] * y[i] + m.rng.choice((1, 1, 2)) if seed < 0.5 else te.maximum(x[i], y[i])
    )
    m.made.append(left)
    right = m.compute(x.shape, lambda *i: 1 + y[i] * x[i] if seed < 0.5 else te.maximum(y[i], x[i]))
    m.made.append(right)
    output = m.compute(x.shape, lambda *i: left[i] - right[i])
    del m.made[-2:]
    return [left, right, output] if m.rng.random() < 0.2 else output


def kept(m: _Maker, x: te.Tensor) -> Any:
    """The reduction of x over one dimension, kept with extent 1, or over an added axis of extent 1; or x minus this
    reduction. None without dimensions."""
    if not x.rank:
        return None
    d = m.rng.randrange(x.rank)
    r = te.reduce_axis(x.shape[d], "r")
    single = te.reduce_axis(1, "s")
    combine = m.rng.choice((te.sum, te.max, te.min))
    shape = tuple(1 if e == d else n for e, n in enumerate(x.shape))
    alone = m.rng.random() < 0.3

    def element(*i: Any) -> Any:
        inner = i if alone else (*i[:d], r + single, *i[d + 1 :])
        at = tuple(index + single if e == 0 and alone else index for e, index in enumerate(inner))
        return combine(x[at], axis=[single] if alone else [r, single])

    y = m.compute(shape, element)
    if m.rng.random() < 0.5:
        return y
    m.made.append(y)
    output = m.compute(x.shape, lambda *i: x[i] - y[(*i[:d], 0, *i[d + 1 :])])
    m.made.remove(y)
    return output


def shared(m: _Maker, x: te.Tensor) -> Any:
    """x reversed along its first dimension, and x + 1: a list of two results of one compute, or None without
    dimensions."""
    if not x.rank:
        return None
    return list(m.compute(x.shape, lambda *i: (x[(x.shape[0] - 1 - i[0], *i[1:])], x[i] + 1)))


def turned_table(m: _Maker, x: te.Tensor) -> Any:
    """A gather from x, permuted or sliced as a table; None for x of rank below 2."""
    if x.rank < 2:
        return None
    order = m.rng.sample(range(x.rank), x.rank)
    if m.rng.random() < 0.6:
        table = te.nn.transpose(x, order, m.name())
    else:
        table = te.nn.slice(x, [0] * x.rank, [max(1, x.shape[0] - 2), *x.shape[1:]], None, m.name())
    m.made.append(table)
    index = m.index((m.rng.randint(2, 5),))
    output = m.gather((index.shape[0], *table.shape[1:]), lambda *i: table.at(index[i[0]], *i[1:]))
    m.made.remove(table)
    return output


def alike(m: _Maker, x: te.Tensor) -> Any:
    """The difference of two values computed in nearly the same way: maximum and minimum, or reads with other borders.
    None without dimensions."""
    if not x.rank:
        return None
    r, d = te.reduce_axis(x.shape[-1], "r"), x.rank - 1
    if m.rng.random() < 0.5:
        first, second = (m.compute(x.shape[:d], lambda *i, f=f: f(x[(*i, r)], axis=r)) for f in (te.max, te.min))
    else:
        sources = (x.padded(0), x.padded(1))
        first, second = (m.compute(x.shape, lambda *i, s=s: s[(*i[:d], i[d] - 1)] * 2) for s in sources)
    m.made += [first, second]
    output = m.compute(first.shape, lambda *i: first[i] - second[i])
    del m.made[-2:]
    return output


VIEWS: tuple[Kind, ...] = (
    alike,
    alike,
    transpose,
    transpose,
    reshaped,
    reshaped,
    reshaped,
    reshaped,
    sliced,
    sliced,
    repeated,
    concatenated,
    concatenated,
    concatenated,
    surrounded,
    surrounded,
    copied,
    again,
    again,
    kept,
    kept,
    kept,
    shared,
    turned_table,
    turned_table,
)
"""The kinds that move elements, compute twice, or have axes of extent 1."""
