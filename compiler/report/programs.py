"""`TuningReport`: the tasks of a database, grouped by whole program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite

from compiler.autotune.display.forms import GroupForm, chosen_forms
from compiler.database import Database, Key, Record, Summary, WholeProgram, program_of
from compiler.database.outcome import total_disturbance
from compiler.database.record import hash_of
from compiler.driver.parts.groups import GroupedProgram, grouped_program_of
from compiler.opt.diagnostics import PROGRAM_ERRORS
from compiler.report.layers import layers
from compiler.report.memory import MemoryPlan, memory_of
from compiler.report.tasks import TaskFacts
from compiler.targets.cpu.presence import Disturbance


@dataclass(frozen=True)
class ProgramFacts:
    """The tasks of a whole program, or tasks without one, under one machine, thread count, policy and timing; most time
    first.

    name: empty without a whole program. key: of all tasks, with an empty `program`. memory: the plan of the whole
    program; None without one. unmeasured: its groups without a measured script. forms: its measured forms.
    """

    name: str
    key: Key
    tasks: tuple[TaskFacts, ...]
    memory: MemoryPlan | None = None
    unmeasured: tuple[str, ...] = ()
    forms: tuple[GroupForm, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether the tasks are of a whole program."""
        return self.memory is not None

    def short(self, task: TaskFacts) -> str:
        """Return the name of a task without the prefix of its whole program."""
        return task.name.removeprefix(f"{self.name}.") if self.is_whole else task.name

    @cached_property
    def seconds(self) -> float | None:
        """The seconds of one execution of the whole program: the calls of its tasks under their best scripts; tasks
        without a measured script are left out. None for facts of no whole program, if no task is measured, or if the
        sum is not finite."""
        total = sum(task.together or 0.0 for task in self.tasks)
        return total if self.is_whole and total > 0 and isfinite(total) else None

    def share(self, task: TaskFacts) -> float | None:
        """Return the share, 0 to 1, of the program's time that a task takes; None if a time is unknown."""
        return None if self.seconds is None or task.together is None else task.together / self.seconds

    @property
    def has_layers(self) -> bool:
        """Whether a task has layers."""
        return any(task.layers for task in self.tasks)

    @property
    def bound_seconds(self) -> float | None:
        """The seconds of a run if every task reached its bound; None without a whole program or a task's bound."""
        bounds = [task.bound_seconds for task in self.tasks if task.bound_seconds is not None]
        return sum(bounds) if len(bounds) == len(self.tasks) and self.is_whole else None

    @property
    def disturbances(self) -> list[Disturbance]:
        """The disturbance of each record that has one, in the order of time."""
        records = sorted((r for task in self.tasks for r in task.records), key=lambda r: (r.created, r.id))
        return [r.outcome.disturbance for r in records if r.outcome.disturbance is not None]

    @property
    def disturbance(self) -> Disturbance | None:
        """The disturbance of all measurements; None without data."""
        return total_disturbance(self.disturbances)


@dataclass(frozen=True)
class TuningReport:
    """The contents of a page: programs, and for each whole program that cannot be read the reason."""

    programs: tuple[ProgramFacts, ...]
    warnings: tuple[str, ...] = ()


def gather(database: Database, summaries: Sequence[Summary]) -> TuningReport:
    """Collect the facts of the tasks of `summaries` from a database, grouped by whole program, then tasks without
    one."""
    facts = {
        summary.key: TaskFacts.of(summary.names[-1], summary.key, database.records(summary.key))
        for summary in summaries
    }
    programs, warnings, program_keys = list[ProgramFacts](), list[str](), set[Key]()
    for stored_program in database.whole_programs:
        try:
            of_program = _of_whole(stored_program, grouped_program_of(stored_program), facts, database)
        except PROGRAM_ERRORS as error:
            warnings.append(f"what calls the groups of {stored_program.name} cannot be read: {error}")
            continue
        programs += of_program
        program_keys.update(task.key for program in of_program for task in program.tasks)
    other_tasks: dict[Key, list[TaskFacts]] = {}
    for key, task in facts.items():
        if key not in program_keys:
            other_tasks.setdefault(replace(key, program=""), []).append(task)
    programs += [ProgramFacts("", shared_key, _by_time(tasks)) for shared_key, tasks in other_tasks.items()]
    return TuningReport(tuple(programs), tuple(warnings))


def _of_whole(
    stored_program: WholeProgram, program: GroupedProgram, facts: Mapping[Key, TaskFacts], database: Database
) -> list[ProgramFacts]:
    """Return the facts of a whole program for each machine, thread count, policy and timing of its groups' records;
    left out if the database has records of a further group that `facts` does not include."""
    groups = {hash_of(program_of(group.loops)): group for group in program.groups}
    tasks_by_key, layers_by_group = dict[Key, list[TaskFacts]](), layers(program)
    for key, task in facts.items():
        if key.program in groups:
            group = groups[key.program]
            layer, name = layers_by_group.get(group.name, ()), f"{stored_program.name}.{group.name}"
            chosen = database.choices(key).get(name)
            named_task = replace(task, name=name, calls=group.occurrences, layers=layer, chosen=chosen)
            tasks_by_key.setdefault(replace(key, program=""), []).append(named_task)
    memory, timed = memory_of(program.constant_split.main) if tasks_by_key else None, database.forms()
    return [
        ProgramFacts(
            stored_program.name,
            shared_key,
            _by_time(tasks),
            memory,
            _unmeasured(stored_program, program, tasks),
            _forms(stored_program, shared_key, timed),
        )
        for shared_key, tasks in tasks_by_key.items()
        if not any(
            database.records(key) for program in groups if (key := replace(shared_key, program=program)) not in facts
        )
    ]


def _forms(stored_program: WholeProgram, shared_key: Key, timed: Sequence[Record]) -> tuple[GroupForm, ...]:
    records = [record for record in timed if replace(record.key, program="", whole="") == shared_key]
    return chosen_forms(stored_program.name, records)


def _unmeasured(stored_program: WholeProgram, program: GroupedProgram, tasks: Sequence[TaskFacts]) -> tuple[str, ...]:
    measured = {task.name for task in tasks if task.best is not None}
    names = [f"{stored_program.name}.{group.name}" for group in program.groups]
    return tuple(name for name in names if name not in measured)


def _by_time(tasks: Sequence[TaskFacts]) -> tuple[TaskFacts, ...]:
    return tuple(sorted(tasks, key=lambda task: -1.0 if task.together is None else task.together, reverse=True))
