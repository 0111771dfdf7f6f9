"""`Operator`: one entry of the catalogue, and what its families share."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from compiler import te
from compiler.types.dtypes import DTYPES

Array = np.ndarray[Any, Any]
Parameters = dict[str, Any]

FLOATS = ("f16", "bf16", "f32", "f64")
INTEGERS = ("i8", "u8", "i16", "i32", "i64")
NUMBERS = (*FLOATS, *INTEGERS)
EVERY = (*NUMBERS, "i1")


def random_inputs(function: te.Function, seed: int) -> list[Array]:
    """Random arrays: normal, small integers, bits; above zero where a tensor's name begins with `pos`."""
    rng = np.random.default_rng(seed)
    return [_random(tensor, rng) for tensor in function.inputs]


def _random(tensor: te.Tensor, rng: np.random.Generator) -> Array:
    dtype = numpy_dtype(tensor.dtype)
    positive = tensor.name.startswith("pos")
    if dtype.kind in "biu":
        low = 1 if positive else 0 if dtype.kind in "bu" else -9
        return np.asarray(rng.integers(low, 2 if dtype.kind == "b" else 10, tensor.shape), dtype)
    values = np.asarray(rng.standard_normal(tensor.shape))
    return np.asarray(np.abs(values) + 0.1 if positive else values, dtype)


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """numpy's dtype of an element type; that of bf16 is of ml_dtypes."""
    import ml_dtypes  # noqa: F401  # it gives numpy the name bfloat16

    return np.dtype(DTYPES[dtype].numpy)


@dataclass(frozen=True)
class Operator:
    """An operator of te.nn, how it is sampled and built, and what it must compute.

    sample: random parameters, odd and degenerate ones (extent 1) included; the same for every dtype.
    build: the te function of a dtype and parameters.
    reference: the parameters and the inputs, in float64 or int64, to the result or a tuple of them; plain numpy.
    torch: the same with torch's tensors of the function's own dtypes, or None where torch has no such operator.
    inputs: the function and a seed to arrays that suit the operator.
    """

    name: str
    dtypes: tuple[str, ...]
    sample: Callable[[random.Random], Parameters]
    build: Callable[[str, Parameters], te.Function]
    reference: Callable[..., Any]
    torch: Callable[..., Any] | None
    inputs: Callable[[te.Function, int], list[Array]] = random_inputs


def of_one(name: str, *options: str) -> Callable[[str, Parameters], te.Function]:
    """Build an operator of X, of extents `x` or `shape`, with these of the parameters in the order of its signature."""
    return _of_one(name, lambda p: ([p[option] for option in options], {}))


def alike(name: str, *options: str, torch: str = "") -> tuple[Callable[[str, Parameters], te.Function], Any, Any]:
    """Build an operator of X that numpy has under the same name, and torch as a method; and do what these do."""
    return (
        of_one(name, *options),
        lambda p, x: getattr(np, name)(x, *(p[option] for option in options)),
        lambda p, x: getattr(x, torch or name)(*(p[option] for option in options)),
    )


def of_one_by_name(name: str) -> Callable[[str, Parameters], te.Function]:
    """Build an operator of X, of extents `x`, with all other parameters by their names."""
    return _of_one(name, lambda p: ([], {option: value for option, value in p.items() if option != "x"}))


def _of_one(
    name: str, options: Callable[[Parameters], tuple[list[Any], Parameters]]
) -> Callable[[str, Parameters], te.Function]:
    def build(dtype: str, p: Parameters) -> te.Function:
        x = te.placeholder(p["x"] if "x" in p else p["shape"], dtype, name="X")
        positional, named = options(p)
        made = getattr(te.nn, name)(x, *positional, **named)
        return te.function(name, [x], list(made) if isinstance(made, tuple) else made)

    return build


def extent(rng: random.Random, most: int = 9) -> int:
    """A random extent: 1 in a fifth of all cases."""
    return 1 if rng.random() < 0.2 else rng.randint(1, most)


def shape(rng: random.Random, least: int = 1, most: int = 4, elements: int = 300) -> tuple[int, ...]:
    """A random shape of a rank within bounds, of a bounded number of elements."""
    while True:
        actual = tuple(extent(rng) for _ in range(rng.randint(least, most)))
        if np.prod(actual, dtype=int) <= elements:
            return actual


def one_axis(rng: random.Random) -> Parameters:
    """A random shape `x` and one of its axes, from either end."""
    extents = shape(rng)
    return {"x": extents, "axis": rng.randrange(-len(extents), len(extents))}
