"""`strata view FILE`: write a page about a program: its passes, loops, script, memory, machine code and proof."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from xdsl.dialects.transform import NamedSequenceOp
from xdsl.utils.exceptions import VerifyException

from compiler.cli.build import build_kernel, parse_file, program_arguments
from compiler.cli.printing import input_error, show
from compiler.cli.program import module, workload
from compiler.support.errors import InputError
from compiler.support.files import write
from compiler.targets.registry import CPU, target_named

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from compiler.frontends.model import Imported
    from compiler.view.records import ProgramPage


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    program_arguments(parser)
    scripts = "a schedule script to apply, step by step; a file that has one itself needs none"
    parser.add_argument("--script", metavar="FILE", help=scripts)
    parser.add_argument("--original", metavar="FILE", help="of loops edited by hand: the program that they compute")
    parser.add_argument("--group", metavar="NAME", help="only that group of a whole program")
    parser.add_argument("--target", default=CPU, help="what it is for: cpu, the default, c, or a GPU's target")
    parser.add_argument("--arch", help="of a GPU: the architecture, such as sm_90")
    parser.add_argument("-o", "--output", metavar="PATH", help="the page (default: FILE's name.html; - is the output)")


def run(options: argparse.Namespace) -> int:
    """Write the page of a program and, unless it goes to standard output, print its path; return 0. Raises InputError
    for a program that does not verify, for an unknown group, and for a refused script, after the page with the step and
    its witness is written; also the errors of `build`."""
    from compiler.pipeline.source import parse
    from compiler.view.collect import default_path
    from compiler.view.page import page

    try:
        program = parse_file(options)
        if workload(options.file, Fraction(1)) is not None:
            program = parse(str(program))  # its lines of source are no user's
        shown = _shown(options, program)
    except VerifyException as error:
        raise input_error(error, options.file) from error
    _write(page(shown), options, default_path(shown.name if options.file == "-" else Path(options.file).stem))
    if shown.refusal is None:
        return _status(shown)
    refused = InputError(shown.refusal.sentence)
    raise refused if shown.refusal.span is None else refused.within(shown.refusal.span)


def _status(shown: ProgramPage) -> int:
    """The exit status for a page without a refusal: 0. Raises InputError for loops that are not proved to compute their
    original."""
    if shown.fault is not None:
        raise InputError(shown.fault)
    return 0


def _write(lines: Iterable[str], options: argparse.Namespace, default: Path) -> None:
    """Write a page to `--output`, by default to the path `default`, and print the path; `-` is standard output."""
    if options.output == "-":
        sys.stdout.writelines(lines)
        return
    path = str(default) if options.output is None else options.output
    write(path, lines)
    show(path)


def _shown(options: argparse.Namespace, program: ModuleOp | Imported) -> ProgramPage:
    """What the page shows of a program: under a script if there is one, else as `--target` compiles it. Raises
    InputError for options that a script or a target excludes."""
    from compiler.view.collect import page_of_kernel, page_of_loops, page_of_schedule, page_of_target
    from compiler.view.parts import PageTarget

    target = target_named(options.target)
    way = PageTarget(options.policy)
    if not target.in_units:
        way = PageTarget(options.policy, target.threads(options.threads), target, options.arch or target.arch())
    script = _script(options, program)
    if script is not None:
        _exclude(
            options,
            ("group", "schedule", "error", "original"),
            "a program that Strata schedules, not for one under a script",
        )
        return page_of_schedule(program, script, options.function, way)
    if options.original is not None:
        _exclude(options, ("group", "schedule", "error"), "a program that Strata schedules, not for loops of one's own")
        return page_of_loops(program, module(options.original), options.function, way)
    if way.target is not None:
        _exclude(options, ("schedule", "error"), "a CPU's programs")
        return page_of_target(program, way, options.function, options.group)
    return page_of_kernel(build_kernel(options, program), options.group, program)


def _exclude(options: argparse.Namespace, names: Sequence[str], kind: str) -> None:
    """Raise InputError for an option that is stated, but is for programs of a kind only."""
    for name in names:
        if getattr(options, name) is not None:
            raise InputError(f"--{name} is for {kind}")


def _script(options: argparse.Namespace, program: ModuleOp | Imported) -> Path | NamedSequenceOp | None:
    """The script of `--script`, or that a file has beside its program, which it leaves; None without one."""
    if options.script is not None:
        return Path(options.script)
    sequences = [op for op in getattr(program, "ops", ()) if isinstance(op, NamedSequenceOp)]
    for sequence in sequences:
        sequence.detach()
    return sequences[0] if sequences else None
