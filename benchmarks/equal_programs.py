"""Equal programs in turns: the gradient of a convolution's weights, in steps and as one reduction.

Run as `python -m benchmarks.equal_programs [--rounds N]`. Both are built without a trial, and their results are
compared. docs/walks/equal_programs.md tells where the two programs come from.
"""

from __future__ import annotations

import argparse
from statistics import median

import numpy as np

import compiler
from compiler import te

SHAPES = ((8, 16, 16, 14), (4, 32, 32, 14), (8, 64, 64, 28))
"""Images, channels in and out, rows and columns of the gradient."""


def in_steps(n: int, ci: int, co: int, size: int) -> te.Function:
    """A convolution for each image, then the sum over the images, then a transpose."""
    x, g = te.placeholder((n, ci, size + 2, size + 2), name="X"), te.placeholder((n, co, size, size), name="G")
    image, h, w = te.reduce_axis(n, "image"), te.reduce_axis(size, "h"), te.reduce_axis(size, "w")
    each = te.compute(
        (n, ci, co, 3, 3),
        lambda b, i, o, p, q: te.sum(x[b, i, p + h, q + w] * g[b, o, h, w], axis=[h, w]),
        name="each",
    )
    total = te.compute((ci, co, 3, 3), lambda i, o, p, q: te.sum(each[image, i, o, p, q], axis=image), name="total")
    return te.function("in_steps", [x, g], te.compute((co, ci, 3, 3), lambda o, i, p, q: total[i, o, p, q], name="dW"))


def at_once(n: int, ci: int, co: int, size: int) -> te.Function:
    """One reduction over images, rows and columns."""
    x, g = te.placeholder((n, ci, size + 2, size + 2), name="X"), te.placeholder((n, co, size, size), name="G")
    image, h, w = te.reduce_axis(n, "image"), te.reduce_axis(size, "h"), te.reduce_axis(size, "w")
    gradient = te.compute(
        (co, ci, 3, 3),
        lambda o, i, p, q: te.sum(x[image, i, p + h, q + w] * g[image, o, h, w], axis=[image, h, w]),
        name="dW",
    )
    return te.function("at_once", [x, g], gradient)


def measure(shape: tuple[int, int, int, int], rounds: int) -> tuple[float, float]:
    """The median seconds of a call of each program. Raises AssertionError where their results differ."""
    steps, once = (compiler.build(make(*shape), threads=1) for make in (in_steps, at_once))
    random = np.random.default_rng(0)
    x, g = (random.standard_normal(a.shape, np.float32) for a in steps.arguments[:2])
    np.testing.assert_allclose(steps(x, g), once(x, g), rtol=1e-3, atol=1e-2)
    times = [(steps.time(x, g).median, once.time(x, g).median) for _ in range(rounds)]
    return median(time for time, _ in times), median(time for _, time in times)


def main() -> None:
    """Print a row for each shape."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    print("images, channels, size    in steps, us   at once, us")
    for shape in SHAPES:
        steps, once = measure(shape, rounds)
        print(f"{shape!s:24} {steps * 1e6:12.1f}  {once * 1e6:12.1f}")


if __name__ == "__main__":
    main()
