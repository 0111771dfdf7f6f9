"""The rows of a measurement: rates, percentages of the ceiling, ratios; and the same as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from benchmarks.contenders import OURS
from benchmarks.harness import CEILINGS, Measurement, Run
from compiler.targets.machine import host

FORMAT = 1
"""The version of the JSON document."""


@dataclass(frozen=True)
class Row:
    """One contender: seconds, units of work per second, percent of the ceiling beside it, median over our median.

    A row without times is wrong in some way, or was interrupted before its first.
    """

    name: str
    version: str
    what: str
    median: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    rate: float | None = None
    percent: float | None = None
    ratio: float | None = None
    wrong: str | None = None


def rows(measurement: Measurement, base: str = OURS) -> list[Row]:
    """A row for each contender that ran, in order; ratios are to the contender `base`."""
    ours = next((run.seconds for run in measurement.runs if run.contender.name == base), None)
    return [_row(run, measurement.workload.work, ours) for run in measurement.runs]


def _row(run: Run, work: int, base: float | None) -> Row:
    middle, who = run.seconds, run.contender
    name, version, what = who.name, who.version(), who.what
    if middle is None:
        return Row(name, version, what, wrong=run.wrong)
    seconds = [sample.seconds for sample in run.samples]
    rate = work / middle
    return Row(
        name,
        version,
        what,
        median=middle,
        minimum=min(seconds),
        maximum=max(seconds),
        rate=rate,
        percent=100 * rate / median(sample.ceiling for sample in run.samples),
        ratio=None if base is None else middle / base,
    )


def ceiling(measurement: Measurement) -> dict[str, float] | None:
    """The median, least and greatest ceiling of all samples, in units per second."""
    found = [sample.ceiling for run in measurement.runs for sample in run.samples]
    return {"median": median(found), "minimum": min(found), "maximum": max(found)} if found else None


def ceiling_what(measurement: Measurement) -> str:
    """What the ceiling is."""
    return CEILINGS[measurement.workload.limit].what


def unit(measurement: Measurement) -> str:
    """What rates are shown in: GFLOP/s or GB/s."""
    return "GFLOP/s" if measurement.workload.limit == "flops" else "GB/s"


def as_json(measurements: Sequence[Measurement]) -> dict[str, Any]:
    """The JSON document of several measurements, with the machine's facts; times are in seconds."""
    return {"format": FORMAT, "machine": asdict(host()), "results": [_result(m) for m in measurements]}


def _result(measurement: Measurement) -> dict[str, Any]:
    workload, found = measurement.workload, ceiling(measurement)
    return {
        "workload": workload.name,
        "what": workload.what,
        "flops": workload.flops,
        "bytes": workload.bytes,
        "unit": unit(measurement),
        "threads": measurement.settings.threads,
        "policy": measurement.settings.policy,
        "seed": measurement.seed,
        "rounds": measurement.rounds,
        "calls": measurement.calls,
        "planned_rounds": measurement.plan.rounds,
        "stopped": measurement.stopped,
        "ceiling": None if found is None else {key: value / 1e9 for key, value in found.items()},
        "ceiling_is": ceiling_what(measurement),
        "contenders": [_contender(row) for row in rows(measurement)],
        "left_out": dict(measurement.left_out),
    }


def _contender(row: Row) -> dict[str, Any]:
    return {
        "name": row.name,
        "version": row.version,
        "what": row.what,
        "median": row.median,
        "minimum": row.minimum,
        "maximum": row.maximum,
        "rate": None if row.rate is None else row.rate / 1e9,
        "percent_of_ceiling": row.percent,
        "ratio_to_ours": row.ratio,
        "wrong": row.wrong,
    }
