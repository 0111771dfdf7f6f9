"""Scripts that include recipes: replace `sched.include` by the steps of a recipe, and steps by `sched.include`.

    %C = sched.get_block %f "C"
    sched.include @packed_product(%C) with {rows = 6 : i64, vectors = 2 : i64, depth = 256 : i64} way "gebp b"

A recipe is a search rule. It writes its steps with its own sizes, which the sizes of the include then replace. So a
candidate of a search and its short script have the same steps.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256
from inspect import unwrap
from types import ModuleType

from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.transform import NamedSequenceOp, YieldOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from compiler.dialects.sched import BlockType, SchedOp
from compiler.recipes.draft import Alternative, Draft, Rule, to_schedule
from compiler.recipes.rules import FORMER_NAMES, RULES_OF
from compiler.schedule.include import MACHINE, IncludeOp, Inclusion, plain_size, size_attribute
from compiler.schedule.parameters import Handle
from compiler.schedule.primitive import applies, primitive_of
from compiler.schedule.primitives import PRIMITIVES
from compiler.schedule.python import GIVERS
from compiler.schedule.schedule import Schedule
from compiler.schedule.script import script_of
from compiler.schedule.state import empty_script
from compiler.space.choice_names import choice_names
from compiler.support.errors import ScheduleError
from compiler.support.plugins import source_of
from compiler.support.text import unknown
from compiler.targets.registry import DEFAULT_GPU, gpu_of
from compiler.types.machines import Gpu, Machine, host

_ARCH, _THREADS = "arch", "threads"
_SOURCES = "compiler.recipes."
"""The prefix of the names of modules that count as a recipe's sources."""


class Includer:
    """The interpreter of `sched.include` for one schedule and one script. `facts`: the machine's facts that the script
    states, None for this machine."""

    def __init__(self, schedule: Schedule, facts: Attribute | None = None) -> None:
        self.schedule = schedule
        self.machine, self.threads = _machine(facts)
        self.draft: Draft | None = None
        self.handles: dict[Handle, Handle] = {}
        self.length = -1

    def apply(self, op: IncludeOp, label: str, judged: bool = True) -> None:
        """Apply the steps of a recipe to the block `label` of the schedule, and record them as an inclusion. A draft
        with the recipes' own sizes advances beside the schedule, since recipes depend on decisions of earlier ones.
        judged: whether the legality of the steps is checked. Raises ScheduleError for an unknown recipe, block, way or
        size, for a block that the recipe is not for, and for a refused step."""
        if self.draft is None or self.schedule.length != self.length:
            self._begin()
        assert self.draft is not None
        (draft, copies), recipe = self.draft.copied(), op.recipe.string_value()  # a refused recipe leaves this one
        handles = {copies[handle]: real for handle, real in self.handles.items()}
        if label not in draft.schedule.program.blocks:
            block_names = ", ".join(draft.schedule.program.blocks)
            raise ScheduleError(f"there is none (there are {block_names})", "include", f"block '{label}'")
        rule = _rule(recipe, self.machine)
        alternative = _way(rule, draft, label, "" if op.way is None else op.way.data)
        first, start = draft.schedule.length, self.schedule.length
        scheduled_labels = alternative.apply(draft)
        ops = _ops(draft.schedule.script)[first : draft.schedule.length]
        for step in _with_sizes(ops, {} if op.sizes is None else op.sizes.data, recipe):
            results = self.schedule.step(step, handles, judged)
            original = ops[self.schedule.length - start - 1]
            handles |= dict(zip(original.results, results, strict=True))
        changed = op.version is not None and op.version.data != version_of(rule)
        self.draft, self.handles, self.length = draft.without(scheduled_labels), handles, self.schedule.length
        self.schedule.note(Inclusion(recipe, label, alternative.name, start, self.length, changed))

    def _begin(self) -> None:
        """Begin a draft at the current state of the schedule."""
        fork, handles = self.schedule.fork(judged=False)
        self.handles = {copy: handle for handle, copy in handles.items()}
        unscheduled = self.draft.left if self.draft else to_schedule(self.schedule.program)
        self.draft = Draft(fork, self.machine, self.threads, unscheduled)


