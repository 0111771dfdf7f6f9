"""What large parts of the compiler earn: kernels built with and without each, timed in turns.

Run as `python -m benchmarks.price [PART...] [--seconds S]`. A ratio is the median time without a part over that with
it: above 1 the part earns its keep. Where both kernels are the same text there is nothing to time. The f32 FMA peak
beside each row tells how fast the machine was.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TypeAlias
from unittest.mock import patch

import numpy as np

from benchmarks.busy import hog, measuring
from compiler import build, lower, recipes, te
from compiler.autotune.task import SearchTask
from compiler.bench import workloads
from compiler.bench.schedules import scheduled
from compiler.driver.cache.folder import SWITCH
from compiler.driver.choice.preferred import preferred_schedule
from compiler.lowering.low_to_llvm import parallel
from compiler.passes.expand_math import ExpandMathPass
from compiler.passes.transpose_scatters import TransposeScattersPass
from compiler.recipes import product
from compiler.schedule import Schedule
from compiler.targets.cpu import Kernel
from compiler.targets.cpu.ceilings import Arithmetic
from compiler.targets.cpu.presence import time_calls
from compiler.types.machines import host

Without: TypeAlias = Callable[[], AbstractContextManager[object]]
"""Builds inside lack a part of the compiler."""
PAUSE = 0.02
"""Seconds between calls after which idle threads sleep."""


@dataclass(frozen=True)
class Case:
    """A program to build with and without a part; `pause` between calls, in seconds; beside a `busy` process or not."""

    part: str
    what: str
    program: Callable[[], Schedule]
    threads: int = 1
    pause: float = 0.0
    busy: bool = False


def _nothing(*arguments: object, **options: object) -> None:
    """The replacement of a part."""


PARTS: dict[str, Without] = {
    "maths": lambda: patch.object(ExpandMathPass, "apply", _nothing),
    "transposes": lambda: patch.object(TransposeScattersPass, "apply", _nothing),
    "prefetches": lambda: patch.object(Schedule, "prefetch", _nothing),
    "streams": lambda: patch.object(Schedule, "annotate", _nothing),
    "team": lambda: patch.multiple(parallel, join=_nothing, meet=_nothing),
    "rounds": lambda: patch.object(product, "panels_in_round", min),
}
"""The parts, and how kernels are built without them."""


Scalar: TypeAlias = Callable[[te.expr.Expr], te.expr.Expr]


def _gelu(x: te.expr.Expr) -> te.expr.Expr:
    return x * (te.erf(x * 0.7071067811865476) + 1.0) * 0.5


SCALARS: dict[str, Scalar] = {
    "exp": te.exp,
    "log": te.log,
    "tanh": te.tanh,
    "erf": te.erf,
    "sin": te.sin,
    "cos": te.cos,
    "sigmoid": te.sigmoid,
    "gelu": _gelu,
}
"""Functions of the elements of a matrix."""


def _by_vectors(name: str, dtype: str) -> Schedule:
    """Softmax or a function of SCALARS on a 256 x 256 matrix, its rows computed in vectors."""
    x = te.placeholder((256, 256), dtype, name="X")
    y = te.nn.softmax(x) if name == "softmax" else te.compute(x.shape, lambda i, j: SCALARS[name](x[i, j]), name="Y")
    s = Schedule(lower(te.function("f", [x], y)))
    bits = 64 if dtype == "f64" else 32
    recipes.by_rows(s, s.get_block(list(s.program.blocks)[-1]), host().vector_bits // bits)
    return s


def _workload(name: str, threads: int = 1) -> Schedule:
    made = scheduled(workloads.find(name), threads)
    assert made is not None
    return made


def _product(m: int, n: int, k: int) -> Schedule:
    """An m x k by k x n product under its default schedule for one thread."""
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    schedule = preferred_schedule(SearchTask(te.function("f", [a, b], te.nn.matmul(a, b)), threads=1))
    assert schedule is not None
    return schedule


def cases() -> Iterator[Case]:
    """The rows of the table."""
    for dtype in ("f32", "f64"):
        for name in (*SCALARS, "softmax"):
            yield Case("maths", f"{name} {dtype}", partial(_by_vectors, name, dtype))
    packed = ("matmul_512", "matmul_127x333x511", "batched", "conv_7x7", "conv_56x56", "conv_grad_weight", "attention")
    for part in ("transposes", "prefetches"):
        for name in packed:
            yield Case(part, name, partial(_workload, name))
    for name in ("softmax", "layernorm", "swish"):
        yield Case("streams", name, partial(_workload, name))
    for extents in ((1500, 384, 384), (256, 448, 448), (1024, 640, 640), (1000, 1000, 1000)):
        yield Case("rounds", f"product {'x'.join(map(str, extents))}", partial(_product, *extents))
    for name in ("matmul_1024", "matmul_512", "matmul:128x128x128", "softmax"):
        for what, pause, busy in (("in a row", 0.0, False), ("pauses", PAUSE, False), ("pauses, a hog", PAUSE, True)):
            yield Case("team", f"{name}, 2 threads, {what}", partial(_workload, name, 2), 2, pause, busy)


def price(case: Case, seconds: float) -> str:
    """The row of a case, timed for `seconds`; without times if both kernels have the same text."""
    built = [_built(case, nullcontext()), _built(case, PARTS[case.part]())]
    kernels = [kernel for kernel, _ in built]
    if built[0][1] == built[1][1]:
        return f"| {case.part} | {case.what} | - | - | same code | |"
    random = np.random.default_rng(0)
    inputs = [random.uniform(0.1, 2, a.shape).astype(a.dtype) for a in kernels[0].arguments[:-1]]
    calls = [kernel.bound(*inputs, out=np.empty_like(kernel(*inputs))) for kernel in kernels]
    samples: list[list[float]] = [[], []]
    peak = Arithmetic(1)
    with hog(measuring(), 5e-3) if case.busy else nullcontext():
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or len(samples[0]) < 9:
            for call, taken in zip(calls, samples, strict=True):
                if case.pause:
                    time.sleep(case.pause)
                else:
                    call()
                taken.append(time_calls(call, threads=case.threads).wall)
    with_it, without = (1e6 * median(taken) for taken in samples)
    beside = f"{peak.probe(0.02).rate / 1e9:.0f}"
    return f"| {case.part} | {case.what} | {with_it:.4g} | {without:.4g} | {without / with_it:.3f} | {beside} |"


def _built(case: Case, how: AbstractContextManager[object]) -> tuple[Kernel, str]:
    """Return a kernel built in the context `how`, and its LLVM text, written in it too. The cache of machine code is
    off, since its keys do not depend on patches."""
    with how, patch.dict("os.environ", {SWITCH: "off"}):
        kernel = build(case.program(), threads=case.threads)
        return kernel, kernel.text("llvm")


def main() -> None:
    """Print a row for each case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=list(PARTS), metavar="PART")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each row (default 2)")
    options = parser.parse_args()
    print("| part | kernel | with, us | without, us | ratio | FMA peak, GFLOP/s |\n|---|---|---|---|---|---|")
    for case in cases():
        if case.part in options.parts:
            print(price(case, options.seconds), flush=True)


if __name__ == "__main__":
    main()
