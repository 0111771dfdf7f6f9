"""The builder of a GPU: candidates are proved, compiled and simulated in part; their time is estimated.

A candidate is simulated on a smaller program, whose reductions make a few rounds, by a few blocks of each kernel's
grid: the first, its neighbours and the last. What these blocks write is compared with the reference of the smaller
program. Which block writes which element is computed for all blocks: each that has to be written is, and by one block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from compiler.autotune.measure.builder import Built, GpuArtefact, applied, built
from compiler.autotune.measure.shrink import rounds, shrunk
from compiler.database.outcome import Outcome
from compiler.dialects.functions import find_function
from compiler.dialects.numbers import dtype_of
from compiler.driver import build_as_written
from compiler.driver.reference.cases import Case, reference, strict
from compiler.driver.reference.subject import Subject
from compiler.driver.reference.tolerance import fault
from compiler.pipeline import lower_to_kernels, unbound
from compiler.program.read import read
from compiler.program.tree import Alloc, Program
from compiler.program.write import write
from compiler.schedule import Schedule
from compiler.space.gpu_features import estimate
from compiler.targets import simt
from compiler.targets.arguments import Array
from compiler.targets.gpus import GpuKernel
from compiler.targets.registry import gpu_of

SAMPLE = simt.Sample(blocks=3, steps=40_000)
"""The sample of each kernel that runs on numpy."""
PATIENCE = 2.0
"""How many times as long as others such builders may take: they run candidates, too."""
HELD = 4
"""Smaller programs whose references are held at most."""


class GpuBuilder:
    """Builds and simulates candidates of a subject, each with a GpuArtefact; keeps the references of some smaller
    programs."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self._cases: dict[str, Case] = {}

    def __call__(self, script: str) -> Built | Outcome:
        """Apply a script to the program, prove the schedule, compile it, run some of it, and estimate its time."""
        return built(self.subject, script, lambda schedule: self._simulated(schedule, script))

    def _simulated(self, schedule: Schedule, script: str) -> GpuArtefact | Outcome:
        subject = self.subject
        kernel = build_as_written(schedule, subject.target, policy=subject.policy, name=subject.name, arch=subject.arch)
        wrong = self._spills(kernel) or self._run(schedule, script)
        return wrong or GpuArtefact(kernel, estimate(schedule.program, gpu_of(subject.target, subject.arch)))

    def _spills(self, kernel: GpuKernel) -> Outcome | None:
        """What the compiler of the machine code says against it; nothing where there is no compiler."""
        if not kernel.can_compile:
            return None
        for name, used in kernel.resources().items():
            if used.spill_bytes:
                return Outcome("spills", reason=f"{name}: {used.spill_bytes} bytes of a thread on {self.subject.arch}")
        return None

    def _run(self, schedule: Schedule, script: str) -> Outcome | None:
        """What some blocks of a smaller program do wrong."""
        original = self.subject.program
        small = shrunk(original, rounds(schedule.program, original))
        subject = replace(self.subject, text=str(ModuleOp([write(small)])))
        smaller = applied(subject, script)
        if isinstance(smaller, Outcome):
            return smaller
        case = self._case(subject)
        between = _temporaries(smaller, case)
        module, function, _ = lower_to_kernels(smaller.module.clone(), subject.name, subject.policy)
        name = function.sym_name.data
        done = simt.run(module, case.inputs, name, SAMPLE, between.arrays, counts=False, required=between.written)
        if done.faults:
            return Outcome("fault", reason=str(done.faults[0]))
        if done.undecided:
            return Outcome("fault", reason=f"{done.undecided[0]}: where it writes depends on values, not on indices")
        for output, written, expected in zip(done.outputs, done.written, case.expected, strict=True):
            wrong = fault(np.where(written, output.view(expected.own.dtype), expected.own), expected)
            if wrong is not None:
                return Outcome("wrong", reason=wrong)
        return None

    def _case(self, subject: Subject) -> Case:
        """A set of inputs of a program, and the expected results."""
        if subject.text not in self._cases:
            if len(self._cases) >= HELD:
                self._cases.clear()
            self._cases[subject.text] = reference(subject).cases[0]
        return self._cases[subject.text]


@dataclass(frozen=True)
class Between:
    """The buffers between kernels and the outputs, by name: their expected elements, if there are several kernels, and
    which elements are written."""

    arrays: Mapping[str, Array]
    written: Mapping[str, Array]


def _temporaries(schedule: Schedule, case: Case) -> Between:
    """The buffers between kernels: the scheduled program on the CPU gives them as results."""
    program = read(find_function(unbound(schedule.module), None))
    outputs = program.arguments[len(program.arguments) - program.outputs :]
    all_written = {buffer.name: np.ones(buffer.shape, np.bool_) for buffer in outputs}
    kept = [node for node in program.body if isinstance(node, Alloc)]
    if len(program.body) - len(kept) < 2:
        return Between({}, all_written)
    exposed = _exposed(program, kept)
    kernel = strict(ModuleOp([write(exposed)]), None)
    buffers = exposed.arguments[len(case.inputs) :]
    with_zeros, with_ones = (tuple(np.full(b.shape, number, dtype_of(b.element)) for b in buffers) for number in (0, 1))
    for arrays in (with_zeros, with_ones):
        kernel(*case.inputs, out=arrays)
    names = [buffer.name for buffer in buffers]
    written = {name: _same(a, b) for name, a, b in zip(names, with_zeros, with_ones, strict=True)}
    return Between(dict(zip(names, with_zeros, strict=True)), written | all_written)


def _same(a: Array, b: Array) -> Array:
    """Where two arrays have the same bits: unwritten elements keep the poison that differs between the arrays."""
    bits = f"u{a.dtype.itemsize}"
    return np.asarray(a.reshape(-1).view(bits) == b.reshape(-1).view(bits)).reshape(a.shape)


def _exposed(program: Program, kept: Sequence[Alloc]) -> Program:
    """The program with temporaries as further results."""
    return replace(
        program,
        arguments=(*program.arguments, *(node.buffer for node in kept)),
        outputs=program.outputs + len(kept),
        body=tuple(node for node in program.body if node not in kept),
    )
