"""`record_default`: the answer of a search that ended before anything was tried, for a GPU that is not present."""

from __future__ import annotations

from uuid import uuid4

from compiler.autotune.measure.gpu_builder import estimated_seconds
from compiler.autotune.tuner import TuningProblem
from compiler.database import Database, Record
from compiler.database.outcome import ESTIMATED, Outcome
from compiler.driver import build_as_written
from compiler.driver.devices.function import usable_kernel
from compiler.schedule import Schedule
from compiler.targets.gpus import GpuKernel
from compiler.targets.registry import target_named


def record_default(task: TuningProblem, original: Schedule, seed: int, database: Database) -> Record | None:
    """Add the default schedule of a program with its estimate to the records of a task, and return the best of these;
    None if no schedule is proved. original: the unscheduled program. seed: that of the record. Raises LoweringError or
    TargetError for a program that the target cannot run."""
    subject = task.subject

    def make(schedule: Schedule) -> GpuKernel:
        kernel: GpuKernel = build_as_written(
            schedule, subject.target, policy=subject.policy, name=subject.name, arch=subject.arch
        )
        return kernel

    usable = usable_kernel(original, target_named(subject.target), task.machine, task.key.threads, make)
    if not usable.verdict:
        return None
    resources = usable.kernel.resources() if usable.kernel.can_compile else {}
    outcome = Outcome(ESTIMATED, (estimated_seconds(usable.schedule, subject, resources),), (1.0,))
    script = str(usable.schedule.script)
    database.add(Record(task.key, task.name, task.program, script, outcome, None, None, seed, str(uuid4())))
    return database.best(task.key)
