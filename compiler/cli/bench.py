"""`strata bench NAME...`: measure workloads beside other libraries."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from compiler.cli.model import model_of, shape_argument
from compiler.cli.printing import show
from compiler.cli.values import natural, positive, scale, seconds
from compiler.support.command import INTERRUPTED
from compiler.support.errors import InputError
from compiler.support.files import is_stream, to_path, write
from compiler.types.policies import POLICIES

if TYPE_CHECKING:
    from rich.console import Console

    from compiler.bench.contenders import Contender, Settings
    from compiler.bench.harness import Measurement
    from compiler.bench.workload import Workload
    from compiler.frontends.model import Imported


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add = parser.add_argument
    add(
        "names",
        nargs="*",
        metavar="NAME",
        help="a workload, a family at other extents: matmul:96x128x64, or an ONNX model",
    )
    shape_argument(parser)
    add("--list", action="store_true", help="list workloads, families and contenders")
    add("--against", default="numpy", help="contenders, separated by commas (default numpy)")
    add("--threads", type=positive, default=1, help="threads for every contender (default 1)")
    add("--rounds", type=positive, default=9, help="rounds (default 9)")
    add("--seconds", type=seconds, default=60.0, help="begin no round of a workload after this (default 60)")
    add("--scale", type=scale, default=Fraction(1), help="multiply every extent: 1/4 or 0.25")
    add("--seed", type=natural, help="of the random inputs; a new one each time by default")
    add("--policy", choices=POLICIES, default="contract", help="liberties of floating point in our kernels")
    add("--database", metavar="FILE", default="strata.db", help="where `tuned` has its scripts (default strata.db)")
    add("--json", metavar="FILE", help="write the results there as well")


def run(options: argparse.Namespace) -> int:
    """Measure workloads or models, or list the workloads with `--list`; return 1 for a wrong result or without any
    result, 130 after an interruption, else 0. Raises InputError if nothing is named, for an unknown name or contender,
    for a model beside workloads, and for a `--json` that cannot be written."""
    from rich.console import Console

    from compiler.bench import contenders, workloads
    from compiler.bench.table import WIDTH

    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    if options.list:
        _list(console)
        return 0
    if not options.names:
        raise InputError("no workload is named; strata bench --list has them")
    models = {name: model for name in options.names if (model := model_of(name, options.shape)) is not None}
    if models:
        return _models(models, options)
    selected = [workloads.find(name, options.scale) for name in options.names]
    rivals = contenders.find([name for name in options.against.split(",") if name])
    settings = contenders.Settings(options.threads, options.policy, options.database)
    return _measure(console, options, selected, rivals, settings)


def _models(models: Mapping[str, Imported], options: argparse.Namespace) -> int:
    """Measure ONNX models beside onnxruntime; return 1 for a wrong result, else 0. Raises InputError if workloads are
    named, too. Options but threads, rounds, policy, seed and shape are ignored."""
    from statistics import median

    from compiler.cli.race import race
    from compiler.driver.building import build

    for name in options.names:
        if name not in models:
            raise InputError(f"{name} is a workload: models of ONNX are measured in a call of their own")
    has_wrong = False
    for name, model in models.items():
        kernel = build(model, threads=options.threads, policy=options.policy)
        timed = race(name, model, kernel, options.threads, options.rounds, options.seed or 0)
        for contender in timed:
            outcome = f"difference {contender.error:.2g}{'' if contender.is_right else ': wrong'}"
            show(f"{name}: {contender.name:12} {1e3 * median(contender.seconds):.4g} ms, {outcome}")
        if len(timed) == 1:
            show("onnxruntime is not installed: pip install 'strata-compiler[bench]'")
        has_wrong |= not all(contender.is_right for contender in timed)
    return int(has_wrong)


def _measure(
    console: Console,
    options: argparse.Namespace,
    selected: list[Workload],
    rivals: list[Contender],
    settings: Settings,
) -> int:
    from compiler.bench.harness import Plan, measure
    from compiler.bench.report import rows
    from compiler.bench.table import breakdowns, table

    measurements: list[Measurement] = []
    _write(options.json, measurements)
    has_wrong = False
    plan = Plan(options.rounds, options.seconds)
    for workload in selected:
        measurement = measure(workload, rivals, settings, plan, options.seed)
        console.print(table(measurement))
        for breakdown in breakdowns(workload, [rival.name for rival in rivals], settings):
            console.print(breakdown)
        measurements.append(measurement)
        _write(options.json, measurements, last=measurement.interrupted or len(measurements) == len(selected))
        has_wrong |= any(run.wrong is not None for run in measurement.runs)
        if measurement.interrupted:
            return INTERRUPTED
    return int(has_wrong or not any(rows(m) for m in measurements))


def _write(path: str | None, measurements: list[Measurement], last: bool = False) -> None:
    """Replace the JSON file by the results so far; called before the first measurement to detect a bad path. A stream
    gets the `last` document only; None writes nothing."""
    if path is None or (is_stream(to_path(path)) and not last):
        return
    from compiler.bench.report import as_json

    write(path, [json.dumps(as_json(measurements), indent=1) + "\n"])


def _list(console: Console) -> None:
    from rich.table import Table

    from compiler.bench.contenders import CONTENDERS
    from compiler.bench.workloads import FAMILIES, PRESETS, find

    names = Table("workload", "what", "operations", title_justify="left", box=None)
    for name in PRESETS:
        workload = find(name)
        names.add_row(name, workload.what.replace("[", r"\["), f"{workload.flops / 1e6:.0f} M")
    console.print(names)
    console.print("\nother extents: " + ", ".join(f"{name}:{form}" for name, (_, form) in FAMILIES.items()))
    console.print("contenders: " + ", ".join(CONTENDERS))
