"""Tensorized matmuls beside single precision, numpy and torch, one thread, in turns: `python -m benchmarks.tensorized`.

Results are checked first. Billions of multiplications and additions a second: median, least and most of the rounds.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"  # read when libraries are loaded

import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import ml_dtypes
import numpy as np

import compiler
from compiler import recipes, te
from compiler.schedule import Schedule
from compiler.support.errors import StrataError

ROUNDS = 15
Call = Callable[[], Any]


def scheduled(n: int, left: str, right: str, sums: str, apply: Callable[[Schedule, Any], object]) -> Any:
    """Build an n x n matmul of operands of dtypes `left` and `right` with sums of dtype `sums`, after `apply(schedule,
    block)`."""
    a, b = te.placeholder((n, n), left, name="A"), te.placeholder((n, n), right, name="B")
    s = Schedule(compiler.lower(te.function("matmul", [a, b], [te.nn.matmul(a, b, dtype=sums, name="C")])))
    apply(s, s.get_block("C"))
    return compiler.build(s)


def contenders(n: int) -> dict[str, Call]:
    """Return a checked call for each contender by name; print a line for one that cannot be built here or is not
    installed."""
    rng = np.random.default_rng(0)
    u, i = rng.integers(0, 256, (n, n), np.uint8), rng.integers(-128, 128, (n, n), np.int8)
    x, y = (rng.standard_normal((n, n)).astype(np.float32) for _ in range(2))
    p, q = x.astype(ml_dtypes.bfloat16), y.astype(ml_dtypes.bfloat16)
    dot, tiles, single = recipes.quantised_gebp, recipes.tile_gebp, recipes.gebp
    makes: dict[str, Callable[[], tuple[Any, Any, Any]]] = {
        "u8 x i8, dot": lambda: (
            scheduled(n, "u8", "i8", "i32", lambda s, c: dot(s, c, "dot.i32.u8i8x4", 64, 1024, 512, 6, 4)),
            u,
            i,
        ),
        "bf16, dot": lambda: (
            scheduled(n, "bf16", "bf16", "f32", lambda s, c: dot(s, c, "dot.f32.bf16x2", 64, 1024, 512, 6, 4)),
            p,
            q,
        ),
        "bf16, tiles": lambda: (scheduled(n, "bf16", "bf16", "f32", lambda s, c: tiles(s, c, 128, 128)), p, q),
        "f32, gebp": lambda: (scheduled(n, "f32", "f32", "f32", lambda s, c: single(s, c, 64, 256, 512, 8, 32)), x, y),
    }
    calls: dict[str, Call] = {}
    for name, make in makes.items():
        try:
            kernel, left, right = make()
        except StrataError as error:
            print(f"without {name}: {error}")
            continue
        want = left.astype(np.float64) @ right.astype(np.float64)
        np.testing.assert_allclose(kernel(left, right), want, rtol=1e-3, atol=1e-3 if "f" in name else 0)
        calls[name] = partial(kernel, left, right)
    calls["f32, numpy"] = lambda: x @ y
    return calls | _torch(i, x, y)


def _torch(i: Any, x: Any, y: Any) -> dict[str, Call]:
    try:
        import torch
    except ImportError:
        print("without torch: it is not installed")
        return {}
    torch.set_num_threads(1)
    bytes_, left, right = torch.from_numpy(i), torch.from_numpy(x), torch.from_numpy(y)
    narrow = left.bfloat16(), right.bfloat16()
    return {
        "i8 x i8, torch": lambda: torch._int_mm(bytes_, bytes_),
        "bf16, torch": lambda: narrow[0] @ narrow[1],
        "f32, torch": lambda: left @ right,
    }


def main() -> None:
    """Print a line for each contender."""
    for n in (512, 1024):
        calls = contenders(n)
        times: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(ROUNDS):
            for name, call in calls.items():
                start = time.perf_counter()
                call()
                times[name].append(time.perf_counter() - start)
        for name, taken in times.items():
            rate = [2e-9 * n**3 / seconds for seconds in (median(taken), max(taken), min(taken))]
            print(
                f"{n}  {name:16} {1e3 * median(taken):8.2f} ms  {rate[0]:7.1f} ({rate[1]:.1f} to {rate[2]:.1f}) GOP/s"
            )


if __name__ == "__main__":
    main()
