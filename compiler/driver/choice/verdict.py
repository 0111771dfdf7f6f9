"""A schedule is used where it is proved; where that is undecided, one run beside the program as it is written tells."""

from __future__ import annotations

import numpy as np

from compiler.analysis.verify.prove import Verdict, verify_schedule
from compiler.dialects.functions import find_function
from compiler.driver.kernels import build_as_written
from compiler.driver.reference.cases import Case, reference
from compiler.driver.reference.subject import Subject
from compiler.driver.reference.tolerance import fault, poison
from compiler.schedule import Schedule

UNDECIDED = "undecided"


def proved(schedule: Schedule, original: Schedule) -> Verdict:
    """What verify-schedule says of a schedule."""
    return verify_schedule(schedule.program, original.program)


def judged(
    schedule: Schedule, original: Schedule, policy: str, threads: int, proof: Verdict | None = None
) -> tuple[bool, str]:
    """Whether a schedule may be used, and the verdict: its proof, or what verify-schedule says, and where that is
    undecided what a run on random inputs gave, with poisoned outputs, beside the program as it is written."""
    verdict = proof or proved(schedule, original)
    if verdict.answer != UNDECIDED:
        return bool(verdict), str(verdict)
    difference = differs(schedule, original, policy, threads)
    return (
        difference is None,
        f"{verdict}; {'it agrees with the written program' if difference is None else difference}",
    )


def differs(schedule: Schedule, original: Schedule, policy: str, threads: int) -> str | None:
    """How the results of a schedule differ from those of its original on random inputs; None if they agree."""
    subject = Subject(str(original.module), original.name, policy, threads)
    case: Case = reference(subject).cases[0]
    module = schedule.module.clone()
    find_function(module).attributes.pop("constant_values", None)
    kernel = build_as_written(module, threads=threads, policy=policy)
    outs = [np.empty_like(expected.own) for expected in case.expected]
    for out, expected in zip(outs, case.expected, strict=True):
        poison(out, expected)
    kernel(*case.inputs, out=outs[0] if len(outs) == 1 else tuple(outs))
    pairs = zip(outs, case.expected, strict=True)
    wrong = [text for out, expected in pairs if (text := fault(out, expected)) is not None]
    return f"it differs from the written program in {wrong[0]}" if wrong else None
