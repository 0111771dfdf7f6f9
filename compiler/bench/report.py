"""The rows of a measurement: rates, percentages of the ceiling, ratios; and the same as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from compiler.bench.contenders import OURS
from compiler.bench.harness import CEILINGS, Measurement, Run
from compiler.targets.cpu.ceilings import plausible_share
from compiler.targets.cpu.presence import QUIET, Disturbance
from compiler.types.machines import host

FORMAT = 2
"""The version of the JSON document."""


@dataclass(frozen=True)
class Row:
    """A contender's seconds of a call, work per second, percent of the ceiling, ratio of medians to the base.

    A row without times has a wrong result, whose fault is `wrong`, or no sample, as after an early interruption. `what`
    is the method in words. The ratio is None if the base has no time. There is no percentage if a contender exceeded
    the ceiling: see `Measurement.ceiling`.
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
    disturbance: Disturbance = QUIET


def rows(measurement: Measurement, base: str = OURS) -> list[Row]:
    """A row for each contender that ran, in order; ratios are to the median of `base`, None without it."""
    ours = next((run.seconds for run in measurement.runs if run.contender.name == base), None)
    top = measurement.ceiling
    return [_row(run, measurement.workload.work, ours, top) for run in measurement.runs]


def _row(run: Run, work: int, base: float | None, top: float | None) -> Row:
    middle, who = run.seconds, run.contender
    name, version, what = who.name, who.version(), who.what
    if middle is None:
        return Row(name, version, what, wrong=run.wrong, disturbance=run.disturbance)
    rate = work / middle
    share = None if top is None else plausible_share(rate / top)
    return Row(
        name,
        version,
        what,
        median=middle,
        minimum=min(run.samples),
        maximum=max(run.samples),
        rate=rate,
        percent=None if share is None else 100 * share,
        ratio=None if base is None else middle / base,
        disturbance=run.disturbance,
    )


def ceiling(measurement: Measurement) -> dict[str, float] | None:
    """The ceiling (`median`), the `minimum` and `maximum` of its probes, in work per second; None without a ceiling."""
    rates, top = [probe.rate for probe in measurement.probes], measurement.ceiling
    return None if top is None else {"median": top, "minimum": min(rates), "maximum": max(rates)}


def ceiling_what(measurement: Measurement) -> str:
    """A description of the ceiling's probe."""
    return CEILINGS[measurement.workload.limit].what


def probes_disturbance(measurement: Measurement) -> Disturbance:
    """The total disturbance of the ceiling's probes."""
    return sum((probe.disturbance for probe in measurement.probes), QUIET)


def unit(measurement: Measurement) -> str:
    """The unit of rates: GFLOP/s or GB/s."""
    return "GFLOP/s" if measurement.workload.limit == "flops" else "GB/s"


def as_json(measurements: Sequence[Measurement]) -> dict[str, Any]:
    """The JSON document of several measurements, with the machine's facts; times are in seconds, rates in `unit`."""
    return {"format": FORMAT, "machine": asdict(host()), "results": [_result(m) for m in measurements]}


def _result(measurement: Measurement) -> dict[str, Any]:
    workload, limits = measurement.workload, ceiling(measurement)
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
        "ceiling": None if limits is None else {key: value / 1e9 for key, value in limits.items()},
        "ceiling_is": ceiling_what(measurement),
        "ceiling_disturbance": disturbance(probes_disturbance(measurement)),
        "contenders": [_contender(row) for row in rows(measurement)],
        "left_out": dict(measurement.left_out),
    }


def _contender(row: Row) -> dict[str, Any]:
    rate = None if row.rate is None else row.rate / 1e9
    fields = asdict(row) | {"rate": rate, "disturbance": disturbance(row.disturbance)}
    return {_NAMES.get(name, name): value for name, value in fields.items()}


_NAMES = {"percent": "percent_of_ceiling", "ratio": "ratio_to_ours"}
"""The JSON names of a row's fields that differ from the fields' names."""


def disturbance(disturbed: Disturbance) -> dict[str, float]:
    """JSON data of a disturbance: share of time off the processor, numbers of samples repeated, and used disturbed."""
    return {"away": disturbed.share, "repeated": disturbed.repeated, "used": disturbed.used}
