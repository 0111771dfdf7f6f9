"""The targets by name: the compiler's own, loaded when used, and those of plugins."""

from __future__ import annotations

from importlib import import_module

from compiler.support.errors import TargetError
from compiler.support.plugins import parts
from compiler.support.text import meant
from compiler.targets.target import Target
from compiler.types.machines import Gpu

TARGETS = {
    "cpu": "compiler.targets.cpu.target:CpuTarget",
    "cuda": "compiler.targets.cuda.target:CudaTarget",
    "c": "compiler.targets.c.target:CTarget",
}
"""The class of each target: one line for a new one."""
CPU = "cpu"
ALIASES = {"llvm": CPU}
"""Targets by the names that other compilers have for them."""
DEFAULT_GPU = "cuda"
"""The target of `strata check`."""


def names() -> tuple[str, ...]:
    """The names of all targets, those of plugins last."""
    return (*TARGETS, *parts("target"))


def target_named(name: str) -> Target:
    """The target of a name, which may be that of another compiler. Raises TargetError for an unknown name."""
    own = ALIASES.get(name, name)
    if own in TARGETS:
        module, _, kind = TARGETS[own].partition(":")
        target: Target = getattr(import_module(module), kind)()
        return target
    foreign = parts("target")
    if name in foreign:
        plugged: Target = foreign[name].value
        return plugged
    raise TargetError(f"unknown target '{name}'{_hint(name)}")


def _hint(name: str) -> str:
    """What may be meant by the name of no target."""
    known, head = names(), name.partition(" ")[0]
    if head != name and ALIASES.get(head, head) in known:
        return "; it has no options: STRATA_MACHINE names a processor, `arch` the architecture of a GPU"
    *first, last = [other for other in known if other != CPU]
    listed = f"{', '.join(first)} and {last}" if first else last
    return meant(name, [*ALIASES, *known], f" (there are {CPU}, which TVM calls llvm, {listed})")


def gpu_of(name: str, arch: str) -> Gpu:
    """The GPU that stands for an architecture of a target. Raises TargetError for a target without kernels of a GPU,
    and for an unknown architecture."""
    machine = target_named(name).machine(arch)
    if not isinstance(machine, Gpu):
        raise TargetError(f"the target {name} has no kernels of a GPU: give {DEFAULT_GPU}")
    return machine