def _machine(facts: Attribute | None) -> tuple[Machine | Gpu, int]:
    """Return the machine and the threads that a script's facts state; without facts, this machine and 1. Raises
    ScheduleError for facts that recipes do not read or values out of range."""
    stated = dict(facts.data) if isinstance(facts, DictionaryAttr) else {}
    arch = stated.get(_ARCH)
    machine: Machine | Gpu = gpu_of(DEFAULT_GPU, arch.data) if isinstance(arch, StringAttr) else host()
    numbers = {name: plain_size(value) for name, value in stated.items() if not isinstance(value, StringAttr)}
    threads = numbers.pop(_THREADS, 1)
    required_facts = machine.recipe_facts
    if (
        not isinstance(facts, DictionaryAttr | None)
        or not all(
            isinstance(number, int) and number >= required_facts.get(name, 0) for name, number in numbers.items()
        )
        or not numbers.keys() <= required_facts.keys()
        or not (isinstance(threads, int) and threads > 0)
    ):
        fact_names = ", ".join(required_facts)
        raise ScheduleError(f"{MACHINE} = {facts} has no facts of a machine: {fact_names}, {_THREADS}")
    return replace(machine, **numbers), threads  # type: ignore[arg-type]


def facts_of(machine: Machine | Gpu, threads: int) -> DictionaryAttr:
    """Return the facts of a machine that recipes read, and the number of threads, as an attribute for scripts."""
    facts = {name: getattr(machine, name) for name in machine.recipe_facts} | {_THREADS: threads}
    return DictionaryAttr(
        {name: StringAttr(fact) if isinstance(fact, str) else size_attribute(fact) for name, fact in facts.items()}
    )


def _rule(recipe: str, machine: Machine | Gpu) -> Rule:
    """Look up a recipe by its name, or by a former one. Raises ScheduleError if the machine's family has no such
    recipe."""
    rules = {rule.__name__: rule for rule in RULES_OF[machine.family]}
    rule = rules.get(recipe) or rules.get(FORMER_NAMES.get(recipe, ""))
    if rule is None:
        raise ScheduleError(unknown("recipe", recipe, list(rules), "; a plugin that has it is not loaded"), "include")
    return rule


def _way(rule: Rule, draft: Draft, label: str, way: str) -> Alternative:
    """The alternative of a recipe for a block, by its name, or the first if `way` is empty. Raises ScheduleError if the
    recipe has none for the block, or none of that name."""
    names = []
    for alternative in rule(draft, label):
        if way in ("", alternative.name):
            return alternative
        names.append(alternative.name)
    recipe, block_text = rule.__name__, f"block '{label}'"
    if not names:
        raise ScheduleError(f"the recipe {recipe} is not for it", "include", block_text)
    way_names = ", ".join(f"'{name}'" for name in names)
    raise ScheduleError(f"the recipe {recipe} has no way '{way}' here (it has {way_names})", "include", block_text)


def _with_sizes(ops: Sequence[Operation], sizes: Mapping[str, Attribute], recipe: str) -> Iterator[Operation]:
    """Yield copies of a recipe's steps, with the decisions `sizes`, by name of the choice; other choices keep theirs.
    Raises ScheduleError for a name that no choice has."""
    names = choice_names(ops)
    missing = [name for name in sizes if name not in names.values()]
    if missing:
        size_names = list(names.values())
        raise ScheduleError(f"{recipe}: {unknown('size', missing[0], size_names)}", "include")
    for op in ops:
        copy = op.clone()
        if op in names and names[op] in sizes:
            _decide(copy, sizes[names[op]])
        yield copy


def _decide(choice: Operation, size: Attribute) -> None:
    """Set the decision of a choice to a size, which is added to the options if it is missing. Raises ScheduleError for
    an attribute that is no size."""
    value = plain_size(size)
    if isinstance(value, list) != applies(choice, "sample_perfect_tile"):
        raise ScheduleError(f"{value} is no size of {choice.name}", "include")
    if applies(choice, "sample_categorical"):
        candidates = _candidates(choice)
        if value not in candidates:
            candidates.append(int(value))  # type: ignore[arg-type]
            choice.properties["candidates"] = size_attribute(candidates)
            choice.properties.pop("probabilities", None)
        value = candidates.index(int(value))  # type: ignore[arg-type]
    choice.properties["decision"] = size_attribute(value)


def _size(choice: Operation) -> Attribute:
    """The value of a decided choice: a size, the factors of an extent, or the number of a loop."""
    decision = plain_size(choice.properties["decision"])
    return size_attribute(_candidates(choice)[decision] if applies(choice, "sample_categorical") else decision)  # type: ignore[index]


def _candidates(choice: Operation) -> list[int]:
    assert isinstance(choice, SchedOp)
    return list(primitive_of(choice).stated(choice)["candidates"])


