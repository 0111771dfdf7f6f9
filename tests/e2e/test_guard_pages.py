"""Ragged, packed, masked, prefetched and summed matmuls touch nothing outside their arrays and let no NaN in.

Each case runs in memory between forbidden pages, in a process of its own, with NaN in the workspace, in the results'
memory and in places of the inputs.

`python -m tests.e2e.test_guard_pages FIRST COUNT` runs cases and ends with the first that goes wrong.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import compiler
import compiler.targets.cpu.kernel as kernels
from compiler import recipes, te
from compiler.interpret import te as evaluator
from compiler.schedule import Handle, Schedule
from compiler.support.errors import ScheduleError
from tests.guard_pages import Array, guarded, workspace
from tests.operators.catalogue import numpy_dtype
from tests.sample import some

CHUNK = 12
DTYPES = ("f32", "f32", "f64", "f16", "bf16", "i32", "i8", "u8")
SIZES = (1, 2, 3, 5, 7, 8, 9, 13, 16, 17, 23, 33)


def function(rng: random.Random) -> te.Function:
    """A sum or maximum of products, of operands that may be transposed."""
    m, n, k = (rng.choice(SIZES) for _ in range(3))
    dtype, combine = rng.choice(DTYPES), rng.choice((te.sum, te.sum, te.max))
    turned = [rng.random() < 0.5, rng.random() < 0.5]
    shapes = [shape[::-1] if turn else shape for shape, turn in zip(((m, k), (k, n)), turned, strict=True)]
    a, b = (te.placeholder(shape, dtype, name=name) for shape, name in zip(shapes, "AB", strict=True))
    r = te.reduce_axis(k, "k")

    def element(i: te.Axis, j: te.Axis) -> te.Reduce:
        left, right = a[(r, i) if turned[0] else (i, r)], b[(j, r) if turned[1] else (r, j)]
        return combine(left * right, axis=r)

    return te.function("mm", [a, b], [te.compute((m, n), element, name="C")])


def packed(s: Schedule, rng: random.Random) -> None:
    """gebp with any parameters."""
    mr, nr = rng.randint(1, 14), rng.choice((1, 2, 6, 8, 12, 16, 32))
    mc, kc, nc = mr * rng.randint(1, 3), rng.choice((1, 3, 8, 40)), nr * rng.randint(1, 3)
    pack = rng.choice(("ab", "a", "b", ""))
    recipes.gebp(s, s.get_block("C"), mc, kc, nc, mr, nr, rng.choice((2, 3, 4, 6, 8, 16)), pack)


def tiled(s: Schedule, rng: random.Random) -> None:
    """Splits, an order, vectors, an unrolled loop, prefetches and an init of its own, where they are accepted."""
    block = s.get_block("C")
    for loop in s.get_loops(block):
        s.split(loop, [None, rng.randint(1, 17)])
    loops = s.get_loops(block)
    s.reorder(*rng.sample(loops, len(loops)))
    for step in (s.vectorize, s.unroll, s.unroll):
        _attempt(lambda step=step: step(rng.choice([h for h in loops if s.extent(h) <= 17])))
    _attempt(lambda: s.decompose_reduction(block, rng.choice(s.get_loops(block))))

    def prefetch() -> None:
        over: Handle | None = rng.choice([None, *s.get_loops(block)])
        s.prefetch(rng.choice(s.get_loops(block)), rng.choice("ABC"), rng.randint(1, 3), over)

    for _ in range(2):
        _attempt(prefetch)


def summed(s: Schedule, rng: random.Random) -> None:
    """Vectors of partial sums along the reduction, where it is long enough for them."""
    block, lanes = s.get_block("C"), rng.choice((2, 4, 8, 16))
    if s.extent(s.get_loops(block)[-1]) > lanes:
        recipes.row_reduction(s, block, lanes, rng.randint(1, 4))


def _attempt(step: Callable[[], object]) -> None:
    with suppress(ScheduleError):
        step()


def inputs(f: te.Function, seed: int) -> list[Array]:
    """Small integers, and in floats some NaN and infinities."""
    rng = np.random.default_rng(seed)
    collected = []
    for tensor in f.inputs:
        array = rng.integers(0 if tensor.dtype == "u8" else -2, 3, tensor.shape).astype(numpy_dtype(tensor.dtype))
        if array.dtype.kind not in "iu":
            array[tuple(rng.integers(0, n) for n in tensor.shape)] = rng.choice([np.nan, np.inf, -np.inf])
        collected.append(array)
    return collected


def check(seed: int) -> None:
    rng = random.Random(seed)
    f = function(rng)
    s = Schedule(compiler.lower(f))
    rng.choice((packed, tiled, summed))(s, rng)
    kernel = compiler.build(s)
    for turn in range(2):
        arrays = inputs(f, seed + turn)
        (want,) = evaluator.evaluate(f.module, arrays)
        poison = np.full_like(want, 77 if want.dtype.kind in "iu" else np.nan)
        out = guarded(poison, bool(turn))
        kernel(*(guarded(a, bool(turn)) for a in arrays), out=out)
        np.testing.assert_array_equal(out.astype(np.float64), want.astype(np.float64), err_msg=f"seed {seed}")


def run(first: int, count: int) -> str:
    """Run cases in a process of their own; what it said, empty where all is right."""
    command = [sys.executable, "-m", "tests.e2e.test_guard_pages", str(first), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], timeout=300)
    return "" if done.returncode == 0 else f"status {done.returncode}: {done.stdout}{done.stderr}"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="pages are forbidden as Linux does")
@pytest.mark.parametrize("first", some(range(0, 3 * CHUNK, CHUNK)))
def test_nothing_outside_is_touched(first: int) -> None:
    assert not run(first, CHUNK)


def main(first: int, count: int) -> None:
    kernels.arena = workspace  # type: ignore[attr-defined]
    for seed in range(first, first + count):
        print("seed", seed, flush=True)
        check(seed)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
