"""`InPlaceComparison`: time the default and the best record of each group inside the whole program.

The state of caches and memory inside the program differs from that of a group measured alone. The schedule that is
faster inside is chosen and recorded in the database, so that a program with its records is never slower than without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from compiler.autotune.display.in_place import GroupInPlace, InPlace
from compiler.autotune.measure.turns import Runnable, Turns, TurnTimes, run_in_turns
from compiler.autotune.tuner import TuningProblem
from compiler.database import Database, Record
from compiler.driver.units.unit import Scheduled
from compiler.space.includes import with_includes

MARGIN = 0.97
"""A record replaces the default if its time is below this factor times the default's."""
SECONDS = 10.0
"""The maximum seconds in which two programs are run in turns."""
SHARE, MOST_SHARE = 0.1, 0.25
"""The minimum and the maximum share of a run's seconds reserved for the comparison."""
BUILDS = 3
"""The reserved time in build times of all groups: one for the defaults, one for the records, one for timing."""


def comparison_seconds(seconds: float, build: float) -> float:
    """The seconds reserved for the comparison, of a run's `seconds`, if all groups take `build` seconds to build. With
    100 s and builds of 5 s: min(max(10, 15), 25) = 15 s."""
    return min(max(SHARE * seconds, BUILDS * build), MOST_SHARE * seconds)


@dataclass(frozen=True)
class ComparisonSetup:
    """The set-up of a comparison inside a whole program; groups have the names of their tasks.

    name: of the program. calls: the group of each call of a run, in order. whole: identifies the program in the keys of
    groups timed inside it. source: the schedule of a group by a record, or its default for None. built: builds the
    program with these schedules of its groups.
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
        """Whether a group has a best record that was not compared inside the program yet. groups: tasks by name."""
        return any(
            (best := database.best(group.key)) is not None
            and best.script not in {r.script for r in database.records(replace(group.key, whole=self.whole))}
            for group in groups.values()
        )


@dataclass(frozen=True)
class _Finalist:
    """A group with a best record. default, tuned: the scripts of the default and of the record, recipes expanded.
    times: of both inside the program. text: the record's script as stored."""

    default: str
    tuned: str
    times: TurnTimes
    text: str

    @property
    def differs(self) -> bool:
        """Whether the script of the record differs from the default."""
        return self.default != self.tuned

    @property
    def is_tuned(self) -> bool:
        """Whether the record is chosen."""
        return self.differs and self.times.ratio < MARGIN

    def row(self, name: str) -> GroupInPlace:
        """The times and the choice of the group as a row for display."""
        default, tuned = self.times.seconds
        return GroupInPlace(name, default, tuned, self.times.ratio, self.is_tuned, self.differs)


@dataclass(frozen=True)
class InPlaceComparison:
    """The comparison of default and record of some groups by one run of the tuner. finals: its set-up. groups: the
    tasks by name. run: the identity of the tuner's run. left: returns the remaining seconds of the run. say:
    receives the phases as text."""

    finals: ComparisonSetup
    groups: Mapping[str, TuningProblem]
    database: Database
    run: str
    left: Callable[[], float]
    say: Callable[[str], None]

    def measure(self) -> Iterator[InPlace]:
        """Time the groups inside the program, record the choices, and yield the times; nothing without usable records.

        Yields twice: first once the groups are timed and their choices are on disk, then once the program with all the
        chosen schedules is timed as a whole. If that is slower than the default, the default is chosen for all groups.
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
        all_tuned = {**defaults, **{name: tuned[name] for name, (default, best) in scripts.items() if default != best}}
        turns = self._turns(plain, all_tuned, 3)
        finalists = {
            name: _Finalist(*pair, turns.of(self.finals.calls_of(name)), records[name].script)
            for name, pair in scripts.items()
        }
        self._keep(finalists, {name for name, finalist in finalists.items() if finalist.is_tuned})
        times, groups = turns.whole, tuple(finalist.row(name) for name, finalist in finalists.items())
        yield InPlace(self.finals.name, *times.seconds, None, groups)
        chosen = {**defaults, **{name: tuned[name] for name, finalist in finalists.items() if finalist.is_tuned}}
        ratio = 1.0
        if chosen != defaults:
            ratio = (turns if chosen == all_tuned else self._turns(plain, chosen, 2)).whole.ratio
        if ratio > 1:
            self._keep(finalists, set())
            groups = tuple(replace(group, is_tuned=False) for group in groups)
        yield InPlace(self.finals.name, *times.seconds, times.seconds[0] * min(ratio, 1.0), groups, ratio <= 1)

    def _tuned(self) -> tuple[dict[str, Record], dict[str, Scheduled]]:
        """The best records, and the schedules of those that still apply, both by group name."""
        self.say("building the program by its records")
        best = {name: self.database.best(group.key) for name, group in self.groups.items()}
        records = {name: record for name, record in best.items() if record is not None}
        sources = {name: self.finals.source(name, record) for name, record in records.items()}
        return records, {name: source for name, source in sources.items() if source.origin == "record"}

    def _turns(self, plain: Runnable, sources: Mapping[str, Scheduled], parts: int) -> Turns:
        """Run the default program and one by `sources` in turns, in 1/`parts` of the seconds left, at most SECONDS."""
        scheduled = self.finals.built(sources)
        self.say("timing groups inside the program")
        return run_in_turns(plain, scheduled, min(SECONDS, self.left() / parts))

    def _keep(self, finalists: Mapping[str, _Finalist], tuned: Set[str]) -> None:
        """Record the times of all finalists, choosing the records of the groups `tuned` and the defaults of others."""
        by_group = (self._records(name, finalist, name in tuned) for name, finalist in finalists.items())
        self.database.choose([record for records in by_group for record in records])

    def _records(self, name: str, finalist: _Finalist, is_tuned: bool) -> Iterator[Record]:
        """The records of both schedules of a group, the chosen one last: the finalist's if `is_tuned`, else the
        unchanged one."""
        group, times = self.groups[name], finalist.times
        key = replace(group.key, whole=self.finals.whole)
        unchanged = _with_recipes(group, finalist.default) if finalist.differs else finalist.text
        pair = [(finalist.text, times.tuned, False), (unchanged, times.default, True)]
        for script, seconds, default in reversed(pair) if is_tuned else pair:
            outcome = times.outcome(seconds)
            yield Record(key, name, group.program, script, outcome, run=self.run, default=default)


def _with_recipes(group: TuningProblem, script: str) -> str:
    """Replace the steps of a group's default script by `sched.include` of their recipes; unchanged if the first sketch
    of the group has other steps."""
    sketch = group.sketches()[0]
    positions = sketch.recorded_positions
    if sketch.text(positions) != script:
        return script
    return str(with_includes(sketch.decided(positions), sketch.inclusions, group.machine, group.key.threads))
