"""The CPU as a target: native code by LLVM, compiled group by group, linked and cached by the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from compiler.targets.cpu.openmp import thread_count, usable
from compiler.targets.target import AnyKernel, Device, Target
from compiler.types.machines import Gpu, Machine, host


class CpuTarget(Target):
    """The processor at hand, or the one that STRATA_MACHINE names."""

    name = family = "cpu"
    texts = ("llvm", "asm")
    suffixes: ClassVar[Mapping[str, str]] = {".ll": "llvm", ".s": "asm"}
    in_units = takes_threads = takes_constants = takes_databases = True

    def machine(self, arch: str) -> Machine:
        """The machine that native code is made for, whatever the architecture of GPUs."""
        return host()

    def at_hand(self) -> Device:
        """This processor."""
        return Device(host().name, "")

    def is_at_hand(self, arch: str) -> bool:
        """Whether native code runs here: always."""
        return True

    def device(self, machine: Machine | Gpu, arch: str) -> str:
        """The machine itself: nothing is estimated."""
        return machine.name

    def text(self, kernel: AnyKernel, name: str) -> str:
        """The LLVM IR or the assembly of a kernel."""
        return str(kernel.text(name))

    def threads(self, stated: object) -> int:
        """The stated count; None is what OMP_NUM_THREADS says, or the cores; one without an OpenMP runtime."""
        return usable(thread_count(stated))
