"""`Partition`: a program as separately scheduled parts, and the plan of its kernel by their schedules;
`Alternatives`: its partitions by the forms of its groups; `ProgramForms`: its forms as a whole."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Protocol

from xdsl.dialects.builtin import ModuleOp

from compiler.alternatives import GROUP_LAWS, PROGRAM_LAWS, Conditions, Law
from compiler.database import Database
from compiler.database.outcome import NETWORK, WARM
from compiler.database.program import text_of
from compiler.database.record import WRITTEN as UNCHANGED
from compiler.database.record import Key, hash_of
from compiler.dialects.functions import find_function, functions
from compiler.driver.inputs import with_constants
from compiler.driver.kernels import plan_as_written
from compiler.driver.parts.forms import GroupForms, OfferedForms, offered_forms
from compiler.driver.parts.groups import Group, GroupedProgram, grouped_program, input_positions, te_module
from compiler.driver.parts.single import SingleGroup, single_group
from compiler.driver.plan import BuildPlan
from compiler.driver.units.unit import WRITTEN, Scheduled
from compiler.graph.canonical import canonical as canonical_form
from compiler.graph.read import read as read_graph
from compiler.pipeline.loops import lower
from compiler.pipeline.source import parse
from compiler.program.tree import Program
from compiler.program.write import write
from compiler.recipes.rules import RULES, Rule
from compiler.schedule import Schedule
from compiler.targets.groups import GroupFacts
from compiler.types.machines import Gpu, Machine, host

PROGRAM = ""
"""The key of the whole program in mappings by names of groups."""
OTHERS = 2
"""The most forms of a program, beside the preferred one, that are built and timed."""


class Schedulable(Protocol):
    """A program to be scheduled by rules, such as an Unscheduled or a SearchTask."""

    @property
    def schedule(self) -> Schedule:
        """The unscheduled loops."""

    @property
    def key(self) -> Key:
        """The key of its records."""

    @property
    def rules(self) -> Sequence[Rule]:
        """The rules that derive schedules."""

    @property
    def machine(self) -> Machine | Gpu:
        """The machine for which schedules are derived."""

    @property
    def threads(self) -> int:
        """The threads of its kernel."""

    @property
    def policy(self) -> str:
        """The floating-point policy."""


@dataclass(frozen=True, eq=False)
class Unscheduled:
    """A part of a program to be scheduled: its name, its loops, and the parts of its key. Scheduled for the host."""

    name: str
    loops: ModuleOp | Program
    threads: int
    policy: str
    timing: str
    rules: Sequence[Rule] = RULES

    @property
    def machine(self) -> Machine:
        """The host machine."""
        return host()

    @cached_property
    def schedule(self) -> Schedule:
        """The unscheduled loops."""
        return Schedule(self.loops)

    @property
    def size(self) -> int:
        """The relative time to find a schedule: the number of blocks, 1 for loops as IR."""
        return len(self.loops.blocks) if isinstance(self.loops, Program) else 1

    @cached_property
    def program(self) -> str:
        """The program text whose hash is its identity in databases."""
        return text_of(find_function(self.schedule.original))

    @property
    def key(self) -> Key:
        """The key of its records."""
        return Key(hash_of(self.program), self.machine.name, self.threads, self.policy, self.timing)


@dataclass(frozen=True, eq=False)
class Partition:
    """A program divided into parts that are scheduled separately; one of the three fields is set.

    grouped: a whole program, whose groups are the parts. single: a te function that is one group. ungrouped: the one
    part from the caller, a group of a program or loops.
    """

    grouped: GroupedProgram | None = None
    single: SingleGroup | None = None
    ungrouped: Group | ModuleOp | None = None

    @property
    def laws(self) -> tuple[str, ...]:
        """The laws that changed the program as a whole."""
        return () if self.grouped is None else self.grouped.laws

    @property
    def group(self) -> Group | None:
        """The group of the one part; None for a whole program, and for loops."""
        if self.single is not None:
            return self.single.group
        return self.ungrouped if isinstance(self.ungrouped, Group) else None

    @property
    def loops(self) -> ModuleOp | Program:
        """The unscheduled loops of the one part."""
        loops = self.group.tree if self.group else self.ungrouped
        assert isinstance(loops, ModuleOp | Program)
        return loops

    @cached_property
    def module(self) -> ModuleOp:
        """The module to schedule: the groups and their main, or the loops of the one part."""
        if self.grouped is not None:
            return self.grouped.module
        return self.loops if isinstance(self.loops, ModuleOp) else ModuleOp([write(self.loops)])

    def parts(self, threads: int, policy: str) -> list[Unscheduled]:
        """The parts, to be scheduled for `threads` threads under a policy."""
        if self.grouped is not None:
            return [Unscheduled(group.name, group.tree, threads, policy, NETWORK) for group in self.grouped.groups]
        name = self.group.name if self.group else find_function(self.module).sym_name.data
        return [Unscheduled(name, self.loops, threads, policy, WARM)]

    def program_key(self, parts: Mapping[str, Schedulable]) -> str:
        """Return a hash of the calls of a run in order, independent of names: the field `whole` of the keys of records
        timed inside the program. Empty for a program of one part."""
        if self.grouped is None:
            return ""
        calls = (call for call in self.grouped.constant_split.main.calls if call.guarded is None)
        return hash_of(" ".join(parts[call.callee].key.program for call in calls))

    def plan(self, sources: Mapping[str, Scheduled], module: ModuleOp) -> BuildPlan:
        """The plan of the program's module under the schedules `sources`, by the names of parts; missing ones are as
        written. Raises ScheduleError for a script that does not apply."""
        if self.grouped is not None:
            return BuildPlan(self.grouped.module, sources, self.grouped.hashes, laws=self.laws)
        source, single = next(iter(sources.values()), WRITTEN), self.single
        if single is None:
            return plan_as_written(module)
        group = GroupFacts(single.group.name, single.group.hash, 1, source.origin, source.verdict, 0.0)
        if source.script is None:
            return replace(plan_as_written(module), group=group)
        scheduled = source.tree or Schedule(single.group.tree).apply(parse(source.script, "the script")).program
        tree = single.with_user_names(single.with_program_signature(scheduled))
        return BuildPlan(module, {single.group.name: source}, group=group, tree=tree)


@dataclass(frozen=True, eq=False)
class Alternatives:
    """The partitions of a program, one for each combination of its groups' forms; the whole is in one form.

    written: makes the partition with all groups as written. offered: the groups with other forms; None if there are
    none. program: a main that calls the groups, even a single one; None if it is no te program. programs: the other
    forms of the program as a whole; None if there are none, or if this is one of them.
    """

    written: Callable[[], Partition]
    offered: OfferedForms | None = None
    program: GroupedProgram | None = None
    programs: ProgramForms | None = None

    @property
    def preferred(self) -> Partition:
        """The partition with groups in the forms that the estimate prefers."""
        return self.in_forms({} if self.offered is None else self.offered.preferred)

    @property
    def laws(self) -> tuple[str, ...]:
        """The laws that changed the program as a whole."""
        return () if self.program is None else self.program.laws

    def in_forms(self, forms: Mapping[str, str]) -> Partition:
        """The partition with groups in `forms`, the names of forms by the names of all groups with other forms."""
        if self.offered is None:
            return self.written()
        grouped = self.offered.in_forms(forms)
        return self.written() if grouped is self.offered.program else Partition(grouped)

    def of_program(self, form: str) -> Alternatives:
        """The partitions of the program in another form of the whole, by its name; this object for an unknown name."""
        return self if self.programs is None else self.programs.others.get(form, self)

    def program_choices(self, threads: int, policy: str) -> dict[str, FormChoice]:
        """The choice between the forms of the program as a whole, under the key PROGRAM; empty without other forms."""
        if self.programs is None:
            return {}
        text = self.programs.text
        key = Key(hash_of(text), host().name, threads, policy, NETWORK, whole=hash_of(text))
        return {PROGRAM: FormChoice(self.programs, text, key)}

    def choices(self, threads: int, policy: str) -> dict[str, FormChoice]:
        """The choices between the forms of groups, by the names of the groups that have other forms; their records are
        for `threads` threads and the policy."""
        forms = self.offered

        def choice(group: GroupForms) -> FormChoice:
            written = Unscheduled(group.group.name, group.group.tree, threads, policy, NETWORK)
            return FormChoice(group, written.program, replace(written.key, whole=forms.hash if forms else ""))

        return {group.group.name: choice(group) for group in (forms.groups if forms else ())}

    def chosen(self, database: Database, threads: int, policy: str) -> dict[str, str]:
        """Map each group with other forms to the form that a database has chosen by times inside the program; the
        preferred form if the database lacks its time."""
        return {name: choice.chosen(database) for name, choice in self.choices(threads, policy).items()}

    def chosen_program(self, database: Database, threads: int, policy: str) -> Alternatives:
        """The partitions of the program in the form that a database has chosen by times of the whole; this object if
        the whole has no other form."""
        choices = self.program_choices(threads, policy).values()
        return next((self.of_program(choice.chosen(database)) for choice in choices), self)


class FormNames(Protocol):
    """The names of the forms of a group, or of a whole program."""

    @property
    def preferred(self) -> str:
        """The name of the form that the estimate prefers."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all forms, the preferred one first."""


