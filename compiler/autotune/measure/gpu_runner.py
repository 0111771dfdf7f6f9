"""The runner of a GPU: check and time kernels, in a process that a faulty kernel may end."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from random import Random
from statistics import median, pstdev

from compiler.autotune.measure.builder import GpuArtefact
from compiler.autotune.measure.limits import Limits, Sampling
from compiler.autotune.measure.runner import CHECKED, MeasureJob, RunnerJob, SampleJob, wrong_result
from compiler.database.outcome import MEASURED, Outcome
from compiler.driver.reference.cases import ReferenceCases
from compiler.driver.reference.subject import Subject
from compiler.driver.reference.tolerance import poison
from compiler.support.errors import TargetError
from compiler.targets.gpus import KernelArrays


@dataclass(frozen=True)
class GpuRunnerSetup:
    """The setup of a GPU's runner process: a job has a GpuArtefact, its reply is an Outcome. `path` is the file of the
    reference. `memory_bytes` is no limit in effect. An access outside of the device's memory, or a kernel that does not
    terminate, ends the process; a new one starts."""

    subject: Subject
    limits: Limits
    path: str
    memory_bytes: int = 1 << 46

    def start(self) -> Callable[[RunnerJob], Outcome]:
        """Read the reference, and return the function that does jobs."""
        reference: ReferenceCases = pickle.loads(Path(self.path).read_bytes())
        return GpuRunner(reference, self.limits.sampling, Random(self.subject.seed))


class GpuRunner:
    """Runs candidates on the GPU, each on separate arrays. The rate of each sample is 1: costs are seconds."""

    def __init__(self, reference: ReferenceCases, sampling: Sampling, random: Random) -> None:
        self._reference, self._sampling, self._random = reference, sampling, random
        self._arrays: dict[str, KernelArrays] = {}

    def __call__(self, job: RunnerJob) -> Outcome:
        """Check an artefact, then time it (MeasureJob) or take one sample (SampleJob, which checks a kernel the first
        time only). A failure is an Outcome."""
        artefact: GpuArtefact = job.artefact
        kernel = artefact.kernel
        try:
            arrays = self._arrays.get(kernel.text) if isinstance(job, SampleJob) else None
            if arrays is None:
                arrays = kernel.on_device()
                wrong = self._wrong(arrays)
                if wrong is not None:
                    return Outcome("wrong", reason=wrong)
        except TargetError as error:
            return Outcome("build", reason=str(error))
        if isinstance(job, MeasureJob):
            self._arrays.clear()
            samples = self._samples(arrays)
            return Outcome(MEASURED, tuple(samples), (1.0,) * len(samples))
        self._arrays[kernel.text] = arrays
        return Outcome(MEASURED, (arrays.seconds(self._calls(arrays)),), (1.0,))

    def _wrong(self, arrays: KernelArrays) -> str | None:
        """A sentence about wrong results for CHECKED random sets of the reference's inputs; None for right ones."""
        for case in self._random.sample(self._reference.cases, CHECKED):
            outs = [expected.strict.copy() for expected in case.expected]
            for out, expected in zip(outs, case.expected, strict=True):
                poison(out, expected)
            arrays.fill([*case.inputs, *outs])
            arrays.run()
            wrong = wrong_result(case, arrays.results())
            if wrong is not None:
                return wrong
        return None

    def _calls(self, arrays: KernelArrays) -> int:
        """The number of calls that last about `sampling.min_seconds` together, at least one."""
        once = arrays.seconds(1)
        return max(1, round(self._sampling.min_seconds / max(once, 1e-7)))

    def _samples(self, arrays: KernelArrays) -> list[float]:
        """Seconds of a call, in `min_samples` to `max_samples` samples: as many as make the median precise to
        `spread`."""
        calls = self._calls(arrays)
        samples: list[float] = []
        while len(samples) < self._sampling.max_samples:
            samples.append(arrays.seconds(calls))
            enough = len(samples) >= self._sampling.min_samples
            if enough and pstdev(samples) / sqrt(len(samples)) < self._sampling.spread * median(samples):
                break
        return samples
