"""The builder of a GPU: prove, compile and partly simulate candidates, and estimate their time.

The simulated program is smaller: its reductions make a few rounds. Of each kernel's grid a few blocks run: the first,
its neighbours and the last. Their results are compared with the reference of the smaller program. The elements written
by each block are computed for all blocks, to check that each required element is written by exactly one block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from compiler.autotune.measure.builder import Built, GpuArtefact, apply_script, build_candidate
from compiler.autotune.measure.shrink import shorter_extents, shrunk
from compiler.database.outcome import Outcome
from compiler.dialects.functions import find_function
from compiler.dialects.numbers import dtype_of
from compiler.driver import build_as_written
from compiler.driver.reference.cases import ReferenceCase, compile_strict, reference
from compiler.driver.reference.subject import Subject
from compiler.driver.reference.tolerance import fault
from compiler.pipeline.loops import lower_to_kernels, without_bindings
from compiler.program.read import read
from compiler.program.tree import Alloc, Program
from compiler.program.write import write
from compiler.schedule import Schedule
from compiler.targets import simt
from compiler.targets.arguments import Array
from compiler.targets.gpus import KernelResources
from compiler.targets.registry import gpu_of
from compiler.targets.timing import kernel_times, total_seconds

SAMPLE = simt.BlockSample(blocks=3, steps=40_000)
"""The limits of the simulation of a kernel on numpy: the number of blocks and of steps."""
PATIENCE = 2.0
"""The factor on the build limit for GPU builders, which simulate as well."""
HELD = 4
"""The maximum number of smaller programs whose references are cached; a further one clears the cache."""


class GpuBuilder:
    """Builds and simulates candidates of a subject to GpuArtefacts; caches the references of HELD smaller programs."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self._cases: dict[str, ReferenceCase] = {}

    def __call__(self, script: str) -> Built | Outcome:
        """Apply a script to the program, prove and compile the schedule, simulate part of it, and estimate its time."""
        return build_candidate(self.subject, script, lambda schedule: self._simulated(schedule, script))

    def _simulated(self, schedule: Schedule, script: str) -> GpuArtefact | Outcome:
        subject = self.subject
        kernel = build_as_written(schedule, subject.target, policy=subject.policy, name=subject.name, arch=subject.arch)
        resources = kernel.resources() if kernel.can_compile else {}
        wrong = self._spills(resources) or self._run(schedule, script)
        return wrong or GpuArtefact(kernel, estimated_seconds(schedule, subject, resources))

    def _spills(self, resources: Mapping[str, KernelResources]) -> Outcome | None:
        """The outcome for kernels with these resources if registers of one spill; None if none does."""
        for name, used in resources.items():
            if used.spill_bytes:
                return Outcome("spills", reason=f"{name}: {used.spill_bytes} bytes of a thread on {self.subject.arch}")
        return None

    def _run(self, schedule: Schedule, script: str) -> Outcome | None:
        """Simulate SAMPLE blocks of the script's kernels on a program with shorter reduce axes. Return None if their
        results are right, else an outcome: the script is refused, a fault (also if an index of a write depends on
        values), or a wrong result."""
        original = self.subject.program
        small = shrunk(original, shorter_extents(schedule.program, original))
        subject = replace(self.subject, text=str(ModuleOp([write(small)])))
        smaller = apply_script(subject, script)
        if isinstance(smaller, Outcome):
            return smaller
        case = self._case(subject)
        between = _temporaries(smaller, case)
        module, function, _ = lower_to_kernels(smaller.module.clone(), subject.name, subject.policy)
        name = function.sym_name.data
        checked = simt.run(module, case.inputs, name, SAMPLE, between.arrays, counts=False, required=between.written)
        if checked.faults:
            return Outcome("fault", reason=str(checked.faults[0]))
        if checked.undecided:
            return Outcome("fault", reason=f"{checked.undecided[0]}: where it writes depends on values, not on indices")
        for output, written, expected in zip(checked.outputs, checked.written, case.expected, strict=True):
            wrong = fault(np.where(written, output.view(expected.strict.dtype), expected.strict), expected)
            if wrong is not None:
                return Outcome("wrong", reason=wrong)
        return None

    def _case(self, subject: Subject) -> ReferenceCase:
        """The inputs and expected results of a smaller program, from the cache or computed."""
        if subject.text not in self._cases:
            if len(self._cases) >= HELD:
                self._cases.clear()
            self._cases[subject.text] = reference(subject).cases[0]
        return self._cases[subject.text]


def estimated_seconds(schedule: Schedule, subject: Subject, resources: Mapping[str, KernelResources]) -> float:
    """Estimate the seconds of a schedule's kernels with these resources; without any they are counted from the IR."""
    module, function, _ = lower_to_kernels(schedule.module.clone(), subject.name, subject.policy)
    gpu = gpu_of(subject.target, subject.arch)
    return total_seconds(kernel_times(module, gpu, function.sym_name.data, resources))


@dataclass(frozen=True)
class KernelBuffers:
    """The temporaries through which kernels pass values, by name. arrays: their expected elements; empty for a single
    kernel. written: masks of the elements that must be written, of these buffers and of the outputs."""

    arrays: Mapping[str, Array]
    written: Mapping[str, Array]


def _temporaries(schedule: Schedule, case: ReferenceCase) -> KernelBuffers:
    """The buffers between kernels, computed by the scheduled program on the CPU, which returns them as results."""
    program = read(find_function(without_bindings(schedule.module), None))
    outputs = program.arguments[len(program.arguments) - program.outputs :]
    all_written = {buffer.name: np.ones(buffer.shape, np.bool_) for buffer in outputs}
    allocs = [node for node in program.body if isinstance(node, Alloc)]
    if len(program.body) - len(allocs) < 2:
        return KernelBuffers({}, all_written)
    exposed = _exposed(program, allocs)
    kernel = compile_strict(ModuleOp([write(exposed)]), None)
    buffers = exposed.arguments[len(case.inputs) :]
    with_zeros, with_ones = (tuple(np.full(b.shape, number, dtype_of(b.element)) for b in buffers) for number in (0, 1))
    for arrays in (with_zeros, with_ones):
        kernel(*case.inputs, out=arrays)
    names = [buffer.name for buffer in buffers]
    written = {name: _same(a, b) for name, a, b in zip(names, with_zeros, with_ones, strict=True)}
    return KernelBuffers(dict(zip(names, with_zeros, strict=True)), written | all_written)


def _same(a: Array, b: Array) -> Array:
    """A mask of the elements with the same bits in two arrays: unwritten elements keep their poison, 0 and 1."""
    bits = f"u{a.dtype.itemsize}"
    return np.asarray(a.reshape(-1).view(bits) == b.reshape(-1).view(bits)).reshape(a.shape)


def _exposed(program: Program, allocs: Sequence[Alloc]) -> Program:
    """The program with the temporaries of `allocs` as further results."""
    return replace(
        program,
        arguments=(*program.arguments, *(node.buffer for node in allocs)),
        outputs=program.outputs + len(allocs),
        body=tuple(node for node in program.body if node not in allocs),
    )
