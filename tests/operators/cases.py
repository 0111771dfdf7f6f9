"""Every operator of te.nn on at least five shapes: odd ones, extent 1, padding larger than the kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from compiler import te

P = te.placeholder
Case = Callable[[], te.Function]
CASES: dict[str, Case] = {}


def case(operator: str, *shapes: Any) -> Callable[[Callable[..., te.Function]], Callable[..., te.Function]]:
    """Register one case a shape."""
    assert len(shapes) >= 5

    def register(build: Callable[..., te.Function]) -> Callable[..., te.Function]:
        for number, shape in enumerate(shapes):
            CASES[f"{operator}-{number}"] = lambda shape=shape: build(*shape)
        return build

    return register


def inputs(function: te.Function, seed: int = 0) -> list[np.ndarray[Any, Any]]:
    """Random arrays for a function's inputs: positive halves of the line where a logarithm or root is taken."""
    rng = np.random.default_rng(seed)
    collected = []
    for tensor in function.inputs:
        if tensor.dtype.startswith("f"):
            values = rng.standard_normal(tensor.shape)
            values = np.abs(values) + 0.1 if tensor.name.startswith("pos") else values
            collected.append(values.astype({"f32": np.float32, "f64": np.float64}[tensor.dtype]))
        else:
            dtype = {"i32": np.int32, "i64": np.int64, "i1": np.bool_}[tensor.dtype]
            collected.append(rng.integers(-9, 10, tensor.shape).astype(dtype))
    return collected


SIZES = [(3, 4, 5), (1, 1, 1), (7, 1, 9), (16, 17, 33), (1, 20, 2), (5, 64, 1)]


@case(
    "matmul",
    *[(m, k, n, ta, tb) for (m, k, n), ta, tb in zip(SIZES, [0, 1, 0, 1, 0, 1], [0, 0, 1, 1, 1, 0], strict=True)],
)
def matmul(m: int, k: int, n: int, ta: int, tb: int) -> te.Function:
    a, b = P((k, m) if ta else (m, k), name="A"), P((n, k) if tb else (k, n), name="B")
    return te.function("matmul", [a, b], te.nn.matmul(a, b, bool(ta), bool(tb)))


@case("batch_matmul", *[(i, *s, t) for i, s, t in zip([2, 1, 3, 2, 1, 4], SIZES, [0, 1, 2, 3, 0, 1], strict=True)])
def batch_matmul(i: int, m: int, k: int, n: int, t: int) -> te.Function:
    ta, tb = t & 1, t & 2
    a, b = P((i, k, m) if ta else (i, m, k), name="A"), P((i, n, k) if tb else (i, k, n), name="B")
    return te.function("batch_matmul", [a, b], te.nn.batch_matmul(a, b, bool(ta), bool(tb)))


@case("dense", *[(*s, b) for s, b in zip(SIZES, [0, 1, 1, 0, 1, 1], strict=True)])
def dense(m: int, k: int, n: int, biased: int) -> te.Function:
    x, w, b = P((m, k), name="X"), P((n, k), name="W"), P((n,), name="b")
    return te.function("dense", [x, w, *([b] * biased)], te.nn.dense(x, w, b if biased else None))


