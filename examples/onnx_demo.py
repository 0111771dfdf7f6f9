"""A small ONNX network, from its file to native code: its groups and where their schedules are from, checked against
ONNX's reference evaluator, and timed beside onnxruntime where that is installed.

Run by `make demo`; some seconds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from rich.console import Console
from rich.table import Table

import strata
from compiler.bench.table import WIDTH
from compiler.targets.arguments import Array
from compiler.targets.cpu import Kernel

MODEL = Path(__file__).with_name("network.onnx")
ROUNDS, CALLS = 15, 20
TOLERANCE = 1e-4


def main() -> int:
    """Show and measure; 0, or 1 where a result is wrong."""
    console = Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False)
    console.rule("an ONNX model")
    if find_spec("onnx") is None:
        console.print("this part needs the package onnx: pip install 'strata-compiler[onnx]'", markup=False)
        return 0
    model = strata.from_onnx(MODEL, {"N": 1})
    weights = sum(array.size for array in model.constants.values())
    console.print(f"{MODEL.name}: {len(model.constants)} weights of {weights} numbers", markup=False)
    start = time.perf_counter()
    kernel = strata.build(model, threads=1)
    console.print(f"built in {time.perf_counter() - start:.2f} s")
    console.print(_groups(kernel))
    image = np.random.default_rng(0).standard_normal((1, 3, 32, 32), dtype=np.float32)
    right = _check(console, kernel, image)
    _race(console, kernel, image)
    return 0 if right else 1


def _groups(kernel: Kernel) -> Table:
    table = Table(box=None)
    for heading in ("group", "calls", "schedule", "verdict"):
        table.add_column(heading)
    for group in kernel.groups:
        table.add_row(group.name, str(group.occurrences), group.source, group.verdict)
    return table


def _check(console: Console, kernel: Kernel, image: Array) -> bool:
    """Compare with ONNX's reference evaluator."""
    from onnx.reference import ReferenceEvaluator

    expected = ReferenceEvaluator(str(MODEL)).run(None, {"image": image})[0]
    error = float(np.abs(kernel(image=image) - expected).max())
    right = error <= TOLERANCE
    console.print(f"largest error {error:.2e} against ONNX's reference evaluator: {'right' if right else 'wrong'}")
    return right


def _race(console: Console, kernel: Kernel, image: Array) -> None:
    """Time the kernel beside onnxruntime, in turns, on one thread."""
    steps: dict[str, Callable[[], object]] = {"strata": lambda: kernel(image)}
    if find_spec("onnxruntime") is None:
        console.print("onnxruntime is not installed: pip install onnxruntime, to see it beside", markup=False)
    else:
        steps["onnxruntime"] = _session(image)
    best = dict.fromkeys(steps, float("inf"))
    for _ in range(ROUNDS):
        for name, step in steps.items():
            start = time.perf_counter()
            for _ in range(CALLS):
                step()
            best[name] = min(best[name], (time.perf_counter() - start) / CALLS)
    for name, seconds in best.items():
        console.print(f"{name:12} {1e3 * seconds:.3f} ms a call, one thread")


def _session(image: Array) -> Callable[[], object]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(MODEL), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"image": image})


if __name__ == "__main__":
    sys.exit(main())
