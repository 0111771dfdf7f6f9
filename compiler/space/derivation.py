"""From rules to sketches: the preferred derivation, and every derivation with one deviation from it.

A derivation applies the rules in order, each to the blocks not scheduled yet, in the order of the program. If a rule
offers alternatives, or is optional, the derivation decides. The preferred one takes the first alternative everywhere;
each other one deviates in one decision. So there are as many sketches as alternatives, not as their combinations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from compiler.graph.provenance import Provenance
from compiler.recipes.draft import Alternative, Draft, Rule, alternative_fault, labels_fault, to_schedule
from compiler.recipes.gpu.spread import spread
from compiler.recipes.steps import contiguous
from compiler.schedule.include import Inclusion
from compiler.schedule.primitive import CHOICES, applies
from compiler.schedule.schedule import Schedule, script_of
from compiler.space.sketch import Sketch
from compiler.support.errors import InputError, ScheduleError
from compiler.support.gc import paused
from compiler.types.machines import Gpu, Machine


@dataclass(frozen=True)
class Derived:
    """The sketches of a program, the preferred one first, the program as written last. `dropped`: alternatives that
    were refused, with the reason. `unused`: a message for each plugin rule whose alternatives were all refused.

    >>> A = te.placeholder((64,), name="A")
    >>> s = Schedule(te.function("f", [A], te.nn.exp(A, name="B")))
    >>> derived = strata.autotune.derive(s, strata.recipes.RULES, strata.targets.MACHINES["avx2"])
    >>> derived.sketches[0].name, derived.dropped
    ('B: by vectors', ())
    """

    sketches: tuple[Sketch, ...]
    dropped: tuple[str, ...]
    unused: tuple[str, ...] = ()

    def with_user_names(self, names: Provenance) -> Derived:
        """A copy whose sketch names and messages have the user's names instead of canonical ones."""
        sketches = (replace(sketch, name=names.with_user_names(sketch.name)) for sketch in self.sketches)
        return Derived(
            tuple(sketches),
            tuple(map(names.with_user_names, self.dropped)),
            tuple(map(names.with_user_names, self.unused)),
        )