@case(
    "conv2d",
    ((1, 3, 7, 7), (4, 3, 3, 3), 1, 1, 1, 1),
    ((2, 4, 9, 7), (6, 2, 3, 3), 2, (1, 4), 2, 2),
    ((1, 1, 1, 1), (1, 1, 1, 1), 1, 0, 1, 1),
    ((1, 2, 5, 6), (3, 2, 2, 1), (2, 1), (0, 1, 2, 3), (1, 2), 1),
    ((1, 2, 3, 3), (2, 2, 2, 2), 1, 5, 1, 1),
    ((1, 6, 4, 4), (6, 1, 3, 3), 1, 1, 1, 6),
    ((3, 1, 1, 8), (2, 1, 1, 3), (1, 3), (0, 2), 1, 1),
)
def conv2d(x: Any, w: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> te.Function:
    xs, ws, b = P(x, name="X"), P(w, name="W"), P((w[0],), name="b")
    out = te.nn.conv2d(xs, ws, b, stride=stride, padding=padding, dilation=dilation, groups=groups)
    return te.function("conv2d", [xs, ws, b], out)


POOLS = [
    ((1, 2, 6, 6), 2, None, 0),
    ((2, 1, 7, 5), 3, 2, 1),
    ((1, 1, 1, 1), 1, 1, 0),
    ((1, 3, 4, 9), (1, 3), (1, 2), (0, 1)),
    ((1, 1, 3, 3), 2, 1, 4),
    ((1, 2, 5, 5), 3, 1, (2, 0, 1, 3)),
]


@case("max_pool2d", *POOLS)
def max_pool2d(x: Any, kernel: Any, stride: Any, padding: Any) -> te.Function:
    xs = P(x, name="X")
    return te.function("max_pool2d", [xs], te.nn.max_pool2d(xs, kernel, stride, padding))


@case("avg_pool2d", *[(*pool, count) for pool, count in zip(POOLS, [1, 0, 1, 0, 1, 0], strict=True)])
def avg_pool2d(x: Any, kernel: Any, stride: Any, padding: Any, count: int) -> te.Function:
    xs = P(x, name="X")
    return te.function("avg_pool2d", [xs], te.nn.avg_pool2d(xs, kernel, stride, padding, bool(count)))


@case("softmax", ((4, 5), -1), ((4, 5), 0), ((1,), 0), ((2, 3, 4), 1), ((1, 33), 1), ((7, 1), 1))
def softmax(shape: Any, axis: int) -> te.Function:
    x = P(shape, name="X")
    return te.function("softmax", [x], te.nn.softmax(x, axis))


@case("layer_norm", ((4, 5), -1), ((4, 5), 0), ((1, 8), 1), ((2, 3, 4), 1), ((3, 33), 1), ((7, 2, 2), 0))
def layer_norm(shape: Any, axis: int) -> te.Function:
    x, g, b = P(shape, name="X"), P((shape[axis],), name="gamma"), P((shape[axis],), name="beta")
    return te.function("layer_norm", [x, g, b], te.nn.layer_norm(x, g, b, axis=axis))


SHAPES = [(5,), (1, 1), (3, 7), (2, 1, 5), (17, 3), (), (33,)]

for _name in ("relu", "gelu", "silu", "sigmoid", "tanh", "exp", "log", "sqrt", "neg"):

    @case(_name, *[(shape, _name) for shape in SHAPES])
    def unary(shape: Any, name: str) -> te.Function:
        x = P(shape, name="pos" if name in ("log", "sqrt") else "X")
        return te.function(name, [x], getattr(te.nn, name)(x))


PAIRS = [((5,), (5,)), ((3, 4), (4,)), ((1, 4), (3, 1)), ((2, 3, 4), (3, 1)), ((1,), (7, 1)), ((6,), None)]

for _name in ("add", "sub", "mul", "div", "pow", "maximum", "minimum"):

    @case(_name, *[(*pair, _name) for pair in PAIRS])
    def binary(a: Any, b: Any, name: str) -> te.Function:
        x = P(a, name="pos")
        if b is None:
            return te.function(name, [x], getattr(te.nn, name)(x, 1.5))
        y = P(b, name="pos2" if name == "div" else "Y")
        return te.function(name, [x, y], getattr(te.nn, name)(x, y))


REDUCED = [((4, 5), None), ((4, 5), 1), ((1, 1), 0), ((2, 3, 4), (0, 2)), ((7, 1), -1), ((33,), 0)]

for _name in ("sum", "prod", "max", "min", "mean"):

    @case(_name, *[(*pair, _name, i % 2) for i, pair in enumerate(REDUCED)])
    def reduced(shape: Any, axis: Any, name: str, keep: int) -> te.Function:
        x = P(shape, name="X")
        return te.function(name, [x], getattr(te.nn, name)(x, axis, bool(keep)))


@case("transpose", ((3, 4), None), ((2, 3, 4), (1, 2, 0)), ((1, 5), (1, 0)), ((6,), (0,)), ((2, 1, 3, 2), (3, 1, 0, 2)))
def transpose(shape: Any, perm: Any) -> te.Function:
    x = P(shape, name="X")
    return te.function("transpose", [x], te.nn.transpose(x, perm))


@case(
    "pad",
    ((3,), [(1, 2)], 0.0),
    ((2, 3), [(0, 0), (4, 0)], 2.5),
    ((1, 1), [(1, 1), (0, 1)], -1.0),
    ((2, 2, 2), [(0, 1), (1, 0), (7, 7)], 0.5),
    ((5,), [(0, 0)], 9.0),
)
def pad(shape: Any, widths: Any, value: float) -> te.Function:
    x = P(shape, name="X")
    return te.function("pad", [x], te.nn.pad(x, widths, value))


def all_dtypes(dtype: str) -> te.Function:
    """Arithmetic, comparisons, selects and casts of one dtype, every one an output."""
    a, b, c = P((13,), dtype, name="A"), P((13,), dtype, name="B"), P((13,), "i1", name="C")
    made: dict[str, Callable[[Any], Any]] = {
        "add": lambda i: a[i] + b[i],
        "sub": lambda i: 3 - b[i],
        "mul": lambda i: a[i] * 2,
        "max": lambda i: te.maximum(a[i], b[i]),
        "min": lambda i: te.minimum(a[i], 1),
        "abs": lambda i: te.abs(a[i]),
        "neg": lambda i: -a[i],
        "lt": lambda i: a[i] < b[i],
        "ge": lambda i: a[i] >= 0,
        "eq": lambda i: te.equal(a[i], b[i]),
        "ne": lambda i: te.not_equal(a[i], b[i]),
        "logic": lambda i: te.any_of(c[i] & (a[i] > b[i]), ~c[i]),
        "select": lambda i: te.select(c[i], a[i], b[i]),
        "window": lambda i: te.select(te.all_of(i >= 3, i < 7), a[i - 3], 5),
        "parity": lambda i: te.select(te.equal(i % 2, 0), a[i // 2], b[i]),
        "axis": lambda i: te.cast(i * 3 + 1, dtype) + a[12 - i],
        **{f"to_{t}": (lambda i, t=t: te.cast(a[i], t)) for t in ("f32", "f64", "i32", "i64", "i1")},
        "from_i1": lambda i: te.cast(c[i], dtype),
    }
    if dtype.startswith("i"):
        made |= {"quotient": lambda i: a[i] // 3, "rest": lambda i: a[i] % 4}
    else:
        made |= {"div": lambda i: a[i] / 3, "floor": lambda i: te.floor(a[i])}
        made |= {n: (lambda i, n=n: getattr(te, n)(a[i])) for n in ("sin", "cos", "erf", "tanh", "sigmoid")}
        made |= {"rsqrt": lambda i: te.rsqrt(te.abs(a[i]) + 1)}
    outputs = [te.compute((13,), fn, name, axes=("i",)) for name, fn in made.items()]
    return te.function(f"all_{dtype}", [a, b, c], outputs)


for _dtype in ("f32", "f64", "i32", "i64"):
    CASES[f"dtype-{_dtype}"] = lambda dtype=_dtype: all_dtypes(dtype)
