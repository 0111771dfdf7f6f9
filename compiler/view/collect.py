"""`page_of_kernel` and `page_of_schedule`: what a page about a program shows; `write_view`: its file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from compiler.dialects.functions import find_function
from compiler.pipeline.loops import lower
from compiler.pipeline.source import level_of, module_of
from compiler.program.read import read
from compiler.schedule.script import Script, script_of
from compiler.support import files
from compiler.support.errors import InputError, TargetError
from compiler.support.text import counted, unknown
from compiler.targets.cpu.kernel import Kernel
from compiler.types.machines import host
from compiler.view.page import page
from compiler.view.parts import page_part
from compiler.view.records import IrStage, PagePart, ProgramPage
from compiler.view.stages import compared, stage
from compiler.view.subject import PageSubject, certificate_of, subjects_of

CERTIFICATE = "certificate"


def page_of_kernel(kernel: Kernel, group: str | None = None, program: object = None) -> ProgramPage:
    """What a page shows of a kernel: the program if it calls groups, then each group, or only the one named `group`.
    program: what was built, for its lines of source. Raises TargetError for a kernel without texts, such as a pickled
    one, and InputError for an unknown group."""
    if CERTIFICATE not in kernel.levels:
        raise TargetError(f"{kernel.name}: its texts were not kept, which a page shows: build it in this process")
    certificate = certificate_of(kernel.text(CERTIFICATE))
    subjects = list(subjects_of(certificate, kernel.groups, program, kernel.policy))
    names = [subject.name for subject in subjects]
    if group is not None and group not in names:
        raise InputError(f"{unknown('group', group, names)} ({kernel.name} has {', '.join(names)})")
    chosen = [subject for subject in subjects if group in (None, subject.name)]
    threads = kernel.threads or 1
    parts = [page_part(subject, kernel.policy, threads) for subject in chosen]
    if certificate["main"] and group is None:
        parts.insert(0, _main(kernel, certificate["source"], certificate["program"], certificate["main"]))
    about = f"{counted(len(names), 'group')}, " if certificate["main"] else ""
    return _page(kernel.name, f"{about}{counted(threads, 'thread')}, policy {kernel.policy}.", parts)


def page_of_schedule(x: object, script: Script, name: str | None = None, policy: str = "contract") -> ProgramPage:
    """What a page shows of a program under a script, which may be refused. Raises the errors of `lower`, and
    ScheduleError for what is no script."""
    source = module_of(x)
    loops = lower(x)
    function = find_function(loops, name)
    te = ModuleOp([find_function(source, name).clone()]) if level_of(source) == "te" else None
    sequence = script_of(script)
    facts = [f"script of {counted(len(sequence.body.block.ops) - 1, 'step')}"]
    part = page_part(PageSubject(function.sym_name.data, te, read(function), sequence, None, facts), policy)
    return _page(part.name, f"One function under a script, policy {policy}.", [part])


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


def _page(name: str, sentence: str, parts: list[PagePart]) -> ProgramPage:
    machine = host()
    described = f"For {machine.cpu}, vectors of {machine.vector_bits} bits; bounds of loops are with all data in L1."
    caches = {"L1": machine.l1_bytes, "L2": machine.l2_bytes, "L3": machine.l3_bytes}
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
