"""matmul -> exp -> matmul, from the expression through every level to machine code; a schedule step by step; then
tuned from nothing, and measured beside numpy.

Run by `make demo`; about two minutes.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from examples import walk
from strata import Kernel, SearchTask, TuningOptions, build
from strata.autotune import RunFacts, view
from strata.bench import WIDTH, Measurement, Plan, Workload, contenders, fault, measure, table, workloads
from strata.te import Function

SCALE = Fraction(1, 4)
TRIALS, SECONDS = 64, 40.0
PLAN = Plan(rounds=15, seconds=15.0)
BASE = "numpy"
FMA = re.compile(r"\s(vfn?m(add|sub)\w+[ps]s|fmla)\s")


def main() -> int:
    """Show and measure; 0, or 1 where a result is wrong, or 130 after an interruption."""
    console = Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False)
    workload = workloads.find("mm_exp_mm", SCALE)
    function = workload.function()
    console.rule("matmul -> exp -> matmul")
    console.print(f"{workload.what}, float32", markup=False)
    kernel = _compile(console, function)
    _show_levels(console, kernel)
    wrong = _check(console, workload, kernel)
    if wrong is not None or not _walk(console):
        return 1
    with TemporaryDirectory() as folder:
        database = str(Path(folder) / "demo.db")
        if not _tune(console, database):
            return 130
        measurement = _measure(console, database)
    return 130 if measurement.interrupted else int(any(run.wrong for run in measurement.runs))


def _compile(console: Console, function: Function) -> Kernel:
    start = time.perf_counter()
    kernel = build(function)
    console.print(f"built in {time.perf_counter() - start:.2f} s")
    return kernel


def _show_levels(console: Console, kernel: Kernel) -> None:
    for level, what, limit in (
        ("te", "tensor expressions", 30),
        ("loop", "explicit loops and blocks, here without any schedule", 22),
        ("low", "upstream MLIR: scf, memref, vector, arith, math", 30),
    ):
        _show(console, level, what, _abridged(kernel.text(level).splitlines(), limit))
    llvm = kernel.text("llvm").splitlines()
    _show(console, "llvm", f"LLVM IR, {len(llvm)} lines", [])
    loop = inner_loop(kernel.text("asm"))
    _show(console, "asm", "the loop with the most multiply-adds", _abridged(loop, 30))


def _show(console: Console, level: str, what: str, lines: Sequence[str]) -> None:
    console.rule(f"[bold]{level}[/bold]: {what}", align="left")
    console.print("\n".join(lines), markup=False, no_wrap=True, overflow="crop", end="\n" if lines else "")


def _abridged(lines: Sequence[str], limit: int) -> list[str]:
    """The first lines, and how many more there are."""
    if len(lines) <= limit:
        return list(lines)
    return [*lines[:limit], f"... {len(lines) - limit} more lines"]


def inner_loop(assembly: str) -> list[str]:
    """The innermost loop of an assembly text that has the most multiply-adds: from its label to its jump back."""
    lines = [line.partition("#")[0].rstrip() for line in assembly.splitlines()]
    labels: dict[str, int] = {}
    best: list[str] = []
    for number, line in enumerate(lines):
        if line.startswith(".L") and line.endswith(":"):
            labels[line[:-1]] = number
        target = line.split()[-1] if line.startswith("\t") and line.split() else ""
        if target not in labels:
            continue
        loop = [line for line in lines[labels[target] : number + 1] if not line.lstrip().startswith(".p2align")]
        nested = sum(line.endswith(":") for line in loop) > 1
        if not nested and _multiply_adds(loop) > _multiply_adds(best):
            best = loop
    return [line.expandtabs(4) for line in best]


def _multiply_adds(lines: Sequence[str]) -> int:
    return sum(FMA.search(line) is not None for line in lines)


def _check(console: Console, workload: Workload, kernel: Kernel) -> str | None:
    """Compare with numpy in float64, and say what came out; what is wrong, if something is."""
    inputs = workload.draw(seed=1)
    expected = workload.expected(inputs)
    output = kernel(*inputs)
    wrong = fault(output, expected)
    console.rule("check against numpy", align="left")
    if wrong is not None:
        console.print(f"wrong: {wrong}", markup=False)
        return wrong
    error = np.abs(output - expected.value)
    used = (error / expected.tolerance()).max()
    console.print(f"largest error {error.max():.2e}, elements up to {np.abs(expected.value).max():.0f};", end=" ")
    console.print(f"{used:.1%} of what float32 may err by: right")
    return None


def _walk(console: Console) -> bool:
    """A schedule, one row a step; whether all of it is right."""
    console.rule("scheduled", align="left")
    shown, right = walk.table()
    console.print(shown)
    return right


def _tune(console: Console, database: str) -> bool:
    """Search from nothing at full size, with a live table; whether it was left to end."""
    console.rule("tuned from nothing, one thread", align="left")
    task = SearchTask(workloads.find("mm_exp_mm").function(), threads=1)
    console.print(task.compute_dag, markup=False)
    with view(task, sys.stdout) as shown:
        record = task.tune(TuningOptions(TRIALS, SECONDS, database, callbacks=(shown,)))
    assert shown.last is not None
    facts = RunFacts(task, shown.last, record)
    for line in facts.sentences():
        console.print(line, markup=False)
    if record is not None:
        console.print("the script that was found, abridged:")
        console.print(
            "\n".join(_abridged(task.script(record).splitlines(), 24)), markup=False, no_wrap=True, overflow="crop"
        )
    return not facts.interrupted


def _measure(console: Console, database: str) -> Measurement:
    """Measure at full size with a live table, or, where nobody can watch, with the table at the end."""
    workload, rivals = workloads.find("mm_exp_mm"), contenders.find(["tuned", "numpy"])
    settings = contenders.Settings(database=database)
    console.rule("measured outside the tuner, contenders taking turns", align="left")
    if not console.is_terminal:
        measurement = measure(workload, rivals, settings, PLAN)
    else:
        measurement = _measure_live(console, workload, rivals, settings)
    console.print(table(measurement, BASE))
    return measurement


def _measure_live(
    console: Console, workload: Workload, rivals: list[contenders.Contender], settings: contenders.Settings
) -> Measurement:
    progress = Progress(TextColumn("round"), BarColumn(), MofNCompleteColumn(), console=console)
    bar = progress.add_task("rounds", total=PLAN.rounds)
    shown = 0.0
    with Live(Text("warming up"), console=console, auto_refresh=False, transient=True) as live:

        def watch(measurement: Measurement) -> None:
            nonlocal shown
            if time.perf_counter() - shown > 0.15:  # drawing stands between samples, never in one
                progress.update(bar, completed=measurement.rounds)
                live.update(Group(table(measurement, BASE), progress), refresh=True)
                shown = time.perf_counter()

        return measure(workload, rivals, settings, PLAN, watch=watch)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
