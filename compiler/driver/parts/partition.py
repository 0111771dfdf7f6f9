"""`Partition`: a program as parts that have schedules of their own, and the plan of its kernel by these schedules;
`Alternatives`: its partitions by the forms of its groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Protocol

from xdsl.dialects.builtin import ModuleOp

from compiler.alternatives import GROUP_LAWS, Conditions
from compiler.database import Database
from compiler.database.outcome import NETWORK, WARM
from compiler.database.program import text_of
from compiler.database.record import Key, hash_of
from compiler.dialects.functions import find_function
from compiler.driver.inputs import with_constants
from compiler.driver.kernels import written
from compiler.driver.parts.forms import GroupForms, Offered, offered
from compiler.driver.parts.groups import Group, Whole, whole_of
from compiler.driver.parts.single import Single, single_of
from compiler.driver.plan import BuildPlan
from compiler.driver.units.unit import WRITTEN, Scheduled
from compiler.pipeline import lower, parse
from compiler.program.tree import Program
from compiler.program.write import write
from compiler.schedule import Schedule
from compiler.space.rules import RULES, Rule
from compiler.targets.cpu.facts import GroupFacts
from compiler.types.machines import Gpu, Machine, host


class Schedulable(Protocol):
    """A program that rules find a schedule for, such as an Unscheduled or a SearchTask."""

    @property
    def schedule(self) -> Schedule:
        """Its loops, unscheduled."""

    @property
    def key(self) -> Key:
        """The key of its records."""

    @property
    def rules(self) -> Sequence[Rule]:
        """What derives schedules."""

    @property
    def machine(self) -> Machine | Gpu:
        """What they are derived for."""

    @property
    def threads(self) -> int:
        """On how many threads its kernel runs."""

    @property
    def policy(self) -> str:
        """The floating-point policy."""


@dataclass(frozen=True, eq=False)
class Unscheduled:
    """A part of a program: its name, its unscheduled loops, and what its schedule is chosen by."""

    name: str
    loops: ModuleOp | Program
    threads: int
    policy: str
    timing: str
    rules: Sequence[Rule] = RULES

    @property
    def machine(self) -> Machine:
        """The machine at hand."""
        return host()

    @cached_property
    def schedule(self) -> Schedule:
        """The loops, unscheduled."""
        return Schedule(self.loops)

    @property
    def size(self) -> int:
        """How long a schedule takes to find, beside other parts: its blocks."""
        return len(self.loops.blocks) if isinstance(self.loops, Program) else 1

    @cached_property
    def program(self) -> str:
        """The text by which databases know it."""
        return text_of(find_function(self.schedule.original))

    @property
    def key(self) -> Key:
        """The key of its records."""
        return Key(hash_of(self.program), self.machine.name, self.threads, self.policy, self.timing)


@dataclass(frozen=True, eq=False)
class Partition:
    """A program as the parts that have schedules of their own: the groups of a whole program, or one part: the group
    of a te function, or `given`, a group of a program or loops as they are."""

    whole: Whole | None = None
    single: Single | None = None
    given: Group | ModuleOp | None = None

    @property
    def group(self) -> Group | None:
        """The group that is the one part; None of a whole program, and of loops as they are."""
        if self.single is not None:
            return self.single.group
        return self.given if isinstance(self.given, Group) else None

    @property
    def loops(self) -> ModuleOp | Program:
        """What the schedule of the one part begins with."""
        loops = self.group.tree if self.group else self.given
        assert isinstance(loops, ModuleOp | Program)
        return loops

    @cached_property
    def module(self) -> ModuleOp:
        """What is scheduled: the groups and their main, or the loops of the one part."""
        if self.whole is not None:
            return self.whole.module
        return self.loops if isinstance(self.loops, ModuleOp) else ModuleOp([write(self.loops)])

    def parts(self, threads: int, policy: str) -> list[Unscheduled]:
        """The parts, each to be scheduled for so many threads."""
        if self.whole is not None:
            return [Unscheduled(group.name, group.tree, threads, policy, NETWORK) for group in self.whole.groups]
        name = self.group.name if self.group else find_function(self.module).sym_name.data
        return [Unscheduled(name, self.loops, threads, policy, WARM)]

    def inside(self, parts: Mapping[str, Schedulable]) -> str:
        """What keys of parts inside the whole program have as `whole`: a hash of the calls of a run in their order,
        names apart. Empty for one part."""
        if self.whole is None:
            return ""
        calls = (call for call in self.whole.running.main.calls if call.guarded is None)
        return hash_of(" ".join(parts[call.callee].key.program for call in calls))

    def plan(self, sources: Mapping[str, Scheduled], module: ModuleOp) -> BuildPlan:
        """How the program's module is compiled under the schedules that `sources` have by the names of its parts; as
        written where they have none. Raises ScheduleError for a script that does not apply."""
        if self.whole is not None:
            return BuildPlan(self.whole.module, sources, self.whole.hashes)
        source, single = next(iter(sources.values()), WRITTEN), self.single
        if single is None:
            return written(module)
        group = GroupFacts(single.group.name, single.group.hash, 1, source.origin, source.verdict, 0.0)
        if source.script is None:
            return replace(written(module), group=group)
        tree = None if source.tree is None else single.spelled(single.signed(source.tree))
        tree = tree or single.scheduled(parse(source.script, "the script"))
        return BuildPlan(module, group=group, tree=tree)


@dataclass(frozen=True, eq=False)
class Alternatives:
    """The partitions of a program, by the forms of its groups. `written` makes the one with all groups as written;
    `offered` has the groups that have other forms, of one te function that is called; None where there are none."""

    written: Callable[[], Partition]
    offered: Offered | None = None

    @property
    def preferred(self) -> Partition:
        """The partition whose groups have the forms that the estimate prefers."""
        return self.under({} if self.offered is None else self.offered.preferred)

    def under(self, forms: Mapping[str, str]) -> Partition:
        """The partition whose groups have the forms of these names, by the names of the groups."""
        if self.offered is None:
            return self.written()
        whole = self.offered.under(forms)
        return self.written() if whole is self.offered.program else Partition(whole)

    def choices(self, threads: int, policy: str) -> dict[str, FormChoice]:
        """The groups that have other forms, by their names."""
        forms = self.offered

        def choice(group: GroupForms) -> FormChoice:
            written = Unscheduled(group.group.name, group.group.tree, threads, policy, NETWORK)
            return FormChoice(group, written.program, replace(written.key, whole=forms.hash if forms else ""))

        return {group.group.name: choice(group) for group in (forms.groups if forms else ())}

    def chosen(self, database: Database, threads: int, policy: str) -> dict[str, str]:
        """The forms that were chosen by times inside the program, by the names of the groups."""
        return {name: choice.chosen(database) for name, choice in self.choices(threads, policy).items()}


@dataclass(frozen=True)
class FormChoice:
    """A group that has other forms: the text of its loops as written, and the key of the times of its forms inside the
    program."""

    forms: GroupForms
    program: str
    key: Key

    def chosen(self, database: Database) -> str:
        """The form that a database says to be the best of those that are permitted here; the one that the estimate
        prefers where that was not timed."""
        timed = [record.form for record in database.forms(self.key) if record.form in self.forms.names]
        return timed[-1] if self.forms.preferred in timed else self.forms.preferred

    def is_undecided(self, database: Database) -> bool:
        """Whether one of its forms was not timed yet."""
        return not {record.form for record in database.forms(self.key)}.issuperset(self.forms.names)


def partition(
    x: object,
    constants: Sequence[str],
    in_groups: bool = True,
    canonical: bool = True,
    conditions: Conditions | None = None,
) -> Partition:
    """The preferred one of the partitions that `alternatives` gives."""
    return alternatives(x, constants, in_groups, canonical, conditions).preferred


def alternatives(
    x: object,
    constants: Sequence[str],
    in_groups: bool = True,
    canonical: bool = True,
    conditions: Conditions | None = None,
) -> Alternatives:
    """The partitions of a program, some of whose inputs are constant; not in groups, or not in its canonical form,
    where so asked. Under `conditions` the program has the form that laws prefer, and its groups those that laws offer;
    without them, and outside groups, their own."""
    if isinstance(x, Group):
        return Alternatives(lambda: Partition(given=x))
    in_groups = in_groups and canonical
    whole = whole_of(x, constants, conditions=conditions) if in_groups else None

    @cache
    def written() -> Partition:
        return _alone(x, constants, canonical) if whole is None else Partition(whole)

    if conditions is None or not in_groups:
        return Alternatives(written)
    called = whole or whole_of(x, constants, single=True)
    forms = None if called is None else offered(called, conditions, GROUP_LAWS)
    return Alternatives(written, forms if forms is not None and forms.groups else None)


def _alone(x: object, constants: Sequence[str], canonical: bool) -> Partition:
    """The partition of a program that is one part."""
    single = single_of(x, constants) if canonical else None
    return Partition(single=single) if single else Partition(given=with_constants(x, lower(x), constants))
