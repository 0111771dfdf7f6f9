"""Whether a busy machine misleads the tuner: each workload tuned twice, in quiet and beside a hog, then compared.

Run as `python -m benchmarks.busy [NAME...] --trials 64`. The hog is a process on the processor where the tuner
measures; it spins half of the time, in slices of some milliseconds. With --pinned that processor is all that the tuner
has; without, it may move to another. Both runs have one seed. Then the best scripts of both take turns, while there is
no hog: the ratio of their times says what the hog has cost.

What is finished is kept in --folder, and skipped by the next run; a run that was interrupted goes on with its records.
The exit status is 0 where the geometric mean of the ratios is at most MEAN and none is above WORST.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from statistics import geometric_mean

from benchmarks.tuning import by_database
from compiler.autotune.display.progress import Progress
from compiler.autotune.options import TuningOptions
from compiler.autotune.task import SearchTask
from compiler.bench import contenders, workloads
from compiler.bench.contenders import Contender, Settings
from compiler.bench.harness import Measurement, Plan, measure
from compiler.bench.workload import Workload
from compiler.database import Database
from compiler.database.outcome import total_disturbance
from compiler.targets.cpu.presence import QUIET, Disturbance

NAMES = ("matmul_512", "matmul_127x333x511", "conv_7x7", "conv_56x56", "softmax", "layernorm", "swish", "mlp")
"""The workloads where none is named."""
MEAN, WORST = 1.05, 1.12
"""What tuning beside a hog may cost: the geometric mean over the workloads, and each."""
PLAN = Plan(rounds=31, seconds=60.0)
HOG = """
import os, sys, time
slice, parent = float(sys.argv[1]), os.getppid()
print("spinning", flush=True)
while os.getppid() == parent:
    until = time.perf_counter() + slice
    while time.perf_counter() < until:
        pass
    time.sleep(slice)
"""
"""What a hog does until its parent ends."""


@dataclass(frozen=True)
class How:
    """How workloads are tuned: the trials, the seconds if they are limited, the seed, the threads, whether the tuner
    has one processor alone, and the seconds that the hog spins before it sleeps as long."""

    trials: int = 64
    seconds: float | None = None
    seed: int = 0
    threads: int = 1
    pinned: bool = False
    slice: float = 5e-3

    @property
    def name(self) -> str:
        """The stem of the names of such a run's files."""
        limit = "" if self.seconds is None else f"-{self.seconds:g}s"
        place = "-pinned" if self.pinned else ""
        return f"{self.trials}{limit}-{self.seed}-{self.threads}{place}-{1e3 * self.slice:g}ms"


@dataclass(frozen=True)
class Found:
    """The comparison of a workload: milliseconds of the best script of each run, measured in turns without a hog, and
    the share of the time for which the tuner was off its processor in each run and in the turns."""

    name: str
    quiet: float
    busy: float
    away_quiet: float
    away_busy: float
    away_turns: float

    @property
    def ratio(self) -> float:
        """The time of the script that was found beside the hog over that of the one found in quiet."""
        return self.busy / self.quiet


def measuring() -> int:
    """The processor where the tuner measures on one thread."""
    return max(os.sched_getaffinity(0))


