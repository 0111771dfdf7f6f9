"""`recipes.gebp` beside the same loops unscheduled and numpy, in turns: `python -m benchmarks.gebp [--threads N]`."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

ROUNDS = 15


def main() -> None:
    """Check the results, then print milliseconds: median, least and most of the rounds.

    With several threads the loops that pack B and those over blocks of rows are parallel, and the same kernel runs on
    one thread as well.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    threads = parser.parse_args().threads
    os.environ["OPENBLAS_NUM_THREADS"] = str(threads)  # read when numpy is loaded
    for n in (512, 1024):
        _race(n, threads)


def _race(n: int, threads: int) -> None:
    import numpy as np

    from compiler.bench.harness import settle

    contenders = _contenders(n, threads)
    x, y = (np.random.default_rng(seed).standard_normal((n, n)).astype(np.float32) for seed in (0, 1))
    for call in contenders.values():
        np.testing.assert_allclose(call(x, y), x @ y, rtol=1e-3, atol=1e-3)
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name, call in contenders.items():
            settle(partial(call, x, y), threads)
            start = time.perf_counter()
            call(x, y)
            times[name].append(1e3 * (time.perf_counter() - start))
    shown = (f"{name} {median(t):.2f} ({min(t):.2f} to {max(t):.2f})" for name, t in times.items())
    print(f"{n}, {threads} thread{'s' if threads > 1 else ''}: {', '.join(shown)}")


def _contenders(n: int, threads: int) -> dict[str, Callable[..., Any]]:
    import numpy as np

    import compiler
    from compiler import recipes, te
    from compiler.schedule import Schedule

    a, b = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    function = te.function("matmul", [a, b], [te.nn.matmul(a, b)])
    s = Schedule(compiler.lower(function))
    tiles = recipes.gebp(s, s.get_block(next(iter(s.program.blocks))), mc=64, kc=256, nc=512, mr=8, nr=32)
    if threads == 1:
        unscheduled = compiler.build(function, schedule="written")
        return {"unscheduled": unscheduled, "gebp": compiler.build(s), "numpy": np.matmul}
    s.parallel(tiles.ic)
    assert tiles.pack_b is not None
    s.parallel(s.get_loops(tiles.pack_b)[2])
    kernel = compiler.build(s, threads=threads)
    return {"gebp on one thread": partial(kernel, threads=1), "gebp": kernel, "numpy": np.matmul}


if __name__ == "__main__":
    main()
