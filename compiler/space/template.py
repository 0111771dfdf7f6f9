"""Templates: hand-written scripts whose open choices, and whose `sched.auto`, are a search space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.transform import NamedSequenceOp, YieldOp
from xdsl.ir import Operation, SSAValue

from compiler.recipes.draft import Draft, Rule
from compiler.schedule.include import IncludeOp, choice_names
from compiler.schedule.primitive import CHOICES, applies
from compiler.schedule.schedule import Schedule, script_of
from compiler.space.derivation import Derived, as_written, derivations
from compiler.space.recording import check_used
from compiler.space.sketch import Sketch
from compiler.types.machines import Gpu, Machine

MOST = 32
"""How many sketches a template makes at most: one with several `sched.auto` multiplies."""


@dataclass(frozen=True)
class _Under:
    """A template under way: the draft, its handles by those of the template (in `draft.kept`, at the same place as in
    `values`), the names so far, and the places of the ops whose decisions the template gives."""

    draft: Draft
    values: tuple[SSAValue, ...]
    name: str
    closed: frozenset[int]


def from_template(
    script: ModuleOp | NamedSequenceOp,
    schedule: Schedule,
    rules: Sequence[Rule],
    machine: Machine | Gpu,
    threads: int = 1,
) -> Derived:
    """The sketches of a program under a template; the last one is the program as it is written.

    What the template decides stays decided; choices that it leaves open are open in its sketches. At `sched.auto` the
    rules go on with that block, each way of theirs a sketch. Raises ScheduleError for a step that does not apply,
    whatever its choices, and for an open choice that no step uses.
    """
    sequence = script_of(script)
    fresh = schedule.fork()[0]
    draft = Draft(fresh, machine, threads, (), kept=(fresh.root,))
    under = [_Under(draft, tuple(sequence.body.block.args), "", frozenset())]
    dropped: dict[str, None] = {}
    for op in sequence.body.block.ops:
        if isinstance(op, YieldOp):
            break
        if applies(op, *CHOICES) and "decision" not in op.properties:
            check_used(op)
        if applies(op, "auto"):
            under = [after for branch in under for after in _derived(branch, op, rules, dropped)][:MOST]
        else:
            under = [_applied(branch, op) for branch in under]
    sketches = [
        Sketch.of(branch.name or "template", schedule.program, branch.draft.schedule, branch.closed) for branch in under
    ]
    return Derived((*sketches, as_written(schedule, machine)), tuple(dropped))


def _applied(under: _Under, op: Operation) -> _Under:
    """After one op of the template."""
    draft, closed, first = under.draft, under.closed, under.draft.schedule.length
    handles = draft.schedule.step(op, dict(zip(under.values, draft.kept, strict=True)))
    if isinstance(op, IncludeOp):
        closed |= _stated(op, draft.schedule, first)
    elif "decision" in op.properties:
        closed |= {first}
    after = replace(draft, kept=(*draft.kept, *handles))
    return _Under(after, (*under.values, *op.results), under.name, closed)


def _stated(op: IncludeOp, schedule: Schedule, first: int) -> frozenset[int]:
    """The places of the choices whose sizes an include states, among its steps, which begin at `first`."""
    steps = list(script_of(schedule.script).body.block.ops)[first : schedule.length]
    sizes, names = {} if op.sizes is None else op.sizes.data, choice_names(steps)
    return frozenset(place for place, step in enumerate(steps, first) if names.get(step) in sizes)


def _derived(under: _Under, op: Operation, rules: Sequence[Rule], dropped: dict[str, None]) -> list[_Under]:
    """After the rules have dealt with a block, in every way of theirs."""
    handles = dict(zip(under.values, under.draft.kept, strict=True))
    label = under.draft.schedule.label(handles[op.operands[0]])
    ends = derivations(replace(under.draft.fork(), left=(label,)), rules, dropped)
    for end in ends:  # with a block alone they differ from what the recipes would do in a program
        end.draft.schedule.inclusions.clear()
    names = ["; ".join(name for name in (under.name, end.name) if name) for end in ends]
    return [replace(under, draft=end.draft, name=name) for end, name in zip(ends, names, strict=True)]