@contextmanager
def hog(processor: int, slice: float) -> Iterator[subprocess.Popen[str]]:
    """Run a process in the context that spins on a processor half of the time, in slices of `slice` seconds."""
    command = [sys.executable, "-c", HOG, str(slice)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            os.sched_setaffinity(process.pid, {processor})
            assert process.stdout is not None
            process.stdout.readline()
            yield process
        finally:
            process.kill()


@contextmanager
def kept_to(processor: int) -> Iterator[None]:
    """Restrict this process and its new children to one processor in the context."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {processor})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def tune(workload: Workload, how: How, path: Path, beside_hog: bool) -> Disturbance:
    """Tune a workload into a file, with `beside_hog` beside a hog; return the total disturbance of its records."""
    place = measuring()
    task = SearchTask(workload.function(), threads=how.threads)
    options = TuningOptions(how.trials, how.seconds, path, how.seed, callbacks=(_say,))
    with (
        hog(place, how.slice) if beside_hog else nullcontext(),
        kept_to(place) if how.pinned else nullcontext(),
    ):
        task.tune(options)
    with Database(path) as database:
        return total_disturbance(record.outcome.disturbance for record in database.records(task.key)) or QUIET


def _say(progress: Progress) -> None:
    """Show how far a run is, on the line of a terminal."""
    if sys.stderr.isatty():
        print(f"\r{progress.name}: {progress.trials} trials, {progress.phase}\x1b[K", end="\r", file=sys.stderr)


def compare(workload: Workload, threads: int, paths: Sequence[Path]) -> Measurement:
    """Measure the best scripts of some files in turns."""
    (_, tuned) = contenders.find(["tuned"])
    ours = [Contender(path.stem, tuned.what, tuned.version, by_database(tuned, str(path))) for path in paths]
    return measure(workload, ours, Settings(threads), PLAN, seed=0)


def run(name: str, how: How, folder: Path) -> Found:
    """Tune a workload in quiet and beside a hog, and compare."""
    workload = workloads.find(name)
    stem = re.sub(r"[^A-Za-z0-9_]", "_", name)
    quiet, busy = (folder / f"{stem}-{how.name}-{kind}.db" for kind in ("quiet", "busy"))
    print(f"{name}: tuning in quiet", flush=True)
    without = tune(workload, how, quiet, beside_hog=False)
    print(f"{name}: tuning beside a hog", flush=True)
    beside = tune(workload, how, busy, beside_hog=True)
    print(f"{name}: comparing", flush=True)
    measured = compare(workload, how.threads, [quiet, busy])
    if measured.interrupted:
        raise KeyboardInterrupt
    first, second = (inf if contender.seconds is None else 1e3 * contender.seconds for contender in measured.runs)
    turns = sum((contender.disturbance for contender in measured.runs), QUIET)
    return Found(name, first, second, without.share, beside.share, turns.share)


def rows(comparisons: Sequence[Found]) -> Iterator[str]:
    """Yield the lines of a table in Markdown, then one with the bounds."""
    yield "| workload | quiet, ms | beside a hog, ms | ratio | away in quiet | away beside it | away in turns |"
    yield "|---|---|---|---|---|---|---|"
    for row in comparisons:
        shares = " | ".join(f"{share:.0%}" for share in (row.away_quiet, row.away_busy, row.away_turns))
        yield f"| {row.name} | {row.quiet:.4g} | {row.busy:.4g} | {row.ratio:.3f} | {shares} |"
    ratios = [row.ratio for row in comparisons]
    yield f"geometric mean {geometric_mean(ratios):.3f} (at most {MEAN}), worst {max(ratios):.3f} (at most {WORST})"


def holds(comparisons: Sequence[Found]) -> bool:
    """Whether the ratios have a geometric mean of at most MEAN, and each is at most WORST."""
    ratios = [row.ratio for row in comparisons]
    return geometric_mean(ratios) <= MEAN and max(ratios) <= WORST


def _finished(path: Path) -> dict[str, Found]:
    """Map the workloads that earlier runs of the same settings have finished to their comparisons."""
    if not path.exists():
        return {}
    return {name: Found(**fields) for name, fields in json.loads(path.read_text()).items()}


def _keep(path: Path, finished: dict[str, Found]) -> None:
    """Write the finished comparisons, atomically."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps({name: asdict(row) for name, row in finished.items()}, indent=1))
    new.replace(path)


def main(arguments: Sequence[str] | None = None) -> int:
    """Tune and compare the workloads that are not finished, and print the table; return 1 if the bounds do not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("names", nargs="*", default=list(NAMES), metavar="NAME")
    add("--trials", type=int, default=How.trials)
    add("--seconds", type=float, help="begin no trial of a run after this")
    add("--seed", type=int, default=How.seed)
    add("--threads", type=int, default=How.threads)
    add("--pinned", action="store_true", help="give the tuner the processor of the hog alone")
    add("--slice", type=float, default=How.slice, help="seconds that the hog spins, then sleeps")
    add("--folder", type=Path, default=Path("build/busy"))
    o = parser.parse_args(arguments)
    how = How(o.trials, o.seconds, o.seed, o.threads, o.pinned, o.slice)
    o.folder.mkdir(parents=True, exist_ok=True)
    path = o.folder / f"{how.name}.json"
    finished = _finished(path)
    for name in o.names:
        if name not in finished:
            finished[name] = run(name, how, o.folder)
            _keep(path, finished)
        print(f"{name}: {finished[name].ratio:.3f}", flush=True)
    asked = [finished[name] for name in dict.fromkeys(o.names)]
    print("\n".join(rows(asked)))
    return int(not holds(asked))


if __name__ == "__main__":
    sys.exit(main())