@dataclass(frozen=True)
class Derivation:
    """A derivation in progress: its draft, the names of its decisions, the index of the current rule, and the labels of
    the blocks that this rule has not visited yet."""

    draft: Draft
    names: tuple[str, ...] = ()
    rule: int = 0
    unseen: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The names of the decisions, joined; the name of the sketch."""
        return "; ".join(self.names)


def derive(schedule: Schedule, rules: Sequence[Rule], machine: Machine | Gpu, threads: int = 1) -> Derived:
    """Derive the sketches of an unscheduled program by rules; the last sketch is the program as written. Sketches with
    the same script are one; a derivation that changes nothing gives none. `threads`: those of the program. Raises
    InputError for a malformed result of a rule.

    >>> A = te.placeholder((64,), name="A")
    >>> s = Schedule(te.function("f", [A], te.nn.exp(A, name="B")))
    >>> derived = strata.autotune.derive(s, strata.recipes.RULES, strata.targets.MACHINES["avx2"])
    >>> [sketch.name for sketch in derived.sketches]
    ['B: by vectors', 'as written']
    """
    dropped: dict[str, None] = {}
    draft = Draft(schedule.fork()[0], machine, threads, to_schedule(schedule.program))
    follower = _Follower(rules, dropped)
    by_script: dict[str, Sketch] = {}
    with paused():  # drafts are dropped by the hundred
        for end in follower.all_from(draft):
            sketch = Sketch.of(end.name, schedule.program, end.draft.schedule)
            if end.draft.schedule.program is not schedule.program:
                by_script.setdefault(str(sketch.script), sketch)
        return Derived((*by_script.values(), as_written(schedule, machine)), tuple(dropped), follower.unused)


def preferred(
    schedule: Schedule, rules: Sequence[Rule], machine: Machine | Gpu, threads: int = 1, judged: bool = True
) -> Derivation:
    """Derive a program by the first alternative of every rule that is not refused: `draft.schedule` is the schedule,
    each choice at its default.

    Without `judged` the legality of steps is not checked: the caller proves the schedule. Raises InputError for a
    malformed result of a rule.

    >>> A = te.placeholder((64,), name="A")
    >>> s = Schedule(te.function("f", [A], te.nn.exp(A, name="B")))
    >>> derivation = strata.autotune.preferred(s, strata.recipes.RULES, strata.targets.MACHINES["avx2"])
    >>> print(strata.schedule.outline(derivation.draft.schedule.program))
    i0.0 = 8
      i0.1 = 1 unrolled
        i0.2 = 8 vectorized
          B = f(A)
    """
    fresh = schedule.fork(judged)[0]
    draft = Draft(fresh, machine, threads, to_schedule(schedule.program))
    with paused():
        return _Follower(rules, {}).follow(Derivation(draft, unseen=draft.left), deviate=False)[0]


def one_by_one(
    schedule: Schedule, rules: Sequence[Rule], machine: Machine | Gpu, threads: int = 1
) -> Iterator[Derivation]:
    """Yield the derivations of a program for `threads` threads, the preferred one first, then those with one deviation,
    each derived when it is requested; the legality of their steps is checked. Raises InputError for a malformed result
    of a rule."""
    yield preferred(schedule, rules, machine, threads)
    draft = Draft(schedule.fork()[0], machine, threads, to_schedule(schedule.program))
    follower = _Follower(rules, {})
    with paused():
        _, deviations = follower.follow(Derivation(draft, unseen=draft.left))
    for stage in deviations:
        yield follower.follow(stage, deviate=False)[0]


def as_written(schedule: Schedule, machine: Machine | Gpu) -> Sketch:
    """Return the sketch without choices of the program in `build`'s default order of loops; it is the baseline of the
    other sketches."""
    return Sketch.of("as written", schedule.program, in_default_order(schedule, machine))


def in_default_order(schedule: Schedule, machine: Machine | Gpu) -> Schedule:
    """Return an unscheduled program with its loops in `build`'s default order; on a GPU with each block spread over
    threads that has a spatial axis."""
    fresh = schedule.fork()[0]
    for label in schedule.program.blocks:
        IN_ORDER[machine.family](fresh, label)
    return fresh


def _contiguous(schedule: Schedule, label: str) -> None:
    contiguous(schedule, schedule.get_block(label))


def _spread(schedule: Schedule, label: str) -> None:
    if any(not axis.is_reduce for axis in schedule.program.blocks[label].axes):
        spread(schedule, schedule.get_block(label))


IN_ORDER: Mapping[str, Callable[[Schedule, str], None]] = {"cpu": _contiguous, "gpu": _spread}
"""The function that applies the default schedule to a block, by family of machines."""


def derivations(draft: Draft, rules: Sequence[Rule], dropped: dict[str, None]) -> list[Derivation]:
    """Return the complete derivations from a draft with at most one deviation, the preferred one first; refusals are
    added to `dropped` as keys."""
    return _Follower(rules, dropped).all_from(draft)


class _Follower:
    """Applies rules to drafts, and collects refusals."""

    def __init__(self, rules: Sequence[Rule], dropped: dict[str, None]) -> None:
        self.rules = rules
        self.dropped = dropped
        self._refused: dict[Rule, str] = {}
        self._applied: set[Rule] = set()

    @property
    def unused(self) -> tuple[str, ...]:
        """A message for each rule of a plugin whose alternatives were all refused, with the first reason."""
        refused = {rule: why for rule, why in self._refused.items() if rule not in self._applied}
        foreign = {rule: why for rule, why in refused.items() if _is_foreign(rule)}
        return tuple(f"the rule {rule.__name__} adds nothing: {why}" for rule, why in foreign.items())

    def all_from(self, draft: Draft) -> list[Derivation]:
        """Return the complete derivations from a draft with at most one deviation, the preferred one first."""
        preferred, deviations = self.follow(Derivation(draft, unseen=draft.left))
        return [preferred, *(self.follow(stage, deviate=False)[0] for stage in deviations)]

    def follow(self, stage: Derivation, deviate: bool = True) -> tuple[Derivation, list[Derivation]]:
        """Complete a derivation by first alternatives. If `deviate`, also return an incomplete one for each other
        alternative, else none."""
        deviations: list[Derivation] = []
        while stage.rule < len(self.rules):
            if not stage.unseen:
                stage = replace(stage, rule=stage.rule + 1, unseen=stage.draft.left)
                continue
            label, *unseen = stage.unseen
            stage = replace(stage, unseen=tuple(unseen))
            if label not in stage.draft.left or label not in stage.draft.schedule.program.blocks:
                continue
            stage, *alternatives = self._ways(stage, label, deviate)
            deviations += alternatives
        return stage, deviations

    def _ways(self, stage: Derivation, label: str, deviate: bool) -> list[Derivation]:
        """Return the derivations after the current rule is applied to a block: one for each alternative that applies,
        and one without the rule if it is optional; `stage` itself if none applies. Without `deviate` only the first."""
        rule, stages, optional = self.rules[stage.rule], [], True
        for alternative in rule(stage.draft, label):
            _check(rule, alternative_fault(alternative))
            after = self._tried(stage.draft, rule, alternative, label)
            if after is None:
                continue
            self._applied.add(rule)
            optional = optional and alternative.optional
            stages.append(replace(stage, draft=after, names=(*stage.names, f"{label}: {alternative.name}")))
            if not deviate:
                return stages
        if not stages:
            return [stage]
        if optional:
            without = f"{label}: no {rule.__name__.replace('_', ' ')}"
            stages.append(replace(stage, names=(*stage.names, without)))
        return stages

    def _tried(self, draft: Draft, rule: Rule, alternative: Alternative, label: str) -> Draft | None:
        """Apply an alternative to a fork of a draft; None if a step is refused, which is recorded in `dropped`."""
        after = draft.fork()
        try:
            scheduled_labels = alternative.apply(after)
            _check(rule, labels_fault(scheduled_labels))
            if _is_foreign(rule):
                _check_choices(after.schedule, draft.schedule.length)
        except ScheduleError as error:
            self.dropped[f"{alternative.name}: {error}"] = None
            self._refused.setdefault(rule, str(error))
            return None
        first, end = draft.schedule.length, after.schedule.length
        after.schedule.note(Inclusion(rule.__name__, label, alternative.name, first, end))
        return after.without(scheduled_labels)


def _is_foreign(rule: Rule) -> bool:
    """Whether a rule comes from a plugin or a user, not from the compiler."""
    return not str(getattr(rule, "__module__", "")).startswith("compiler.recipes.")


def _check(rule: Rule, fault: str) -> None:
    """Raise InputError with a rule's name for a fault in its result; do nothing for an empty `fault`."""
    if fault:
        raise InputError(f"search rule {getattr(rule, '__name__', rule)}: {fault}")


def _check_choices(schedule: Schedule, first: int) -> None:
    """Raise ScheduleError for a choice, from op `first` on, whose results no step uses."""
    for op in list(script_of(schedule.script).body.block.ops)[first : schedule.length]:
        if applies(op, *CHOICES) and not any(list(result.uses) for result in op.results):
            names = ", ".join(f"'{result.name_hint}'" for result in op.results if result.name_hint) or "of the rule"
            raise ScheduleError(f"the choice {names} is used by no step; its candidates would be equal")
