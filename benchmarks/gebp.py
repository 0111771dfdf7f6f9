"""`library.gebp` beside the same loops unscheduled and numpy, one thread, in turns: `python -m benchmarks.gebp`."""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when numpy is loaded

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

import compiler
from compiler import te
from compiler.schedule import Schedule, library

ROUNDS = 15


def main() -> None:
    """Print milliseconds: median, least and most of the rounds; results are checked first."""
    for n in (512, 1024):
        a, b = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
        function = te.function("matmul", [a, b], [te.nn.matmul(a, b)])
        s = Schedule(compiler.lower(function))
        library.gebp(s, s.get_block(next(iter(s.program.blocks))), mc=64, kc=256, nc=512, mr=8, nr=32)
        contenders: dict[str, Callable[..., Any]] = {
            "unscheduled": compiler.build(function),
            "gebp": compiler.build(s),
            "numpy": np.matmul,
        }
        x, y = (np.random.default_rng(seed).standard_normal((n, n)).astype(np.float32) for seed in (0, 1))
        np.testing.assert_allclose(contenders["gebp"](x, y), x @ y, rtol=1e-3, atol=1e-3)
        times: dict[str, list[float]] = {name: [] for name in contenders}
        for _ in range(ROUNDS):
            for name, call in contenders.items():
                start = time.perf_counter()
                call(x, y)
                times[name].append(1e3 * (time.perf_counter() - start))
        shown = (f"{name} {median(t):.2f} ({min(t):.2f} to {max(t):.2f})" for name, t in times.items())
        print(f"{n}: {', '.join(shown)}")


if __name__ == "__main__":
    main()
