"""Tables of a measurement, and of the groups of a tuned program beside the full program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.markup import escape
from rich.table import Table

from compiler.bench.contenders import OURS, Settings
from compiler.bench.harness import ROUNDS, Measurement
from compiler.bench.report import Row, ceiling, ceiling_what, probes_disturbance, rows, unit
from compiler.bench.workload import Workload
from compiler.support.errors import InputError
from compiler.support.text import counted, printable

WIDTH = 110
"""The width in characters of tables that are not printed to a terminal."""


def table(measurement: Measurement, base: str = OURS) -> Table:
    """Build the table of a measurement; ratios are to the median time of the contender `base`.

    >>> workload = strata.bench.workloads.find("matmul:4x8x2")
    >>> settings = strata.bench.contenders.Settings()
    >>> measurement = strata.bench.Measurement(workload, settings, strata.bench.Plan(rounds=3), seed=0)
    >>> [column.header for column in strata.bench.table(measurement).columns]
    ['contender', 'median ms', 'min', 'max', 'GFLOP/s', '% of ceiling', 'time / strata']
    """
    workload = measurement.workload
    printed = Table(title=f"{workload.name}: {escape(workload.what)}", title_justify="left", caption_justify="left")
    printed.add_column("contender", no_wrap=True)
    for heading in ("median ms", "min", "max", unit(measurement), "% of ceiling", f"time / {base}"):
        printed.add_column(heading, justify="right")
    measured_rows = rows(measurement, base)
    for row in measured_rows:
        printed.add_row(row.name, *cells(row))
    printed.caption = "\n".join([*map(_who, measured_rows), *notes(measurement)])
    return printed


def cells(row: Row) -> Sequence[str]:
    """The figures of a row as text, one for each column after the name; `-` for a missing one. The first is `wrong` for
    a wrong result."""
    if row.median is None or row.minimum is None or row.maximum is None:
        return ("[red]wrong[/red]" if row.wrong else "-", *["-"] * 5)
    return (
        milliseconds(row.median),
        milliseconds(row.minimum),
        milliseconds(row.maximum),
        "-" if row.rate is None else f"{row.rate / 1e9:.1f}",
        "-" if row.percent is None else f"{row.percent:.0f}",
        "-" if row.ratio is None else f"{row.ratio:.2f}",
    )


def _who(row: Row) -> str:
    """The contender's version and method, and if any, the fault of its result and its disturbance."""
    title = f"{row.name} {row.version}".strip() + f": {row.what}"
    title = f"{title}; wrong: {row.wrong}" if row.wrong else title
    return escape(f"{title}; {row.disturbance}" if row.disturbance.matters else title)


def milliseconds(seconds: float) -> str:
    """Seconds as text in milliseconds: three decimals below 10, one below 1000, else none."""
    value = seconds * 1e3
    return f"{value:.3f}" if value < 10 else f"{value:.1f}" if value < 1000 else f"{value:.0f}"


def notes(measurement: Measurement) -> list[str]:
    """Notes on a measurement, a line each: its threads, rounds, calls and seed; the ceiling, or that there is none; the
    disturbance of its probes; why there are fewer rounds than planned, or else that there are too few; the contenders
    left out."""
    threads, rounds = measurement.settings.threads, measurement.rounds
    each = "" if measurement.calls == 1 else f" of {measurement.calls} calls"
    lines = [f"{counted(threads, 'thread')}, {counted(rounds, 'round')}{each}, seed {measurement.seed}"]
    limits = ceiling(measurement)
    if limits is not None:
        low, middle, high = (limits[key] / 1e9 for key in ("minimum", "median", "maximum"))
        spread = f"{middle:.0f} {unit(measurement)} ({low:.0f} to {high:.0f})"
        lines.append(f"ceiling, {ceiling_what(measurement)}: {spread}")
    elif measurement.probes:
        lines.append(f"no ceiling, {ceiling_what(measurement)}: its probe was slower than a contender")
    if (probes := probes_disturbance(measurement)).matters:
        lines.append(f"probes of the ceiling: {probes}")
    if measurement.stopped is not None:
        lines.append(f"{rounds} of {measurement.plan.rounds} rounds: {measurement.stopped}")
    elif rounds < ROUNDS:
        lines.append(f"fewer than {ROUNDS} rounds: the medians are not to be relied on")
    lines += [f"left out: {name}: {escape(printable(reason))}" for name, reason in measurement.left_out.items()]
    return lines


def breakdowns(workload: Workload, contenders: Iterable[str], settings: Settings) -> Iterator[Table]:
    """Yield a table of group times for `tuned` and `tuned.prepared` in `contenders`; none without groups or records."""
    from compiler.autotune.task import SearchTask

    constants: dict[str, Sequence[str]] = {"tuned": (), "tuned.prepared": workload.constants}
    for name in contenders:
        if name not in constants:
            continue
        task = SearchTask(
            workload.function(), threads=settings.threads, policy=settings.policy, constants=constants[name]
        )
        try:
            records = task.best(settings.database) if task.groups else None
        except InputError:
            continue
        if records is not None:
            printed = task.breakdown(records).table()
            printed.title, printed.title_justify = f"{name}, by groups", "left"
            yield printed
