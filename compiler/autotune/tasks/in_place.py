"""The finalists of each group, the default and the best record, timed where they will run: inside the whole program.

A group that was timed alone had caches and memory in some state; inside the program they are in another. What is faster
there is chosen, and kept in the database, so that a program is never slower with its records than without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from compiler.autotune.measure.turns import Runnable, Turns, TurnTimes, in_turns
from compiler.autotune.tell.in_place import GroupInPlace, InPlace
from compiler.autotune.tuner import TuningProblem
from compiler.database import Database, Record
from compiler.driver.units.unit import Scheduled

MARGIN = 0.97
"""A record that takes more than this part of the default's time does not replace it."""
SECONDS = 10.0
"""The most seconds for which two programs take turns."""
SHARE, MOST_SHARE = 0.1, 0.25
"""The shares of a run's seconds that are kept for this, at least and at most."""
BUILDS = 3
"""As many seconds are kept as so many builds of all groups take: by default, by records, and turns."""


def kept_seconds(seconds: float, build: float) -> float:
    """The seconds of a run that are kept for the comparison inside a program whose groups take so long to build."""
    return min(max(SHARE * seconds, BUILDS * build), MOST_SHARE * seconds)


@dataclass(frozen=True)
class Finals:
    """What is compared inside a whole program, whose groups go by the names of their tasks.

    name: the program's. calls: the group of each call of a run, in order. whole: see `Key`. source: the schedule by
    which a group is built under a record, or without one. built: the program under schedules.
    """

    name: str
    calls: Sequence[str]
    whole: str
    source: Callable[[str, Record | None], Scheduled]
    built: Callable[[Mapping[str, Scheduled]], Runnable]

    def calls_of(self, group: str) -> list[int]:
        """The positions of the calls of a group."""
        return [position for position, called in enumerate(self.calls) if called == group]

    def is_undecided(self, groups: Mapping[str, TuningProblem], database: Database) -> bool:
        """Whether the best record of a group was not compared inside the program yet."""
        return any(
            (best := database.best(group.key)) is not None
            and best.script not in {r.script for r in database.records(replace(group.key, whole=self.whole))}
            for group in groups.values()
        )


@dataclass(frozen=True)
class _Finalist:
    """A group with a record: the steps of its default and of the record, and their times inside the program; and the
    record's own text."""

    default: str
    tuned: str
    times: TurnTimes
    text: str

    @property
    def differs(self) -> bool:
        """Whether the record has another script than the default."""
        return self.default != self.tuned

    @property
    def is_tuned(self) -> bool:
        """Whether the record is chosen."""
        return self.differs and self.times.ratio < MARGIN

    def told(self, name: str) -> GroupInPlace:
        """What a person reads of it."""
        default, tuned = self.times.seconds
        return GroupInPlace(name, default, tuned, self.times.ratio, self.is_tuned, self.differs)


@dataclass(frozen=True)
class Contest:
    """The comparison of the finalists of some groups by one run of the tuner. `left` tells the seconds that are left,
    `say` is told what is done."""

    finals: Finals
    groups: Mapping[str, TuningProblem]
    database: Database
    run: str
    left: Callable[[], float]
    say: Callable[[str], None]

    def hold(self) -> Iterator[InPlace]:
        """Compare, keep in the database what is chosen, and give the times; nothing where no group has a record.

        A choice is on disk as soon as the groups were timed; then what was chosen is timed as a whole, and where it is
        not faster than the default, another choice follows: the default of all.
        """
        self.say("building the program by default")
        defaults = {name: self.finals.source(name, None) for name in self.groups}
        plain = self.finals.built(defaults)
        records, tuned = self._tuned()
        if not tuned:
            return
        scripts = {
            name: (defaults[name].script or self.groups[name].written(), str(source.script))
            for name, source in tuned.items()
        }
        every = {**defaults, **{name: tuned[name] for name, (default, best) in scripts.items() if default != best}}
        turns = self._turns(plain, every, 3)
        finalists = {
            name: _Finalist(*both, turns.of(self.finals.calls_of(name)), records[name].script)
            for name, both in scripts.items()
        }
        self._keep(finalists, {name for name, finalist in finalists.items() if finalist.is_tuned})
        times, groups = turns.whole, tuple(finalist.told(name) for name, finalist in finalists.items())
        yield InPlace(self.finals.name, *times.seconds, None, groups)
        chosen = {**defaults, **{name: tuned[name] for name, finalist in finalists.items() if finalist.is_tuned}}
        ratio = 1.0
        if chosen != defaults:
            ratio = (turns if chosen == every else self._turns(plain, chosen, 2)).whole.ratio
        if ratio > 1:
            self._keep(finalists, set())
            groups = tuple(replace(group, is_tuned=False) for group in groups)
        yield InPlace(self.finals.name, *times.seconds, times.seconds[0] * min(ratio, 1.0), groups, ratio <= 1)

    def _tuned(self) -> tuple[dict[str, Record], dict[str, Scheduled]]:
        """The best records, and the schedules of those that still apply."""
        self.say("building the program by its records")
        best = {name: self.database.best(group.key) for name, group in self.groups.items()}
        records = {name: record for name, record in best.items() if record is not None}
        sources = {name: self.finals.source(name, record) for name, record in records.items()}
        return records, {name: source for name, source in sources.items() if source.origin == "record"}

    def _turns(self, plain: Runnable, sources: Mapping[str, Scheduled], share: int) -> Turns:
        """The turns of the default program and another one, in a share of the seconds that are left."""
        other = self.finals.built(sources)
        self.say("timing groups inside the program")
        return in_turns(plain, other, min(SECONDS, self.left() / share))

    def _keep(self, finalists: Mapping[str, _Finalist], tuned: Set[str]) -> None:
        """Keep what was measured, and that some groups are tuned."""
        kept = (self._kept(name, finalist, name in tuned) for name, finalist in finalists.items())
        self.database.choose([record for both in kept for record in both])

    def _kept(self, name: str, finalist: _Finalist, is_tuned: bool) -> Iterator[Record]:
        """The records of both schedules of a group, the chosen one last."""
        group, times = self.groups[name], finalist.times
        key = replace(group.key, whole=self.finals.whole)
        both = [(finalist.text, times.tuned, False), (finalist.default, times.default, True)]
        for script, seconds, default in reversed(both) if is_tuned else both:
            outcome = times.outcome(seconds)
            yield Record(key, name, group.program, script, outcome, run=self.run, default=default)
