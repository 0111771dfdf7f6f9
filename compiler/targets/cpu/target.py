"""The CPU as a target: native code by LLVM, compiled group by group, linked and cached by the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from compiler.targets.cpu.openmp import thread_count, usable_threads
from compiler.targets.target import AnyKernel, Device, Target
from compiler.types.machines import Gpu, Machine, host


class CpuTarget(Target):
    """The local processor, or the one that STRATA_MACHINE names."""

    name = family = "cpu"
    texts = ("llvm", "asm")
    suffixes: ClassVar[Mapping[str, str]] = {".ll": "llvm", ".s": "asm"}
    library_suffixes = (".so", ".a", ".o", ".h", ".c")
    in_units = takes_threads = takes_constants = takes_databases = True

    def machine(self, arch: str) -> Machine:
        """Return the machine of native code; `arch`, an architecture of GPUs, has no effect."""
        return host()

    def local_device(self) -> Device:
        """Return the processor of `machine`, with "" as its architecture."""
        return Device(host().name, "")

    def is_local(self, arch: str) -> bool:
        """Return True, whatever the architecture: native code runs here."""
        return True

    def device(self, machine: Machine | Gpu, arch: str) -> str:
        """Return the machine's name, whatever the architecture: all times are measured."""
        return machine.name

    def text(self, kernel: AnyKernel, name: str) -> str:
        """Return the LLVM IR of a kernel for the name `llvm`, its assembly for `asm`."""
        return str(kernel.text(name))

    def threads(self, requested: object) -> int:
        """Return the requested count; for None OMP_NUM_THREADS, or the cores; one without an OpenMP runtime. Raises
        TargetError for an invalid count."""
        return usable_threads(thread_count(requested))
