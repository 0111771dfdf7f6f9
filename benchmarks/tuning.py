"""What tuning finds, workload by workload: beside the hand-written script, numpy and torch, measured outside the tuner.

Run as `python -m benchmarks.tuning [NAME...] --trials 64 --seeds 0,1,2`. Each seed tunes from nothing in a database of
its own, which stays in --folder; a run that was interrupted goes on there. Then the best script takes turns with the
others in the harness.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import contenders, workloads
from benchmarks.harness import Measurement, Plan, measure
from benchmarks.workload import Workload
from compiler.autotune.database import Database, Record
from compiler.autotune.progress import Progress, TuningOptions
from compiler.autotune.task import SearchTask

NEAR = 0.95
"""How near to the best known a candidate must be to count as found."""
RIVALS = ("tuned", "numpy", "torch")
PLAN = Plan(rounds=11, seconds=45.0)


@dataclass(frozen=True)
class Tuned:
    """One run: its seconds, how many trials, those until a candidate was near the best of all runs, the model's
    accuracy on pairs, what failed; and medians outside the tuner in milliseconds, by contender."""

    name: str
    seed: int
    trials: int
    seconds: float
    near: int | None
    accuracy: float | None
    failed: dict[str, int]
    medians: dict[str, float]


def tune(workload: Workload, trials: int, seed: int, threads: int, path: Path) -> tuple[list[Record], Progress, float]:
    """Tune a workload; the first record of each script in order, how the run ended, and its seconds."""
    task = SearchTask(workload.function(), threads=threads)
    seen: list[Progress] = []
    start = time.perf_counter()
    task.tune(TuningOptions(trials=trials, database=path, seed=seed, callbacks=[seen.append]))
    seconds = time.perf_counter() - start
    with Database(path) as database:
        firsts: dict[str, Record] = {}
        for record in database.records(task.key):  # leaders have been measured again
            firsts.setdefault(record.script, record)
        return list(firsts.values()), seen[-1], seconds


def near(records: Sequence[Record], best: float) -> int | None:
    """The number of the first trial that came near the lowest cost known, counted from one."""
    costs = [record.outcome.cost for record in records]
    return next((number for number, cost in enumerate(costs, 1) if cost * NEAR <= best), None)


def compare(workload: Workload, threads: int, path: Path) -> Measurement:
    """The best script beside the hand-written one and the libraries."""
    settings = contenders.Settings(threads, database=str(path))
    return measure(workload, contenders.find(RIVALS), settings, PLAN)


def run(workload: Workload, trials: int, seeds: Sequence[int], threads: int, folder: Path) -> list[Tuned]:
    """Tune a workload once for each seed, and compare what was found."""
    paths = [folder / f"{workload.name.replace(':', '_')}-{threads}-{seed}.db" for seed in seeds]
    runs = [tune(workload, trials, seed, threads, path) for seed, path in zip(seeds, paths, strict=True)]
    best = min((r.outcome.cost for records, _, _ in runs for r in records), default=float("inf"))
    found = []
    for seed, path, (records, progress, seconds) in zip(seeds, paths, runs, strict=True):
        measured = compare(workload, threads, path)
        medians = {r.contender.name: 1e3 * r.seconds for r in measured.runs if r.seconds is not None}
        accuracy = progress.accuracy
        failed = dict(progress.failed)
        found.append(Tuned(workload.name, seed, len(records), seconds, near(records, best), accuracy, failed, medians))
    return found


def table(found: Sequence[Tuned]) -> Table:
    """A row a run: what tuning took, and how many times as fast as the others its best is."""
    heads = (
        "workload",
        "seed",
        "trials",
        "s",
        "near best after",
        "pairs right",
        "ms",
        "hand-written",
        "numpy",
        "torch",
    )
    shown = Table(*heads, box=None)
    for one in found:
        ours = one.medians.get("tuned")
        ratios = [_ratio(one.medians.get(name), ours) for name in ("strata", "numpy", "torch")]
        after = "-" if one.near is None else str(one.near)
        accuracy = "-" if one.accuracy is None else f"{one.accuracy:.2f}"
        time_ = "-" if ours is None else f"{ours:.3g}"
        shown.add_row(one.name, str(one.seed), str(one.trials), f"{one.seconds:.0f}", after, accuracy, time_, *ratios)
    return shown


def _ratio(theirs: float | None, ours: float | None) -> str:
    return "-" if theirs is None or ours is None else f"{theirs / ours:.2f}"


def main() -> None:
    """Tune, compare, print, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(workloads.PRESETS))
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("build/tuning"))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    console = Console(width=None if sys.stdout.isatty() else 140)
    found: list[Tuned] = []
    for name in options.names:
        workload = workloads.find(name)
        seeds = [int(seed) for seed in options.seeds.split(",")]
        found += run(workload, options.trials, seeds, options.threads, options.folder)
        console.print(table(found[-len(seeds) :]))
        (options.folder / "found.json").write_text(json.dumps([asdict(one) for one in found], indent=1))
    console.print(table(found))


if __name__ == "__main__":
    main()
