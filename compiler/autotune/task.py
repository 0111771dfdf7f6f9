"""`SearchTask`: a program to be tuned for a target, and its results."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from reprlib import repr as short
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from compiler import driver
from compiler.alternatives import Conditions
from compiler.autotune.options import TuningOptions
from compiler.autotune.tasks.chosen_forms import ChosenForms
from compiler.autotune.tell.forms import GroupForm
from compiler.autotune.workloads import made
from compiler.database import Database, Key, Record
from compiler.database.outcome import NETWORK, TIMINGS, WARM
from compiler.database.program import text_of
from compiler.database.record import hash_of
from compiler.database.replay import replay
from compiler.dialects.functions import find_function
from compiler.dialects.numbers import dtype_of
from compiler.driver.building import Selection, accepted, build, built, by_records, records_of, source_of
from compiler.driver.parts.groups import OWN, Group, Whole
from compiler.driver.parts.partition import Partition, alternatives
from compiler.driver.reference.subject import Subject
from compiler.driver.units.unit import Scheduled
from compiler.frontends.model import Imported
from compiler.graph.spelling import renamed, spelled
from compiler.opt.diagnostics import SAID
from compiler.pipeline import imported, parse
from compiler.program.tree import Buffer, Program
from compiler.program.write import write
from compiler.schedule import Schedule
from compiler.space.rules import RULES_OF, Rule
from compiler.space.rules.derivation import Derived, as_written, derive
from compiler.space.rules.recording import recorded
from compiler.space.rules.template import from_template
from compiler.space.space import SketchSpace
from compiler.support import display
from compiler.support.errors import InputError, ScheduleError, TargetError
from compiler.support.files import named
from compiler.support.text import counted, duration, printable, remark
from compiler.support.unpicklable import Unpicklable
from compiler.support.validation import instance, line, several
from compiler.targets.registry import target_named
from compiler.types.machines import Gpu, Machine, host
from compiler.types.policies import policy_named

if TYPE_CHECKING:
    from compiler.autotune.tasks.in_place import Finals
    from compiler.autotune.tell.breakdown import Breakdown
    from compiler.autotune.tuner import TuningProblem

MODES = ("script", "python")
"""The ways in which a record of any target can be printed."""
Template: TypeAlias = ModuleOp | str | Callable[[Schedule], object]
Best: TypeAlias = Any  # a Record, of a whole program one for each group by its name: the program tells, types do not


class SearchTask(Unpicklable):
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

    def __init__(
        self,
        func: object,
        args: Sequence[object] = (),
        target: str = "cpu",
        threads: int | None = None,
        policy: str = "contract",
        rules: Sequence[Rule] | None = None,
        name: str | None = None,
        template: Template | None = None,
        machine: Machine | Gpu | None = None,
        constants: Sequence[str] = (),
        arch: str | None = None,
        timing: str = WARM,
        error: float | None = None,
    ) -> None:
        self._target = target_named(line("the target", target))
        if not self._target.is_tuned:
            raise TargetError(f"programs for {self._target.name} are not tuned: tune for cpu, and build its script")
        self.arch = self._target.arch(None if arch is None else line("the architecture", arch))
        args = several("args", args, "arguments", lambda value: True)
        constants = several("constants", constants, "names of inputs", lambda value: isinstance(value, str))
        self.machine = self._target.checked_machine(machine, self.arch)
        self._target.check(threads, constants or None)
        policy_named(policy, TargetError)
        model = imported(func)
        self.known = dict(model.constants) if isinstance(model, Imported) else {}
        constants = (*self.known, *constants)
        group = func if isinstance(func, Group) else None
        self.func = group.loops if group else model.function if isinstance(model, Imported) else made(func, args)
        self.constants = constants
        self.error = accepted(error)
        conditions = Conditions(self.machine, policy, error=self.error)
        program = group or self.func
        offers = alternatives(program, constants, self._target.in_units, template is None, conditions)
        self._take(offers.preferred)
        program_name = self._whole.function.sym_name.data if self._whole else self.schedule.name
        self.name = program_name if name is None else line("the name of a task", name)
        self.policy, self.target = policy, self._target.name
        self.timing = _timing(timing)
        self.device = self._target.device(self.machine, self.arch)
        given = RULES_OF[self._target.family] if rules is None else rules
        self.rules: tuple[Rule, ...] = several("rules", given, "functions", callable)
        self.template = self._written(template)
        self.threads = self._target.threads(threads)
        self._chosen = ChosenForms(
            self.name, self.func, offers, self._parts, self.threads, self.policy, self._arrays_of
        )

    def _take(self, parts: Partition) -> None:
        """Be the task of a partition of the program."""
        self._whole: Whole | None = parts.whole
        self._parts, self._single, self.module = parts, parts.single, parts.module
        self.occurrences = parts.group.occurrences if parts.group else 1
        self.provenance = parts.group.names if parts.group else OWN
        self._schedule = None if parts.whole else Schedule(parts.loops)
        for name in ("groups", "program", "key", "derived", "space"):
            vars(self).pop(name, None)

    def __repr__(self) -> str:
        groups = f", {counted(len(self._whole.groups), 'group')}" if self._whole else ""
        return display.line(f"<SearchTask {self.name} for {self._device}{groups}>")

    def _repr_html_(self) -> str:
        return display.text(f"{self.name}, tuned for {self._device}", self.compute_dag)

    @property
    def _device(self) -> str:
        """The machine and what it runs there on."""
        return self.machine.described(self.threads)

    def _written(self, template: Template | None) -> ModuleOp | None:
        """A template as it was given, parsed, or written by a function."""
        if template is None or isinstance(template, ModuleOp):
            return template
        if isinstance(template, str):
            return parse(template, "the template")
        if callable(template):
            return recorded(template, self.schedule)
        words = "expected a module, its text, or a function of a Schedule"
        raise InputError(f"the template is {short(template)}, {words}")

    @cached_property
    def groups(self) -> tuple[SearchTask, ...]:
        """The tasks of the different groups of a whole program, in the order of their first calls; none of what is one
        program. `occurrences` of each says how often a run calls it, `provenance` what the program calls its
        parts where it is called first: scripts speak of canonical ones."""
        return tuple(map(self._task, self._whole.groups)) if self._whole else ()

    def group(self, name: str) -> SearchTask:
        """The task of a group, by the name that it has in the program or as a task. Raises InputError."""
        if self._whole is None:
            raise InputError(f"{self.name} is one program: it has no groups, such as '{name}'")
        wanted = self._whole.group(name.removeprefix(f"{self.name}.")).name
        return next(group for group in self.groups if group.name == f"{self.name}.{wanted}")

    @property
    def _calls(self) -> str:
        """A group's name, and how often it is called: `layer.group_3, 2 calls`."""
        return f"{self.name}, {counted(self.occurrences, 'call')}"

    def _task(self, group: Group) -> SearchTask:
        return SearchTask(
            group,
            threads=self.threads,
            policy=self.policy,
            rules=self.rules,
            name=f"{self.name}.{group.name}",
            machine=self.machine,
            constants=group.tree.constants,
            timing=NETWORK,
        )

    @property
    def schedule(self) -> Schedule:
        """The program as loops, unscheduled; of a te function those of its canonical form.

        Raises InputError for a whole program, as all that is asked of one.
        """
        if self._schedule is None:
            names = ", ".join(group.name for group in self.groups)
            raise InputError(f"{self.name} has groups, and this is asked of one of them: {names}")
        return self._schedule

    @property
    def _loops(self) -> ModuleOp:
        """The module of one program; raises for a whole one, whose module is of tensors."""
        return self.schedule.module if self._whole else self.module

    @cached_property
    def program(self) -> str:
        """The text by which databases know the program."""
        return text_of(find_function(self._loops))

    @cached_property
    def key(self) -> Key:
        """What outcomes are comparable under."""
        return Key(hash_of(self.program), self._place, self.threads, self.policy, self.timing)

    @property
    def _place(self) -> str:
        """The machine's name in keys; estimates have a name of their own, since they do not compare with
        measurements."""
        return f"{self.place}, estimated" if self.device is None else self.device

    @property
    def estimated(self) -> bool:
        """Whether times are estimates, because the machine is not at hand."""
        return self.device is None

    @property
    def place(self) -> str:
        """Where it runs, for people."""
        return self.machine.place(self.threads)

    @property
    def _team(self) -> int | None:
        """The threads that `build` is told."""
        return self.threads if self._target.takes_threads else None

    @property
    def modes(self) -> tuple[str, ...]:
        """The ways in which the best record can be printed."""
        return (*MODES, *self._target.texts)

    @property
    def compute_dag(self) -> str:
        """What is computed, one statement a line: buffers, then blocks with their axes and operands; of a whole program
        group by group."""
        from compiler.autotune.tell.description import described, indented

        if not self.groups:
            return described(self._spoken_program)
        return "\n".join(
            f"{group.name}, {counted(group.occurrences, 'call')}:\n{indented(group.compute_dag)}"
            for group in self.groups
        )

    @property
    def _spoken_program(self) -> Program:
        """The unscheduled loops under the names of the program."""
        if self._single is not None:
            return self._single.unscheduled
        return spelled(self.schedule.program, self.provenance, {})

    @cached_property
    def derived(self) -> Derived:
        """The sketches of the program, and the alternatives that were refused."""
        if self.template is not None:
            return from_template(self.template, self.schedule, self.rules, self.machine, self.threads)
        return derive(self.schedule, self.rules, self.machine, self.threads).spoken(self.provenance)

    @cached_property
    def space(self) -> SketchSpace:
        """The search space."""
        return SketchSpace(self.derived.sketches, self.machine, self.estimated, self.provenance, self.threads)

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

    @property
    def _has_forms(self) -> bool:
        """Whether the program or groups have other forms, which are timed here."""
        return self._chosen.are_several and self.machine == host()

    @property
    def forms(self) -> tuple[GroupForm, ...]:
        """The forms of the program and of groups that were timed inside it."""
        return self._chosen.timed

    def _follow(self) -> None:
        """Be the task of the program in the forms that are chosen."""
        if self._chosen.partition is not self._parts:
            self._take(self._chosen.partition)

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

    def script(self, record: Record) -> str:
        """The script of a record under the names of the program, for people to read; what is no script as it is."""
        try:
            return str(self._spelled(parse(record.script, "the script")))
        except SAID:
            return record.script

    def spoken(self, text: str) -> str:
        """A text about the program, such as why a candidate failed, with the program's names."""
        return self.provenance.spoken(text)

    def _spelled(self, script: ModuleOp) -> ModuleOp:
        """A script under the names of the program."""
        return renamed(script, self.provenance)

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

    @property
    def _arrays(self) -> dict[str, object]:
        """The constants of a whole program: random ones where it does not know them."""
        return self._arrays_of(self._whole) if self._whole else {**self.known}

    def _arrays_of(self, whole: Whole) -> dict[str, object]:
        from compiler.autotune.measure.network import random_weights

        unknown = [a for a in whole.arguments if a.name in self.constants and a.name not in self.known]
        return {**random_weights(unknown), **self.known}

    def built(
        self,
        sources: Mapping[str, Scheduled],
        constants: Mapping[str, object] | None = None,
        profiled: bool = False,
    ) -> Any:
        """The kernel of the program under the schedules that `sources` have by the names of its groups, of one program
        by its own; as written where they have none. `constants` are arrays of the inputs that are constant, `profiled`
        is as in `BuildSettings`.

        Raises ScheduleError for a script that does not apply.
        """
        by_part = {name.removeprefix(f"{self.name}."): source for name, source in sources.items()}
        return built(self._parts, self.func, by_part, self.threads, self.policy, constants, profiled)

    @property
    def _selection(self) -> Selection:
        """The parts of the program, each to be scheduled by its record or by the rules."""
        tasks = self.groups or (self,)
        return Selection(self._parts, {task.name.removeprefix(f"{self.name}."): task for task in tasks})

    def records(self, database: str | os.PathLike[str]) -> dict[str, Record]:
        """The best records of the program's canonical form by its name, of a whole program of its groups by theirs, in
        the forms that are chosen in the database."""
        if self._has_forms:
            with Database(named(database), create=False) as opened:
                self._chosen.follow(opened)
            self._follow()
        return records_of({task.name: task for task in self.groups or (self,)}, named(database))

    def print_best(self, database: str | os.PathLike[str], mode: str = "script") -> str:
        """Print the best record, and give what is printed: its script, the same in Python, or the LLVM IR or assembly
        that it becomes; on a GPU the text of its kernels, the mode that is called as the target. Of a whole program
        group by group."""
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
        if mode == "python":
            from compiler.schedule.python import as_python

            return as_python(self._spelled(replay(record).script))
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

    def schedule_of(self, script: ModuleOp | str) -> Schedule:
        """The program under a script of its space: its arguments in their order, and the names of the space."""
        script = parse(script, "the script") if isinstance(script, str) else script
        return self._single.schedule(script) if self._single else Schedule(self.module).apply(script)


def _seconds(record: Record | None) -> float | None:
    """The time of a call under a record."""
    return None if record is None else median(record.outcome.seconds)


def _timing(stated: object) -> str:
    if stated not in TIMINGS:
        raise InputError(f"the timing is {short(stated)}, expected {' or '.join(TIMINGS)}")
    return str(stated)
