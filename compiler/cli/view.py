"""`strata view FILE`: write a page about a program: its passes, loops, script, memory, machine code and proof."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from xdsl.dialects.transform import NamedSequenceOp
from xdsl.utils.exceptions import VerifyException

from compiler.cli.build import build_kernel, parse_file, program_arguments
from compiler.cli.printing import input_error, show
from compiler.support.errors import InputError
from compiler.support.files import write

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from compiler.frontends.model import Imported
    from compiler.view.records import ProgramPage


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    program_arguments(parser)
    scripts = "a schedule script to apply, step by step; a file that has one itself needs none"
    parser.add_argument("--script", metavar="FILE", help=scripts)
    parser.add_argument("--group", metavar="NAME", help="only that group of a whole program")
    parser.add_argument("-o", "--output", metavar="PATH", help="the page (default: FILE's name.html; - is the output)")


def run(options: argparse.Namespace) -> int:
    """Write the page of a program and print its path; return 0. Raises InputError for a program that does not verify,
    for an unknown group, and for a refused script, after the page with the step and its witness is written; also the
    errors of `build`."""
    from compiler.view.collect import default_path, page_of_kernel
    from compiler.view.page import page

    try:
        program = parse_file(options)
        shown = _under_script(options, program)
        if shown is None:
            shown = page_of_kernel(build_kernel(options, program), options.group, program)
    except VerifyException as error:
        raise input_error(error, options.file) from error
    _write(page(shown), options, default_path(shown.name if options.file == "-" else Path(options.file).stem))
    if shown.refusal is None:
        return 0
    refused = InputError(shown.refusal.sentence)
    raise refused if shown.refusal.span is None else refused.within(shown.refusal.span)


def _write(lines: Iterable[str], options: argparse.Namespace, default: Path) -> None:
    """Write a page to `--output`, by default to a path that is printed then; `-` is standard output."""
    if options.output == "-":
        sys.stdout.writelines(lines)
        return
    path = str(default) if options.output is None else options.output
    write(path, lines)
    show(path)


def _under_script(options: argparse.Namespace, program: ModuleOp | Imported) -> ProgramPage | None:
    """The page of a program under the script of `--script`, or that the file has beside the program; None without one.
    Raises InputError for options that a script excludes."""
    from compiler.frontends.model import Imported
    from compiler.view.collect import page_of_schedule

    sequences = [] if isinstance(program, Imported) else [op for op in program.ops if isinstance(op, NamedSequenceOp)]
    if options.script is None and not sequences:
        return None
    for option in ("group", "schedule", "error"):
        if getattr(options, option) is not None:
            raise InputError(f"--{option} is for a program that Strata schedules, not for one under a script")
    script: Path | NamedSequenceOp = sequences[0] if options.script is None else Path(options.script)
    if options.script is None:
        for sequence in sequences:
            sequence.detach()
    return page_of_schedule(program, script, options.function, options.policy)
