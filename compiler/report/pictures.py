"""The drawings of a task and of a program; None if there are no data."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, sqrt
from statistics import median

from compiler.report.memory import LiveBuffer, MemoryPlan
from compiler.report.programs import ProgramFacts
from compiler.report.svg import Drawing, PlotAxis, Point
from compiler.report.tasks import TaskFacts, Trial
from compiler.support.text import counted, duration
from compiler.targets.cpu.presence import Disturbance

KIBI, MEBI = 1 << 10, 1 << 20
MAX_NAMED = 3
"""The number of tasks with a name in the roofline: those with the most time above the bound."""
MAX_RATIO = 6.0
"""Scripts slower than MAX_RATIO times the best are drawn at the edge, so that the others can be distinguished."""
BINS = 60
"""The maximum number of bars in the picture of disturbances."""
MOST_POINTS = 300
"""The approximate number of discs in a picture of trials."""
MOST_BUFFERS = 1500
"""The maximum number of buffers that are drawn: the largest ones."""


def roofline(program: ProgramFacts) -> Drawing | None:
    """Draw tasks with a bound by operations per byte and per second, below the machine's ceilings; None without any."""
    bounded = [task for task in program.tasks if task.work is not None and task.bound and task.work.flops]
    arithmetic, bandwidth = (_rate(program, ceiling) for ceiling in ("flops", "bytes"))
    points = [(task, _on_roofline(task, arithmetic, bandwidth)) for task in bounded]
    if not points:
        return None
    x = PlotAxis.over((at[0] for _, at in points), is_log=True)
    roof = [(at, top) for at in _ends(x, arithmetic, bandwidth) if (top := _roof(at, arithmetic, bandwidth))]
    y = PlotAxis.over([*(up for _, up in (*(at for _, at in points), *roof))], True, lambda n: f"{n / 1e9:g}")
    drawing = Drawing("Operations per second by operations per byte", "FLOP per byte", "GFLOP/s", x, y)
    drawing.line(roof, f"the machine's ceiling{_rates_text(arithmetic, bandwidth)}")
    for task, at in points:
        share = program.share(task)
        part = "" if share is None else f", {share:.1%} of the time"
        tip = f"{task.name}: {task.operator}; {duration(task.seconds or 0)} a call{part}, {task.bound:.0%} of the bound"
        drawing.point(at, tip, radius=4 + 14 * sqrt(share or 0.0))
    for task, at in sorted(points, key=lambda point: -(point[0].loss or 0.0))[:MAX_NAMED]:
        drawing.word(at, program.short(task), at[0] > sqrt(x.low * x.high))
    return drawing


def _rate(program: ProgramFacts, ceiling: str) -> float | None:
    bests = [t.best for t in program.tasks if t.work is not None and t.work.ceiling == ceiling and t.bound]
    rates = [rate for best in bests if best is not None for rate in best.outcome.rates if rate > 0]
    return median(rates) if rates else None


def _roof(intensity: float, arithmetic: float | None, bandwidth: float | None) -> float | None:
    """Return the ceiling in operations per second at an intensity in operations per byte, under ceilings of arithmetic
    (operations per second) and bandwidth (bytes per second), each None if unknown; None without a ceiling."""
    tops = [arithmetic, None if bandwidth is None else bandwidth * intensity]
    return min((top for top in tops if top is not None), default=None)


def _on_roofline(task: TaskFacts, arithmetic: float | None, bandwidth: float | None) -> Point:
    """Return a task's point: its operations per byte, and its operations per second from the share of its ceiling.
    arithmetic, bandwidth: the ceilings, in operations and bytes per second; None if unknown."""
    assert task.work is not None and task.bound is not None
    at = task.work.intensity
    limit = arithmetic if task.work.ceiling == "flops" else (bandwidth or 0.0) * at
    return at, task.bound * (limit or 0.0)


def _ends(x: PlotAxis, arithmetic: float | None, bandwidth: float | None) -> list[float]:
    bend = arithmetic / bandwidth if arithmetic and bandwidth else x.low
    return sorted({x.low, min(max(bend, x.low), x.high), x.high})


def _rates_text(arithmetic: float | None, bandwidth: float | None) -> str:
    rates = [f"{arithmetic / 1e9:.3g} GFLOP/s"] if arithmetic else []
    rates += [f"{bandwidth / 1e9:.3g} GB/s"] if bandwidth else []
    return f": {', '.join(rates)}" if rates else ""