@dataclass(frozen=True, eq=False)
class ProgramForms:
    """The forms of a program by laws of whole programs: the preferred one of an estimate, and those without one of its
    laws. The name of a form is the names of its laws, or WRITTEN. laws: of the preferred form. with_laws: a function
    from names of laws to the partitions under these. digest: a function that computes the `text`."""

    laws: tuple[str, ...]
    with_laws: Callable[[Collection[str]], Alternatives]
    digest: Callable[[], str]

    @cached_property
    def text(self) -> str:
        """The identity of the program in databases: a text of the hash of its canonical form, before any law, and the
        positions of its constant inputs."""
        return self.digest()

    @property
    def preferred(self) -> str:
        """The name of the preferred form."""
        return form_name(self.laws)

    @cached_property
    def others(self) -> dict[str, Alternatives]:
        """The other forms by name: the program without one of its laws, at most OTHERS of them, the last law first.
        With the laws a, b, c: the programs without c and without b."""
        law_names = [law.name for law in PROGRAM_LAWS]
        forms = [self.with_laws([name for name in law_names if name != law]) for law in self.laws[::-1][:OTHERS]]
        return {name: form for form in forms if (name := form_name(form.laws)) != self.preferred}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all forms, the preferred one first."""
        return (self.preferred, *self.others)


def form_name(laws: Collection[str]) -> str:
    """The name of a program's form by its laws: their sorted names, joined by " + ", or WRITTEN without any."""
    return " + ".join(sorted(laws)) or UNCHANGED


