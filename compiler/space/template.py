"""Templates: hand-written scripts whose open choices, and whose `sched.auto`, are a search space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.transform import NamedSequenceOp, YieldOp
from xdsl.ir import Operation, SSAValue

from compiler.recipes.draft import Draft, Rule
from compiler.schedule.include import IncludeOp
from compiler.schedule.primitive import CHOICES, applies
from compiler.schedule.schedule import Schedule, script_of
from compiler.space.choice_names import choice_names
from compiler.space.derivation import Derived, as_written, derivations
from compiler.space.recording import check_used
from compiler.space.sketch import Sketch
from compiler.types.machines import Gpu, Machine

MOST = 32
"""The maximum number of sketches of a template: each `sched.auto` multiplies them."""


@dataclass(frozen=True)
class _Branch:
    """A template in progress: its draft; its handles so far, with the draft's handles at the same positions of
    `draft.kept`; the names of decisions; and the positions of the ops whose decisions the template states
    (`closed`)."""

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
    """Return the sketches of a program from a template; the last one is the program as written. Decisions of the
    template stay, its open choices stay open. At `sched.auto` the rules schedule that block, with a sketch for each
    derivation; of more than MOST in all, the first are kept. Raises ScheduleError for a refused step, and for an open
    choice that no step uses. Raises InputError for a malformed result of a rule."""
    sequence = script_of(script)
    fresh = schedule.fork()[0]
    draft = Draft(fresh, machine, threads, (), kept=(fresh.root,))
    branches = [_Branch(draft, tuple(sequence.body.block.args), "", frozenset())]
    dropped: dict[str, None] = {}
    for op in sequence.body.block.ops:
        if isinstance(op, YieldOp):
            break
        if applies(op, *CHOICES) and "decision" not in op.properties:
            check_used(op)
        if applies(op, "auto"):
            branches = [after for branch in branches for after in _derived(branch, op, rules, dropped)][:MOST]
        else:
            branches = [_applied(branch, op) for branch in branches]
    sketches = [
        Sketch.of(branch.name or "template", schedule.program, branch.draft.schedule, branch.closed)
        for branch in branches
    ]
    return Derived((*sketches, as_written(schedule, machine)), tuple(dropped))


def _applied(branch: _Branch, op: Operation) -> _Branch:
    """Return the branch after one op of the template, whose results it records."""
    draft, closed, first = branch.draft, branch.closed, branch.draft.schedule.length
    handles = draft.schedule.step(op, dict(zip(branch.values, draft.kept, strict=True)))
    if isinstance(op, IncludeOp):
        closed |= _stated(op, draft.schedule, first)
    elif "decision" in op.properties:
        closed |= {first}
    after = replace(draft, kept=(*draft.kept, *handles))
    return _Branch(after, (*branch.values, *op.results), branch.name, closed)


def _stated(op: IncludeOp, schedule: Schedule, first: int) -> frozenset[int]:
    """The positions among the ops of the choices whose sizes an include states; its steps begin at op `first`."""
    steps = list(script_of(schedule.script).body.block.ops)[first : schedule.length]
    sizes, names = {} if op.sizes is None else op.sizes.data, choice_names(steps)
    return frozenset(position for position, step in enumerate(steps, first) if names.get(step) in sizes)


def _derived(branch: _Branch, op: Operation, rules: Sequence[Rule], dropped: dict[str, None]) -> list[_Branch]:
    """Schedule the block of a `sched.auto` by the rules; return a branch for each derivation. Refusals are added to
    `dropped` as keys."""
    handles = dict(zip(branch.values, branch.draft.kept, strict=True))
    label = branch.draft.schedule.label(handles[op.operands[0]])
    ends = derivations(replace(branch.draft.fork(), left=(label,)), rules, dropped)
    for end in ends:  # with one block left, recipes decide otherwise than in a whole program
        end.draft.schedule.inclusions.clear()
    names = ["; ".join(name for name in (branch.name, end.name) if name) for end in ends]
    return [replace(branch, draft=end.draft, name=name) for end, name in zip(ends, names, strict=True)]
