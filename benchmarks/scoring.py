"""How many candidates are scored a second: features by tracing and the cost model, on one core.

Run as `python -m benchmarks.scoring [NAME...]`. Structures are traced before the time begins, as they are after some
rounds of a search; what tracing one costs is a column of its own.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from statistics import median

import numpy as np
from rich.console import Console
from rich.table import Table

from compiler.autotune.search.model import CostForest
from compiler.autotune.search.supply import draw
from compiler.autotune.task import SearchTask
from compiler.bench import workloads
from compiler.space.candidates import filter_candidates

CANDIDATES = 20_000
TRIALS = 128
ROUNDS = 5


@dataclass(frozen=True)
class Scoring:
    """The cost of scoring in a space: candidates, structures and the seconds to trace one, and candidates a second by
    features alone, by the model alone and by both."""

    candidates: int
    structures: int
    traced: float
    features: float
    model: float
    both: float


def scoring(name: str) -> Scoring:
    """Measure a workload's space."""
    space = SearchTask(workloads.find(name).function(), threads=1).space
    draws = np.random.default_rng(0)
    drawn = draw(space.sizes, CANDIDATES, draws)
    start = time.perf_counter()
    pool = filter_candidates(space, drawn)
    while pool.later:
        pool = filter_candidates(space, drawn)
    traced = (time.perf_counter() - start) / max(1, space.structures)
    seconds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        pool = filter_candidates(space, drawn)
        seconds.append(time.perf_counter() - start)
    values = pool.feasible.values
    forest = CostForest(values[:TRIALS], draws.random(len(values[:TRIALS])), 0)
    scored = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        forest.predict(values)
        scored.append((time.perf_counter() - start) / len(values) * len(drawn))
    both = len(drawn) / (median(seconds) + median(scored))
    return Scoring(
        len(drawn), space.structures, traced, len(drawn) / median(seconds), len(drawn) / median(scored), both
    )


def main() -> None:
    """Measure and print a table."""
    table = Table("space", "candidates", "structures", "ms to trace one", "features/s", "model/s", "both/s", box=None)
    for name in sys.argv[1:] or ("matmul_512", "conv_56x56", "mm_exp_mm"):
        rates = scoring(name)
        counts = (rates.features, rates.model, rates.both)
        table.add_row(
            name,
            str(rates.candidates),
            str(rates.structures),
            f"{1e3 * rates.traced:.0f}",
            *(f"{n:,.0f}" for n in counts),
        )
    Console(width=None if sys.stdout.isatty() else 120).print(table)


if __name__ == "__main__":
    main()
