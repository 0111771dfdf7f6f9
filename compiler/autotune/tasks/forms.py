"""`FormComparison`: time the forms of a program and of its groups, as written and by laws, inside the whole program.

An estimate prefers one form of each. Before a program is tuned, all forms are timed under their default schedules. The
fastest is recorded in the database, and tuned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from time import perf_counter

from compiler.autotune.deadline import TimeIsUp, until
from compiler.autotune.measure.turns import Runnable, TurnTimes, run_in_turns
from compiler.autotune.tasks.in_place import MARGIN, SECONDS
from compiler.database import Database, Record
from compiler.driver.parts.partition import PROGRAM, FormChoice

SHARE = 0.15
"""The share of a run's seconds that all form comparisons may take; those of the whole program may take half of it."""


RUNS = 1e-6
"""A call that takes more seconds than this was executed, not skipped by its guard."""


@dataclass(frozen=True)
class FormedProgram:
    """A program with a form for each group, ready to time.

    program: runs it. calls: the group of each call of a run, in order; a form with a guard has three calls. guarded:
    the positions of the calls that are skipped where a guard holds.
    """

    program: Runnable
    calls: Sequence[str]
    guarded: Sequence[int] = ()

    def calls_of(self, group: str) -> list[int]:
        """The positions of the calls of a group, whatever its form."""
        return [position for position, called in enumerate(self.calls) if called == group]

    @cached_property
    def failing(self) -> frozenset[str]:
        """The groups whose guard fails on the random operands, so that the written form runs as well."""
        times = self.program.run().calls if self.guarded else ()
        return frozenset(self.calls[n] for n in self.guarded if times[n] > RUNS)


@dataclass(frozen=True)
class FormComparison:
    """The comparison of the forms of some groups of a program, or of the program itself, by one run of the tuner.

    name: of the program's task. choices: the forms to compare, by group name, or by PROGRAM for the whole program.
    built: builds the program in the forms stated by the same names. run: the identity of the tuner's run. say: receives
    the phases as text. seconds: the time limit. what: the compared forms, for people.
    """

    name: str
    choices: Mapping[str, FormChoice]
    built: Callable[[Mapping[str, str]], FormedProgram]
    database: Database
    run: str
    say: Callable[[str], None]
    seconds: float = inf
    what: str = "forms of groups inside the program"

    def measure(self) -> bool:
        """Time the choices that have an untimed form, and record the fastest forms; a preferred form yields only to one
        that takes less than MARGIN times its time. Return False if time ran out, else True.

        Each choice is recorded once the groups are timed. Then the program with all the chosen forms is timed as a
        whole, and if it is slower than with the preferred forms, these are recorded instead. A form whose guard fails
        on the random operands is not compared: the estimate decides.
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

    def _compare(self, seconds_left: Callable[[], float]) -> None:
        preferred = {name: choice.chosen(self.database) for name, choice in self.choices.items()}
        preferred |= {name: choice.forms.preferred for name, choice in self._undecided.items()}
        self.say(f"building the preferred {self.what}")
        plain, times = self.built(preferred), dict[str, dict[str, TurnTimes]]()
        for forms in self._others:
            self.say(f"building other {self.what}")
            changed = self.built(preferred | forms)
            self.say(f"timing {self.what}")
            turns = run_in_turns(plain.program, changed.program, min(SECONDS, seconds_left() / 2))
            for name, form in forms.items():
                if name in plain.failing | changed.failing:
                    continue
                of_calls = turns.whole if name == PROGRAM else turns.of(plain.calls_of(name), changed.calls_of(name))
                times.setdefault(name, {})[form] = of_calls
        chosen = preferred | {name: min(of, key=lambda form: of[form].ratio) for name, of in times.items()}
        chosen |= {name: preferred[name] for name, of in times.items() if of[chosen[name]].ratio >= MARGIN}
        self._keep(times, chosen)
        if chosen == preferred:
            return
        changed = self.built(chosen)
        self.say(f"timing the chosen {self.what} as a whole")
        if run_in_turns(plain.program, changed.program, min(SECONDS, seconds_left())).whole.ratio > 1:
            self._keep(times, preferred)

    @cached_property
    def _undecided(self) -> dict[str, FormChoice]:
        """The choices that have an untimed form, by name."""
        return {name: choice for name, choice in self.choices.items() if choice.is_undecided(self.database)}

    @property
    def _others(self) -> list[dict[str, str]]:
        """The other forms of the undecided choices, packed into as few programs as possible. Preferred forms aside, f
        has a and b, g has c: the programs are {f: a, g: c} and {f: b}."""
        further_forms = {name: choice.forms.names[1:] for name, choice in self._undecided.items()}
        longest = max(map(len, further_forms.values()))
        return [{name: forms[n] for name, forms in further_forms.items() if n < len(forms)} for n in range(longest)]

    def _keep(self, times: Mapping[str, Mapping[str, TurnTimes]], chosen: Mapping[str, str]) -> None:
        """Record each timed form of each group in the database, the chosen form last. `times` are by group and form."""
        self.database.choose([r for name, of in times.items() for r in self._records(name, of, chosen[name])])

    def _records(self, name: str, times: Mapping[str, TurnTimes], chosen: str) -> Iterator[Record]:
        """The records of the forms of a group, the slowest first, the chosen one last. times: of each form but the
        preferred one, in turns with that."""
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
