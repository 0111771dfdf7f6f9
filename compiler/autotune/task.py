"""`SearchTask`: a program to be tuned for a target, and its results."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from compiler import driver
from compiler.autotune.options import TuningOptions
from compiler.autotune.program import TaskProgram
from compiler.database import Database, Record
from compiler.database.replay import replay
from compiler.dialects.numbers import dtype_of
from compiler.driver.building import build, by_records, records_of, source_of
from compiler.driver.parts.groups import Whole
from compiler.driver.reference.subject import Subject
from compiler.driver.units.unit import Scheduled
from compiler.opt.diagnostics import SAID
from compiler.pipeline import parse
from compiler.program.tree import Buffer
from compiler.program.write import write
from compiler.schedule import Schedule
from compiler.space.derivation import as_written
from compiler.support.errors import InputError, ScheduleError
from compiler.support.files import named
from compiler.support.text import duration, printable, remark
from compiler.support.validation import instance
from compiler.types.machines import host

if TYPE_CHECKING:
    from compiler.autotune.tasks.in_place import Finals
    from compiler.autotune.tell.breakdown import Breakdown
    from compiler.autotune.tuner import TuningProblem

MODES = ("script", "steps", "python")
"""The ways in which a record of any target can be printed."""
Best: TypeAlias = Any  # a Record, of a whole program one for each group by its name: the program tells, types do not


class SearchTask(TaskProgram):
    """A program to be tuned: the function, the target, the number of threads, the policy.

        task = SearchTask(func=matmul, args=(1024, 1024, 1024), threads=1)
        task.tune(TuningOptions(trials=64, database="matmul.db"))
        kernel = task.apply_best("matmul.db")

    `func` is a te function, or a function or registered workload that makes one of `args`; also a module, text or path
    at the te or loop level, or a model: what a front end has imported, or an ONNX file, whose weights are constants.
    `target` is cpu, which TVM calls llvm, or a GPU's.
    `threads` is how many threads a kernel runs on: None is what OMP_NUM_THREADS says, or the cores that the process may
    use. `rules` derive the search space; a `template` is the space instead, with what the rules make
    of its `sched.auto`: a script with open choices, its text, or a function that schedules the `Schedule` that it is
    given, whose choices are open where it states no decision. `machine` is what the space is derived
    for, the one at hand by default; of a GPU, the one that stands for its architecture `arch`, by default that at hand,
    if there is one. `constants` are the names of inputs that never change, such as weights: what schedules make of them
    alone, their layout, is made once and is not timed. `error` is the rounding error up to which groups may have other
    forms, see `build`. `timing` says where calls that are timed find their operands:
    `warm` in the caches, `network` where a network has them (see `compiler.database.outcome`).

    A te function of one group is tuned in its canonical form, unless there is a template: `module`, `schedule` and the
    scripts of `space` have canonical names, which `provenance` leads back from. Kernels have the function's arguments.

    Where laws offer other forms of groups, these have the forms that an estimate prefers, until `tune` times them; what
    asks a database takes the forms that are chosen there.

    A whole program, one whose public function calls groups, has a task for each different group in `groups`, timed as
    in the network. What it does it does for all of them; what is of one program alone, such as `space`, they have.
    Raises InputError or TargetError for what cannot be tuned.
    """

    _refusal = (
        "a task cannot be pickled or copied: make it again with SearchTask and the same arguments; a database knows it"
    )

    def tune(self, options: TuningOptions | None = None) -> Best | None:
        """Search until the budget is spent, and give the best record; None where nothing could be measured.

        A database that knows the task is gone on with, its trials count. What is measured is on disk at once; an
        interruption ends the run and keeps all. The groups of a whole program share trials and seconds, which go where
        they promise most of the program's time; what is given are the best records by the groups' names. At the
        start the forms that laws offer of groups are compared inside the program, at the end each group with the
        default, and `apply_best` takes what is faster there. A terminal
        shows how far the run is, unless `options.show` is False.
        """
        from compiler.autotune.tell.views import watched

        stated = TuningOptions() if options is None else instance("what to tune by", options, TuningOptions)
        with watched(self, stated) as seen:
            return self._tune(seen)

    def _tune(self, options: TuningOptions) -> Best | None:
        from compiler.autotune.tasks.scheduler import Weighted, tune_together
        from compiler.autotune.tuner import tune

        if self._has_forms:
            options = replace(options, began=perf_counter() if options.began is None else options.began)
            is_over = not self._chosen.compare(options)
            self._follow()
            if is_over:
                return (self.records(options.path) if options.path else {}) if self._whole else None
        if self._whole is not None:
            if options.path is not None:
                with Database(options.path) as database:
                    database.keep(self._whole.as_kept(self.name))
            weighted = [Weighted(group._problem(options), group.occurrences) for group in self.groups]
            return tune_together(weighted, options, self._finals(self._whole) if self.machine == host() else None)
        return tune(self._problem(options), options)

    def _finals(self, whole: Whole) -> Finals:
        """What is compared inside the whole program when its groups are tuned."""
        from compiler.autotune.measure.turns import ProfiledProgram
        from compiler.autotune.tasks.in_place import Finals

        calls = [f"{self.name}.{call.callee}" for call in whole.running.main.calls]
        groups = {group.name: group for group in self.groups}

        def source(name: str, record: Record | None) -> Scheduled:
            return self._chosen.default(groups[name]) if record is None else source_of(groups[name], record)

        def program(sources: Mapping[str, Scheduled]) -> ProfiledProgram:
            return ProfiledProgram(self.built(sources, self._arrays, profiled=True), len(calls))

        return Finals(self.name, calls, self._parts.inside(self._selection.parts), source, program)

    def _problem(self, options: TuningOptions) -> TuningProblem:
        text, seed = str(self._loops), options.seed
        subject = Subject(
            text, self.schedule.name, self.policy, self.threads, seed, self.target, self.arch, self.timing
        )
        from compiler.autotune.tuner import TuningProblem

        vars(subject)["program"] = self.schedule.program  # which it would parse, here where the tree is at hand
        return TuningProblem(
            self.name,
            self.key,
            self.program,
            self.machine,
            self.estimated,
            subject,
            lambda: self.derived.sketches,
            lambda: as_written(self.schedule, self.machine).text(()),
            lambda: self.derived.unused,
        )

    def best(self, database: str | os.PathLike[str]) -> Best:
        """The best record of the task; of a whole program those of its groups, by their names. Raises InputError where
        there is none."""
        records = self.records(database)
        if not records:
            raise InputError(f"{database} has nothing measured for {self.name} on {self.place}")
        return records if self.groups else records[self.name]

    def records(self, database: str | os.PathLike[str]) -> dict[str, Record]:
        """The best records of the program's canonical form by its name, of a whole program of its groups by theirs, in
        the forms that are chosen in the database."""
        if self._has_forms:
            with Database(named(database), create=False) as opened:
                self._chosen.follow(opened)
            self._follow()
        return records_of({task.name: task for task in self.groups or (self,)}, named(database))

    @property
    def modes(self) -> tuple[str, ...]:
        """The ways in which the best record can be printed."""
        return (*MODES, *self._target.texts)

    def script(self, record: Record) -> str:
        """The script of a record under the names of the program, for people to read; what is no script as it is."""
        try:
            return str(self._spelled(parse(record.script, "the script")))
        except SAID:
            return record.script

    def apply_best(self, database: str | os.PathLike[str], constants: Mapping[str, object] | None = None) -> Any:
        """The kernel of the best record, which takes the inputs that are not constant; `constants` are arrays of those
        that are. Of a whole program each group has the schedule of its best record. A group without one, or whose
        record no longer applies, is built as without a database, and a warning says how many are.
        Raises InputError where there is no record at all or no such array."""
        given = {**self.known, **(constants or {})}
        if set(given) != set(self.constants):
            said = ", ".join(self.constants) or "none"
            raise InputError(
                f"{self.name} has these constants: {said}; arrays are given for: {', '.join(given) or 'none'}"
            )
        best = self.best(database)
        if self._whole is not None:
            words, path = (self.machine.name, self.error), named(database)
            return by_records(self.func, lambda: self._selection, path, words, self.threads, self.policy, given)
        try:
            return self._built(best, given)
        except ScheduleError as error:
            warnings.warn(f"{self.name} is built as without a database: its record is not used: {error}", stacklevel=2)
        return build(self.func, self.target, self._team, self.policy, None, given or None, self.arch, schedule="auto")

    def breakdown(self, records: Mapping[str, Record]) -> Breakdown:
        """What the groups of a whole program take together under some records, by their names as from `tune` and
        `best`, beside the whole under the same records, groups without one as `build` makes them; it is built and
        measured here.

        Both are as in a network: see `compiler.autotune.measure.network`.
        """
        from compiler.autotune.measure.network import seconds_of
        from compiler.autotune.tell.breakdown import Breakdown, GroupTime

        if self._whole is None:
            raise InputError(f"{self.name} is one program: it has no groups")
        sources = {group.name: group._source(records.get(group.name)) for group in self.groups}
        kernel = self.built(sources, self._arrays)
        return Breakdown(
            tuple(GroupTime(g.name, g.occurrences, _seconds(records.get(g.name))) for g in self.groups),
            seconds_of(kernel, host()),
        )

    def print_best(self, database: str | os.PathLike[str], mode: str = "script") -> str:
        """Print the best record, and give what is printed: its script, all steps of that, the script in Python, or the
        LLVM IR or assembly that it becomes; on a GPU the text of its kernels, the mode that is called as the target. Of
        a whole program group by group."""
        if mode not in self.modes:
            raise InputError(f"unknown mode '{mode}' (there are {', '.join(self.modes)})")
        best = self.best(database)
        groups = [group._group_text(best.get(group.name), mode) for group in self.groups]
        text = printable("\n".join(groups) if groups else self._text(best, mode))
        print(text)
        return text

    def _group_text(self, record: Record | None, mode: str) -> str:
        """What a group's best record is, under a line with its name."""
        seconds = _seconds(record)
        time = "nothing measured, so built as without a database" if seconds is None else duration(seconds)
        head = remark(mode, f"{self._calls}: {time}")
        return head if record is None else f"{head}\n{self._text(record, mode)}"

    def _text(self, record: Record, mode: str) -> str:
        """What a record is; scripts are under the names of the program, for people to read."""
        if mode == "script":
            return self.script(record)
        if mode == "steps":
            return str(self._spelled(replay(record).script))
        if mode == "python":
            from compiler.schedule.python import as_python

            return as_python(self._spelled(parse(record.script, "the script")))
        nothing = {b.name: np.zeros(b.shape, dtype_of(b.element)) for b in self._fixed}
        return self._target.text(self._built(record, nothing), mode)

    @property
    def _fixed(self) -> list[Buffer]:
        """The constants whose elements the program does not know, as its own loops name them."""
        if self._single is not None:
            return self._single.unknown
        program = self.schedule.unscheduled
        stated = dict(program.values)
        return [b for b in program.arguments if b.name in program.constants and b.name not in stated]

    def _source(self, record: Record | None) -> Scheduled:
        """The schedule of a record, which was proved when it was measured; without one, or where it no longer applies,
        that of a build without a database."""
        if record is not None:
            with suppress(ScheduleError):
                return Scheduled(str(replay(record).script), "record")
        return source_of(self)

    def _built(self, record: Record, constants: Mapping[str, object]) -> Any:
        schedule = self._scheduled(record)
        return driver.build_as_written(
            schedule, self.target, self._team, self.policy, None, constants or None, self.arch
        )

    def _scheduled(self, record: Record) -> ModuleOp | Schedule:
        """The program's loops under a record, with its own arguments."""
        script, single = replay(record).script, self._single
        return ModuleOp([write(single.scheduled(script))]) if single else Schedule(self.module).apply(script)


def _seconds(record: Record | None) -> float | None:
    """The time of a call under a record."""
    return None if record is None else median(record.outcome.seconds)
