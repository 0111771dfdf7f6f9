"""`python -m benchmarks.tuned_networks DATABASE [NAME ...]`: networks of torch, tuned, beside other runtimes.

Random weights, float32, batch 1, one thread. `--seconds S` tunes each network so long before, with records kept in the
database; without it what the database has is taken. Then the tuned network, the same without a trial, torch compiled
with frozen parameters, onnxruntime and OpenVINO run in turns: CPU time, medians of rounds. Ours is the kernel of
`strata.from_torch`; beside it stands what `torch.compile(model, backend="strata")` takes, with torch's own checks of
each call. A table of groups follows: what each takes of the time, and of the bound that the machine sets.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from benchmarks.torch_models import MODELS, PEERS, in_turns
from compiler.autotune import SearchTask, TuningOptions
from compiler.autotune.display.facts import ceiling_share
from compiler.autotune.display.operator import operator
from compiler.database import Record
from compiler.driver.building import build
from compiler.frontends.model import Imported
from compiler.frontends.torch import from_torch
from compiler.support.text import duration

NETWORKS = ("ResNet-50", "BERT-base, 128 words", "MobileNetV2")
"""Those that are measured where none is named."""
TOLERANCE = 1e-4
"""Of the largest result: floating point is in another order."""


def tune(imported: Imported, database: Path, seconds: float) -> None:
    """Tune a network's groups under one budget, with the live table."""
    SearchTask(imported, threads=1).tune(TuningOptions(trials=None, seconds=seconds, database=str(database)))


def calls_of(
    model: nn.Module, inputs: tuple[Tensor, ...], imported: Imported, database: Path
) -> dict[str, Callable[[], Any]]:
    """A call of each contender, those that are installed; ours first."""
    given = [tensor.numpy() for tensor in inputs]
    calls: dict[str, Callable[[], Any]] = {}
    for name, schedule in {"tuned": database, "default": "auto"}.items():
        calls[name] = partial(build(imported, threads=1, schedule=schedule), *given)
    door = torch.compile(model, backend="strata", options={"threads": 1, "database": database})
    calls["torch.compile, tuned"] = partial(door, *inputs)
    for name, prepare in PEERS.items():
        if (call := prepare(model, inputs)) is not None:
            calls[name] = call
    return calls


def check(calls: dict[str, Callable[[], Any]]) -> None:
    """Compare the first result of all contenders. Raises AssertionError if one differs."""
    outputs = {name: _first(call()) for name, call in calls.items()}
    wanted = outputs["inductor"]
    for name, output in outputs.items():
        error = float(np.abs(output - wanted).max() / np.abs(wanted).max())
        assert error < TOLERANCE, f"{name} differs from inductor by {error:.2g}"


def _first(outputs: Any) -> Any:
    """The first result as an array: runtimes return tuples, lists, mappings, or the result itself."""
    if hasattr(outputs, "to_tuple"):  # of OpenVINO
        outputs = outputs.to_tuple()
    return np.asarray(outputs[0] if isinstance(outputs, tuple | list) else outputs)


def times(name: str, seconds: dict[str, float]) -> Table:
    """The time of each contender, relative to the tuned network."""
    table = Table(title=name, title_justify="left", box=None)
    for heading in ("", "a run", "of tuned"):
        table.add_column(heading, justify="right" if heading else "left")
    for contender, taken in seconds.items():
        table.add_row(contender, duration(taken), f"{taken / seconds['tuned']:.3f}")
    return table


def groups(task: SearchTask, database: Path) -> Table:
    """The times of the groups' best records, largest share first."""
    table = Table(box=None)
    for heading in ("group", "operator", "calls", "share of time", "a call", "share of bound", "source"):
        table.add_column(heading, justify="left" if heading in ("group", "operator", "source") else "right")
    records = task.records(database)
    parts = task.groups or (task,)
    costs = {part.name: _cost(records[part.name]) for part in parts if part.name in records}
    total = sum(part.occurrences * costs.get(part.name, 0.0) for part in parts)
    for part in sorted(parts, key=lambda part: -part.occurrences * costs.get(part.name, 0.0)):
        cells = ["", "", "", "without a trial"]
        if part.name in costs:
            bound = ceiling_share(part, records[part.name].outcome)
            share = part.occurrences * costs[part.name] / total
            source = _sketch(part, records[part.name])
            cells = [f"{share:.1%}", duration(costs[part.name]), "" if bound is None else f"{bound:.0%}", source]
        table.add_row(part.name, operator(part.schedule.program), str(part.occurrences), *cells)
    return table


def _cost(record: Record) -> float:
    return sorted(record.outcome.seconds)[len(record.outcome.seconds) // 2]


def _sketch(part: SearchTask, record: Record) -> str:
    """Return "record, " and the name of the sketch whose candidate a record's script is; "record" if it is no
    candidate."""
    return "record" if record.candidate is None else f"record, {part.space.sketches[record.candidate[0]].name}"


def measured(name: str, database: Path, seconds: float | None, rounds: int, console: Console) -> None:
    """Tune, check, time and show a network."""
    torch.manual_seed(0)
    make, inputs_of = MODELS[name]
    model, inputs = make().eval(), inputs_of()
    imported = from_torch(model, inputs)
    if seconds is not None:
        begin = time.perf_counter()
        tune(imported, database, seconds)
        console.print(f"{name}: tuned in {duration(time.perf_counter() - begin)}")
    calls = calls_of(model, inputs, imported, database)
    check(calls)
    console.print(times(name, in_turns(calls, rounds)))
    console.print(groups(SearchTask(imported, threads=1), database))


def main() -> None:
    """Measure the networks that are named, or the three."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("database", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(MODELS))
    parser.add_argument("--seconds", type=float, help="tune each so long before")
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    console = Console(width=160, highlight=False)
    chosen = [n for n in MODELS if any(part.lower() in n.lower() for part in given.names)] or list(NETWORKS)
    with torch.no_grad():
        for name in chosen:
            measured(name, given.database, given.seconds, given.rounds, console)


if __name__ == "__main__":
    main()
