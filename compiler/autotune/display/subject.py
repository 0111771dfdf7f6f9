"""`RunSubject`: the interface of a task to the tables and texts about its runs; `SearchTask` implements it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from compiler.autotune.display.forms import GroupForm
from compiler.database import Key, Record
from compiler.schedule import Schedule
from compiler.types.machines import Gpu, Machine


class RunSubject(Protocol):
    """A task, or a whole program with a task for each of its groups, as display reads it. occurrences: the calls of a
    group in a run of its program, else 1."""

    name: str
    machine: Machine | Gpu
    occurrences: int

    @property
    def key(self) -> Key:
        """The key of the task's records: outcomes of the same key are comparable."""

    @property
    def schedule(self) -> Schedule:
        """The unscheduled loops of the program. Raises InputError for a whole program with groups."""

    @property
    def groups(self) -> Sequence[RunSubject]:
        """The tasks of the groups of a whole program; empty for another program."""

    @property
    def forms(self) -> Sequence[GroupForm]:
        """The chosen forms of the program and of its groups, those only that were timed inside the program."""

    def group(self, name: str) -> RunSubject:
        """Return the task of a group, by the group's name `group_3` or the task's `layer.group_3`. Raises InputError
        for an unknown name and for a program without groups."""

    def script(self, record: Record) -> str:
        """The script of a record, canonical names replaced by the program's; unchanged if it does not parse."""

    def with_user_names(self, text: str) -> str:
        """Replace canonical names in a text, such as a failure reason, by the program's names."""
