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
from compiler.cli.model import model_of, shape_argument
from compiler.cli.printing import input_error
from compiler.cli.values import fraction, positive
from compiler.support.errors import InputError
from compiler.support.files import write
from compiler.targets.gpus import DEFAULT_ARCH
from compiler.targets.registry import CPU, TARGET_TEXTS, target_named
from compiler.types.policies import POLICIES

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from compiler.frontends.model import Imported
    from compiler.targets.target import AnyKernel, Target

Built = TypeVar("Built")
LEVELS = ("te", "loop", "low", "llvm", "asm")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    program_arguments(parser)
    texts_help = ".ll is LLVM IR, .s assembly, .c a library as C, .cu CUDA C++, .json its launches"
    output_help = f"the file to write: {texts_help}; .so, .a, .o or a folder a library with headers"
    parser.add_argument("-o", "--output", help=output_help)
    level_help = "the level, or the target's text, where the output's name does not say it"
    parser.add_argument("--emit", choices=(*LEVELS, *TARGET_TEXTS), help=level_help)
    parser.add_argument(
        "--cpu",
        metavar="NAMES",
        help="the processors of a library, best first (default: native); CPU=NAME takes records of the machine NAME",
    )
    parser.add_argument("--features", metavar="F", help="features that they have or lack, as +avx512vnni,-avx512bf16")
    parser.add_argument("--library", metavar="NAME", help="the prefix of functions (default: the file's name)")
    parser.add_argument(
        "--weights", choices=("library", "file", "none"), help="where the weights of a library are (default: library)"
    )
    parser.add_argument("--target", default=CPU, help="what it is for: cpu, the default, c, or a GPU's target")
    parser.add_argument("--arch", default=DEFAULT_ARCH, help="of a GPU: the architecture (default: %(default)s)")


def program_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that select a program and its compilation."""
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
    """Add the option `--schedule` for te programs: auto, written, or the path of a database."""
    help = "of a te program: auto, written, or the path of a database (default: STRATA_SCHEDULE, or auto)"
    parser.add_argument("--schedule", metavar="WAY", help=help)


def error_argument(parser: argparse._ActionsContainer) -> None:
    """Add the option `--error`: the rounding error up to which laws may give groups other forms."""
    help = "the error, max|y - exact| / max|y| of a group, up to which laws give it other forms (default: as written)"
    parser.add_argument("--error", type=fraction, metavar="E", help=help)


def parse_file(options: argparse.Namespace) -> ModuleOp | Imported:
    """Read the program of the argument `file`: the verified module of an MLIR file or workload, or an ONNX model.
    Raises InputError for a file that cannot be read or an invalid program, ParseError for invalid MLIR."""
    model = model_of(options.file, options.shape)
    if model is not None:
        return model
    if _is_workload(options.file):
        from compiler.bench import workloads

        return workloads.find(options.file).function().module
    try:
        return program.module(options.file)
    except VerifyException as error:
        raise input_error(error, "<stdin>" if options.file == "-" else options.file) from error


def _is_workload(name: str) -> bool:
    """Whether a name is a workload of `strata bench`, and no file has that name."""
    from compiler.bench.workloads import FAMILIES, PRESETS

    return (name in PRESETS or name.partition(":")[0] in FAMILIES) and not Path(name).exists()


def build_kernel(
    options: argparse.Namespace, module: ModuleOp | Imported, target: str = CPU, arch: str = DEFAULT_ARCH
) -> AnyKernel:
    """Build a kernel of a program for a target with the command's options. Raises InputError for an invalid program."""
    from compiler.driver.building import build

    build_function = partial(build, target=target, arch=arch, schedule=options.schedule, error=options.error)
    return call_build(options, module, build_function)


def call_build(options: argparse.Namespace, module: ModuleOp | Imported, build_function: Callable[..., Built]) -> Built:
    """Return the result of `build` or `build_unit` for the command's threads, policy and function. Raises InputError
    for a program that does not verify."""
    try:
        return build_function(module, threads=options.threads, policy=options.policy, name=options.function)
    except VerifyException as error:
        raise input_error(error, options.file) from error


def run(options: argparse.Namespace) -> int:
    """Build a program, and print its text at a level or write it to the output; return 0. Raises InputError for a
    program that cannot be read or does not verify, for a text that the target does not have, for options of a library
    without one, and for a file that cannot be written; TargetError for an unknown target or processor."""
    target = target_named(options.target)
    if _is_library(options, target):
        return _export(options)
    for option in ("weights", "library", "cpu", "features"):
        if getattr(options, option) is not None:
            raise InputError(f"--{option} is of a library: give -o a name that ends in .so, .a or .o, or a folder")
    name = options.emit or _text(target, options.output)
    names = _texts(target)
    if name not in names:
        raise InputError(f"the target {target.name} has no text '{name}' (it has {', '.join(names)})")
    kernel = build_kernel(options, parse_file(options), target.name, options.arch)
    text = target.text(kernel, name)
    if options.output is None:
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
        return 0
    write(options.output, [text])
    return 0


def _is_library(options: argparse.Namespace, target: Target) -> bool:
    """Whether the output is a library: by its suffix, as a folder, or because `--cpu` or `--features` is stated; False
    with `--emit` and for a target without libraries."""
    if options.output is None or options.emit is not None or not target.library_suffixes:
        return False
    suffix = Path(options.output).suffix
    if suffix in target.suffixes and (options.cpu is not None or options.features is not None):
        return True
    return suffix in target.library_suffixes or (not suffix and not Path(options.output).is_file())


def _export(options: argparse.Namespace) -> int:
    """Build a program and write it as a library; print the paths and return 0."""
    from compiler.driver.exporting import export

    cpus = ("native",) if options.cpu is None else tuple(options.cpu.split(","))
    build_function = partial(export, path=options.output, weights=options.weights or "library", cpus=cpus)
    build_function = partial(build_function, features=options.features or "", library=options.library)
    build_function = partial(build_function, schedule=options.schedule, error=options.error)
    for path in call_build(options, parse_file(options), build_function):
        print(path)
    return 0


def _texts(target: Target) -> tuple[str, ...]:
    """The names that `--emit` accepts for a target."""
    return (*LEVELS[:3], *target.texts) if target.in_units else target.texts


def _text(target: Target, output: str | None) -> str:
    """The name of the text to write, such as llvm: by the output's suffix, else the target's only text, else, for a
    target not compiled in units and without an output, its first one. Raises InputError if none of these decides."""
    name = target.suffixes.get(Path(output).suffix) if output is not None else None
    if name is None and (len(target.texts) == 1 or (output is None and not target.in_units)):
        name = target.texts[0]
    if name is None:
        files = "".join(f"-o FILE{suffix}, " for suffix in target.suffixes)
        raise InputError(f"it is not said what to build: give {files}or --emit ({', '.join(_texts(target))})")
    return name
