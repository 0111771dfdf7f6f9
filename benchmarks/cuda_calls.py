"""What a call of CUDA kernels costs in Python, without a GPU: microseconds of a call, and of each of its launches.

Run as `python -m benchmarks.cuda_calls [--rounds N]`. CuPy is the pretended one of the tests, a launch does nothing:
what is timed is Strata's own work for a call, arguments checked, results allocated, launches begun. Pretended arrays
cost Python, too: the first row says what an empty one costs. Times are medians over rounds, of the processor.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from time import process_time
from timeit import Timer
from typing import Any

import numpy as np

import compiler
from compiler import te

LAYERS = 20
CALLS = 50
"""Calls in a round."""


def pretended() -> Any:
    """Import the tests' stand-in for CuPy, and make its launches do nothing."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests/pretended_gpu"))
    import cupy  # type: ignore[import-not-found, unused-ignore]

    cupy.Function.__call__ = lambda self, grid, block, arguments, shared_mem: None
    return cupy


def network(layers: int = LAYERS) -> Any:
    """The kernels of a chain of products and relu with weights: a launch for each layer."""
    x = te.placeholder((32, 32), name="X")
    weights = {f"W{n}": np.eye(32, dtype=np.float32) for n in range(layers)}
    tensors = [te.placeholder((32, 32), name=name) for name in weights]
    y = x
    for n, w in enumerate(tensors):
        y = te.nn.relu(te.nn.matmul(y, w, name=f"P{n}"), name=f"R{n}")
    function = te.function("network", [x, *tensors], [y])
    return compiler.build(function, "cuda", arch="sm_80", schedule="auto", constants=weights)


def single() -> Any:
    """The kernel of a relu."""
    x = te.placeholder((32, 32), name="X")
    return compiler.build(te.function("single", [x], te.nn.relu(x, name="Y")), "cuda", arch="sm_80", schedule="auto")


def seconds(call: Callable[[], object], rounds: int) -> float:
    """The median seconds of a call over rounds of CALLS."""
    call()
    timer = Timer(call, timer=process_time)  # others may use the processor
    return median(timer.timeit(CALLS) / CALLS for _ in range(rounds))


def main() -> None:
    """Print a row for each program and kind of call."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60)
    rounds = max(1, parser.parse_args().rounds)
    cupy = pretended()
    array = cupy.asarray(np.ones((32, 32), np.float32))
    empty = seconds(lambda: cupy.empty((32, 32), np.dtype(np.float32)), rounds)
    print(f"an empty array of the pretended CuPy: {empty * 1e6:.2f} us")
    for kernel in (single(), network()):
        out = cupy.empty((32, 32), np.dtype(np.float32))
        for words, call in (("", partial(kernel, array)), (", out=", partial(kernel, array, out=out))):
            taken, launches = seconds(call, rounds) * 1e6, len(kernel.launches)
            print(f"{kernel.name}{words}: {launches} launches, {taken:.1f} us, {taken / launches:.2f} a launch")


if __name__ == "__main__":
    main()
