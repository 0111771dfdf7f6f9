"""`python -m benchmarks.jax_models [NAME ...]`: networks in plain JAX, by `strata.from_jax` and by `jax.jit`.

Random weights, float32, one thread, without a trial; weights are constants for both. CPU time, medians of rounds in
which both are called in turns; results are compared.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn

import strata
from compiler.support.text import duration

ROUNDS = 15
RANDOM = np.random.default_rng(0)


def weights(*shape: int) -> Any:
    """A normal array divided by the root of the product of all extents but the last."""
    return (RANDOM.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)


def residual() -> tuple[Callable[..., Any], Any]:
    """Return a network and its input: four residual blocks of two 3x3 convolutions of 64 features, channels last, as in
    ResNet-18."""
    kernels = [(weights(3, 3, 64, 64), weights(3, 3, 64, 64)) for _ in range(4)]

    def conv(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def network(x: Any) -> Any:
        for first, second in kernels:
            x = nn.relu(x + conv(nn.relu(conv(x, first)), second))
        return x.mean((1, 2))

    return network, weights(1, 56, 56, 64)


def transformer() -> tuple[Callable[..., Any], Any]:
    """Return a network and its input: four decoder blocks as in GPT-2, of width 768 with 12 heads, on 128 words."""
    width, heads, words = 768, 12, 128
    table, positions = weights(5000, width), weights(words, width)
    blocks = [
        (weights(width, 3 * width), weights(width, width), weights(width, 4 * width), weights(4 * width, width))
        for _ in range(4)
    ]

    def norm(x: Any) -> Any:
        return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

    def attention(x: Any, qkv: Any, out: Any) -> Any:
        q, k, v = jnp.split((x @ qkv).reshape(1, words, 3 * heads, -1), 3, axis=2)
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(width // heads)
        scores = jnp.where(jnp.tril(jnp.ones((words, words), bool)), scores, -1e9)
        return jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(scores), v).reshape(x.shape) @ out

    def network(tokens: Any) -> Any:
        x = jnp.asarray(table)[tokens] + positions
        for qkv, out, up, down in blocks:
            x = x + attention(norm(x), qkv, out)
            x = x + nn.gelu(norm(x) @ up) @ down
        return norm(x) @ table.T

    return network, np.arange(words, dtype=np.int32)[None]


def perceptron() -> tuple[Callable[..., Any], Any]:
    """Return a network and its input: three dense layers of width 1024 with gelu, and a softmax, on 64 rows."""
    layers = [weights(1024, 1024) for _ in range(3)]

    def network(x: Any) -> Any:
        for w in layers:
            x = nn.gelu(x @ w)
        return nn.softmax(x)

    return network, weights(64, 1024)


MODELS = {"residual": residual, "transformer": transformer, "perceptron": perceptron}


def measure(name: str) -> None:
    """Compare a model's results by strata and by jax.jit, and print the median CPU seconds of a call of each, and those
    of strata's build."""
    function, x = MODELS[name]()
    begin = time.process_time()
    kernel = strata.build(strata.from_jax(function, [x]), threads=1)
    kernel(x)
    building = time.process_time() - begin
    jitted = jax.jit(function)
    np.testing.assert_allclose(np.asarray(kernel(x)), np.asarray(jitted(x)), rtol=2e-3, atol=2e-3)
    calls: dict[str, Callable[[], Any]] = {"strata": lambda: kernel(x), "jax": lambda: jitted(x).block_until_ready()}
    seconds: dict[str, list[float]] = {label: [] for label in calls}
    for _ in range(ROUNDS):
        for label, call in calls.items():
            begin = time.process_time()
            call()
            seconds[label].append(time.process_time() - begin)
    shown = ", ".join(f"{label} {duration(median(times))}" for label, times in seconds.items())
    print(f"{name}: {shown}; built in {duration(building)}", flush=True)


if __name__ == "__main__":
    for name in sys.argv[1:] or MODELS:
        measure(name)
