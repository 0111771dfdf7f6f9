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
from compiler.driver.building import build, compile_by_records, records_of, source_of
from compiler.driver.parts.groups import GroupedProgram
from compiler.driver.reference.subject import Subject
from compiler.driver.units.unit import Scheduled
from compiler.opt.diagnostics import PROGRAM_ERRORS
from compiler.pipeline.source import parse
from compiler.program.tree import Buffer
from compiler.program.write import write
from compiler.schedule import Schedule
from compiler.space.derivation import as_written
from compiler.support.errors import InputError, ScheduleError
from compiler.support.files import to_path
from compiler.support.text import duration, printable, remark
from compiler.support.validation import instance
from compiler.types.machines import host

if TYPE_CHECKING:
    from compiler.autotune.display.breakdown import Breakdown
    from compiler.autotune.tasks.in_place import ComparisonSetup
    from compiler.autotune.tuner import TuningProblem

MODES = ("script", "steps", "python")
"""The modes of `print_best` that every target has."""
Best: TypeAlias = Any  # a Record; for a whole program a mapping from the names of its groups to Records


class SearchTask(TaskProgram):
    """A program to be tuned: the function, the target, the number of threads, the policy.

        task = SearchTask(func=matmul, args=(1024, 1024, 1024), threads=1)
        task.tune(TuningOptions(trials=64, database="matmul.db"))
        kernel = task.apply_best("matmul.db")

    func: a te function, or a function or registered workload that builds one from `args`; also a module, text or path
    at the te or loop level, or a model: the result of a front end or an ONNX file, whose weights are constants.
    target: `cpu`, which TVM calls llvm, or a GPU target.
    threads: of a kernel; None is the value of OMP_NUM_THREADS, else the number of cores that the process may use.
    policy: `strict`, `contract` or `fast`. name: of the task in records, by default the program's. rules: the search
    rules that derive the space. template: replaces them, except that they schedule the blocks of its `sched.auto`
    steps. It is a script with open choices, its text, or a function of a `Schedule`, whose choices without a decision
    are open.
    machine: the machine to derive the space for, by default this one; for a GPU the model of its architecture `arch`,
    by default that of the installed GPU.
    constants: the names of inputs that never change, such as weights. What depends on them alone, such as a packed
    layout, is computed once and not timed.
    error: the largest accepted rounding error of alternative forms of groups, see `build`.
    timing: where timed calls find their operands: `warm` in the caches, `network` as in a network (see
    `compiler.database.outcome`).

    A te function of one group is tuned in its canonical form, unless there is a template: `module`, `schedule` and the
    scripts of `space` have canonical names, and `provenance` maps these to the program's. Kernels have the function's
    arguments.

    If laws offer other forms of groups, the task takes those that an estimate prefers; `tune` times them, and the
    methods that read a database take the forms recorded there as chosen.

    A whole program, one whose public function calls groups, has a task for each different group in `groups`, with
    `network` timing. Its methods apply to all groups; `space` and other attributes of a single program exist on the
    tasks in `groups` only. Raises InputError or TargetError for a program that cannot be tuned.

    >>> A = te.placeholder((64,), name="A")
    >>> SearchTask(te.function("f", [A], te.nn.exp(A)), threads=1, machine=strata.targets.MACHINES["avx2"])
    <SearchTask f for avx2, 1 thread>
    """

    _refusal = (
        "a task cannot be pickled or copied: make it again with SearchTask and the same arguments; a database knows it"
    )

    def tune(self, options: TuningOptions | None = None) -> Best | None:
        """Search until the budget is spent, and return the best record; None if nothing could be measured. For a GPU
        that is not present the record is then the default schedule's, also if the time was up before the first trial.

        The run continues from the task's records in the database, which count as trials. Each outcome is on disk before
        the next measurement; an interruption ends the run without losing any. Raises TargetError if the worker
        processes cannot start, InputError for options of another type and a database or log that cannot be written.

        The groups of a whole program share trials and seconds, see `TuningOptions.allocation`; the result is a mapping
        from their names to their best records, without groups that have none. At the start the forms that laws offer
        are compared inside the program, at the end each group's record with its default; `apply_best` takes the faster
        ones. A terminal shows the progress, unless `options.show` is False.
        """
        from compiler.autotune.display.views import with_view

        stated = TuningOptions() if options is None else instance("what to tune by", options, TuningOptions)
        with with_view(self, stated) as watch:
            return self._tune(watch)

    def _tune(self, options: TuningOptions) -> Best | None:
        from compiler.autotune.tasks.scheduler import WeightedTask, tune_together
        from compiler.autotune.tuner import tune

        if self._has_forms:
            options = replace(options, began=perf_counter() if options.began is None else options.began)
            is_over = not self._chosen.compare(options)
            self._follow()
            if is_over:
                return (self.records(options.path) if options.path else {}) if self._whole else self._default(options)
        if self._whole is not None:
            if options.path is not None:
                with Database(options.path) as database:
                    database.keep(self._whole.stored(self.name))
            weighted = [WeightedTask(group._problem(options), group.occurrences) for group in self.groups]
            return tune_together(weighted, options, self._finals(self._whole) if self.machine == host() else None)
        return tune(self._problem(options), options) or self._default(options)

    def _default(self, options: TuningOptions) -> Record | None:
        """The best record if nothing was tried: the default schedule's where times are estimated, else None."""
        from compiler.autotune.fallback import record_default
        from compiler.database.schema import MEMORY

        if not self.estimated:
            return None
        with Database(options.path or MEMORY) as database:
            return record_default(self._problem(options), self.schedule, options.seed, database)

    def _finals(self, program: GroupedProgram) -> ComparisonSetup:
        """Return the set-up of the final comparison of each group's default with its record, inside a whole program."""
        from compiler.autotune.measure.turns import ProfiledProgram
        from compiler.autotune.tasks.in_place import ComparisonSetup

        calls = [f"{self.name}.{call.callee}" for call in program.constant_split.main.calls]
        groups = {group.name: group for group in self.groups}

        def source(name: str, record: Record | None) -> Scheduled:
            return self._chosen.default(groups[name]) if record is None else source_of(groups[name], record)

        def profiled(sources: Mapping[str, Scheduled]) -> ProfiledProgram:
            return ProfiledProgram(self.built(sources, self._arrays, profiled=True), len(calls))

        return ComparisonSetup(self.name, calls, self._parts.program_key(self._selection.parts), source, profiled)

    def _problem(self, options: TuningOptions) -> TuningProblem:
        text, seed = str(self._loops), options.seed
        subject = Subject(
            text, self.schedule.name, self.policy, self.threads, seed, self.target, self.arch, self.timing
        )
        from compiler.autotune.tuner import TuningProblem

        vars(subject)["program"] = self.schedule.program  # at hand: else the property parses the text
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
        """Return the best record of the task; for a whole program a mapping from group names to best records.

        Raises InputError if the database cannot be opened, or has no record of the task.
        """
        records = self.records(database)
        if not records:
            raise InputError(f"{database} has nothing measured for {self.name} on {self.hardware}")
        return records if self.groups else records[self.name]

    def records(self, database: str | os.PathLike[str]) -> dict[str, Record]:
        """Map the name of the task, or of each group of a whole program, to its best record; tasks without one are left
        out. The record of a group is the best one measured alone. First switches to the forms that the database records
        as chosen. Raises InputError for a database that cannot be opened."""
        if self._has_forms:
            with Database(to_path(database), create=False) as opened:
                self._chosen.read_database(opened)
            self._follow()
        return records_of({task.name: task for task in self.groups or (self,)}, to_path(database))

    @property
    def modes(self) -> tuple[str, ...]:
        """The modes that `print_best` accepts."""
        return (*MODES, *self._target.texts)

    def script(self, record: Record) -> str:
        """The script of a record, canonical names replaced by the program's; unchanged if it does not parse."""
        try:
            return str(self._spelled(parse(record.script, "the script")))
        except PROGRAM_ERRORS:
            return record.script

    def apply_best(self, database: str | os.PathLike[str], constants: Mapping[str, object] | None = None) -> Any:
        """Build the kernel of the best record; it takes the inputs that are not constant.

        constants: arrays of the constant inputs, by name. In a whole program each group has the schedule chosen inside
        the program, else of its best record. A group without a record, or whose record no longer applies, is built as
        without a database, and so is a single program whose record no longer applies; a warning states this. Raises
        InputError as `best` does, and for missing or unknown constants.
        """
        arrays = {**self.known, **(constants or {})}
        if set(arrays) != set(self.constants):
            names = ", ".join(self.constants) or "none"
            raise InputError(
                f"{self.name} has these constants: {names}; arrays are given for: {', '.join(arrays) or 'none'}"
            )
        best = self.best(database)
        if self._whole is not None:
            words, path = (self.machine.name, self.error), to_path(database)
            program = compile_by_records(
                self.func, lambda: self._selection, path, words, self.threads, self.policy, arrays
            )
            return program.load()
        try:
            return self._built(best, arrays)
        except ScheduleError as error:
            warnings.warn(f"{self.name} is built as without a database: its record is not used: {error}", stacklevel=2)
        return build(self.func, self.target, self._team, self.policy, None, arrays or None, self.arch, schedule="auto")

    def breakdown(self, records: Mapping[str, Record]) -> Breakdown:
        """Compare the recorded times of the groups of a whole program with the measured time of the whole program.

        records: by the names of the groups, as from `tune` and `best`; a group without one is scheduled as by `build`,
        its time unknown. The whole program is built by the records and timed here. Both times are with `network`
        timing, see `compiler.autotune.measure.network`. Raises InputError for a program without groups, and the errors
        of `build`, such as ScheduleError for a record that does not apply.
        """
        from compiler.autotune.display.breakdown import Breakdown, GroupTime
        from compiler.autotune.measure.network import seconds_of

        if self._whole is None:
            raise InputError(f"{self.name} is one program: it has no groups")
        sources = {group.name: group._source(records.get(group.name)) for group in self.groups}
        kernel = self.built(sources, self._arrays)
        return Breakdown(
            tuple(GroupTime(g.name, g.occurrences, _seconds(records.get(g.name))) for g in self.groups),
            seconds_of(kernel, host()),
        )

    def print_best(self, database: str | os.PathLike[str], mode: str = "script") -> str:
        """Print the best record in a mode, and return the text; of a whole program group by group.

        mode: `script`, `steps` (all steps of the script, recipes expanded), `python` (the script in Python), or a text
        of the target: `llvm` or `asm`, for a GPU the source of its kernels. Raises InputError for an unknown mode and
        without any record; in `steps` and the texts of the target ScheduleError for a record whose script no longer
        applies.
        """
        if mode not in self.modes:
            raise InputError(f"unknown mode '{mode}' (there are {', '.join(self.modes)})")
        best = self.best(database)
        groups = [group._group_text(best.get(group.name), mode) for group in self.groups]
        text = printable("\n".join(groups) if groups else self._text(best, mode))
        print(text)
        return text

    def _group_text(self, record: Record | None, mode: str) -> str:
        """A group's best record as text below a line with its name and time; that line alone for None."""
        seconds = _seconds(record)
        time = "nothing measured, so built as without a database" if seconds is None else duration(seconds)
        head = remark(mode, f"{self._calls}: {time}")
        return head if record is None else f"{head}\n{self._text(record, mode)}"

    def _text(self, record: Record, mode: str) -> str:
        """A record as text in a mode of `print_best`; scripts have the names of the user's program."""
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
        """The constant buffers whose elements the program does not store, named as in its loops."""
        if self._single is not None:
            return self._single.unstated_constants
        program = self.schedule.unscheduled
        stated = dict(program.values)
        return [b for b in program.arguments if b.name in program.constants and b.name not in stated]

    def _source(self, record: Record | None) -> Scheduled:
        """The schedule of a record, not proved again; the default schedule if `record` is None or no longer applies."""
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
        """Apply a record's script to the unscheduled loops. Returns a module with the user's order of arguments if the
        task has a canonical form, else a Schedule. Raises ScheduleError for a script that does not apply."""
        script, single = replay(record).script, self._single
        return ModuleOp([write(single.scheduled(script))]) if single else Schedule(self.module).apply(script)


def _seconds(record: Record | None) -> float | None:
    """The median seconds of a call by a record; None without a record."""
    return None if record is None else median(record.outcome.seconds)