@dataclass(frozen=True)
class FormChoice:
    """The choice between the forms of a group or a program. program: the text as written. key: the database's key of
    the times of the forms inside the program."""

    forms: FormNames
    program: str
    key: Key

    def chosen(self, database: Database) -> str:
        """The form of `forms` that a database has chosen last; the preferred form if the database lacks its time."""
        preferred, timed = self.forms.preferred, [record.form for record in database.forms(self.key)]
        if preferred not in timed or timed[-1] == preferred:
            return preferred
        return next(form for form in reversed(timed) if form in self.forms.names)

    def is_undecided(self, database: Database) -> bool:
        """Whether a database lacks the time of at least one form."""
        return not {record.form for record in database.forms(self.key)}.issuperset(self.forms.names)


def partition(
    x: object,
    constants: Sequence[str],
    in_groups: bool = True,
    canonical: bool = True,
    conditions: Conditions | None = None,
) -> Partition:
    """The partition of a program with its groups in the preferred forms; the arguments are those of `alternatives`."""
    return alternatives(x, constants, in_groups, canonical, conditions).preferred


def alternatives(
    x: object,
    constants: Sequence[str],
    in_groups: bool = True,
    canonical: bool = True,
    conditions: Conditions | None = None,
) -> Alternatives:
    """The partitions of a program.

    x: a program at the te or loop level, as for `lower`. constants: the names of the constant inputs. in_groups:
    whether to cut it into groups. canonical: whether to use its canonical form; if not, it is not cut either.
    conditions: if set, and the program is cut, it takes the form of the whole that laws prefer, and its groups the
    forms that laws offer; None offers no forms. If `x` is a Group, it is the only part, and the other arguments are
    ignored. Raises InputError for constants that are no inputs, and the errors of `te_module`.
    """
    if isinstance(x, Group):
        return Alternatives(lambda: Partition(ungrouped=x))
    in_groups = in_groups and canonical
    if conditions is None or not in_groups:
        grouped = grouped_program(x, constants) if in_groups else None
        return Alternatives(cache(lambda: _alone(x, constants, canonical) if grouped is None else Partition(grouped)))

    def by(laws: Collection[str]) -> Alternatives:
        return _by_laws(x, constants, conditions, [law for law in PROGRAM_LAWS if law.name in laws])

    preferred = _by_laws(x, constants, conditions, PROGRAM_LAWS)
    programs = ProgramForms(preferred.laws, by, lambda: _digest(x, constants)) if preferred.laws else None
    return replace(preferred, programs=programs)


def _by_laws(x: object, constants: Sequence[str], conditions: Conditions, laws: Sequence[Law]) -> Alternatives:
    """The partitions of a program in the form that the laws `laws` of whole programs prefer, with the forms of its
    groups that the laws of groups offer."""
    grouped = grouped_program(x, constants, conditions=conditions, laws=laws)
    written = cache(lambda: _alone(x, constants, True) if grouped is None else Partition(grouped))
    called = grouped or grouped_program(x, constants, single=True)
    forms = None if called is None else offered_forms(called, conditions, GROUP_LAWS)
    return Alternatives(written, forms if forms is not None and forms.groups else None, called)


def _digest(x: object, constants: Sequence[str]) -> str:
    """The identity of a te program before laws change it: canonical hashes, and the positions of its inputs
    `constants`. `x` is a te program as for `te_module`."""
    module = te_module(x)
    assert module is not None
    hashes = " ".join(canonical_form(read_graph(function)).hash for function in functions(module))
    fixed = ", ".join(map(str, input_positions(x, find_function(module), constants)))
    return f"the te program {hashes}, its constant inputs: {fixed or 'none'}"


def _alone(x: object, constants: Sequence[str], canonical: bool) -> Partition:
    """The partition of a program as one part: a group, or, without `canonical` or computes of te, loops as written."""
    single = single_group(x, constants) if canonical else None
    return Partition(single=single) if single else Partition(ungrouped=with_constants(x, lower(x), constants))
