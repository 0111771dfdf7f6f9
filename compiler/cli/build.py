"""`strata build FILE`: compile a program and print or write it at a level."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from xdsl.utils.exceptions import VerifyException

from compiler.cli import program
from compiler.cli.model import imported, shape_argument
from compiler.cli.printing import refused
from compiler.cli.values import fraction, positive
from compiler.support.errors import InputError
from compiler.support.files import write
from compiler.targets.gpus import DEFAULT_ARCH
from compiler.targets.registry import CPU, target_named
from compiler.types.policies import POLICIES

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from compiler.frontends.model import Imported
    from compiler.targets.target import AnyKernel, Target

Made = TypeVar("Made")
LEVELS = ("te", "loop", "low", "llvm", "asm")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """State the command's arguments."""
    program_arguments(parser)
    parser.add_argument("-o", "--output", help="the file to write; .ll is LLVM IR, .s is assembly, .c is C")
    parser.add_argument("--emit", choices=LEVELS, help="the level, where the output's name does not say it")
    parser.add_argument("--target", default=CPU, help="what it is for: cpu, the default, c, or a GPU's target")
    parser.add_argument("--arch", default=DEFAULT_ARCH, help="of a GPU: the architecture (default: %(default)s)")


def program_arguments(parser: argparse.ArgumentParser) -> None:
    """State the arguments that pick a program and how it is compiled."""
    parser.add_argument(
        "file", help="the MLIR file, at the te, loop or low level, - is standard input; an ONNX model; or a workload"
    )
    shape_argument(parser)
    parser.add_argument("--function", help="which of several functions")
    parser.add_argument("--policy", choices=POLICIES, default="contract", help="liberties of floating point")
    schedule_argument(parser)
    error_argument(parser)
    parser.add_argument(
        "--threads", type=positive, help="threads for parallel loops (default: OMP_NUM_THREADS, or the cores)"
    )


def schedule_argument(parser: argparse._ActionsContainer) -> None:
    """State the argument that says how te programs are scheduled."""
    said = "of a te program: auto, written, or the path of a database (default: STRATA_SCHEDULE, or auto)"
    parser.add_argument("--schedule", metavar="WAY", help=said)


def error_argument(parser: argparse._ActionsContainer) -> None:
    """State the argument that says which rounding error other forms of groups may have."""
    said = "the error, max|y - exact| / max|y| of a group, up to which laws give it other forms (default: as written)"
    parser.add_argument("--error", type=fraction, metavar="E", help=said)


def parsed(options: argparse.Namespace) -> ModuleOp | Imported:
    """The verified module, or the model, of the file that the arguments name. Raises InputError where it does not
    verify."""
    model = imported(options.file, options.shape)
    if model is not None:
        return model
    if _is_workload(options.file):
        from compiler.bench import workloads

        return workloads.find(options.file).function().module
    try:
        return program.module(options.file)
    except VerifyException as error:
        raise refused(error, "<stdin>" if options.file == "-" else options.file) from error


def _is_workload(name: str) -> bool:
    """Whether a name is a workload of `strata bench`, and no file."""
    from compiler.bench.workloads import FAMILIES, PRESETS

    return (name in PRESETS or name.partition(":")[0] in FAMILIES) and not Path(name).exists()


def built(
    options: argparse.Namespace, module: ModuleOp | Imported, target: str = CPU, arch: str = DEFAULT_ARCH
) -> AnyKernel:
    """The kernel of a module or model as the arguments say. Raises InputError as `parsed` does."""
    from compiler.driver.building import build

    how = partial(build, target=target, arch=arch, schedule=options.schedule, error=options.error)
    return compiled(options, module, how)


def compiled(options: argparse.Namespace, module: ModuleOp | Imported, how: Callable[..., Made]) -> Made:
    """What `build` or `build_unit` makes of a module as the arguments say. Raises InputError as `parsed` does."""
    try:
        return how(module, threads=options.threads, policy=options.policy, name=options.function)
    except VerifyException as error:
        raise refused(error, options.file) from error


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    target = target_named(options.target)
    name = options.emit or _text(target, options.output)
    if name not in (*LEVELS[:3], *target.texts) or (name not in target.texts and not target.in_units):
        raise InputError(f"the target {target.name} has no text '{name}' (it has {', '.join(target.texts)})")
    kernel = built(options, parsed(options), target.name, options.arch)
    text = target.text(kernel, name)
    if options.output is None:
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
        return 0
    write(options.output, [text])
    return 0


def _text(target: Target, output: str | None) -> str:
    """The text of a kernel that the name of a file stands for; the only one of a target that has no other."""
    name = target.suffixes.get(Path(output).suffix) if output is not None else None
    if name is None and len(target.texts) == 1:
        name = target.texts[0]
    if name is None:
        asked = "-o FILE.ll, -o FILE.s, or --emit with a level"
        raise InputError(f"it is not said what to build: give {asked} ({', '.join(LEVELS)})")
    return name
