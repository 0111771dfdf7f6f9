"""`GpuTarget`: the base class of targets for GPUs, and protocols of their kernels for the tuner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from compiler.support.errors import TargetError
from compiler.targets.arguments import Array
from compiler.targets.target import AnyKernel, Target

DEFAULT_ARCH = "sm_80"
"""The default architecture of kernels."""
KERNELS = {"te": "loop-to-gpu,extend-floats", "loop": "loop-to-gpu,extend-floats"}
"""The passes that lower a program to kernels, by its level."""
UNBOUND = "where no loop is bound to a GPU's threads"
"""The end of the error for a program of the low level, which has no kernels."""


@dataclass(frozen=True)
class TextCheck:
    """The outputs of kernels whose text ran without a GPU, and the faults in words."""

    outputs: tuple[Array, ...]
    faults: tuple[str, ...]


class GpuTarget(Target):
    """A target whose kernels are loops bound to a GPU's blocks and threads."""

    family = "gpu"
    passes: ClassVar[Mapping[str, str]] = KERNELS
    refusal = UNBOUND
    default_arch = DEFAULT_ARCH

    def check_text(self, kernel: AnyKernel, inputs: Sequence[Array], arch: str) -> TextCheck:
        """Compile the text of a kernel for an architecture and run it on inputs without a GPU. Raises TargetError if
        the text cannot be compiled, and here always, for a target without an interpreter of its machine code."""
        raise TargetError(f"the target {self.name} has no interpreter of its machine code")


class KernelResources(Protocol):
    """The resources that a compiled kernel uses on a GPU."""

    @property
    def registers(self) -> int:
        """The registers of a thread."""

    @property
    def spill_bytes(self) -> int:
        """Bytes that each thread spills from registers to memory."""


class KernelArrays(Protocol):
    """Loaded kernels and a device array for each argument, to fill, run, time and read repeatedly."""

    def fill(self, arrays: Sequence[Array]) -> None:
        """Copy an array for each argument to the device; those of outputs are their initial contents."""

    def run(self) -> None:
        """Run the kernels once on the device arrays, in order, and wait for their end."""

    def results(self) -> list[Array]:
        """Copy the outputs to the host; return the copies in order."""

    def seconds(self, calls: int) -> float:
        """Time `calls` calls, at least one, in a row; return the mean seconds of one."""


class GpuKernel(Protocol):
    """The interface of a program's kernels for the autotuner."""

    @property
    def text(self) -> str:
        """The source of the kernels."""

    @property
    def can_compile(self) -> bool:
        """Whether a compiler to machine code is installed."""

    def resources(self) -> Mapping[str, KernelResources]:
        """The resources of each kernel, by name."""

    def on_device(self) -> KernelArrays:
        """Load the kernels and allocate a device array for each argument. Raises TargetError without a GPU."""
