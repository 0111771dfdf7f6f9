"""Kernels of every workload on a GPU: tuned, compiled for every architecture, and, where a GPU is at hand, measured.

Run as `python -m benchmarks.gpu [NAME...] --json gpu.json`: in less than ten minutes. Without a GPU candidates are
proved, compiled and checked on numpy, and what the table has are estimates; with one they are measured, and so is torch
on the same GPU, by events, the two in turns. What has been measured stays in --folder, where a run that was interrupted
goes on.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from compiler import te
from compiler.autotune.display.facts import ceiling_share
from compiler.autotune.options import TuningOptions
from compiler.autotune.task import SearchTask
from compiler.bench import workloads
from compiler.cli.printing import sentence
from compiler.cli.values import positive, scale
from compiler.database.outcome import MEASURED
from compiler.support.errors import InputError, StrataError, TargetError
from compiler.targets.cpu.ceilings import plausible_share
from compiler.targets.cuda import ARCHITECTURES

NAMES = (
    "matmul:4096x4096x4096",
    "matmul_f16:4096x4096x4096",
    "conv_7x7",
    "conv_56x56",
    "softmax",
    "layernorm",
)
"""The workloads that have a goal on a GPU."""
OTHERS = (
    "matmul_1024",
    "matmul_127x333x511",
    "batched",
    "mm_exp_mm",
    "mlp",
    "attention",
    "conv_grad_weight",
    "swish",
)
ROUNDS = 11
"""How often ours and torch take turns."""


HALVES = re.compile(r"matmul_f16:(\d+)x(\d+)x(\d+)")
"""A product of f16, summed up in f32, as it is named: MxKxN."""


@dataclass(frozen=True)
class Case:
    """A tuned workload: its name, the te function, arrays to run it on, and the same function of torch tensors."""

    name: str
    function: te.Function
    draw: Callable[[], list[np.ndarray[Any, Any]]]
    torch: Callable[..., Any]


def case(name: str, factor: Fraction) -> Case:
    """The workload of a name, with every extent times a factor. Raises InputError for an unknown name."""
    match = HALVES.fullmatch(name)
    if match is None:
        workload = workloads.find(name, factor)
        return Case(workload.name, workload.function(), lambda: workload.draw(0), workload.torch)
    m, k, n = (max(1, round(int(extent) * factor)) for extent in match.groups())
    if 0 in map(int, match.groups()):
        raise InputError(f"the workload '{name}' has an extent of 0")
    a, b = te.placeholder((m, k), "f16", name="A"), te.placeholder((k, n), "f16", name="B")
    function = te.function("matmul_f16", [a, b], [te.nn.matmul(a, b, dtype="f32", name="C")])

    def draw() -> list[np.ndarray[Any, Any]]:
        random = np.random.default_rng(0)
        return [random.standard_normal(shape, np.float32).astype(np.float16) for shape in ((m, k), (k, n))]

    return Case(name, function, draw, lambda torch, x, y: torch.matmul(x, y))


@dataclass(frozen=True)
class Found:
    """The results of a workload: seconds, measured or estimated, and their share of a perfect kernel's; the seconds of
    torch, eager and compiled, on the same GPU; of each architecture the most registers of a kernel and the bytes that
    threads spill."""

    name: str
    where: str
    measured: bool
    seconds: float
    share: float | None
    others: dict[str, float]
    kernels: int
    shared_bytes: int
    registers: dict[str, int]
    spills: dict[str, int]
    trials_seconds: float


def tuned(case: Case, arch: str | None, trials: int, seconds: float, folder: Path) -> Found:
    """Tune a workload and return the figures of its best kernel. Raises StrataError if it cannot be tuned, and if no
    candidate is right."""
    task = SearchTask(case.function, target="cuda", arch=arch, name=case.name)
    path = folder / "gpu.db"
    start = time.perf_counter()
    record = task.tune(TuningOptions(trials=trials, seconds=seconds, database=path))
    spent = time.perf_counter() - start
    if record is None:
        raise TargetError("none of its candidates is right")
    kernel = task.apply_best(path)
    resources = {}
    for architecture in ARCHITECTURES:
        try:
            resources[architecture] = kernel.resources(architecture)
        except TargetError:
            continue
    measured = record.outcome.kind == MEASURED
    ours, theirs = beside_torch(case, kernel) if measured else (median(record.outcome.seconds), {})
    return Found(
        name=case.name,
        where=record.key.machine,
        measured=measured,
        seconds=ours,
        share=plausible_share(ceiling_share(task, record.outcome)),
        others=theirs,
        kernels=len(kernel.launches),
        shared_bytes=max((r.shared_bytes for by_kernel in resources.values() for r in by_kernel.values()), default=0),
        registers={arch: max(r.registers for r in by_kernel.values()) for arch, by_kernel in resources.items()},
        spills={arch: sum(r.spill_bytes for r in by_kernel.values()) for arch, by_kernel in resources.items()},
        trials_seconds=spent,
    )


def beside_torch(case: Case, kernel: Any) -> tuple[float, dict[str, float]]:
    """The seconds of a call of ours and of torch, in turns, by events on the device; the median of each."""
    arrays = case.draw()
    on_device = kernel.on_device()
    on_device.fill([*arrays, *(np.zeros(a.shape, a.dtype) for a in kernel.arguments[len(arrays) :])])
    on_device.run()
    calls = max(1, round(0.01 / max(on_device.seconds(1), 1e-6)))
    steps = _torch(case, arrays)
    ours: list[float] = []
    theirs: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(ROUNDS):
        ours.append(on_device.seconds(calls))
        for name, step in steps.items():
            theirs[name].append(step(calls))
    return median(ours), {name: median(times) for name, times in theirs.items()}


def _torch(case: Case, arrays: Sequence[Any]) -> dict[str, Callable[[int], float]]:
    """Map eager torch and torch.compile to functions that make a number of calls in a row, and return the seconds of
    one; empty without torch or its GPU. A contender that fails is left out, with a line on stderr."""
    try:
        import torch
    except ImportError:
        return {}
    if not torch.cuda.is_available():
        return {}
    tensors = [torch.from_numpy(array).cuda() for array in arrays]
    timers = {}
    for name, function in contenders(case, torch).items():
        try:
            function(*tensors)
        except Exception as error:  # what torch's compiler raises is not documented
            print(f"{case.name}: {name} is left out: {type(error).__name__}", file=sys.stderr)
            continue
        timers[name] = _timed(torch, function, tensors)
    return timers


def contenders(case: Case, torch: Any) -> dict[str, Callable[..., Any]]:
    """The function of torch tensors in eager mode and by torch.compile, by name."""

    def plain(*tensors: Any) -> Any:
        return case.torch(torch, *tensors)

    return {"torch": plain, "torch.compile": torch.compile(plain)}


def _timed(torch: Any, function: Callable[..., Any], tensors: Sequence[Any]) -> Callable[[int], float]:
    def step(calls: int) -> float:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(calls):
            function(*tensors)
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) / 1e3 / calls

    step(3)
    return step


def shown(tuned_cases: Sequence[Found]) -> Table:
    """The results as a table."""
    table = Table(title=tuned_cases[0].where, title_justify="left")
    for heading in (
        "workload",
        "kernels",
        "us",
        "of perfect",
        "torch, compiled",
        "registers",
        "spilled",
        "shared",
        "s",
    ):
        table.add_column(heading, justify="left" if heading == "workload" else "right")
    for row in tuned_cases:
        table.add_row(
            row.name,
            str(row.kernels),
            f"{row.seconds * 1e6:.4g}{'' if row.measured else ' (estimate)'}",
            "-" if row.share is None else f"{row.share:.0%}",
            " ".join(f"{seconds / row.seconds:.2f}" for seconds in row.others.values()) or "-",
            " ".join(map(str, row.registers.values())) or "-",
            str(sum(row.spills.values())) if row.spills else "-",
            str(row.shared_bytes),
            f"{row.trials_seconds:.0f}",
        )
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    """Tune each workload, and print its figures; 1 if one of them has no kernel."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "names", nargs="*", default=NAMES, metavar="NAME", help="workloads of strata bench, or matmul_f16:MxKxN"
    )
    parser.add_argument("--all", action="store_true", help="all workloads, also those that have no goal on a GPU")
    parser.add_argument("--trials", type=positive, default=200, help="of each (default 200)")
    parser.add_argument("--seconds", type=positive, default=85, help="of tuning, at most, for each (default 85)")
    parser.add_argument("--scale", type=scale, default=Fraction(1), help="multiply every extent: 1/4 or 0.25")
    parser.add_argument("--arch", help="the architecture (default: that of the GPU at hand, or sm_80)")
    parser.add_argument("--folder", type=Path, default=Path("gpu"), help="where records stay (default gpu)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    tuned_cases: list[Found] = []
    missing = 0
    for name in (*options.names, *(OTHERS if options.all else ())):
        try:
            asked = case(name, options.scale)
            tuned_cases.append(tuned(asked, options.arch, options.trials, options.seconds, options.folder))
        except StrataError as error:
            missing += 1
            print(f"{name}: {sentence(error)}", file=sys.stderr)
            continue
        print(
            f"{name}: {tuned_cases[-1].seconds * 1e6:.4g} us after {tuned_cases[-1].trials_seconds:.0f} s",
            file=sys.stderr,
        )
        if options.json is not None:
            options.json.write_text(json.dumps([asdict(row) for row in tuned_cases], indent=1) + "\n")
    if tuned_cases:
        Console(width=120).print(shown(tuned_cases))
    return int(missing > 0)


if __name__ == "__main__":
    sys.exit(main())
