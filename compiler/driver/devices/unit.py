"""`DeviceUnit`: a group of a program as kernels of a target; `compiled_unit` compiles it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter

from xdsl.dialects.builtin import ModuleOp

from compiler.driver.devices.function import usable_form, usable_kernel
from compiler.graph.provenance import Provenance
from compiler.graph.user_names import program_with_user_names
from compiler.passes.split_constants import SplitProgram, split_program
from compiler.pipeline.loops import lower_for
from compiler.program.tree import Buffer, Program
from compiler.program.write import write
from compiler.schedule import Schedule
from compiler.support.gc import paused
from compiler.targets.registry import target_named
from compiler.targets.target import AnyKernel

STREAMED = "attention by blocks of keys"
"""The form of an attention, in the verdict of its group."""


@dataclass(frozen=True)
class DeviceJob:
    """A group to compile: its name, its loops as written, the positions of its constant arguments, and the user's names
    of values; and the names of the target, architecture and policy. form: other loops of the same results, which are
    tried first; None without."""

    name: str
    loops: Program
    constants: tuple[int, ...]
    user_names: Provenance
    target: str
    arch: str
    policy: str
    form: Program | None = None
    """The loops in another form, which is preferred: attention by blocks of keys."""


@dataclass(frozen=True)
class DeviceCode:
    """The kernel of a function, under the function's name in the program."""

    name: str
    kernel: AnyKernel

    @property
    def symbol(self) -> str:
        """The name, unique in the program."""
        return self.name


@dataclass(frozen=True)
class DeviceUnit:
    """A compiled group.

    call: its kernel; takes: the positions of the group's inputs that the kernel takes. prepare: the kernel that
    computes prepared constants from the inputs at the positions `prepares` into the buffers `prepared`; None without
    one. verdict: of the schedule's proof. seconds: of compilation. shared: empty, as no prepared constants are shared.
    """

    call: DeviceCode
    takes: tuple[int, ...]
    prepare: DeviceCode | None
    prepares: tuple[int, ...]
    prepared: tuple[Buffer, ...]
    verdict: str
    seconds: float
    shared: tuple[tuple[int, int], ...] = ()

    @property
    def codes(self) -> tuple[DeviceCode, ...]:
        """The kernel of each call, then that of the preparation if there is one."""
        return (self.call,) if self.prepare is None else (self.call, self.prepare)


def compiled_unit(job: DeviceJob) -> DeviceUnit:
    """Compile a group: in the form `job.form` if a schedule of it is usable, else as written, under the first schedule
    of the rules that is proved and that the target accepts, or in the default order. Raises LoweringError and
    TargetError for a group that the target cannot run."""
    start, target = perf_counter(), target_named(job.target)
    with paused():
        original = Schedule(replace(job.loops, constants=(), values=()))
        names = [buffer.name for buffer in original.program.arguments]
        constants = [names[n] for n in job.constants]

        def kernels(schedule: Schedule) -> tuple[SplitProgram, list[DeviceCode]]:
            parts = split_program(replace(schedule.program, name=job.name), constants)
            return parts, [_code(program, job) for program in (parts.prepare, parts.main) if program is not None]

        machine = target.machine(job.arch)
        form = None if job.form is None else Schedule(replace(job.form, constants=(), values=()))
        streamed = None if form is None else usable_form(form, target, machine, kernels)
        usable = streamed or usable_kernel(original, target, machine, 1, kernels)
    parts, (*before, call) = usable.kernel
    first = len(parts.main.arguments) - parts.main.outputs
    takes = _positions(parts.main.arguments[:first], names)
    form_name = STREAMED if streamed is not None else ""
    verdict = "; ".join(filter(None, (str(usable.verdict), form_name, usable.refused)))
    if parts.prepare is None:
        return DeviceUnit(call, takes, None, (), (), verdict, perf_counter() - start)
    arguments, count = parts.prepare.arguments, len(parts.prepared)
    prepares = _positions(arguments[:-count], names)
    return DeviceUnit(call, takes, before[0], prepares, arguments[-count:], verdict, perf_counter() - start)


def _positions(buffers: tuple[Buffer, ...], names: list[str]) -> tuple[int, ...]:
    """Return the positions in `names`, the arguments as written, of buffers; buffers not among them are skipped."""
    return tuple(names.index(buffer.name) for buffer in buffers if buffer.name in names)


def _code(program: Program, job: DeviceJob) -> DeviceCode:
    """Compile scheduled loops to a kernel, with the user's names in its text."""
    target = target_named(job.target)
    module = ModuleOp([write(program_with_user_names(program, job.user_names, {}))])
    kernel = target.make_kernel(*lower_for(target, module, None, job.policy), job.policy, job.arch)
    return DeviceCode(program.name, kernel)
