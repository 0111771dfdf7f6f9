"""What a call costs before native code begins: a product of 3x4 and 4x5 on arrays of each kind.

Run as `python -m benchmarks.calls [--rounds N]`. Rows take turns, a hundred calls each; a time is the median over the
rounds. Beside each are its ratios to an empty native call through ctypes, with as many addresses, and to `numpy.add` on
an array of the same size. torch has rows where it is installed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from statistics import median
from timeit import Timer
from typing import Any

import numpy as np

from compiler import build, te

CALLS = 100
"""Calls of a row in a round."""
EMPTY, ADD = "an empty native call", "numpy.add"
"""The rows that others are compared with."""


@dataclass(frozen=True)
class Row:
    """The median seconds of a call, and those of an empty native call and of numpy.add."""

    what: str
    seconds: float
    empty: float
    add: float

    def __str__(self) -> str:
        ratios = f"{self.seconds / self.empty:6.1f} x empty {self.seconds / self.add:6.1f} x numpy.add"
        return f"{self.what:40} {self.seconds * 1e6:7.2f} us {ratios}"


class Exported:
    """An array with the methods of DLPack only."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> object:
        return self.array.__dlpack__(max_version=options.get("max_version"))

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def cases() -> dict[str, Callable[[], object]]:
    """Map names to the calls to time: a 3x4 by 4x5 product called with numpy, DLPack and torch arrays, an empty native
    call, and numpy.add."""
    x, y = te.placeholder((3, 4), name="A"), te.placeholder((4, 5), name="B")
    kernel = build(te.function("product", [x, y], [te.nn.matmul(x, y, name="C")]))
    a, b, c = (np.ones(shape, np.float32) for shape in ((3, 4), (4, 5), (3, 5)))
    columns, swapped = np.asfortranarray(a), a.astype(">f4")
    da, db, dc = map(Exported, (a, b, c))
    empty = build("func.func @empty(%a: memref<1xf32>, %b: memref<1xf32>, %c: memref<1xf32>) { func.return }")
    return {
        EMPTY: empty.bound(*np.ones((3, 1), np.float32)),
        ADD: lambda: np.add(a, a),
        "numpy": lambda: kernel(a, b),
        "numpy, out": lambda: kernel(a, b, out=c),
        "numpy, by name": lambda: kernel(A=a, B=b),
        "numpy, an input copied": lambda: kernel(columns, b),
        "numpy, an input of other bytes": lambda: kernel(swapped, b),
        "__dlpack__": lambda: kernel(da, db),
        "__dlpack__, out": lambda: kernel(da, db, out=dc),
        **_of_torch(kernel, a, b, c),
        "bound": kernel.bound(a, b, out=c),
    }


def _of_torch(kernel: Callable[..., object], *arrays: Any) -> dict[str, Callable[[], object]]:
    if find_spec("torch") is None:
        return {}
    import torch

    a, b, c = map(torch.from_numpy, arrays)
    return {
        "torch": lambda: kernel(a, b),
        "torch, out": lambda: kernel(a, b, out=c),
        "torch.matmul": lambda: torch.matmul(a, b),
    }


def measure(cases: Mapping[str, Callable[[], object]], rounds: int, calls: int = CALLS) -> list[Row]:
    """Time each case in turns, `calls` calls a round, and return a row for each, in their order."""
    timers = {what: Timer(call) for what, call in cases.items()}
    taken: dict[str, list[float]] = {what: [] for what in cases}
    for _ in range(rounds):
        for what, timer in timers.items():
            taken[what].append(timer.timeit(calls) / calls)
    seconds = {what: median(values) for what, values in taken.items()}
    return [Row(what, value, seconds[EMPTY], seconds[ADD]) for what, value in seconds.items()]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=300)
    print(*measure(cases(), max(1, parser.parse_args(arguments).rounds)), sep="\n")


if __name__ == "__main__":
    main()
