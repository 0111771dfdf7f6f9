"""`python -m benchmarks.defaults.random_groups [COUNT] [FIRST]`: defaults of random groups beside what is written.

Each seed makes a few operations that share producers and have several results. The default and the written program run
in turns, in CPU time of one thread; what is slower than LIMIT times as written is measured again before it counts.
Their results are compared.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator

import numpy as np

from benchmarks.defaults.timing import least
from compiler import te
from compiler.analysis.verify.prove import verify_schedule
from compiler.autotune.task import SearchTask
from compiler.driver import build_as_written
from compiler.driver.choice.preferred import preferred_schedule
from compiler.driver.reference.cases import draw
from compiler.recipes.rules import RULES
from compiler.schedule import Schedule
from compiler.space.derivation import in_default_order, preferred
from compiler.support.errors import StrataError
from compiler.targets.arguments import Array, new_array
from compiler.te.tensor import Tensor

nn = te.nn
LIMIT = 1.1
ROUNDS = 5
REPEATS = 3
"""Measurements that all have to say that a group is slow."""
EXTENTS = (1, 2, 3, 5, 7, 8, 13, 16, 24, 31, 32, 48, 64, 77, 100, 128, 200, 256, 384)
DTYPES = ("f32",) * 8 + ("f64", "i32", "i8", "bf16")
MOST = 1 << 19
"""The most elements of an input."""


def made(seed: int) -> te.Function:
    """Draw a program from a seed: one to five operations, each on one of the last two values; results are the last
    value and some of the others. An operation may add an input."""
    rng = random.Random(seed)
    dtype = rng.choice(DTYPES)
    shape = [rng.choice(EXTENTS) for _ in range(rng.randint(1, 4))]
    while np.prod(shape) > MOST:
        shape[shape.index(max(shape))] //= 2
    inputs = [te.placeholder(tuple(shape), dtype, "X")]
    values: list[Tensor] = list(inputs)
    for number in range(rng.randint(1, 5)):
        values.append(_operation(rng, values, inputs, dtype, number))
    computed = values[1:] if values[1:] else values
    outputs = [computed[-1], *(value for value in computed[:-1] if rng.random() < 0.3)]
    return te.function("f", inputs, list(dict.fromkeys(outputs)))


def _operation(rng: random.Random, values: list[Tensor], inputs: list[Tensor], dtype: str, number: int) -> Tensor:
    x = rng.choice(values[-2:])
    rank, axis = len(x.shape), rng.randrange(max(1, len(x.shape)))
    kinds = ["unary", "binary", "scaled"]
    if rank:
        kinds += ["reduced", "reduced", "centred", "pad", "flip", "gather"]
    if rank > 1:
        kinds += ["transpose"]
    if rank and dtype in ("f32", "f64"):
        kinds += ["softmax"]
    if rank == 2 and dtype in ("f32", "f64") and x.shape[1] <= 128:
        kinds += ["product"]
    kind = rng.choice(kinds)
    if kind == "unary":
        floats = (nn.relu, nn.exp, nn.tanh, nn.abs) if dtype in ("f32", "f64") else (nn.relu, nn.abs)
        return rng.choice(floats)(x)
    if kind == "scaled":
        shape = tuple(size if rng.random() < 0.5 else 1 for size in x.shape)
        inputs.append(te.placeholder(shape, x.dtype, f"Y{number}"))
        return nn.mul(x, inputs[-1])
    if kind == "reduced":
        axes = tuple(sorted(rng.sample(range(rank), rng.randint(1, rank))))
        return rng.choice((nn.sum, nn.max))(x, axes, keepdims=True)
    if kind == "centred":
        return nn.sub(x, nn.max(x, axis, keepdims=True))
    if kind == "pad":
        return nn.pad(x, tuple((1, rng.randint(0, 2)) for _ in range(rank)))
    if kind == "gather":
        inputs.append(te.placeholder((rng.choice(EXTENTS[:12]),), "i32", f"I{number}"))
        return nn.gather(x, inputs[-1], axis)
    if kind == "flip":
        return nn.flip(x, axis)
    if kind == "transpose":
        return nn.transpose(x, tuple(rng.sample(range(rank), rank)))
    if kind == "softmax":
        return nn.softmax(x, axis)
    if kind == "product":
        inputs.append(te.placeholder((x.shape[1], rng.choice(EXTENTS[:12])), x.dtype, f"Y{number}"))
        return nn.matmul(x, inputs[-1])
    return nn.add(x, next(value for value in values if tuple(value.shape) == tuple(x.shape)))


def gains(seed: int) -> Iterator[tuple[float, str]]:
    """Yield for each group of the random program of a seed the time of the default over that as written, 0 if it is not
    proved or its results differ, and a description of both."""
    task = SearchTask(made(seed), threads=1)
    for group in task.groups or (task,):
        schedule = preferred_schedule(group)
        if schedule is None:
            yield 1.0, "as written"
            continue
        name = preferred(group.schedule, RULES, group.machine, 1).name
        verdict = str(verify_schedule(schedule.program, group.schedule.program))
        if verdict != "proved":
            yield 0.0, f"{verdict[:40]} [{name}]"
            continue
        written = in_default_order(group.schedule, group.machine)
        ratio, said = _measured(written, schedule, np.random.default_rng(seed))
        yield ratio, f"{said} [{name}]"


def _measured(original: Schedule, schedule: Schedule, rng: np.random.Generator) -> tuple[float, str]:
    """Return the time of a schedule over that of its original, and the latter in words; 0 and a reason if their results
    differ. A ratio above LIMIT counts only if REPEATS measurements agree."""
    kernels = [build_as_written(s, threads=1) for s in (original, schedule)]
    given = [draw(argument, rng) for argument in kernels[0].arguments[: -kernels[0].outputs]]
    outs = [[new_array(a) for a in kernel.arguments[len(given) :]] for kernel in kernels]
    calls = [kernel.bound(*given, out=out) for kernel, out in zip(kernels, outs, strict=True)]
    for out, call, poison in zip(outs, calls, (1, 2), strict=True):
        for array in out:
            array.fill(poison)
        call()
    if not all(_close(*pair) for pair in zip(*outs, strict=True)):
        return 0.0, "results differ"
    ratios = []
    for _ in range(REPEATS):
        slow, fast = least(calls, ROUNDS)
        ratios.append(fast / slow)
        if ratios[-1] <= LIMIT:
            break
    return min(ratios), f"{slow * 1e6:.1f} us"


def _close(expected: Array, actual: Array) -> bool:
    """Whether results agree: integers exactly, floats within the error of sums in another order."""
    if expected.dtype.kind in "iub":
        return bool((expected == actual).all())
    wide, actual_wide = expected.astype(np.float64), actual.astype(np.float64)
    finite = np.abs(wide[np.isfinite(wide)])
    tolerance = 5e-2 if expected.itemsize < 4 else 1e-3
    return bool(np.allclose(actual_wide, wide, tolerance, tolerance * float(finite.max(initial=0)), equal_nan=True))


def main() -> None:
    """Measure, and print groups that are slower than as written or not proved."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.defaults.random_groups", description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=300)
    parser.add_argument("first", nargs="?", type=int, default=0)
    given = parser.parse_args()
    ratios = []
    for seed in range(given.first, given.first + given.count):
        try:
            for ratio, said in gains(seed):
                ratios.append(ratio)
                if ratio > LIMIT or not ratio:
                    print(f"{seed:5} {ratio:6.2f} {said}", flush=True)
        except StrataError as error:
            print(f"{seed:5} {str(error).splitlines()[0][:120]}", flush=True)
    slow = sum(ratio > LIMIT for ratio in ratios)
    print(f"{len(ratios)} groups, {slow} slower than {LIMIT} of written, {ratios.count(0.0)} not proved")


if __name__ == "__main__":
    main()
