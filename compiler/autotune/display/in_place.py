"""`InPlace`: the times of the groups of a whole program inside it, by default and by their records, and the choice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from compiler.support.text import counted, duration


@dataclass(frozen=True)
class GroupInPlace:
    """The times of a group inside the program.

    default, tuned: the seconds of all its calls of a run, by default and by its best record. ratio: tuned / default,
    measured in turns. is_tuned: whether the record was chosen. differs: whether its script is not the default.
    """

    name: str
    default: float
    tuned: float
    ratio: float
    is_tuned: bool
    differs: bool = True


@dataclass(frozen=True)
class InPlace:
    """The times of a whole program and its groups. default, tuned, chosen: the seconds of a run with all defaults, with
    the best records of all groups, and with the chosen schedules; chosen is None until it is measured. is_faster:
    whether the chosen records make the program faster than the defaults; if not, all groups stay with the default."""

    name: str
    default: float
    tuned: float
    chosen: float | None
    groups: tuple[GroupInPlace, ...]
    is_faster: bool = True

    def sentences(self) -> Iterator[str]:
        """Describe the three times of the whole, `net as a whole: ...`, then the groups that stay with the default."""
        chosen = "what was chosen was not timed" if self.chosen is None else f"chosen {duration(self.chosen)}"
        yield f"{self.name} as a whole: default {duration(self.default)}, tuned {duration(self.tuned)}, {chosen}"
        slower = [group for group in self.groups if group.differs and not group.is_tuned]
        if not self.is_faster:
            yield "all groups stay with the default: the records that are faster inside the program are not so together"
        elif slower:
            ratios = ", ".join(f"{group.name} ({group.ratio:.2f})" for group in slower)
            count = f"{len(slower)} of {counted(len(self.groups), 'group')}"
            yield f"{count} stay with the default, since their records do not take 3% less time inside: {ratios}"

    def data(self) -> Mapping[str, object]:
        """The times as JSON data, in seconds."""
        return {
            "default_seconds": self.default,
            "tuned_seconds": self.tuned,
            "chosen_seconds": self.chosen,
            "groups": [asdict(group) for group in self.groups],
        }
