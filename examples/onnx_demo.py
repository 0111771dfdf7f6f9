"""A small ONNX network, from its file to native code: its groups and where their schedules are from, checked against
ONNX's reference evaluator, tuned under one budget for all groups, and timed beside onnxruntime where that is installed.

Run by `make demo`; half a minute.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from rich.console import Console
from rich.table import Table

import strata
from strata import Kernel
from strata.autotune import INTERRUPTED, view
from strata.bench import WIDTH
from strata.frontends import Imported
from strata.targets import Array

MODEL = Path(__file__).with_name("network.onnx")
ROUNDS, CALLS = 15, 20
TOLERANCE = 1e-4
SECONDS = 20.0
"""Of tuning, for all groups together."""


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
    with TemporaryDirectory() as folder:
        tuned = _tuned(console, model, Path(folder) / "network.db")
    if tuned is None:
        return 130
    right &= _check(console, tuned, image)
    _race(console, {"without a trial": kernel, "tuned": tuned}, image)
    return 0 if right else 1


def _groups(kernel: Kernel) -> Table:
    table = Table(box=None)
    for heading in ("group", "calls", "schedule", "verdict"):
        table.add_column(heading)
    for group in kernel.groups:
        table.add_row(group.name, str(group.occurrences), group.source, group.verdict)
    return table


def _tuned(console: Console, model: Imported, database: Path) -> Kernel | None:
    """The network of what tuning finds, with the table of its tasks; None where it was interrupted."""
    console.rule("tuned: the next trials go where they promise most of the network's time", align="left")
    task = strata.SearchTask(model, threads=1)
    with view(task, sys.stdout) as shown:
        task.tune(strata.TuningOptions(None, SECONDS, str(database), callbacks=(shown,)))
    if not console.is_terminal:
        console.print(shown.board.table())
    if shown.last is not None and shown.last.phase == INTERRUPTED:
        return None
    return strata.build(model, threads=1, schedule=database)


def _check(console: Console, kernel: Kernel, image: Array) -> bool:
    """Compare with ONNX's reference evaluator."""
    from onnx.reference import ReferenceEvaluator

    expected = ReferenceEvaluator(str(MODEL)).run(None, {"image": image})[0]
    error = float(np.abs(kernel(image=image) - expected).max())
    right = error <= TOLERANCE
    console.print(f"largest error {error:.2e} against ONNX's reference evaluator: {'right' if right else 'wrong'}")
    return right


def _race(console: Console, kernels: dict[str, Kernel], image: Array) -> None:
    """Time kernels beside onnxruntime, in turns, on one thread."""
    steps: dict[str, Callable[[], object]] = {name: partial(kernel, image) for name, kernel in kernels.items()}
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
        console.print(f"{name:15} {1e3 * seconds:.3f} ms a call, one thread")


def _session(image: Array) -> Callable[[], object]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(MODEL), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"image": image})


if __name__ == "__main__":
    sys.exit(main())
