"""The kernels of docs/tutorials/product.md beside numpy, in turns, one thread: `python -m benchmarks.by_hand`."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from tools import document

PAGE = document.ROOT / "docs" / "tutorials" / "product.md"
ROUNDS = 7


def kernels() -> dict[str, Any]:
    """Map the names of the page's kernels to the kernels."""
    names: dict[str, Any] = {}
    document.refreshed(PAGE.read_text(), names=names)
    return dict(names["kernels"])


def main() -> None:
    """Print for each kernel, and numpy, the least milliseconds of a 512x512x512 product and its GFLOP/s, on one
    thread."""
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((512, 512), np.float32) for _ in "AB")
    times: dict[str, list[float]] = {}
    with threadpool_limits(1):
        contenders = kernels()
        for _ in range(ROUNDS):
            for name, kernel in contenders.items():
                times.setdefault(name, []).append(kernel.time(a, b, repeats=3).minimum)
            for _ in range(ROUNDS):
                start = time.perf_counter()
                a @ b
                times.setdefault("numpy (OpenBLAS)", []).append(time.perf_counter() - start)
    for name, seconds in times.items():
        print(f"| {name} | {min(seconds) * 1e3:.2f} | {2e-9 * 512**3 / min(seconds):.1f} |")


if __name__ == "__main__":
    main()
