"""`ChosenForms`: the forms of a task's program and groups, chosen by an estimate or by times inside the program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING
from uuid import uuid4

from compiler.autotune.display.forms import GroupForm, ProgramForm, form_of
from compiler.autotune.display.progress import Progress
from compiler.autotune.options import TuningOptions
from compiler.database import Database, Key
from compiler.database.schema import MEMORY
from compiler.driver.building import build_scheduled, source_of
from compiler.driver.parts.groups import GroupedProgram
from compiler.driver.parts.partition import PROGRAM, Alternatives, Partition, Schedulable
from compiler.driver.units.unit import Scheduled

if TYPE_CHECKING:
    from compiler.autotune.tasks.forms import FormComparison, FormedProgram


class ChosenForms:
    """The chosen forms of a program and its groups: those that an estimate prefers, until `read_database`.

    name: of the program's task. func: the program as `build` takes it. offers: its forms. arrays: makes the constants
    of a program in some form. partition: the program in the chosen forms. timed: the chosen forms that were timed, with
    the relative times of the others.
    """

    def __init__(
        self,
        name: str,
        func: object,
        offers: Alternatives,
        partition: Partition,
        threads: int,
        policy: str,
        arrays: Callable[[GroupedProgram], Mapping[str, object]],
    ) -> None:
        self.name, self._func, self._threads, self._policy, self._arrays = name, func, threads, policy, arrays
        self._every, self._current = offers, offers
        self._forms = offers.offered.preferred if offers.offered else {}
        self.partition = partition
        self._defaults: dict[Key, Scheduled] = {}
        self.timed: tuple[GroupForm, ...] = ()

    @property
    def are_several(self) -> bool:
        """Whether the program or a group of it has other forms."""
        return self._every.programs is not None or self._current.offered is not None

    def read_database(self, database: Database) -> None:
        """Switch to the forms that a database records as chosen, else the preferred; set `partition` and `timed`."""
        current = self._every.chosen_program(database, self._threads, self._policy)
        forms = current.chosen(database, self._threads, self._policy)
        if (current, forms) != (self._current, self._forms):
            self._current, self._forms, self.partition = current, forms, current.in_forms(forms)
        name = self.name
        maybe_timed = [
            form_of(name, choice.chosen(database), database.forms(choice.key), ProgramForm)
            for choice in self._every.program_choices(self._threads, self._policy).values()
        ] + [
            form_of(f"{name}.{group}", forms[group], database.forms(choice.key))
            for group, choice in current.choices(self._threads, self._policy).items()
        ]
        self.timed = tuple(form for form in maybe_timed if form is not None)

    def compare(self, options: TuningOptions) -> bool:
        """Time the untimed forms of the program, then those of its groups in the chosen form, and take the fastest.
        Stop at SHARE of the run's seconds; forms chosen before then stay. Return False if interrupted, else True."""
        from compiler.autotune.tasks.forms import SHARE

        progress, begun = Progress(self.name, options.trials, options.seconds), perf_counter()

        def say(phase: str) -> None:
            progress.phase, progress.seconds = phase, perf_counter() - (options.began or 0.0)
            for callback in options.callbacks:
                callback(progress)

        with Database(options.path or MEMORY) as database:
            try:
                for is_whole in (True, False):
                    share = SHARE / 2 if is_whole else SHARE
                    seconds = inf if options.seconds is None else share * options.seconds - (perf_counter() - begun)
                    contest = self._contest(is_whole, database, say, seconds)
                    if contest.choices and not contest.measure():
                        say(f"the time for {contest.what} was too short: what was chosen before stays")
                    self.read_database(database)
            except KeyboardInterrupt:
                say("interrupted")
                return False
        return True

    def _contest(
        self, is_whole: bool, database: Database, say: Callable[[str], None], seconds: float
    ) -> FormComparison:
        from compiler.autotune.tasks.forms import FormComparison

        run = str(uuid4())
        if is_whole:
            choices = self._every.program_choices(self._threads, self._policy)
            what = "forms of the program"
            return FormComparison(self.name, choices, self.program_in, database, run, say, seconds, what)
        choices = self._current.choices(self._threads, self._policy)
        return FormComparison(self.name, choices, self.groups_in, database, run, say, seconds)

    def program_in(self, forms: Mapping[str, str]) -> FormedProgram:
        """The program in the form `forms[PROGRAM]`, its groups in the forms that the estimate prefers, ready to time.
        All its calls count as calls of PROGRAM."""
        from compiler.autotune.tasks.forms import FormedProgram

        offers = self._every.of_program(forms[PROGRAM])
        program = offers.offered.in_forms(offers.offered.preferred) if offers.offered else offers.program
        assert program is not None
        formed = self._formed(program)
        return FormedProgram(formed.program, [PROGRAM] * len(formed.calls), formed.guarded)

    def groups_in(self, forms: Mapping[str, str]) -> FormedProgram:
        """The program with its groups in the forms stated by group name, under default schedules, ready to time."""
        assert self._current.offered is not None
        return self._formed(self._current.offered.in_forms(forms))

    def _formed(self, program: GroupedProgram) -> FormedProgram:
        from compiler.autotune.measure.turns import ProfiledProgram
        from compiler.autotune.tasks.forms import FormedProgram

        partition = Partition(program)
        sources = {part.name: self.default(part) for part in partition.parts(self._threads, self._policy)}
        arrays = self._arrays(program)
        kernel = build_scheduled(partition, self._func, sources, self._threads, self._policy, arrays, profiled=True)
        calls = [program.written.get(call.callee, call.callee) for call in program.constant_split.main.calls]
        guarded = [n for n, call in enumerate(program.constant_split.main.calls) if call.guarded is not None]
        return FormedProgram(ProfiledProgram(kernel, len(calls)), calls, guarded)

    def default(self, part: Schedulable) -> Scheduled:
        """The schedule of a part without a record: by the rules, else as written; memoized by the part's key."""
        if part.key not in self._defaults:
            self._defaults[part.key] = source_of(part)
        return self._defaults[part.key]
