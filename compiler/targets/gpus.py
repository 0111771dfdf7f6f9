"""The GPUs that kernels are made for, by name, loaded when used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

from compiler.support.errors import TargetError
from compiler.support.text import meant
from compiler.targets.arguments import Array
from compiler.types.machines import Gpu

TARGETS = {"cuda": "compiler.targets.cuda"}
"""Modules with three functions. `made` makes a kernel that can be called, of a lowered module, its host function, what
that takes, a floating-point policy and an architecture; `machine` says what is known of an architecture's GPUs, and
`at_hand` the name and the architecture of the GPU here, if any."""

CPU = "cpu"
ALIASES = {"llvm": CPU}
"""Targets by the names that other compilers have for them."""
DEFAULT_TARGET, DEFAULT_ARCH = next(iter(TARGETS)), "sm_80"
"""The default architecture of kernels."""


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


def target_named(name: str) -> str:
    """The target of a name, which may be that of another compiler. Raises TargetError for an unknown name."""
    target = ALIASES.get(name, name)
    if target in (CPU, *TARGETS):
        return target
    head = name.partition(" ")[0]
    there = f" (there are {CPU}, which TVM calls llvm, and {', '.join(TARGETS)})"
    options = "; it has no options: STRATA_MACHINE names a processor, `arch` the architecture of a GPU"
    is_near = head != name and ALIASES.get(head, head) in (CPU, *TARGETS)
    raise TargetError(f"unknown target '{name}'{options if is_near else meant(name, [*ALIASES, CPU, *TARGETS], there)}")


def kernel_maker(name: str) -> Callable[..., Any]:
    """The function that makes kernels for a GPU. Raises TargetError for an unknown name."""
    maker: Callable[..., Any] = _module(name).made
    return maker


def gpu_of(name: str, arch: str) -> Gpu:
    """The GPU that stands for an architecture of a target. Raises TargetError for names that there are not."""
    gpu: Gpu = _module(name).machine(arch)
    return gpu


def at_hand(name: str) -> tuple[str, str] | None:
    """The name and the architecture of the GPU of a target that can be used here, if there is one."""
    name_and_arch: tuple[str, str] | None = _module(name).at_hand()
    return name_and_arch


def _module(name: str) -> Any:
    if name == CPU:
        raise TargetError(f"the target cpu has no kernels of a GPU: give {' or '.join(TARGETS)}")
    return import_module(TARGETS[target_named(name)])
