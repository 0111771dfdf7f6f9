"""What tuning finds, workload by workload: beside the hand-written script, numpy and torch, measured outside the tuner.

Run as `python -m benchmarks.tuning [NAME...] --trials 64,256 --seeds 0,1,2 --random 128`. Each seed tunes from nothing,
to each number of trials in turn, into databases of its own that stay in --folder: a run that was interrupted goes on
there. A further run proposes candidates at random, in the same space. Then the best script of each run takes turns with
the others in the harness, all in one measurement.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from compiler.autotune.options import TuningOptions
from compiler.autotune.search.options import Options
from compiler.autotune.search.ranking import pairs
from compiler.autotune.task import SearchTask
from compiler.bench import contenders, workloads
from compiler.bench.contenders import Contender, Settings
from compiler.bench.harness import Measurement, Plan, measure
from compiler.bench.workload import Workload
from compiler.database import Database, Record
from compiler.database.outcome import combine
from compiler.space.candidates import defaults_of

NEAR = 0.95
"""How near to the best known a candidate must be to count as found."""
PLAN = Plan(rounds=11, seconds=60.0)
BLIND = "random"
"""What the best of a random search is called beside the others."""
RANDOM = Options(start=1, random=1.0, descent=0.0)
"""A search that draws all its candidates at random, but for the defaults of the sketches, which come first."""


@dataclass(frozen=True)
class Run:
    """One tuning run: its database, seed, trials and seconds, and the accuracy of the model: the share of pairs that it
    ranked rightly before they were measured, over the second half of the run; None without predictions."""

    path: str
    seed: int
    trials: int
    seconds: float
    accuracy: float | None


@dataclass(frozen=True)
class Found:
    """The results of the runs of one workload: medians outside the tuner in milliseconds, by contender, and the
    ceiling, in units of work per second; near: of each seed the trials until a candidate came near the best known;
    random: the mean number of random candidates for that, None if none of the `drawn` ones came near."""

    name: str
    runs: tuple[Run, ...]
    medians: dict[str, float]
    ceiling: float | None
    near: tuple[int | None, ...]
    random: float | None
    drawn: int


def task(workload: Workload, threads: int) -> SearchTask:
    """The task of a workload without constant inputs."""
    return SearchTask(workload.function(), threads=threads)


def tune(workload: Workload, threads: int, path: Path, options: TuningOptions) -> Run:
    """Tune a workload into a database. The seconds are those of this call: near 0 if the database already has all
    trials."""
    tuned = task(workload, threads)
    start = time.perf_counter()
    tuned.tune(replace(options, database=path))
    seconds = time.perf_counter() - start
    told = [r for r in firsts(tuned, path) if r.predicted is not None and r.outcome.is_comparable]
    half = [r for r in told if r.id > told[-1].id // 2] if told else []
    accuracy = pairs([r.predicted or 0.0 for r in half], [r.outcome.cost for r in half]).accuracy
    return Run(str(path), options.seed, options.trials or 0, seconds, accuracy)


def firsts(tuned: SearchTask, path: Path) -> list[Record]:
    """Return the first record of each script, in order; the best scripts are measured again, and have further
    records."""
    by_script: dict[str, Record] = {}
    with Database(path) as database:
        for record in database.records(tuned.key):
            by_script.setdefault(record.script, record)
    return list(by_script.values())


def costs(tuned: SearchTask, path: Path) -> dict[str, float]:
    """The cost of each script over all its records, in the order of first trials."""
    by_script: dict[str, list[Record]] = {}
    with Database(path) as database:
        for record in database.records(tuned.key):
            by_script.setdefault(record.script, []).append(record)
    return {script: combine([record.outcome for record in records]).cost for script, records in by_script.items()}


def run(workload: Workload, budgets: Sequence[int], seeds: Sequence[int], drawn: int, options: Place) -> Found:
    """Tune a workload once for each seed and budget and, with `drawn` trials, once at random, then compare the
    results."""
    runs: list[Run] = []
    for seed in seeds:
        before: Path | None = None
        for trials in budgets:
            path = options.path(workload, f"{seed}-{trials}")
            if before is not None and not path.exists():
                shutil.copyfile(before, path)
            runs.append(tune(workload, options.threads, path, TuningOptions(trials=trials, seed=seed)))
            before = path
    random = options.path(workload, "random")
    if drawn:
        tune(workload, options.threads, random, TuningOptions(trials=drawn, seed=max(seeds) + 1, search=RANDOM))
    tuned = task(workload, options.threads)
    every = [costs(tuned, Path(each.path)) for each in runs]
    blind = costs(tuned, random) if drawn else {}
    best = min(cost for costs_by_script in (*every, blind) for cost in costs_by_script.values())
    defaults = {tuned.space.script(candidate) for candidate in defaults_of(tuned.space)}
    tried = [cost for script, cost in blind.items() if script not in defaults]
    hits = sum(cost * NEAR <= best for cost in tried)
    last = [costs_by_script for each, costs_by_script in zip(runs, every, strict=True) if each.trials == budgets[-1]]
    blind_best = (
        [Contender(BLIND, "the best of random candidates", str, by_database(_tuned(), str(random)))] if blind else []
    )
    measured = compare(workload, runs, options.threads, blind_best)
    medians = {r.contender.name: 1e3 * r.seconds for r in measured.runs if r.seconds is not None}
    near = tuple(first_near(list(costs_by_script.values()), best) for costs_by_script in last)
    return Found(
        workload.name, tuple(runs), medians, measured.ceiling, near, len(tried) / hits if hits else None, len(tried)
    )


@dataclass(frozen=True)
class Place:
    """The folder of the records of runs, and the threads on which they run."""

    folder: Path
    threads: int

    def path(self, workload: Workload, run: str) -> Path:
        """The file of a run."""
        return self.folder / f"{re.sub(r'[^A-Za-z0-9_]', '_', workload.name)}-{self.threads}-{run}.db"


def first_near(costs: Sequence[float], best: float) -> int | None:
    """Return the number, from 1, of the first trial whose cost is near the best: cost * NEAR <= best; None without
    one."""
    return next((number for number, cost in enumerate(costs, 1) if cost * NEAR <= best), None)


def _tuned() -> Contender:
    (_, tuned) = contenders.find(["tuned"])
    return tuned


def compare(workload: Workload, runs: Sequence[Run], threads: int, more: Sequence[Contender] = ()) -> Measurement:
    """Measure the best script of each run, numpy, torch and the contenders `more`, in turns with the hand-written
    schedule."""
    tuned = _tuned()
    ours = [Contender(label(each), tuned.what, tuned.version, by_database(tuned, each.path)) for each in runs]
    libraries = contenders.find(["numpy", "torch"])
    return measure(workload, [*libraries, *ours, *more], Settings(threads), PLAN)


def by_database(tuned: Contender, path: str) -> contenders.Bind:
    """Return the binding of the contender `tuned` with the database at a path."""
    return lambda workload, settings, inputs, out: tuned.bind(workload, replace(settings, database=path), inputs, out)


def label(run: Run) -> str:
    """The name of a run as a contender."""
    return f"{run.trials} trials, seed {run.seed}"


def rows(tuned_workloads: Sequence[Found]) -> Iterator[str]:
    """Yield the lines of a table in Markdown: a row for each workload and number of trials, with a figure for each seed
    in a cell."""
    heads = (
        "workload",
        "trials",
        "ms",
        "hand-written",
        "numpy",
        "torch",
        BLIND,
        "near after",
        "at random",
        "pairs",
        "s",
    )
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for workload in tuned_workloads:
        budgets = list(dict.fromkeys(r.trials for r in workload.runs))
        for trials in budgets:
            of_budget = [r for r in workload.runs if r.trials == trials]
            times = [workload.medians.get(label(r)) for r in of_budget]
            ratios = [
                _each(_over(workload.medians.get(n), t) for t in times)
                for n in (contenders.OURS, "numpy", "torch", BLIND)
            ]
            last = trials == budgets[-1]
            near = _each("-" if n is None else str(n) for n in workload.near) if last else ""
            random = "" if not last else f"> {workload.drawn}" if workload.random is None else f"{workload.random:.0f}"
            accuracy = _each("-" if r.accuracy is None else f"{r.accuracy:.2f}" for r in of_budget)
            seconds = _each(f"{r.seconds:.0f}" for r in of_budget)
            shown = _each("-" if t is None else f"{t:.3g}" for t in times)
            yield (
                "| " + " | ".join((workload.name, str(trials), shown, *ratios, near, random, accuracy, seconds)) + " |"
            )


def _each(texts: Iterator[str]) -> str:
    return " ".join(texts)


def _over(theirs: float | None, ours: float | None) -> str:
    return "-" if theirs is None or ours is None else f"{theirs / ours:.2f}"


def main() -> None:
    """Tune, compare, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(workloads.PRESETS))
    parser.add_argument("--trials", default="64", help="numbers of trials, in rising order")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--random", type=int, default=0, help="trials of a random search beside the others")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("build/tuning"))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    budgets, seeds = ([int(n) for n in text.split(",")] for text in (options.trials, options.seeds))
    tuned_workloads: list[Found] = []
    for name in options.names or list(workloads.PRESETS):
        tuned_workloads.append(
            run(workloads.find(name), budgets, seeds, options.random, Place(options.folder, options.threads))
        )
        print("\n".join(rows(tuned_workloads[-1:])), flush=True)
        (options.folder / "found.json").write_text(json.dumps([asdict(row) for row in tuned_workloads], indent=1))
    print("\n".join(rows(tuned_workloads)))


if __name__ == "__main__":
    main()
