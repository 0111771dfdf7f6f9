"""`page_of_kernel` and `page_of_schedule`: what a page about a program shows; `write_view`: its file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from compiler.dialects.functions import find_function
from compiler.driver.devices.function import usable_kernel
from compiler.driver.kernels import build_as_written
from compiler.driver.parts.groups import grouped_program
from compiler.graph.grouping import with_casts
from compiler.pipeline.loops import lower
from compiler.pipeline.models import program_and_constants
from compiler.pipeline.source import level_of, module_of, verified_module
from compiler.program.read import read
from compiler.schedule import Schedule
from compiler.schedule.script import Script, script_of
from compiler.support import files
from compiler.support.errors import InputError, TargetError
from compiler.support.text import counted, unknown
from compiler.targets.cpu.kernel import Kernel
from compiler.targets.target import AnyKernel, Target
from compiler.types.machines import host
from compiler.view.page import page
from compiler.view.parts import ON_CPU, PageTarget, page_part
from compiler.view.records import IrStage, PagePart, ProgramPage
from compiler.view.stages import compared, stage
from compiler.view.subject import PageSubject, certificate_of, subjects_of

CERTIFICATE = "certificate"
CACHES = {"block_shared_bytes": "shared", "l1_bytes": "L1", "l2_bytes": "L2", "l3_bytes": "L3"}
"""The names of memories near the processor, the nearest first, by the fact of a machine that has their bytes."""


def page_of_kernel(kernel: Kernel, group: str | None = None, program: object = None) -> ProgramPage:
    """What a page shows of a kernel: the program if it calls groups, then each group, or only the one named `group`.
    program: what was built, for its lines of source; a Schedule also for its script. Raises TargetError for a kernel
    without texts, such as a pickled one, and InputError for an unknown group."""
    if CERTIFICATE not in kernel.levels:
        raise TargetError(f"{kernel.name}: its texts were not kept, which a page shows: build it in this process")
    certificate = certificate_of(kernel.text(CERTIFICATE))
    subjects = list(subjects_of(certificate, kernel.groups, program, kernel.policy))
    names = [subject.name for subject in subjects]
    if group is not None and group not in names:
        raise InputError(f"{unknown('group', group, names)} ({kernel.name} has {', '.join(names)})")
    chosen = [subject for subject in subjects if group in (None, subject.name)]
    threads = kernel.threads or 1
    parts = [page_part(subject, PageTarget(kernel.policy, threads)) for subject in chosen]
    if certificate["main"] and group is None:
        parts.insert(0, _main(kernel, certificate["source"], certificate["program"], certificate["main"]))
    about = f"{counted(len(names), 'group')}, " if certificate["main"] else ""
    return _page(kernel.name, f"{about}policy {kernel.policy}.", parts, PageTarget(kernel.policy, threads))


def page_of_target(x: object, way: PageTarget, name: str | None = None, group: str | None = None) -> ProgramPage:
    """What a page shows of a program for the target of `way`, which is not a CPU's, under the schedules that its rules
    prefer: its groups if there are several and the target joins them, or only the one named `group`. Raises the errors
    of `build`, and InputError for an unknown group."""
    target = way.target
    assert target is not None
    module = verified_module(program_and_constants(x, None)[0], way.policy, name)
    grouped = None if target.program_kind is None else grouped_program(module, (), rules=with_casts())
    if group is not None and grouped is None:
        raise InputError(f"the program is one group: it has no groups, such as '{group}'")
    groups = () if grouped is None else grouped.groups if group is None else (grouped.group(group),)
    whole = find_function(module).sym_name.data
    modules = {each.name: each.module_with_user_names for each in groups} or {whole: module}
    calls = {each.name: [counted(each.occurrences, "call")] for each in groups}
    parts = [page_part(_derived(name, each, way, target, calls.get(name, [])), way) for name, each in modules.items()]
    about = f"{counted(len(groups), 'group')}, " if groups else ""
    return _page(whole, f"{about}policy {way.policy}.", parts, way)


def _derived(name: str, module: ModuleOp, way: PageTarget, target: Target, facts: list[str]) -> PageSubject:
    """A te function under the schedule that a target's rules prefer, of those that are proved and that it takes; loops
    as they are."""
    if level_of(module) != "te":
        return PageSubject(name, module=lower(module), facts=facts)

    def kernel(schedule: Schedule) -> AnyKernel:
        return build_as_written(schedule, target.name, policy=way.policy, arch=way.arch)

    usable = usable_kernel(Schedule(lower(module)), target, target.machine(way.arch), way.threads, kernel)
    facts += [str(usable.verdict), *([f"not the preferred one: {usable.refused}"] if usable.refused else [])]
    return PageSubject(name, module, usable.schedule.unscheduled, script_of(usable.schedule.script), None, facts)


def page_of_schedule(x: object, script: Script, name: str | None = None, way: PageTarget = ON_CPU) -> ProgramPage:
    """What a page shows of a program under a script, which may be refused. Raises the errors of `lower`, and
    ScheduleError for what is no script."""
    source = module_of(x)
    loops = lower(x)
    function = find_function(loops, name)
    te = ModuleOp([find_function(source, name).clone()]) if level_of(source) == "te" else None
    sequence = script_of(script)
    facts = [f"script of {counted(len(sequence.body.block.ops) - 1, 'step')}"]
    part = page_part(PageSubject(function.sym_name.data, te, read(function), sequence, None, facts), way)
    return _page(part.name, f"One function under a script, policy {way.policy}.", [part], way)


def page_of_loops(x: object, original: object, name: str | None = None, way: PageTarget = ON_CPU) -> ProgramPage:
    """What a page shows of a program at the loop level, such as one edited by hand, and of the proof that it computes
    what `original` does. Raises InputError for another level, and the errors of `lower` for the original."""
    module = module_of(x)
    if level_of(module) != "loop":
        raise InputError(f"loops are compared with an original, and the program is at the {level_of(module)} level")
    loops = ModuleOp([find_function(module, name).clone()])
    compared_with = read(find_function(lower(original), name))
    part = page_part(PageSubject(find_function(loops).sym_name.data, module=loops, original=compared_with), way)
    return _page(part.name, f"Loops beside their original, policy {way.policy}.", [part], way)


def _main(kernel: Kernel, source: str, program: str, main: str) -> PagePart:
    """The part of a whole program: its te program, that in groups, and the calls."""

    def stages() -> Iterator[IrStage]:
        if source and source != program:
            yield stage("te", source)
        yield stage("te in groups", program)
        yield stage("calls", main)

    note = "Each group has its own: choose one in the list."
    notes = dict.fromkeys(("nest", "script", "memory", "code", "proof"), note)
    facts = [counted(sum(group.occurrences for group in kernel.groups), "call")]
    return PagePart(f"@{kernel.name}", facts, compared(stages()), notes=notes)


def _page(name: str, sentence: str, parts: list[PagePart], way: PageTarget = ON_CPU) -> ProgramPage:
    machine = host() if way.target is None else way.target.machine(way.arch)
    bounds = "loops are with all data in L1" if way.target is None else "launches are estimates"
    described = f"For {machine.described(way.threads)}; the bounds of {bounds}."
    caches = {name: getattr(machine, fact) for fact, name in CACHES.items() if hasattr(machine, fact)}
    return ProgramPage(name, (sentence, described), caches, parts)


def write_view(kernel: Kernel, path: str | PathLike[str] | None = None, program: object = None) -> Path:
    """Write the page of a kernel to a file, by default NAME.html in the current folder; return its path. Raises
    InputError for a path that cannot be written, and the errors of `page_of_kernel`, which has `program`."""
    target = default_path(kernel.name) if path is None else files.to_path(path)
    files.write(target, page(page_of_kernel(kernel, program=program)))
    return target


def default_path(name: str) -> Path:
    """NAME.html in the current folder; characters other than letters, digits, `.`, `-` and `_` become `_`."""
    return Path(f"{re.sub(r'[^A-Za-z0-9._-]', '_', name)[:100].strip('.') or 'view'}.html")
