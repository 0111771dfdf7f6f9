"""Drawings as SVG: axes, points, lines and areas. They scale with the page, and a tooltip is a `<title>`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil, floor, isfinite, log10
from typing import TypeAlias

from compiler.report.html import escaped

WIDTH, HEIGHT = 440, 270
"""The size of a drawing in pixels; on a page it is scaled to the width."""
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 26, 42
"""The margins in pixels, which hold the numbers of the axes."""
MAX_LOG_RATIO = 1e9
"""The largest ratio of the ends of a logarithmic axis."""
LABEL_SIZE = (80, 14)
"""The approximate width and height of a label in pixels."""
TICKS = 6
"""The approximate number of ticks of an axis."""
Point: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class PlotAxis:
    """A linear or logarithmic axis from `low` to `high`; `formatted` converts a number to text."""

    low: float
    high: float
    is_log: bool = False
    formatted: Callable[[float], str] = "{:g}".format

    @classmethod
    def over(
        cls, numbers: Iterable[float], is_log: bool = False, formatted: Callable[[float], str] = "{:g}".format
    ) -> PlotAxis:
        """Create an axis that covers some numbers, or 1 if there are none; infinite ones and NaN are dropped, on a
        logarithmic axis also those that are 0 or less. A logarithmic axis has a margin of 10%; if its ends would differ
        by more than the factor MAX_LOG_RATIO, it ends at the largest number and has that ratio."""
        finite = [n for n in numbers if isfinite(n) and (n > 0 or not is_log)] or [1.0]
        low, high = min(finite), max(finite)
        if is_log:
            low, high = (low / 1.1, high * 1.1) if high / low <= MAX_LOG_RATIO else (high / MAX_LOG_RATIO, high)
        return cls(low, high, is_log, formatted)

    def share(self, number: float) -> float:
        """Return the position of a number on the axis, from 0 (low) to 1 (high); numbers outside are clamped. 0 if the
        ends are equal."""
        low, high, clamped = self.low, self.high, min(max(number, self.low), self.high)
        if self.is_log:
            low, high, clamped = log10(low), log10(high), log10(clamped)
        return (clamped - low) / (high - low) if high > low else 0.0

    def ticks(self) -> list[float]:
        """Return round numbers within the axis, about TICKS; on a logarithmic axis powers of ten and their multiples if
        more than two of them are visible."""
        if not self.is_log:
            return self._even_ticks()
        powers = range(floor(log10(self.low)), ceil(log10(self.high)) + 1)
        for digits in ((1, 2, 3, 5, 7), (1, 2, 5), (1,)):
            candidates = [digit * 10.0**power for power in powers for digit in digits]
            visible = [number for number in candidates if self.low <= number <= self.high]
            if len(visible) <= TICKS:
                return visible if len(visible) > 2 else self._even_ticks()
        return visible[:: ceil(len(visible) / TICKS)]

    def _even_ticks(self) -> list[float]:
        rough = (self.high - self.low) / TICKS
        if rough <= 0:
            return [self.low]
        power = 10.0 ** floor(log10(rough))
        step = next(digit * power for digit in (1, 2, 5, 10) if digit * power >= rough)
        return [n * step for n in range(ceil(self.low / step), floor(self.high / step) + 1)]


@dataclass
class Drawing:
    """Shapes over two axes, whose labels are `across` and `up`; `title` is the text for screen readers."""

    title: str
    across: str
    up: str
    x: PlotAxis
    y: PlotAxis
    _shapes: list[str] = field(default_factory=list)
    _words: list[Point] = field(default_factory=list)

    def place(self, point: Point) -> Point:
        """Map a point from data coordinates to the drawing's pixels."""
        across, up = self.x.share(point[0]), self.y.share(point[1])
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    def point(self, at: Point, tip: str, radius: float = 3.5) -> None:
        """Draw a disc with a tooltip at a point in data coordinates; `radius` is in pixels."""
        x, y = self.place(at)
        disc = f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}">'
        self._shapes.append(f"{disc}<title>{escaped(tip)}</title></circle>")

    def line(self, points: Sequence[Point], tip: str, kind: str = "line") -> None:
        """Draw a line with a tooltip through points in data coordinates; `kind` is its CSS class."""
        path = " L".join(f"{x:.1f} {y:.1f}" for x, y in map(self.place, points))
        self._shapes.append(f'<path class="{kind}" d="M{path}"><title>{escaped(tip)}</title></path>')

    def area(self, corner: Point, opposite: Point, tip: str, kind: str = "area") -> None:
        """Draw a rectangle with a tooltip between two corners, in data coordinates; `kind` is its CSS class."""
        (x0, y0), (x1, y1) = self.place(corner), self.place(opposite)
        box = f'x="{min(x0, x1):.1f}" y="{min(y0, y1):.1f}" width="{abs(x1 - x0):.1f}" height="{abs(y1 - y0):.1f}"'
        self._shapes.append(f'<rect class="{kind}" {box}><title>{escaped(tip)}</title></rect>')

    def word(self, at: Point, text: str, is_left: bool) -> None:
        """Draw a label below a point in data coordinates, to its left if `is_left`, else to its right, unless it
        overlaps another label."""
        x, y = self.place(at)
        if any(
            abs(x - other_x) < LABEL_SIZE[0] and abs(y - other_y) < LABEL_SIZE[1] for other_x, other_y in self._words
        ):
            return
        self._words.append((x, y))
        anchor = "end" if is_left else "start"
        self._shapes.append(
            f'<text class="name" x="{x:.1f}" y="{y + 20:.1f}" text-anchor="{anchor}">{escaped(text)}</text>'
        )

    def svg(self) -> str:
        """Return the drawing as an SVG element."""
        head = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escaped(self.title)}">'
        return f"{head}<title>{escaped(self.title)}</title>{''.join((*self._axes(), *self._shapes))}</svg>"

    def _axes(self) -> Iterable[str]:
        bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
        for tick in self.x.ticks():
            x = self.place((tick, self.y.low))[0]
            yield f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{escaped(self.x.formatted(tick))}</text>'
        for tick in self.y.ticks():
            y = self.place((self.x.low, tick))[1]
            yield f'<path class="grid" d="M{LEFT} {y:.1f} H{right}"/>'
            yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{escaped(self.y.formatted(tick))}</text>'
        yield f'<text x="{right}" y="{HEIGHT - 8}" text-anchor="end">{escaped(self.across)}</text>'
        yield f'<text x="4" y="14">{escaped(self.up)}</text>'
