"""How long kernels take to run on numpy: a tiled product of a few extents, checked.

Run as `python -m benchmarks.simt`.
"""

from __future__ import annotations

import time

import numpy as np

import compiler
from compiler import recipes, te
from compiler.pipeline.loops import lower_to_kernels
from compiler.recipes import ThreadTiles
from compiler.schedule import Schedule
from compiler.targets import simt

SIZES = (64, 128)
"""The extents of square products."""


def product(size: int) -> Schedule:
    """A product of square matrices by blocks of 256 threads, each with 2 x 2 results, panels of 16."""
    a, b = (te.placeholder((size, size), name=name) for name in "AB")
    s = Schedule(compiler.lower(te.function("product", [a, b], te.nn.matmul(a, b, name="C"))))
    recipes.tile_on_threads(s, s.get_block("C"), None, ThreadTiles([(1, 16, 2), (1, 16, 2)], [16]))
    return s


def main() -> None:
    """Run each once, check it, and print the seconds."""
    for size in SIZES:
        module, _, _ = lower_to_kernels(product(size).module.clone())
        a, b = (np.random.default_rng(n).standard_normal((size, size), np.float32) for n in (0, 1))
        start = time.perf_counter()
        checked = simt.run(module, [a, b])
        seconds = time.perf_counter() - start
        assert checked.is_correct, checked.faults
        np.testing.assert_allclose(checked.outputs[0], a @ b, rtol=1e-4, atol=1e-4)
        print(f"{size} x {size} x {size}, 256 threads a block: {seconds:.2f} s")


if __name__ == "__main__":
    main()
