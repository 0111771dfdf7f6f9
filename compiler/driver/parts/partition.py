"""`Partition`: a program as parts that have schedules of their own, and the plan of its kernel by these schedules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

from xdsl.dialects.builtin import ModuleOp

from compiler.alternatives import GROUP_LAWS, Conditions
from compiler.database.outcome import NETWORK, WARM
from compiler.database.program import text_of
from compiler.database.record import Key, hash_of
from compiler.dialects.functions import find_function
from compiler.driver.inputs import with_constants
from compiler.driver.kernels import written
from compiler.driver.parts.forms import with_forms
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

    @property
    def key(self) -> Key:
        """The key of its records."""
        program = hash_of(text_of(find_function(self.schedule.original)))
        return Key(program, self.machine.name, self.threads, self.policy, self.timing)


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


def partition(
    x: object,
    constants: Sequence[str],
    in_groups: bool = True,
    canonical: bool = True,
    conditions: Conditions | None = None,
) -> Partition:
    """The parts of a program, some of whose inputs are constant; not in groups, or not in its canonical form, where so
    asked. The program and its groups have the forms that laws prefer under `conditions`; without them, and outside
    groups, their own."""
    if isinstance(x, Group):
        return Partition(given=x)
    whole = whole_of(x, constants, conditions=conditions) if in_groups and canonical else None
    if whole is not None:
        return Partition(whole if conditions is None else with_forms(whole, conditions, GROUP_LAWS))
    if conditions is not None and in_groups and canonical:
        alone = whole_of(x, constants, single=True)
        formed = alone and with_forms(alone, conditions, GROUP_LAWS)
        if formed is not alone:
            return Partition(formed)
    single = single_of(x, constants) if canonical else None
    return Partition(single=single) if single else Partition(given=with_constants(x, lower(x), constants))
