"""The forms of a program and of its groups, as written and by laws, timed where they will run: inside the whole.

An estimate prefers one of them. Before a program is tuned all of them are timed, under the schedules of a build without
a database; what is fastest is kept in the database, and tuned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from time import perf_counter

from compiler.autotune.deadline import TimeIsUp, until
from compiler.autotune.measure.turns import Runnable, TurnTimes, in_turns
from compiler.autotune.tasks.in_place import MARGIN, SECONDS
from compiler.database import Database, Record
from compiler.driver.parts.partition import PROGRAM, FormChoice

SHARE = 0.15
"""The share of a run's seconds that the comparison of forms may take; that of the program as a whole, half of it."""


RUNS = 1e-6
"""The seconds from which on a call is not one that is skipped."""


@dataclass(frozen=True)
class Formed:
    """A program with some form of each group: what runs it, and the group of each call of a run, in order; a form with
    a guard has three calls. `guarded` are the positions of calls that are skipped where a guard holds."""

    program: Runnable
    calls: Sequence[str]
    guarded: Sequence[int] = ()

    def calls_of(self, group: str) -> list[int]:
        """The positions of the calls that stand in the place of those of a group."""
        return [position for position, called in enumerate(self.calls) if called == group]

    @cached_property
    def failing(self) -> frozenset[str]:
        """The groups whose guard does not hold on the operands at hand: as written they run too."""
        times = self.program.run().calls if self.guarded else ()
        return frozenset(self.calls[n] for n in self.guarded if times[n] > RUNS)


@dataclass(frozen=True)
class FormContest:
    """The comparison of the forms of some groups of a program, or of the program itself, by one run of the tuner.

    choices: the groups by their names, or the program under PROGRAM. built: the program in these forms. what: what is
    compared, for people. seconds: those that it may take; `say` is told what is done.
    """

    name: str
    choices: Mapping[str, FormChoice]
    built: Callable[[Mapping[str, str]], Formed]
    database: Database
    run: str
    say: Callable[[str], None]
    seconds: float = inf
    what: str = "forms of groups inside the program"

    def hold(self) -> bool:
        """Compare where a form was not timed yet, and keep in the database what is chosen; whether the time was enough.

        A form whose guard fails on the random operands stays undecided: the estimate decides. A choice is on disk as
        soon as the groups were timed; then what was chosen is timed as a whole, and where it is not faster than what
        the estimate prefers, that is chosen.
        """
        if not self._undecided:
            return True
        begun = perf_counter()
        try:
            with until(lambda: perf_counter() - begun > self.seconds):
                self._compare(lambda: self.seconds - (perf_counter() - begun))
        except TimeIsUp:
            return False
        return True

    def _compare(self, left: Callable[[], float]) -> None:
        preferred = {name: choice.chosen(self.database) for name, choice in self.choices.items()}
        preferred |= {name: choice.forms.preferred for name, choice in self._undecided.items()}
        self.say(f"building the preferred {self.what}")
        plain, times = self.built(preferred), dict[str, dict[str, TurnTimes]]()
        for forms in self._others:
            self.say(f"building other {self.what}")
            other = self.built(preferred | forms)
            self.say(f"timing {self.what}")
            turns = in_turns(plain.program, other.program, min(SECONDS, left() / 2))
            for name, form in forms.items():
                if name in plain.failing | other.failing:
                    continue
                of_calls = turns.whole if name == PROGRAM else turns.of(plain.calls_of(name), other.calls_of(name))
                times.setdefault(name, {})[form] = of_calls
        chosen = preferred | {name: min(of, key=lambda form: of[form].ratio) for name, of in times.items()}
        chosen |= {name: preferred[name] for name, of in times.items() if of[chosen[name]].ratio >= MARGIN}
        self._keep(times, chosen)
        if chosen == preferred:
            return
        other = self.built(chosen)
        self.say(f"timing the chosen {self.what} as a whole")
        if in_turns(plain.program, other.program, min(SECONDS, left())).whole.ratio > 1:
            self._keep(times, preferred)

    @cached_property
    def _undecided(self) -> dict[str, FormChoice]:
        """The groups with a form that was not timed yet."""
        return {name: choice for name, choice in self.choices.items() if choice.is_undecided(self.database)}

    @property
    def _others(self) -> list[dict[str, str]]:
        """Forms of these groups that are not preferred, in as few programs as have each of them once."""
        every = {name: choice.forms.names[1:] for name, choice in self._undecided.items()}
        most = max(map(len, every.values()))
        return [{name: forms[n] for name, forms in every.items() if n < len(forms)} for n in range(most)]

    def _keep(self, times: Mapping[str, Mapping[str, TurnTimes]], chosen: Mapping[str, str]) -> None:
        """Write a record of each timed form of each group to the database, that of the chosen form last."""
        self.database.choose([r for name, of in times.items() for r in self._records(name, of, chosen[name])])

    def _records(self, name: str, times: Mapping[str, TurnTimes], chosen: str) -> Iterator[Record]:
        """The records of the forms of a group, the slowest first, the chosen one last."""
        choice = self.choices[name]
        preferred, first = choice.forms.preferred, next(iter(times.values()))
        task = f"{self.name}.{name}" if name != PROGRAM else self.name
        outcomes = {preferred: first.outcome(first.default)}
        outcomes |= {form: of.outcome(of.tuned) for form, of in times.items()}
        for form in sorted(outcomes, key=lambda form: (form == chosen, -outcomes[form].cost)):
            is_default = form == preferred
            yield Record(
                choice.key, task, choice.program, "", outcomes[form], run=self.run, default=is_default, form=form
            )
