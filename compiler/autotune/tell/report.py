"""`page`: what a database knows of some tasks, as one HTML file that needs nothing else: how the search went, what the
model foresaw, what failed and why, and the best script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate
from math import ceil, floor, log10

from compiler.autotune.database import Key, Record
from compiler.autotune.outcome import Outcome, combine, together
from compiler.autotune.search.ranking import pairs
from compiler.autotune.tell.standing import best_of
from compiler.printable import printable

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


@dataclass(frozen=True)
class Script:
    """What is known of a script: the number of its first trial, all that was measured of it, its first prediction."""

    number: int
    text: str
    outcome: Outcome
    predicted: float | None


def scripts(records: Sequence[Record]) -> list[Script]:
    """The scripts of some records in the order in which they were tried first."""
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(record.script, []).append(record)
    return [
        Script(number, text, combine([record.outcome for record in own]), own[0].predicted)
        for number, (text, own) in enumerate(found.items(), 1)
    ]


def page(tasks: Sequence[tuple[str, Key, Sequence[Record]]]) -> Iterator[str]:
    """The lines of a page about tasks: each a name, what its records are comparable under, and these in order."""
    title = ", ".join(dict.fromkeys(name for name, _, _ in tasks))
    yield "<!DOCTYPE html>"
    yield f'<html lang="en"><head><meta charset="utf-8"><title>{_shown(title)}</title>'
    yield f"<style>{STYLE}</style></head><body>"
    for name, key, records in tasks:
        yield from _task(name, key, scripts(records))
    yield "</body></html>"


def _shown(text: str) -> str:
    """Text of a record, as a page may have it."""
    return escape(printable(text))


def _task(name: str, key: Key, found: Sequence[Script]) -> Iterator[str]:
    ranked = sorted((one for one in found if one.outcome.ranks), key=lambda one: one.outcome.cost)
    threads = f"{key.threads} thread{'' if key.threads == 1 else 's'}"
    yield f"<h1>{_shown(name)}</h1>"
    yield f"<p>{_shown(key.machine)}, {threads}, policy {_shown(key.policy)}; program {_shown(key.program[:12])}</p>"
    yield f"<p>{len(found)} scripts tried, {len(ranked)} measured.{_ranking(ranked)}</p>"
    disturbance = together(one.outcome.disturbance for one in found)
    if disturbance is not None and disturbance.matters:
        yield f"<p>{escape(str(disturbance))}.</p>"
    yield from _failures(found)
    standing = best_of(one.outcome for one in ranked)
    if standing is None:
        return
    best = standing.best.cost
    measured = sorted(ranked, key=lambda one: one.number)
    costs = [(float(one.number), _times(one.outcome.cost, best)) for one in measured]
    curve = zip((x for x, _ in costs), accumulate((y for _, y in costs), min), strict=True)
    yield _drawing("trial", "cost, times the best", costs, list(curve))
    told = [
        (_times(one.predicted, best), _times(one.outcome.cost, best))
        for one in measured
        if one.predicted is not None and one.predicted > 0
    ]
    if told:
        ends = min(min(told)[0], 1.0), max(max(told)[0], 1.0)
        yield _drawing("predicted cost, times the best", "measured", told, [(end, end) for end in ends], is_log=True)
    yield "<table><tr><th>trial</th><th>ms</th><th>cost, times the best</th><th>samples</th><th>away</th></tr>"
    for one in ranked[:SHOWN]:
        cells = (
            one.number,
            f"{1e3 * standing.seconds_of(one.outcome):.4g}",
            f"{one.outcome.cost / best:.3f}",
            len(one.outcome.seconds),
            "-" if one.outcome.disturbance is None else f"{one.outcome.disturbance.share:.0%}",
        )
        yield f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
    yield f"</table><h2>The best script</h2><pre>{_shown(ranked[0].text)}</pre>"


def _times(cost: float, best: float) -> float:
    """A cost as a multiple of the best, within what a drawing shows."""
    return min(max(cost / best, 1 / FURTHEST), FURTHEST)


def _ranking(ranked: Sequence[Script]) -> str:
    """How many pairs the model had in the right order before they were measured."""
    told = [one for one in ranked if one.predicted is not None]
    right = pairs([one.predicted or 0.0 for one in told], [one.outcome.cost for one in told])
    return "" if right.accuracy is None else f" Of {right.total} pairs, {right.accuracy:.0%} were foreseen in order."


def _failures(found: Sequence[Script]) -> Iterator[str]:
    failed: dict[str, list[Script]] = {}
    for one in found:
        if not one.outcome.ok:
            failed.setdefault(one.outcome.kind, []).append(one)
    if failed:
        yield "<table><tr><th>failed</th><th></th><th>the first: trial</th><th>why</th></tr>"
        for kind, own in failed.items():
            cells = (_shown(kind), str(len(own)), str(own[0].number), _shown(own[0].outcome.reason))
            yield f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
        yield "</table>"


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
