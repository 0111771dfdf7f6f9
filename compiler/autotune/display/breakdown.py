"""`Breakdown`: the times of the groups of a whole program, and their sum beside the time of the whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from compiler.support.text import duration

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class GroupTime:
    """A group with the number of its calls in a run of the program, and the seconds of one call by its best record;
    None without a record."""

    name: str
    occurrences: int
    seconds: float | None

    @property
    def total_seconds(self) -> float | None:
        """The seconds of all calls of a run; None without a record."""
        return None if self.seconds is None else self.occurrences * self.seconds


@dataclass(frozen=True)
class Breakdown:
    """The times of the groups of a whole program, in the order of their first calls, and of the whole. whole: the
    measured seconds of a run built by these records. Both are with `network` timing."""

    groups: tuple[GroupTime, ...]
    whole: float

    @property
    def total(self) -> float | None:
        """The seconds of all calls of all groups; None if a group has no record."""
        times = [group.total_seconds for group in self.groups if group.total_seconds is not None]
        return sum(times) if len(times) == len(self.groups) else None

    @property
    def difference(self) -> float | None:
        """The seconds of the whole beyond the sum of its groups: the cost of calls, and the groups' effects on each
        other. Negative if the whole is faster; None if a group has no record."""
        return None if self.total is None else self.whole - self.total

    def rows(self) -> Iterator[tuple[str, str, str, str, str]]:
        """The rows of the table: name, calls, time of one call, time of all calls and its share of the whole; last the
        sum, the whole and the difference."""
        for group in self.groups:
            yield group.name, str(group.occurrences), _time(group.seconds), *self._part(group.total_seconds)
        yield "sum of groups", "", "", *self._part(self.total)
        yield "whole, measured", "", "", *self._part(self.whole)
        yield "difference", "", "", *self._part(self.difference)

    def table(self) -> Table:
        """The rows as a table with headings."""
        from rich.table import Table

        table = Table(box=None)
        for heading in ("group", "calls", "one call", "all calls", "of the whole"):
            table.add_column(heading, justify="left" if heading == "group" else "right", no_wrap=True)
        for row in self.rows():
            table.add_row(*row)
        return table

    def data(self) -> Mapping[str, object]:
        """The breakdown as JSON data, in seconds."""
        return {
            "groups": [asdict(group) for group in self.groups],
            "sum_seconds": self.total,
            "whole_seconds": self.whole,
            "difference_seconds": self.difference,
        }

    def _part(self, seconds: float | None) -> tuple[str, str]:
        return (_time(seconds), "" if seconds is None else f"{seconds / self.whole:.1%}")


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "unknown"
    return f"-{duration(-seconds)}" if seconds < 0 else duration(seconds)
