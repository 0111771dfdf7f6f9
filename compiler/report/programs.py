"""`Report`: the tasks of a database, grouped by whole program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite

from compiler.autotune.tell.forms import GroupForm, chosen_forms
from compiler.database import Database, Key, Record, Summary, WholeProgram, program_of
from compiler.database.outcome import together
from compiler.database.record import hash_of
from compiler.driver.parts.groups import GroupedProgram, grouped_program_of
from compiler.opt.diagnostics import SAID
from compiler.report.layers import layers
from compiler.report.memory import Memory, memory_of
from compiler.report.tasks import TaskFacts
from compiler.targets.cpu.presence import Disturbance


@dataclass(frozen=True)
class ProgramFacts:
    """Tasks under one machine, count of threads, policy and timing, those that take most of the time first.

    `memory` is that of the whole program that calls the tasks, `unmeasured` the names of its groups that have no
    records, `forms` those of its groups that were timed; None and none where no such program is known.
    """

    name: str
    key: Key
    tasks: tuple[TaskFacts, ...]
    memory: Memory | None = None
    unmeasured: tuple[str, ...] = ()
    forms: tuple[GroupForm, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether the program that calls the tasks is known."""
        return self.memory is not None

    def short(self, task: TaskFacts) -> str:
        """The name of a task within the program."""
        return task.name.removeprefix(f"{self.name}.") if self.is_whole else task.name

    @cached_property
    def seconds(self) -> float | None:
        """The time of all calls of all tasks; None where they are not of one program, or nothing was measured."""
        total = sum(task.together or 0.0 for task in self.tasks)
        return total if self.is_whole and total > 0 and isfinite(total) else None

    def share(self, task: TaskFacts) -> float | None:
        """The part of the program's time that a task takes."""
        return None if self.seconds is None or task.together is None else task.together / self.seconds

    @property
    def has_layers(self) -> bool:
        """Whether the layer of any task is known."""
        return any(task.layers for task in self.tasks)

    @property
    def bound_seconds(self) -> float | None:
        """The time of a run in which every task reaches the machine's ceiling; None if the bound of a task is not
        known."""
        bounds = [task.bound_seconds for task in self.tasks if task.bound_seconds is not None]
        return sum(bounds) if len(bounds) == len(self.tasks) and self.is_whole else None

    @property
    def disturbances(self) -> list[Disturbance]:
        """How far the machine was busy, measurement by measurement."""
        records = sorted((r for task in self.tasks for r in task.records), key=lambda r: (r.created, r.id))
        return [r.outcome.disturbance for r in records if r.outcome.disturbance is not None]

    @property
    def disturbance(self) -> Disturbance | None:
        """How far the machine was busy while the tasks were measured; None where nobody has looked."""
        return together(self.disturbances)


@dataclass(frozen=True)
class Report:
    """What a page is about: whole programs and tasks alone, and why a whole program is not shown as one."""

    programs: tuple[ProgramFacts, ...]
    warnings: tuple[str, ...] = ()


def gather(database: Database, summaries: Sequence[Summary]) -> Report:
    """The facts of some tasks of a database."""
    facts = {
        summary.key: TaskFacts.of(summary.names[-1], summary.key, database.records(summary.key))
        for summary in summaries
    }
    programs, warnings, called = list[ProgramFacts](), list[str](), set[Key]()
    for kept in database.whole_programs:
        try:
            of_program = _of_whole(kept, grouped_program_of(kept), facts, database)
        except SAID as error:
            warnings.append(f"what calls the groups of {kept.name} cannot be read: {error}")
            continue
        programs += of_program
        called.update(task.key for program in of_program for task in program.tasks)
    alone: dict[Key, list[TaskFacts]] = {}
    for key, task in facts.items():
        if key not in called:
            alone.setdefault(replace(key, program=""), []).append(task)
    programs += [ProgramFacts("", place, _by_time(tasks)) for place, tasks in alone.items()]
    return Report(tuple(programs), tuple(warnings))


def _of_whole(
    kept: WholeProgram, program: GroupedProgram, facts: Mapping[Key, TaskFacts], database: Database
) -> list[ProgramFacts]:
    """A whole program for each machine, count of threads, policy and timing under which its groups were tuned; not
    where the database has groups that are not asked for."""
    groups = {hash_of(program_of(group.loops)): group for group in program.groups}
    by_place, layers_by_group = dict[Key, list[TaskFacts]](), layers(program)
    for key, task in facts.items():
        if key.program in groups:
            group = groups[key.program]
            layer, name = layers_by_group.get(group.name, ()), f"{kept.name}.{group.name}"
            chosen = database.choices(key).get(name)
            named_task = replace(task, name=name, calls=group.occurrences, layers=layer, chosen=chosen)
            by_place.setdefault(replace(key, program=""), []).append(named_task)
    memory, timed = memory_of(program.constant_split.main) if by_place else None, database.forms()
    return [
        ProgramFacts(
            kept.name, place, _by_time(tasks), memory, _unmeasured(kept, program, tasks), _forms(kept, place, timed)
        )
        for place, tasks in by_place.items()
        if not any(database.records(key) for program in groups if (key := replace(place, program=program)) not in facts)
    ]


def _forms(kept: WholeProgram, place: Key, timed: Sequence[Record]) -> tuple[GroupForm, ...]:
    """The forms of a program's groups on a machine, under a policy."""
    here = [record for record in timed if replace(record.key, program="", whole="") == place]
    return chosen_forms(kept.name, here)


def _unmeasured(kept: WholeProgram, program: GroupedProgram, tasks: Sequence[TaskFacts]) -> tuple[str, ...]:
    measured = {task.name for task in tasks if task.best is not None}
    names = [f"{kept.name}.{group.name}" for group in program.groups]
    return tuple(name for name in names if name not in measured)


def _by_time(tasks: Sequence[TaskFacts]) -> tuple[TaskFacts, ...]:
    """The tasks, longest time first, unmeasured ones last."""
    return tuple(sorted(tasks, key=lambda task: -1.0 if task.together is None else task.together, reverse=True))
