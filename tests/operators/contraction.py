"""Matrix products."""

from __future__ import annotations

import random
from typing import Any

from compiler import te
from tests.operators.catalogue import NUMBERS, Operator, Parameters, extent

P = te.placeholder


def _sizes(rng: random.Random) -> Parameters:
    sizes = {name: extent(rng, 17) for name in "mkn"}
    return {**sizes, "i": extent(rng, 4), "ta": rng.random() < 0.5, "tb": rng.random() < 0.5}


def _matmul(dtype: str, p: Parameters) -> te.Function:
    a = P((p["k"], p["m"]) if p["ta"] else (p["m"], p["k"]), dtype, name="A")
    b = P((p["n"], p["k"]) if p["tb"] else (p["k"], p["n"]), dtype, name="B")
    return te.function("matmul", [a, b], te.nn.matmul(a, b, p["ta"], p["tb"]))


def _batch_matmul(dtype: str, p: Parameters) -> te.Function:
    a = P((p["i"], p["k"], p["m"]) if p["ta"] else (p["i"], p["m"], p["k"]), dtype, name="A")
    b = P((p["i"], p["n"], p["k"]) if p["tb"] else (p["i"], p["k"], p["n"]), dtype, name="B")
    return te.function("batch_matmul", [a, b], te.nn.batch_matmul(a, b, p["ta"], p["tb"]))


def _product(p: Parameters, a: Any, b: Any) -> Any:
    return (a.swapaxes(-1, -2) if p["ta"] else a) @ (b.swapaxes(-1, -2) if p["tb"] else b)


def _summed(function: Any) -> Any:
    """torch sums narrow integers in their own dtype: it is given i32, as we sum them."""

    def call(p: Parameters, *tensors: Any) -> Any:
        narrow = not tensors[0].is_floating_point() and tensors[0].itemsize < 4
        return function(p, *(t.int() if narrow else t for t in tensors))

    return call


def _dense(dtype: str, p: Parameters) -> te.Function:
    x, w, b = P((p["m"], p["k"]), dtype, name="X"), P((p["n"], p["k"]), dtype, name="W"), P((p["n"],), dtype, name="b")
    biased = [b] if p["ta"] else []
    return te.function("dense", [x, w, *biased], te.nn.dense(x, w, *biased))


def _dense_reference(p: Parameters, x: Any, w: Any, b: Any = 0) -> Any:
    return x @ w.swapaxes(-1, -2) + b


FAMILY = (
    Operator("matmul", NUMBERS, _sizes, _matmul, _product, _summed(_product)),
    Operator("batch_matmul", NUMBERS, _sizes, _batch_matmul, _product, _summed(_product)),
    Operator("dense", NUMBERS, _sizes, _dense, _dense_reference, _summed(_dense_reference)),
)
