"""From rules to sketches: what all rules prefer, and every single deviation from that.

A derivation goes through the rules in order, each on the blocks that are left in the order of the program; where one
offers alternatives, or could be passed over, it decides. The first derivation takes the first alternative everywhere;
each other one decides differently at one place and goes on as preferred. So there are as many sketches as there are
alternatives, not as many as their combinations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from compiler.graph.provenance import Provenance
from compiler.recipes.draft import Alternative, Draft, Rule, to_schedule
from compiler.recipes.gpu.threads import spread
from compiler.recipes.steps import contiguous
from compiler.schedule.include import Inclusion
from compiler.schedule.schedule import Schedule
from compiler.space.sketch import Sketch
from compiler.support.errors import ScheduleError
from compiler.support.gc import paused
from compiler.types.machines import Gpu, Machine


@dataclass(frozen=True)
class Derived:
    """The sketches of a program, the preferred one first; `dropped` says which alternatives were refused, and why.
    `unused` are rules of others, such as a plugin's, of which each alternative was refused."""

    sketches: tuple[Sketch, ...]
    dropped: tuple[str, ...]
    unused: tuple[str, ...] = ()

    def spoken(self, names: Provenance) -> Derived:
        """The same, in words that have a user's names."""
        sketches = (replace(sketch, name=names.spoken(sketch.name)) for sketch in self.sketches)
        return Derived(tuple(sketches), tuple(map(names.spoken, self.dropped)), tuple(map(names.spoken, self.unused)))


@dataclass(frozen=True)
class Derivation:
    """A derivation under way: its draft, its decisions, and where it goes on: the number of the rule, and the blocks
    that this rule has not seen yet."""

    draft: Draft
    names: tuple[str, ...] = ()
    rule: int = 0
    unseen: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The decisions, in words."""
        return "; ".join(self.names)


def derive(schedule: Schedule, rules: Sequence[Rule], machine: Machine | Gpu, threads: int = 1) -> Derived:
    """The sketches of an unscheduled program by some rules; the last one is the program as it is written."""
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
    """The derivation that takes the first alternative everywhere, without any other: `draft.schedule` is the schedule,
    its choices decided as the rules would begin. Without `judged` no step is refused as illegal: the caller proves the
    schedule."""
    fresh = schedule.fork(judged)[0]
    draft = Draft(fresh, machine, threads, to_schedule(schedule.program))
    with paused():
        return _Follower(rules, {}).follow(Derivation(draft, unseen=draft.left), deviate=False)[0]


def as_written(schedule: Schedule, machine: Machine | Gpu) -> Sketch:
    """The program as `build` compiles it without a schedule: a candidate, and the baseline of the others."""
    return Sketch.of("as written", schedule.program, in_default_order(schedule, machine))


def in_default_order(schedule: Schedule, machine: Machine | Gpu) -> Schedule:
    """An unscheduled program with its loops in the order that `build` gives them, on a GPU each block spread over
    threads."""
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
"""By families of machines the schedule of a block for which there is no other."""


def derivations(draft: Draft, rules: Sequence[Rule], dropped: dict[str, None]) -> list[Derivation]:
    """The ends of all derivations from a draft, the preferred one first; `dropped` gains the refusals."""
    return _Follower(rules, dropped).all_from(draft)


class _Follower:
    """Follows rules, and collects refusals."""

    def __init__(self, rules: Sequence[Rule], dropped: dict[str, None]) -> None:
        self.rules = rules
        self.dropped = dropped
        self._refused: dict[Rule, str] = {}
        self._applied: set[Rule] = set()

    @property
    def unused(self) -> tuple[str, ...]:
        """The rules of others of which each alternative was refused, with the first reason."""
        refused = {rule: why for rule, why in self._refused.items() if rule not in self._applied}
        foreign = {rule: why for rule, why in refused.items() if not rule.__module__.startswith("compiler.recipes.")}
        return tuple(f"the rule {rule.__name__} adds nothing: {why}" for rule, why in foreign.items())

    def all_from(self, draft: Draft) -> list[Derivation]:
        """The ends of all derivations from a draft, the preferred one first."""
        preferred, deviations = self.follow(Derivation(draft, unseen=draft.left))
        return [preferred, *(self.follow(stage, deviate=False)[0] for stage in deviations)]

    def follow(self, stage: Derivation, deviate: bool = True) -> tuple[Derivation, list[Derivation]]:
        """The end of a derivation that takes the first alternative everywhere; and the stages after all others."""
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

    def _ways(self, stage: Derivation, label: str, every: bool) -> list[Derivation]:
        """The stages after a rule has looked at a block: one for each alternative, and without any where that is
        allowed; only the first, unless every one is asked for."""
        rule, stages, optional = self.rules[stage.rule], [], True
        for alternative in rule(stage.draft, label):
            after = self._tried(stage.draft, rule, alternative, label)
            if after is None:
                continue
            self._applied.add(rule)
            optional = optional and alternative.optional
            stages.append(replace(stage, draft=after, names=(*stage.names, f"{label}: {alternative.name}")))
            if not every:
                return stages
        if not stages:
            return [stage]
        if optional:
            without = f"{label}: no {rule.__name__.replace('_', ' ')}"
            stages.append(replace(stage, names=(*stage.names, without)))
        return stages

    def _tried(self, draft: Draft, rule: Rule, alternative: Alternative, label: str) -> Draft | None:
        """The draft after an alternative; None where that does not apply."""
        after = draft.fork()
        try:
            done = alternative.apply(after)
        except ScheduleError as error:
            self.dropped[f"{alternative.name}: {error}"] = None
            self._refused.setdefault(rule, str(error))
            return None
        first, end = draft.schedule.length, after.schedule.length
        after.schedule.note(Inclusion(rule.__name__, label, alternative.name, first, end))
        return after.without(done)
