"""`python -m benchmarks.tuned_default DATABASE [NAME ...]`: networks of torch, tuned, beside the same without a trial.

Random weights, float32, batch 1, one thread. `--seconds S` tunes each network so long before, with records kept in the
database; without it what the database has is taken. Then, in `--processes` fresh processes, the kernel of
`build(x, schedule=DATABASE)` and that of `build(x)` run in turns: medians of rounds, their ratio, and how many groups
run by a record. A ratio above 1.01 means that tuning made the network slower. `--error` is the rounding error up to
which laws may give groups other forms, of both kernels.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path

import torch

from benchmarks.torch_models import MODELS, in_turns
from compiler.autotune import SearchTask, TuningOptions
from compiler.driver.building import build
from compiler.frontends.model import Imported
from compiler.frontends.torch import from_torch
from compiler.support.text import counted, duration

Inputs = tuple[torch.Tensor, ...]


def imported(name: str) -> tuple[Imported, Inputs]:
    """A network, always with the same weights, and its inputs."""
    torch.manual_seed(0)
    make, inputs_of = MODELS[name]
    model, inputs = make().eval(), inputs_of()
    return from_torch(model, inputs), inputs


def tune(name: str, database: Path, seconds: float, error: float | None) -> None:
    """Tune a network for `seconds` seconds into a database, with the live display. error: as for `compiler.build`."""
    task = SearchTask(imported(name)[0], threads=1, error=error)
    task.tune(TuningOptions(trials=None, seconds=seconds, database=database, show=True))


def compare(name: str, database: Path, rounds: int, error: float | None) -> None:
    """Time both kernels in this process, and print a line."""
    network, inputs = imported(name)
    kernels = {
        what: build(network, threads=1, schedule=schedule, error=error)
        for what, schedule in {"default": "auto", "tuned": database}.items()
    }
    given = [tensor.numpy() for tensor in inputs]
    seconds = in_turns({what: partial(kernel, *given) for what, kernel in kernels.items()}, rounds)
    tuned = sum(group.source == "record" for group in kernels["tuned"].groups)
    print(
        f"{name}: default {duration(seconds['default'])}, tuned {duration(seconds['tuned'])}, "
        f"ratio {seconds['tuned'] / seconds['default']:.3f}; {counted(tuned, 'group')} by a record",
        flush=True,
    )


def main() -> None:
    """Tune, then compare in fresh processes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("database", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(MODELS))
    parser.add_argument("--seconds", type=float, help="tune each so long before")
    parser.add_argument("--rounds", type=int, default=61)
    parser.add_argument("--processes", type=int, default=3, help="0: compare in this process")
    parser.add_argument("--error", type=float, help="see `build`")
    given = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    chosen = [n for n in MODELS if any(part.lower() in n.lower() for part in given.names)] or ["MobileNetV2"]
    with torch.no_grad():
        for name in chosen:
            if given.seconds is not None:
                tune(name, given.database, given.seconds, given.error)
            if not given.processes:
                compare(name, given.database, given.rounds, given.error)
            again = [sys.executable, "-m", "benchmarks.tuned_default", str(given.database), name, "--processes", "0"]
            again += [] if given.error is None else ["--error", str(given.error)]
            for _ in range(given.processes):
                subprocess.run([*again, "--rounds", str(given.rounds)], check=True)


if __name__ == "__main__":
    main()
