"""`TaskProgram`: the program of a task: its parts, its key in databases, its search space."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from reprlib import repr as short
from typing import Any, Self, TypeAlias

from xdsl.dialects.builtin import ModuleOp

from compiler.alternatives import Conditions
from compiler.autotune.display.forms import GroupForm
from compiler.autotune.tasks.chosen_forms import ChosenForms
from compiler.autotune.workloads import task_program
from compiler.database import Key
from compiler.database.outcome import NETWORK, TIMINGS, WARM
from compiler.database.program import text_of
from compiler.database.record import hash_of
from compiler.dialects.functions import find_function
from compiler.driver.building import Selection, build_scheduled, checked_error
from compiler.driver.parts.groups import OWN, Group, GroupedProgram
from compiler.driver.parts.partition import Partition, alternatives
from compiler.driver.units.unit import Scheduled
from compiler.frontends.model import Imported
from compiler.graph.user_names import program_with_user_names, script_with_user_names
from compiler.pipeline.models import import_model
from compiler.pipeline.source import parse
from compiler.program.tree import Program
from compiler.recipes.rules import RULES_OF, Rule
from compiler.schedule import Schedule
from compiler.space.derivation import Derived, derive
from compiler.space.recording import recorded
from compiler.space.space import SketchSpace
from compiler.space.template import from_template
from compiler.support import display
from compiler.support.errors import InputError, TargetError
from compiler.support.text import counted
from compiler.support.unpicklable import Unpicklable
from compiler.support.validation import line, sequence
from compiler.targets.registry import target_named
from compiler.types.machines import Gpu, Machine, host
from compiler.types.policies import policy_named

Template: TypeAlias = ModuleOp | str | Callable[[Schedule], object]


class TaskProgram(Unpicklable):
    """The program of a task, with a task for each group of a whole program; `SearchTask` states arguments and refusals.

    known: the arrays of constants that an imported model stores, by name. occurrences: the calls of a group in a run of
    its program, else 1. device: the name of the device that times candidates; None if times are estimates.
    """

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
        args = sequence("args", args, "arguments", lambda value: True)
        constants = sequence("constants", constants, "names of inputs", lambda value: isinstance(value, str))
        self.machine = self._target.checked_machine(machine, self.arch)
        self._target.check(threads, constants or None)
        policy_named(policy, TargetError)
        model = import_model(func)
        self.known = dict(model.constants) if isinstance(model, Imported) else {}
        constants = (*self.known, *constants)
        group = func if isinstance(func, Group) else None
        self.func = (
            group.loops if group else model.function if isinstance(model, Imported) else task_program(func, args)
        )
        self.constants = constants
        self.error = checked_error(error)
        conditions = Conditions(self.machine, policy, error=self.error)
        program = group or self.func
        offers = alternatives(program, constants, self._target.in_units, template is None, conditions)
        self._take(offers.preferred)
        program_name = self._whole.function.sym_name.data if self._whole else self.schedule.name
        self.name = program_name if name is None else line("the name of a task", name)
        self.policy, self.target = policy, self._target.name
        self.timing = _timing(timing)
        self.device = self._target.device(self.machine, self.arch)
        rules = RULES_OF[self._target.family] if rules is None else rules
        self.rules: tuple[Rule, ...] = sequence("rules", rules, "functions", callable)
        self.template = self._written(template)
        self.threads = self._target.threads(threads)
        self._chosen = ChosenForms(
            self.name, self.func, offers, self._parts, self.threads, self.policy, self._arrays_of
        )

    def _take(self, parts: Partition) -> None:
        """Set the partition of the program, and drop cached properties that depend on it."""
        self._whole: GroupedProgram | None = parts.grouped
        self._parts, self._single, self.module = parts, parts.single, parts.module
        self.occurrences = parts.group.occurrences if parts.group else 1
        self.provenance = parts.group.names if parts.group else OWN
        self._schedule = None if parts.grouped else Schedule(parts.loops)
        for name in ("groups", "program", "key", "derived", "space"):
            vars(self).pop(name, None)

    def __repr__(self) -> str:
        groups = f", {counted(len(self._whole.groups), 'group')}" if self._whole else ""
        return display.line(f"<SearchTask {self.name} for {self._device}{groups}>")

    def _repr_html_(self) -> str:
        return display.text(f"{self.name}, tuned for {self._device}", self.compute_dag)

    @property
    def _device(self) -> str:
        """The machine with its threads, or the GPU, as text: `avx2, 1 thread`."""
        return self.machine.described(self.threads)

    def _written(self, template: Template | None) -> ModuleOp | None:
        """Convert a template to a module: parse a text, record a function of a Schedule; a module or None is returned
        as is. Raises InputError for another type, ParseError for a text that does not parse."""
        if template is None or isinstance(template, ModuleOp):
            return template
        if isinstance(template, str):
            return parse(template, "the template")
        if callable(template):
            return recorded(template, self.schedule)
        words = "expected a module, its text, or a function of a Schedule"
        raise InputError(f"the template is {short(template)}, {words}")

    @cached_property
    def groups(self) -> tuple[Self, ...]:
        """The tasks of the different groups of a whole program, in the order of their first calls; empty for a program
        that is one group.

        `occurrences` of a group's task is the number of its calls in a run. `provenance` maps the canonical names of
        scripts to the program's names at the first call.
        """
        return tuple(map(self._task, self._whole.groups)) if self._whole else ()

    def group(self, name: str) -> Self:
        """The task of a group, by the group's name `group_3` or the task's `layer.group_3`. Raises InputError for an
        unknown name and for a program without groups."""
        if self._whole is None:
            raise InputError(f"{self.name} is one program: it has no groups, such as '{name}'")
        short_name = self._whole.group(name.removeprefix(f"{self.name}.")).name
        return next(group for group in self.groups if group.name == f"{self.name}.{short_name}")

    @property
    def _calls(self) -> str:
        """The name of a group's task and the number of the group's calls: `layer.group_3, 2 calls`."""
        return f"{self.name}, {counted(self.occurrences, 'call')}"

    def _task(self, group: Group) -> Self:
        return type(self)(
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
        """The unscheduled loops of the program, or of its canonical form. Raises InputError for a whole program: each
        of its groups has its own schedule."""
        if self._schedule is None:
            names = ", ".join(group.name for group in self.groups)
            raise InputError(f"{self.name} has groups, and this is asked of one of them: {names}")
        return self._schedule

    @property
    def _loops(self) -> ModuleOp:
        """The module of the unscheduled loops. Raises InputError for a whole program, since its module is te."""
        return self.schedule.module if self._whole else self.module

    @cached_property
    def program(self) -> str:
        """The text of the loops; its hash identifies the program in databases."""
        return text_of(find_function(self._loops))

    @cached_property
    def key(self) -> Key:
        """The key of the task's records: outcomes of the same key are comparable."""
        return Key(hash_of(self.program), self._place, self.threads, self.policy, self.timing)

    @property
    def _place(self) -> str:
        """The machine's name in keys: the device's; for estimates, `hardware` and the word `estimated`, since they do
        not compare with measurements."""
        return f"{self.hardware}, estimated" if self.device is None else self.device

    @property
    def estimated(self) -> bool:
        """Whether times are estimates, because no GPU of the architecture is present."""
        return self.device is None

    @property
    def hardware(self) -> str:
        """The number of threads on a CPU, `1 thread`, or the name and architecture of the GPU, for messages."""
        return self.machine.place(self.threads)

    @property
    def _team(self) -> int | None:
        """The `threads` argument for `build`; None for a target that takes none."""
        return self.threads if self._target.takes_threads else None

    @property
    def compute_dag(self) -> str:
        """The computation as text, a statement a line: buffers, then blocks with their axes and operands; of a whole
        program group by group."""
        from compiler.autotune.display.description import indented, program_listing

        if not self.groups:
            return program_listing(self._spoken_program)
        return "\n".join(
            f"{group.name}, {counted(group.occurrences, 'call')}:\n{indented(group.compute_dag)}"
            for group in self.groups
        )

    @property
    def _spoken_program(self) -> Program:
        """The unscheduled loops with the names of the user's program instead of canonical ones."""
        if self._single is not None:
            return self._single.unscheduled
        return program_with_user_names(self.schedule.program, self.provenance, {})

    @cached_property
    def derived(self) -> Derived:
        """The sketches of the program by the template or the rules, and the refused alternatives with reasons. Raises
        ScheduleError for a step of the template that is refused, InputError for a malformed result of a rule."""
        if self.template is not None:
            return from_template(self.template, self.schedule, self.rules, self.machine, self.threads)
        return derive(self.schedule, self.rules, self.machine, self.threads).with_user_names(self.provenance)

    @cached_property
    def space(self) -> SketchSpace:
        """The search space: the candidates of all sketches, their features and scripts."""
        return SketchSpace(self.derived.sketches, self.machine, self.estimated, self.provenance, self.threads)

    def with_user_names(self, text: str) -> str:
        """Replace canonical names in a text, such as a failure reason, by the program's names."""
        return self.provenance.with_user_names(text)

    def _spelled(self, script: ModuleOp) -> ModuleOp:
        """A copy of a script with canonical names replaced by the program's, to be read only."""
        return script_with_user_names(script, self.provenance)

    @property
    def _has_forms(self) -> bool:
        """Whether the program or its groups have other forms and this machine can time them."""
        return self._chosen.are_several and self.machine == host()

    @property
    def forms(self) -> tuple[GroupForm, ...]:
        """The chosen forms of the program and of its groups, of those that were timed inside the program."""
        return self._chosen.timed

    def _follow(self) -> None:
        """Switch to the partition of the chosen forms if another one is current."""
        if self._chosen.partition is not self._parts:
            self._take(self._chosen.partition)

    @property
    def _arrays(self) -> dict[str, object]:
        """The arrays of constants by name: those that a model stores; in a whole program also random ones for the
        others."""
        return self._arrays_of(self._whole) if self._whole else {**self.known}

    def _arrays_of(self, whole: GroupedProgram) -> dict[str, object]:
        from compiler.autotune.measure.network import random_weights

        unknown = [a for a in whole.arguments if a.name in self.constants and a.name not in self.known]
        return {**random_weights(unknown), **self.known}

    def built(
        self,
        sources: Mapping[str, Scheduled],
        constants: Mapping[str, object] | None = None,
        profiled: bool = False,
    ) -> Any:
        """Build the kernel of the program from schedules of its parts.

        sources: the schedules by group name, or by the program's own name; a missing part is built as written.
        constants: arrays of the constant inputs by name; the kernel does not take these. profiled: whether the kernel
        counts the ticks of each call. Raises the errors of `build_scheduled`, such as ScheduleError for a script that
        does not apply.
        """
        by_part = {name.removeprefix(f"{self.name}."): source for name, source in sources.items()}
        return build_scheduled(self._parts, self.func, by_part, self.threads, self.policy, constants, profiled)

    @property
    def _selection(self) -> Selection:
        """The parts of the program, each with the task that schedules it, by its record or by the rules."""
        tasks = self.groups or (self,)
        return Selection(self._parts, {task.name.removeprefix(f"{self.name}."): task for task in tasks})

    def schedule_of(self, script: ModuleOp | str) -> Schedule:
        """Return the unscheduled loops after a script of the space, with the script's names and the program's order of
        arguments. Raises ScheduleError for a script that does not apply. Not for a whole program, whose groups have the
        scripts."""
        script = parse(script, "the script") if isinstance(script, str) else script
        return self._single.schedule(script) if self._single else Schedule(self.module).apply(script)


def _timing(value: object) -> str:
    if value not in TIMINGS:
        raise InputError(f"the timing is {short(value)}, expected {' or '.join(TIMINGS)}")
    return str(value)
