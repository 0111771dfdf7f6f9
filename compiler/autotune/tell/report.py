"""`page`: what a database knows of some tasks, as one HTML file that needs nothing else: how the search went, what the
model foresaw, what failed and why, and the best script."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate
from math import ceil, floor, log10

from compiler.autotune.database import Key, Record
from compiler.autotune.database.summary import ScriptTrials, by_script
from compiler.autotune.outcome import NETWORK, together
from compiler.autotune.search.ranking import pairs
from compiler.autotune.tell.progress import Standing
from compiler.printable import counted, printable

WIDTH, HEIGHT, MARGIN = 520, 280, 44
"""Of a drawing, in pixels; the margin is for the numbers on its axes."""
FURTHEST = 1e9
"""The largest multiple of the best cost that is drawn."""
SHOWN = 10
"""How many of the best scripts are listed."""
STYLE = """
body { font: 15px/1.5 sans-serif; max-width: 70em; margin: 2em auto; padding: 0 1em; color: #222; background: #fff }
table { border-collapse: collapse } td, th { padding: 0 1em 0 0; text-align: left }
pre { background: #f5f5f2; padding: 1em; overflow-x: auto; font-size: 12px }
svg { margin-right: 1em } svg text { font-size: 11px; fill: #555 } .point { fill: #3b6ea5; fill-opacity: 0.6 }
.line { fill: none; stroke: #c0392b; stroke-width: 1.5 } .axis { stroke: #ccc }
"""
Point = tuple[float, float]


def page(tasks: Sequence[tuple[str, Key, Sequence[Record]]]) -> Iterator[str]:
    """The lines of a page about tasks: each a name, what its records are comparable under, and these in order."""
    title = ", ".join(dict.fromkeys(name for name, _, _ in tasks))
    yield "<!DOCTYPE html>"
    yield f'<html lang="en"><head><meta charset="utf-8"><title>{_shown(title)}</title>'
    yield f"<style>{STYLE}</style></head><body>"
    for name, key, records in tasks:
        yield from _task(name, key, by_script(records))
    yield "</body></html>"


def _shown(text: str) -> str:
    """Text of a record, as a page may have it."""
    return escape(printable(text))


def _task(name: str, key: Key, scripts: Sequence[ScriptTrials]) -> Iterator[str]:
    best_first = sorted((script for script in scripts if script.outcome.ranks), key=lambda script: script.outcome.cost)
    timing = ", timed as in a network" if key.timing == NETWORK else ""
    where = f"{key.machine}, {counted(key.threads, 'thread')}, policy {key.policy}{timing}; program {key.program[:12]}"
    yield f"<h1>{_shown(name)}</h1>"
    yield f"<p>{_shown(where)}</p>"
    yield f"<p>{len(scripts)} scripts tried, {len(best_first)} measured.{_ranking(best_first)}</p>"
    disturbance = together(script.outcome.disturbance for script in scripts)
    if disturbance is not None and disturbance.matters:
        yield f"<p>{escape(str(disturbance))}.</p>"
    yield from _failures(scripts)
    if best_first:
        yield from _drawings(best_first)
        yield from _best(best_first)


def _drawings(best_first: Sequence[ScriptTrials]) -> Iterator[str]:
    """How the search went, and what the model foresaw; costs as multiples of the best."""
    best = best_first[0].outcome.cost
    measured = sorted(best_first, key=lambda script: script.number)
    costs = [(float(script.number), _times(script.outcome.cost, best)) for script in measured]
    curve = zip((x for x, _ in costs), accumulate((y for _, y in costs), min), strict=True)
    yield _drawing("trial", "cost, times the best", costs, list(curve))
    foreseen = [
        (_times(predicted, best), _times(script.outcome.cost, best))
        for script in measured
        if (predicted := _predicted(script)) is not None and predicted > 0
    ]
    if foreseen:
        ends = min(min(foreseen)[0], 1.0), max(max(foreseen)[0], 1.0)
        yield _drawing("predicted cost, times the best", "measured", foreseen, [(e, e) for e in ends], is_log=True)


def _best(best_first: Sequence[ScriptTrials]) -> Iterator[str]:
    """The best scripts, and the text of the best."""
    standing = Standing(best_first[0].outcome)
    rows = []
    for script in best_first[:SHOWN]:
        outcome, disturbance = script.outcome, script.outcome.disturbance
        time, cost = f"{1e3 * standing.seconds_of(outcome):.4g}", f"{outcome.cost / standing.best.cost:.3f}"
        away = "-" if disturbance is None else f"{disturbance.share:.0%}"
        rows.append((str(script.number), time, cost, str(len(outcome.seconds)), away))
    yield from _table(("trial", "ms", "cost, times the best", "samples", "away"), rows)
    yield f"<h2>The best script</h2><pre>{_shown(best_first[0].first.script)}</pre>"


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"<table><tr>{''.join(f'<th>{heading}</th>' for heading in headings)}</tr>"
    for row in rows:
        yield f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>"
    yield "</table>"


def _predicted(script: ScriptTrials) -> float | None:
    """The cost that the model gave when the script was first chosen."""
    return script.records[0].predicted


def _times(cost: float, best: float) -> float:
    """A cost as a multiple of the best, within what a drawing shows."""
    return min(max(cost / best, 1 / FURTHEST), FURTHEST)


def _ranking(scripts: Sequence[ScriptTrials]) -> str:
    """How many pairs the model had in the right order before they were measured."""
    foreseen = [(predicted, s.outcome.cost) for s in scripts if (predicted := _predicted(s)) is not None]
    right = pairs([predicted for predicted, _ in foreseen], [cost for _, cost in foreseen])
    return "" if right.accuracy is None else f" Of {right.total} pairs, {right.accuracy:.0%} were foreseen in order."


def _failures(scripts: Sequence[ScriptTrials]) -> Iterator[str]:
    failed: dict[str, list[ScriptTrials]] = {}
    for script in scripts:
        if not script.outcome.ok:
            failed.setdefault(script.outcome.kind, []).append(script)
    rows = [
        (_shown(kind), str(len(own)), str(own[0].number), _shown(own[0].outcome.reason)) for kind, own in failed.items()
    ]
    if rows:
        yield from _table(("failed", "", "the first: trial", "why"), rows)


def _drawing(across: str, up: str, points: Sequence[Point], line: Sequence[Point], is_log: bool = False) -> str:
    """Points and a line; upwards is logarithmic, across where stated."""
    xs, ys = _Axis.over([x for x, _ in (*points, *line)], is_log), _Axis.over([y for _, y in (*points, *line)], True)
    right, bottom = WIDTH - MARGIN / 2, HEIGHT - MARGIN

    def place(point: Point) -> Point:
        return MARGIN + xs.share(point[0]) * (right - MARGIN), bottom - ys.share(point[1]) * (bottom - MARGIN / 4)

    drawn = [f'<svg width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{_shown(up)} by {_shown(across)}">']
    for tick in xs.ticks():
        x, _ = place((tick, ys.low))
        drawn.append(f'<text x="{x:.1f}" y="{bottom + 14:.1f}" text-anchor="middle">{tick:g}</text>')
    for tick in ys.ticks():
        _, y = place((xs.low, tick))
        drawn.append(f'<path class="axis" d="M{MARGIN} {y:.1f} H{right:.1f}"/>')
        drawn.append(f'<text x="{MARGIN - 4}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    drawn += [f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in map(place, points)]
    path = " L".join(f"{x:.1f} {y:.1f}" for x, y in map(place, line))
    drawn.append(f'<path class="line" d="M{path}"/>')
    drawn.append(f'<text x="{WIDTH / 2:.0f}" y="{HEIGHT - 12}" text-anchor="middle">{_shown(across)}</text>')
    drawn.append(f'<text x="{MARGIN}" y="10">{_shown(up)}</text></svg>')
    return "".join(drawn)


@dataclass(frozen=True)
class _Axis:
    """From the lowest to the highest number, evenly or by their logarithms."""

    low: float
    high: float
    is_log: bool

    @classmethod
    def over(cls, numbers: Sequence[float], is_log: bool) -> _Axis:
        """The axis that shows some numbers, which are positive where it is logarithmic."""
        return cls(min(numbers), max(numbers), is_log)

    def share(self, number: float) -> float:
        """Where a number is, from 0 to 1."""
        low, high, at = (log10(n) if self.is_log else n for n in (self.low, self.high, number))
        return (at - low) / (high - low) if high > low else 0.0

    def ticks(self) -> list[float]:
        """Round numbers to write at the axis."""
        if not self.is_log:
            step = max(1, ceil((self.high - self.low) / 8))
            return [float(n) for n in range(ceil(self.low), floor(self.high) + 1, step)]
        powers = range(floor(log10(self.low)), ceil(log10(self.high)) + 1)
        found = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
        return [n for n in found if self.low <= n <= self.high] or [self.low]
