"""The targets by name: the compiler's own, loaded when used, and those of plugins."""

from __future__ import annotations

from importlib import import_module

from compiler.support.errors import TargetError
from compiler.support.plugins import parts
from compiler.support.text import suggestion
from compiler.targets.gpus import GpuTarget
from compiler.targets.target import Target
from compiler.types.machines import Gpu

TARGETS = {
    "cpu": "compiler.targets.cpu.target:CpuTarget",
    "cuda": "compiler.targets.cuda.target:CudaTarget",
    "c": "compiler.targets.c.target:CTarget",
}
"""The class of each target, as `module:class`."""
TARGET_TEXTS = ("c", "cuda", "launches")
"""The texts of these targets other than levels, for the command line, which loads no target to parse its options."""
CPU = "cpu"
ALIASES = {"llvm": CPU}
"""The targets by their names in other compilers."""
DEFAULT_GPU = "cuda"
"""The target of `strata check`."""


def target_names() -> tuple[str, ...]:
    """Return the names of all targets, those of plugins last."""
    return (*TARGETS, *parts("target"))


def target_named(name: str) -> Target:
    """Return the target of a name or an alias. The compiler's own come before those of plugins. Raises TargetError for
    an unknown name.

    >>> strata.targets.target_named("llvm").name
    'cpu'
    """
    registered = ALIASES.get(name, name)
    if registered in TARGETS:
        module, _, class_name = TARGETS[registered].partition(":")
        target: Target = getattr(import_module(module), class_name)()
        return target
    plugins = parts("target")
    if name in plugins:
        plugged: Target = plugins[name].value
        return plugged
    raise TargetError(f"unknown target '{name}'{_hint(name)}")


def _hint(name: str) -> str:
    names, head = target_names(), name.partition(" ")[0]
    if head != name and ALIASES.get(head, head) in names:
        return "; it has no options: STRATA_MACHINE names a processor, `arch` the architecture of a GPU"
    *first, last = [n for n in names if n != CPU]
    listed = f"{', '.join(first)} and {last}" if first else last
    return suggestion(name, [*ALIASES, *names], f" (there are {CPU}, which TVM calls llvm, {listed})")


def gpu_target(name: str) -> GpuTarget:
    """Return the target of a name, one for GPUs. Raises TargetError for an unknown name and for a target that is no
    GpuTarget."""
    target = target_named(name)
    if not isinstance(target, GpuTarget):
        raise TargetError(f"the target {name} has no kernels of a GPU: give {DEFAULT_GPU}")
    return target


def gpu_of(name: str, arch: str) -> Gpu:
    """Return the GPU model of the architecture `arch` that the target `name` has. Raises TargetError for an unknown
    target, for one without GPU kernels, and for an unknown architecture."""
    machine = target_named(name).machine(arch)
    if not isinstance(machine, Gpu):
        raise TargetError(f"the target {name} has no kernels of a GPU: give {DEFAULT_GPU}")
    return machine
