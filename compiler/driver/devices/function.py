"""`usable_kernel`: the kernel of a function under the first of its schedules that is proved and that a target takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Generic, TypeVar

from compiler.analysis.verify.prove import Verdict, verify_schedule
from compiler.recipes.rules import FORM_RULES_OF, RULES_OF
from compiler.schedule import Schedule
from compiler.space.derivation import in_default_order, one_by_one
from compiler.support.errors import LoweringError, TargetError
from compiler.targets.target import Target
from compiler.types.machines import Gpu, Machine

TRIED = 12
"""The most derivations by rules that are tried before the loops in their default order."""

Made = TypeVar("Made")


@dataclass(frozen=True)
class Usable(Generic[Made]):
    """A kernel with its schedule and the verdict of its proof; `refused` is the reason for which the preferred schedule
    is not used, "" if it is."""

    kernel: Made
    schedule: Schedule
    verdict: Verdict
    refused: str = ""


def usable_kernel(
    original: Schedule, target: Target, machine: Machine | Gpu, threads: int, make: Callable[[Schedule], Made]
) -> Usable[Made]:
    """Compile the kernel of a function under the first of the rules' schedules that is proved and that the target
    accepts; if none of the TRIED best is, in the default order of loops. `make` makes the kernel of a schedule. Raises
    its LoweringError or TargetError for the default order.
    """
    refused = ""
    for schedule in _by_rules(original, target, machine, threads):
        verdict = verify_schedule(schedule.program, original.program)
        if not verdict:
            refused = refused or str(verdict)
            continue
        try:
            return Usable(make(schedule), schedule, verdict, refused)
        except (LoweringError, TargetError) as error:
            refused = refused or str(error)
    schedule = in_default_order(original, machine)
    return Usable(make(schedule), schedule, verify_schedule(schedule.program, original.program), refused)


def usable_form(
    form: Schedule, target: Target, machine: Machine | Gpu, make: Callable[[Schedule], Made]
) -> Usable[Made] | None:
    """Compile the kernel of a function in another form, under the first of TRIED schedules by the rules of forms that
    schedules all blocks, is proved, and is accepted by the target; None if there is none, also for a target without
    such rules."""
    rules = FORM_RULES_OF.get(target.family, ())
    for derivation in islice(one_by_one(form, rules, machine), TRIED if rules else 0):
        if derivation.draft.left:
            break
        schedule = derivation.draft.schedule
        verdict = verify_schedule(schedule.program, form.program)
        try:
            if verdict:
                return Usable(make(schedule), schedule, verdict)
        except (LoweringError, TargetError):
            continue
    return None


def _by_rules(original: Schedule, target: Target, machine: Machine | Gpu, threads: int) -> Iterator[Schedule]:
    derivations = one_by_one(original, RULES_OF[target.family], machine, threads)
    return islice((derivation.draft.schedule for derivation in derivations), TRIED)
