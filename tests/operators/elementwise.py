"""Activations, and arithmetic with numpy's broadcasting."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from compiler import te
from tests.operators.catalogue import EVERY, FLOATS, NUMBERS, Operator, Parameters, numpy_dtype, shape

P = te.placeholder
erf = np.vectorize(math.erf, otypes=[np.float64])


def _shape(rng: random.Random) -> Parameters:
    return {"shape": shape(rng, 0)}


def _broadcast(rng: random.Random) -> Parameters:
    """Two shapes that broadcast, or a shape and a number."""
    whole = shape(rng, 1)
    left, right = ([1 if rng.random() < 0.2 else n for n in whole] for _ in range(2))
    start = rng.choice([0, 0, rng.randint(0, len(whole))])
    pair = (tuple(left), tuple(right[start:]))
    pair = (pair[1], pair[0]) if rng.random() < 0.3 else pair
    return {"a": pair[0], "b": pair[1], "number": rng.choice([None, None, None, 2, 3])}


def _unary(name: str, positive: bool, dtype: str, p: Parameters) -> te.Function:
    x = P(p["shape"], dtype, name="pos" if positive else "X")
    return te.function(name, [x], getattr(te.nn, name)(x))


def _binary(name: str, dtype: str, p: Parameters) -> te.Function:
    x, y = (
        P(p["a"], dtype, name="posA" if name == "pow" else "A"),
        P(p["b"], dtype, name="posB" if name == "div" else "B"),
    )
    if p["number"] is not None:
        return te.function(name, [x], getattr(te.nn, name)(x, p["number"]))
    return te.function(name, [x, y], getattr(te.nn, name)(x, y))


def _of_one(function: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda p, x: function(x)


def _of_two(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda p, x, y=None: function(x, p["number"] if y is None else y)


TORCH = {"equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge"}


def _torch_of_two(name: str) -> Callable[..., Any]:
    def call(p: Parameters, x: Any, y: Any = None) -> Any:
        import torch

        function = getattr(torch, TORCH.get(name, name))
        return function(x, torch.tensor(p["number"], dtype=x.dtype) if y is None else y)

    return call


def _torch_of_one(name: str) -> Callable[..., Any]:
    def call(p: Parameters, x: Any) -> Any:
        import torch

        return (getattr(torch, name, None) or getattr(torch.nn.functional, name))(x)

    return call


UNARY: dict[str, Callable[[Any], Any]] = {
    "relu": lambda x: np.maximum(x, 0),
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: x * (1 + erf(x / math.sqrt(2))) / 2,
    "neg": np.negative,
    "abs": np.abs,
    "square": np.square,
    "floor": np.floor,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "leaky_relu": lambda x: np.where(x > 0, x, x / 100),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "softplus": lambda x: np.logaddexp(x, 0),
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "sin": np.sin,
    "cos": np.cos,
    "erf": erf,
    "round": np.rint,
}
EXACT = ("relu", "neg", "abs", "square")
"""What integers have as well."""
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "pow": np.power,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}


def _clamped(rng: random.Random) -> Parameters:
    low, high = sorted(rng.sample(range(5), 2))
    return {**_shape(rng), "low": low, "high": high}


def _clamp(dtype: str, p: Parameters) -> te.Function:
    x = P(p["shape"], dtype, name="X")
    return te.function("clamp", [x], te.nn.clamp(x, p["low"], p["high"]))


def _converted(rng: random.Random) -> Parameters:
    return {**_shape(rng), "to": rng.choice(EVERY), "saturate": rng.random() < 0.3}


def _cast(dtype: str, p: Parameters) -> te.Function:
    x = P(p["shape"], dtype, name="X")
    return te.function("cast", [x], te.nn.cast(x, p["to"], p["saturate"]))


def _cast_reference(p: Parameters, x: Any) -> Any:
    """Floats truncate and saturate, integers wrap or saturate, and are rounded as floats."""
    if p["to"] == "i1":
        return x != 0
    if p["to"] in FLOATS:
        return x.astype(np.float64)
    if x.dtype.kind == "f" or (p["saturate"] and x.dtype.kind != "b"):
        limits = np.iinfo(numpy_dtype(p["to"]))
        x = np.clip(np.trunc(x), limits.min, limits.max)
    return x.astype(np.int64)


def _chosen(rng: random.Random) -> Parameters:
    whole = shape(rng, 1)
    shapes = [tuple(1 if rng.random() < 0.2 else n for n in whole)[rng.choice([0, 0, 0, 1]) :] for _ in range(3)]
    return {"shapes": shapes}


def _where(dtype: str, p: Parameters) -> te.Function:
    c, a, b = (P(s, d, name=n) for s, d, n in zip(p["shapes"], ("i1", dtype, dtype), "CAB", strict=True))
    return te.function("where", [c, a, b], te.nn.where(c, a, b))


def _torch_where(p: Parameters, c: Any, a: Any, b: Any) -> Any:
    import torch

    return torch.where(c, a, b)


FAMILY = (
    *(
        Operator(
            name,
            NUMBERS if name in EXACT else FLOATS,
            _shape,
            partial(_unary, name, name in ("log", "sqrt", "rsqrt")),
            _of_one(function),
            _torch_of_one(name),
        )
        for name, function in UNARY.items()
    ),
    *(
        Operator(
            name,
            FLOATS if name in ("div", "pow") else NUMBERS,
            _broadcast,
            partial(_binary, name),
            _of_two(function),
            _torch_of_two(name),
        )
        for name, function in BINARY.items()
    ),
    Operator(
        "clamp",
        NUMBERS,
        _clamped,
        _clamp,
        lambda p, x: np.clip(x, p["low"], p["high"]),
        lambda p, x: x.clamp(p["low"], p["high"]),
    ),
    Operator("cast", EVERY, _converted, _cast, _cast_reference, None),
    Operator("where", EVERY, _chosen, _where, lambda p, c, a, b: np.where(c, a, b), _torch_where),
)