def curve(task: TaskFacts) -> Drawing | None:
    """Draw the times of a task's measured scripts, or of a sample of about MOST_POINTS if there are more, in the order
    of trials, and a line of the best so far; None without measured scripts."""
    trials = _sampled(task.curve)
    if not trials:
        return None
    x = PlotAxis.over([trial.number for trial in trials])
    y = PlotAxis.over([min(trial.seconds, MAX_RATIO * trials[-1].best) for trial in trials], True, duration)
    drawing = Drawing("Time of a call by trial", "trial", "a call", x, y)
    for trial in trials:
        drawing.point((trial.number, trial.seconds), f"trial {trial.number}: {duration(trial.seconds)}")
    steps: list[Point] = []
    for before, trial in zip([trials[0], *trials], trials, strict=False):
        steps += [(trial.number, before.best), (trial.number, trial.best)]
    drawing.line(steps, "the best so far")
    return drawing


def _sampled(trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials to draw: every n-th, at most MOST_POINTS, and each one that was the best so far."""
    step = -(-len(trials) // MOST_POINTS)
    return [trial for n, trial in enumerate(trials) if n % step == 0 or trial.seconds == trial.best]


def predicted(task: TaskFacts) -> Drawing | None:
    """Draw the measured times of a task's scripts over the predicted times, of about MOST_POINTS of them if there are
    more; None if no script has a prediction."""
    predictions = [(t.predicted, t.seconds, t.number) for t in _sampled(task.curve) if t.predicted is not None]
    if not predictions:
        return None
    x = PlotAxis.over([predicted_seconds for predicted_seconds, _, _ in predictions], True, duration)
    limit = MAX_RATIO * task.curve[-1].best
    y = PlotAxis.over([min(measured_seconds, limit) for _, measured_seconds, _ in predictions], True, duration)
    drawing = Drawing("Measured time by predicted time", "predicted", "measured", x, y)
    low, high = max(x.low, y.low), min(x.high, y.high)
    if low < high:
        drawing.line([(low, low), (high, high)], "measured as predicted", "dashed")
    for predicted_seconds, measured_seconds, number in predictions:
        drawing.point(
            (predicted_seconds, measured_seconds),
            f"trial {number}: predicted {duration(predicted_seconds)}, took {duration(measured_seconds)}",
        )
    return drawing


def busy(disturbances: Sequence[Disturbance]) -> Drawing | None:
    """Draw the share of disturbed time of the measurements, in at most BINS bars; None without disturbances."""
    if not disturbances:
        return None
    size = -(-len(disturbances) // BINS)
    bins = [disturbances[start : start + size] for start in range(0, len(disturbances), size)]
    merged = [sum(samples[1:], samples[0]) for samples in bins]
    shares = [min(merged_bin.share, 1.0) if isfinite(merged_bin.share) else 1.0 for merged_bin in merged]
    y = PlotAxis(0.0, max(0.1, *shares), formatted="{:.0%}".format)
    drawing = Drawing("Time off the processor by measurement", "measurement", "off", PlotAxis(0, len(disturbances)), y)
    for number, (samples, merged_bin, share) in enumerate(zip(bins, merged, shares, strict=True)):
        first = number * size
        title = f"measurements {first + 1} to {first + len(samples)}: {share:.1%} of the time off the processor"
        repeated = f"{counted(merged_bin.repeated, 'sample')} repeated, {merged_bin.used} used although disturbed"
        drawing.area((first, 0.0), (first + len(samples), share), f"{title}, {repeated}", "busy")
    return drawing


def memory(plan: MemoryPlan) -> Drawing | None:
    """Draw the arena over a run: the MOST_BUFFERS largest buffers by offset, first and last call; None without any."""
    if not plan.buffers:
        return None
    unit, name = (MEBI, "MiB") if plan.size >= MEBI else (KIBI, "KiB")
    x, y = PlotAxis(0, len(plan.steps)), PlotAxis(0.0, plan.size / unit)
    drawing = Drawing("Memory of temporaries by call", "call", name, x, y)
    for buffer in sorted(plan.buffers, key=lambda buffer: -buffer.size)[:MOST_BUFFERS]:
        low, high = buffer.offset / unit, (buffer.offset + buffer.size) / unit
        drawing.area((buffer.first, low), (buffer.last + 1, high), _buffer_text(buffer, plan))
    drawing.line([(at, live / unit) for n, live in enumerate(plan.live) for at in (n, n + 1)], "bytes live")
    return drawing


def _buffer_text(buffer: LiveBuffer, plan: MemoryPlan) -> str:
    first, last = (f"call {at + 1} ({plan.steps[at]})" for at in (buffer.first, buffer.last))
    return f"{buffer.name}: {buffer.type}, {buffer.size / KIBI:.4g} KiB at +{buffer.offset}, from {first} to {last}"
