"""`GpuTarget`: what the targets of GPUs have in common, and what the tuner needs of their kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol

from compiler.targets.arguments import Array
from compiler.targets.target import Target

DEFAULT_ARCH = "sm_80"
"""The default architecture of kernels."""
KERNELS = {"te": "loop-to-gpu,extend-floats", "loop": "loop-to-gpu,extend-floats"}
"""By level the passes from loops to kernels."""
UNBOUND = "where no loop is bound to a GPU's threads"
"""Why a program of the low level has no kernels."""


class GpuTarget(Target):
    """A target whose kernels loops become that are bound to blocks and threads."""

    family = "gpu"
    passes: ClassVar[Mapping[str, str]] = KERNELS
    refusal = UNBOUND
    default_arch = DEFAULT_ARCH


class KernelResources(Protocol):
    """What a compiled kernel takes of a GPU."""

    @property
    def spill_bytes(self) -> int:
        """Bytes of a thread that do not fit into registers."""


class KernelArrays(Protocol):
    """Kernels with arrays of their own on a GPU: filled, run, read and timed as often as is wanted."""

    def fill(self, arrays: Sequence[Array]) -> None:
        """Copy inputs, and what outputs hold before."""

    def run(self) -> None:
        """Run once, to the end."""

    def results(self) -> list[Array]:
        """The outputs, on the host."""

    def seconds(self, calls: int) -> float:
        """The seconds of one call, of so many in a row."""


class GpuKernel(Protocol):
    """The kernels of a program, and what the autotuner asks of them. `on_device` raises TargetError."""

    @property
    def text(self) -> str:
        """The source of the kernels."""

    @property
    def can_compile(self) -> bool:
        """Whether there is a compiler of their machine code."""

    def resources(self) -> Mapping[str, KernelResources]:
        """The resources of each kernel, by name."""

    def on_device(self) -> KernelArrays:
        """The kernels loaded, with arrays of their own."""
