"""The estimated time of a program's kernels on a GPU, by group: what bounds each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from rich.table import Table
from xdsl.dialects.builtin import ModuleOp

from compiler.dialects.functions import find_function
from compiler.driver.devices.function import usable_form, usable_kernel
from compiler.driver.devices.program import streamed_loops
from compiler.pipeline.loops import lower_for, tree_of
from compiler.pipeline.source import level_of
from compiler.program.write import write
from compiler.schedule import Schedule
from compiler.support.errors import InputError
from compiler.targets.launches import Extents, read_host_function
from compiler.targets.target import Target
from compiler.targets.timing import KernelTime, kernel_times
from compiler.types.machines import Gpu

TERMS = ("issue", "arithmetic", "load_store", "traffic", "latency", "fetch")
"""The terms of an estimate, in cycles of the busiest multiprocessor."""


@dataclass(frozen=True)
class EstimatedKernel:
    """A launch of a group. group: its name. calls: of the group in a run. grid, block: extents along x, y, z. time: its
    estimate."""

    group: str
    calls: int
    grid: Extents
    block: Extents
    time: KernelTime

    @property
    def data(self) -> dict[str, Any]:
        """The launch as JSON: the fields of `KernelTime`, what it is bound by, and the fields of this class."""
        own = {"group": self.group, "calls": self.calls, "grid": list(self.grid), "block": list(self.block)}
        return own | {f.name: getattr(self.time, f.name) for f in fields(self.time)} | {"bound": self.time.bound}


@dataclass(frozen=True)
class GpuSettings:
    """The settings of a build of kernels: a target of GPUs, an architecture, the model of its GPU, and a
    floating-point policy."""

    target: Target
    arch: str
    gpu: Gpu
    policy: str


def estimated_kernels(
    module: ModuleOp, name: str, calls: int, settings: GpuSettings, function: str | None = None
) -> list[EstimatedKernel]:
    """Estimate the launches of a module's function, by name or the only public one: of a te function under the schedule
    that a build gives it, of loops as they are bound. Raises InputError for a module of the low level, LoweringError
    and TargetError for a program that the target cannot run."""
    level = level_of(module)
    if level == "low":
        raise InputError("the program is at the low level, which has no kernels: give it at te or loop")

    def made(schedule: Schedule) -> list[EstimatedKernel]:
        return _launches(ModuleOp([write(schedule.program)]), name, calls, settings, None)

    if level == "loop":
        return _launches(module.clone(), name, calls, settings, function)
    original = Schedule(tree_of(module, function))
    form = streamed_loops(find_function(module, function), settings.target.name, settings.policy)
    streamed = None if form is None else usable_form(Schedule(form), settings.target, settings.gpu, made)
    return (streamed or usable_kernel(original, settings.target, settings.gpu, 1, made)).kernel


def _launches(
    module: ModuleOp, name: str, calls: int, settings: GpuSettings, function: str | None
) -> list[EstimatedKernel]:
    lowered, host, arguments = lower_for(settings.target, module, function, settings.policy)
    settings.target.make_kernel(lowered, host, arguments, settings.policy, settings.arch)  # refuses what exceeds limits
    launches = read_host_function(lowered, host).launches
    times = kernel_times(lowered, settings.gpu, host.sym_name.data)
    pairs = zip(launches, times, strict=True)
    return [EstimatedKernel(name, calls, launch.grid, launch.block, time) for launch, time in pairs]


def table_of(kernels: Sequence[EstimatedKernel]) -> Table:
    """Return the table of launches: blocks and threads, microseconds, cycles by term, and what it is bound by."""
    numbers = ("calls", "blocks", "threads", "us", "cycles", *TERMS, "bound", "warps", "waves", "bytes in flight")
    table = Table(box=None)
    for n, heading in enumerate(("group", "kernel", *numbers)):
        table.add_column(heading.replace("_", "/"), justify="left" if n < 2 or heading == "bound" else "right")
    for kernel in kernels:
        table.add_row(*_cells(kernel))
    return table


def _cells(kernel: EstimatedKernel) -> Iterator[str]:
    time = kernel.time
    yield from (kernel.group, time.name, str(kernel.calls), _spelled(kernel.grid), _spelled(kernel.block))
    yield from (f"{time.seconds * 1e6:.3g}", f"{time.cycles:.0f}")
    yield from (f"{getattr(time, term):.0f}" for term in TERMS)
    yield from (time.bound.replace("_", "/"), str(time.resident_warps), str(time.waves), f"{time.bytes_in_flight:.0f}")


def _spelled(extents: Extents) -> str:
    """Return extents without trailing ones: 16x32 of (16, 32, 1)."""
    count = max((n + 1 for n, extent in enumerate(extents) if extent > 1), default=1)
    return "x".join(map(str, extents[:count]))


def summary(kernels: Sequence[EstimatedKernel], gpu: Gpu) -> str:
    """Return a sentence with the microseconds of all calls, and their share by what bounds the kernels."""
    total = sum(kernel.calls * kernel.time.seconds for kernel in kernels)
    shares: Mapping[str, float] = {
        term: sum(k.calls * k.time.seconds for k in kernels if k.time.bound == term) / total for term in TERMS
    }
    bound = ", ".join(f"{term.replace('_', '/')} {share:.0%}" for term, share in shares.items() if share)
    launches = sum(kernel.calls for kernel in kernels)
    return f"{gpu.name}, estimated: {total * 1e6:.3g} us in {launches} launches; bound by {bound}"
