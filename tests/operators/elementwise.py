"""Activations, and arithmetic with numpy's broadcasting."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from compiler import te
from tests.operators.catalogue import EVERY, FLOATS, INTEGERS, NUMBERS, Operator, Parameters, numpy_dtype, of_one, shape

P = te.placeholder
erf, erfc = (np.vectorize(function, otypes=[np.float64]) for function in (math.erf, math.erfc))


def _shape(rng: random.Random) -> Parameters:
    return {"shape": shape(rng, 0)}


def _broadcast(rng: random.Random) -> Parameters:
    """Two shapes that broadcast, or a shape and a number."""
    joined = shape(rng, 1)
    left, right = ([1 if rng.random() < 0.2 else n for n in joined] for _ in range(2))
    start = rng.choice([0, 0, rng.randint(0, len(joined))])
    pair = (tuple(left), tuple(right[start:]))
    pair = (pair[1], pair[0]) if rng.random() < 0.3 else pair
    return {"a": pair[0], "b": pair[1], "number": rng.choice([None, None, None, 2, 3])}


def _unary(name: str, positive: bool, dtype: str, p: Parameters) -> te.Function:
    x = P(p["shape"], dtype, name="pos" if positive else "X")
    return te.function(name, [x], getattr(te.nn, name)(x))


def _binary(name: str, dtype: str, p: Parameters) -> te.Function:
    x, y = (
        P(p["a"], dtype, name="posA" if name == "pow" else "A"),
        P(p["b"], dtype, name="posB" if name in POSITIVE else "B"),
    )
    if p["number"] is not None and dtype != "i1":
        return te.function(name, [x], getattr(te.nn, name)(x, p["number"]))
    return te.function(name, [x, y], getattr(te.nn, name)(x, y))


POSITIVE = ("div", "pow", "left_shift", "right_shift", "fmod", "remainder", "floor_divide", "trunc_divide")
"""Operators whose second operands are above 0."""


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
    "erfc": erfc,
    "round": np.rint,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "tan": lambda x: np.sin(x) / np.cos(x),
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "reciprocal": np.reciprocal,
    "sign": np.sign,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "bitwise_not": np.invert,
    "softsign": lambda x: x / (1 + np.abs(x)),
    "mish": lambda x: x * np.tanh(np.logaddexp(x, 0)),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "celu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "hardsigmoid": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "threshold": lambda x: np.where(x > 1, x, 0),
}
EXACT = ("relu", "neg", "abs", "square", "sign")
"""What integers have as well."""
ABOVE_ZERO = ("log", "sqrt", "rsqrt", "log2", "log10", "log1p", "reciprocal")
BITS = ("bitwise_not", "bitwise_and", "bitwise_or", "bitwise_xor")
SHIFTS = ("left_shift", "right_shift")
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "pow": np.power,
    "fmod": np.fmod,
    "remainder": np.mod,
    "floor_divide": np.floor_divide,
    "trunc_divide": lambda a, b: np.sign(a) * np.sign(b) * (abs(a) // abs(b)),
    "atan2": np.arctan2,
    "hypot": np.hypot,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "left_shift": lambda a, b: a * 2 ** np.asarray(b),
    "right_shift": lambda a, b: a // 2 ** np.asarray(b),
    "maximum": np.maximum,
    "minimum": np.minimum,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}


def _dtypes(name: str) -> tuple[str, ...]:
    """The dtypes of an operator on two tensors."""
    if name in BITS:
        return (*INTEGERS, "i1")
    return INTEGERS if name in SHIFTS else FLOATS if name in ("div", "atan2", "hypot") else NUMBERS


def _clamped(rng: random.Random) -> Parameters:
    low, high = sorted(rng.sample(range(5), 2))
    low, high = rng.choice([(low, high), (low, high), (None, high), (low, None), ("L", high), ("L", "H")])
    p = _broadcast(rng)
    return {"shape": p["a"], "bound": p["b"], "low": low, "high": high}


def _clamp(dtype: str, p: Parameters) -> te.Function:
    x = P(p["shape"], dtype, name="X")
    bounds = {n: P(p["bound"], dtype, name=n) for n in (p["low"], p["high"]) if isinstance(n, str)}
    return te.function(
        "clamp", [x, *bounds.values()], te.nn.clamp(x, *(bounds.get(n, n) for n in (p["low"], p["high"])))
    )


def _clamp_reference(p: Parameters, x: Any, *bounds: Any) -> Any:
    given = list(bounds)
    low, high = (given.pop(0) if isinstance(n, str) else n for n in (p["low"], p["high"]))
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


def _sloped(dtype: str, p: Parameters) -> te.Function:
    x, slope = P(p["a"], dtype, name="X"), P(p["b"], dtype, name="S")
    return te.function("prelu", [x, slope], te.nn.prelu(x, slope))


def _gelu(p: Parameters, x: Any) -> Any:
    if p["approximate"] == "none":
        return x * (1 + erf(x / math.sqrt(2))) / 2
    return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


def _gelu_torch(p: Parameters, x: Any) -> Any:
    import torch

    return torch.nn.functional.gelu(x, approximate=p["approximate"])


def _converted(rng: random.Random) -> Parameters:
    return {**_shape(rng), "to": rng.choice(EVERY), "saturate": rng.random() < 0.3}


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
    joined = shape(rng, 1)
    shapes = [tuple(1 if rng.random() < 0.2 else n for n in joined)[rng.choice([0, 0, 0, 1]) :] for _ in range(3)]
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
            NUMBERS if name in EXACT else (*INTEGERS, "i1") if name in BITS else FLOATS,
            _shape,
            partial(_unary, name, name in ABOVE_ZERO),
            _of_one(function),
            _torch_of_one(name),
        )
        for name, function in UNARY.items()
    ),
    *(
        Operator(name, _dtypes(name), _broadcast, partial(_binary, name), _of_two(function), _torch_of_two(name))
        for name, function in BINARY.items()
    ),
    Operator("clamp", NUMBERS, _clamped, _clamp, _clamp_reference, None),
    Operator(
        "gelu",
        FLOATS,
        lambda rng: {**_shape(rng), "approximate": rng.choice(["none", "tanh"])},
        of_one("gelu", "approximate"),
        _gelu,
        _gelu_torch,
    ),
    Operator("prelu", FLOATS, _broadcast, _sloped, lambda p, x, s: np.where(x < 0, x * s, x), None),
    Operator("cast", EVERY, _converted, of_one("cast", "to", "saturate"), _cast_reference, None),
    Operator("where", EVERY, _chosen, _where, lambda p, c, a, b: np.where(c, a, b), _torch_where),
)
