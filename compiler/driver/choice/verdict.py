"""The verdict of a schedule: its proof or, if that is undecided, one run beside the program as written."""

from __future__ import annotations

import numpy as np

from compiler.analysis.verify.prove import Verdict, verify_schedule
from compiler.dialects.functions import find_function
from compiler.driver.kernels import build_as_written
from compiler.driver.reference.cases import ReferenceCase, reference
from compiler.driver.reference.subject import Subject
from compiler.driver.reference.tolerance import fault, poison
from compiler.schedule import Schedule

UNDECIDED = "undecided"


def proved(schedule: Schedule, original: Schedule) -> Verdict:
    """The verdict of verify-schedule on a schedule and its original: proved, refuted or undecided."""
    return verify_schedule(schedule.program, original.program)


def judged_verdict(
    schedule: Schedule, original: Schedule, policy: str, threads: int, proof: Verdict | None = None
) -> tuple[bool, str]:
    """Return whether a schedule may be used, and the verdict in words. It may be used if it is proved (`proof`, by
    default computed here), or if the proof is undecided and its results on random inputs agree with the original's.
    Raises the errors of `result_difference`, which is called if the proof is undecided."""
    verdict = proof or proved(schedule, original)
    if verdict.answer != UNDECIDED:
        return bool(verdict), str(verdict)
    difference = result_difference(schedule, original, policy, threads)
    return (
        difference is None,
        f"{verdict}; {'it agrees with the written program' if difference is None else difference}",
    )


def result_difference(schedule: Schedule, original: Schedule, policy: str, threads: int) -> str | None:
    """A sentence about the first output of a schedule that differs from its original's on random inputs by more than
    the tolerance; None if all agree. Raises InputError for a program without outputs, LoweringError or TargetError if
    one of the two cannot be compiled."""
    subject = Subject(str(original.module), original.name, policy, threads)
    case: ReferenceCase = reference(subject).cases[0]
    module = schedule.module.clone()
    find_function(module).attributes.pop("constant_values", None)
    kernel = build_as_written(module, threads=threads, policy=policy)
    outs = [np.empty_like(expected.strict) for expected in case.expected]
    for out, expected in zip(outs, case.expected, strict=True):
        poison(out, expected)
    kernel(*case.inputs, out=outs[0] if len(outs) == 1 else tuple(outs))
    pairs = zip(outs, case.expected, strict=True)
    wrong = [text for out, expected in pairs if (text := fault(out, expected)) is not None]
    return f"it differs from the written program in {wrong[0]}" if wrong else None