def with_includes(
    script: ModuleOp, inclusions: Sequence[Inclusion], machine: Machine | Gpu, threads: int = 1
) -> ModuleOp:
    """Replace the steps of each inclusion in a script by one `sched.include`. Returns the script itself if there are no
    inclusions, or if other steps use handles of a recipe. machine, threads: facts that the new script states. Raises
    ScheduleError for a recipe that the machine's family lacks."""
    sequence, ops = script_of(script), _ops(script)
    inside = {first_op for inclusion in inclusions for first_op in inclusion.places}
    recipe_handles = {result for first_op in inside for result in ops[first_op].results}
    outer = _used([op for first_op, op in enumerate(ops) if first_op not in inside])
    if not inclusions or any(recipe_handles.intersection(op.operands) for op in outer):
        return script
    module, body = empty_script()
    handles: dict[SSAValue, SSAValue] = {sequence.body.block.args[0]: body.args[0]}
    by_first: dict[int, list[Inclusion]] = {}
    for inclusion in inclusions:
        by_first.setdefault(inclusion.first, []).append(inclusion)
    writer = _Writer(body, handles, machine)
    for first_op in range(len(ops) + 1):
        for inclusion in by_first.get(first_op, ()):
            writer.include(inclusion, [ops[n] for n in inclusion.places])
        if first_op < len(ops) and ops[first_op] in outer:
            writer.copy(ops[first_op])
    script_of(module).attributes[MACHINE] = facts_of(machine, threads)
    return module


def _used(ops: Sequence[Operation]) -> list[Operation]:
    """The steps that change the schedule, or define handles that such steps use, in order."""
    used: list[Operation] = []
    for op in reversed(ops):
        if not applies(op, *GIVERS) or any(result in step.operands for step in used for result in op.results):
            used.insert(0, op)
    return used


class _Writer:
    """Writes a script with includes into `body`; `values` maps handles of the original script to the new one's."""

    def __init__(self, body: Block, values: dict[SSAValue, SSAValue], machine: Machine | Gpu) -> None:
        self.body, self.values, self.machine = body, values, machine
        self.function = body.args[0]
        self.blocks: dict[str, SSAValue] = {}

    def add(self, op: Operation) -> None:
        """Insert an op before the final yield."""
        assert self.body.last_op is not None
        self.body.insert_op_before(op, self.body.last_op)

    def copy(self, op: Operation) -> None:
        """Add a copy of a step, its operands mapped by `values`."""
        self.add(op.clone(self.values))

    def include(self, inclusion: Inclusion, steps: Sequence[Operation]) -> None:
        """Add a `sched.include` for the steps of a recipe, after a `get_block` for its block if there is none yet."""
        block = self.blocks.get(inclusion.block)
        if block is None:
            get_block = PRIMITIVES["get_block"]
            label = get_block.parameters["label"].encoded("label", inclusion.block)
            op = get_block.op.create(
                operands=[self.function], result_types=[BlockType()], properties=dict(label.properties)
            )
            op.results[0].name_hint = inclusion.block if SSAValue.is_valid_name(inclusion.block) else "block"
            self.add(op)
            block = self.blocks[inclusion.block] = op.results[0]
        sizes = DictionaryAttr({name: _size(op) for op, name in choice_names(steps).items()})
        version = version_of(_rule(inclusion.recipe, self.machine))
        include = IncludeOp.of(inclusion.recipe, sizes, inclusion.way, version)
        include.operands = [block]
        self.add(include)


@cache
def version_of(rule: Rule) -> str:
    """Return a hash, of 8 hexadecimal digits, of a recipe's sources: its module, and the recipe modules that this
    imports."""
    modules: dict[str, ModuleType] = {}
    waiting = [sys.modules[unwrap(rule).__module__]]
    while waiting:
        module = waiting.pop()
        if module.__name__ in modules:
            continue
        modules[module.__name__] = module
        names = {getattr(value, "__module__", None) or "" for value in vars(module).values()}
        names |= {value.__name__ for value in vars(module).values() if isinstance(value, ModuleType)}
        waiting += [sys.modules[name] for name in sorted(names) if name.startswith(_SOURCES) and name in sys.modules]
    return sha256("".join(source_of(modules[name]) for name in sorted(modules)).encode()).hexdigest()[:8]


def _ops(script: ModuleOp | NamedSequenceOp) -> list[Operation]:
    """The steps of a script, without the final yield."""
    return [op for op in script_of(script).body.block.ops if not isinstance(op, YieldOp)]
