"""The program of a command: an MLIR file, a model, or a workload of `strata bench`."""

from __future__ import annotations

import argparse
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from xdsl.utils.exceptions import VerifyException

from compiler.cli.model import Shapes, model_of, shape_argument
from compiler.cli.printing import input_error
from compiler.cli.values import positive, scale
from compiler.support.errors import InputError
from compiler.support.files import read

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from compiler.autotune.task import SearchTask
    from compiler.bench.workload import Workload
    from compiler.driver.parts.groups import Group, GroupedProgram
    from compiler.frontends.model import Imported
    from compiler.te import Function
    from compiler.types.machines import Machine


def workload(name: str, scaled: Fraction) -> Workload | None:
    """Find a workload by name, with its extents times `scaled`; None for a file or -. Raises InputError for an unknown
    name, and for a file with a scale."""
    if name == "-" or name.endswith((".mlir", ".onnx")) or Path(name).exists():
        if scaled != 1:
            raise InputError(f"{name} is a file: --scale is for the workloads of strata bench")
        return None
    from compiler.bench import workloads

    return workloads.find(name, scaled)


def module(name: str, shapes: Shapes = ()) -> ModuleOp:
    """The verified module of an MLIR file, of standard input (-), or of an ONNX model with these shapes. Raises
    InputError for a file or model that cannot be read, ParseError for invalid MLIR, VerifyException for an invalid
    module."""
    from compiler.pipeline.source import parse

    model = model_of(name, shapes)
    return parse(read(name), "<stdin>" if name == "-" else name) if model is None else model.function.module


def selected(options: argparse.Namespace) -> Function | Imported | ModuleOp:
    """The program of the arguments: a workload's function, a model, or a file's module. Raises InputError for an
    unknown name and for a file or model that cannot be read, ParseError for invalid MLIR, VerifyException for an
    invalid module."""
    benchmark, model = workload(options.program, options.scale), model_of(options.program, options.shape)
    if benchmark is not None:
        return benchmark.function()
    return module(options.program) if model is None else model


def whole(program: object, policy: str = "contract", error: float | None = None) -> GroupedProgram | None:
    """Partition a te program into groups, in the forms that `build` uses under a policy and a rounding error; None for
    a single group, or below te. Raises VerifyException for invalid groups, and the errors of `import_model` for a
    model."""
    from compiler.alternatives import Conditions
    from compiler.driver.parts.groups import te_module
    from compiler.driver.parts.partition import partition
    from compiler.pipeline.models import program_and_constants
    from compiler.types.machines import host

    function, constants = program_and_constants(program, None)
    if te_module(function) is None:
        return None
    return partition(function, tuple(constants or ()), conditions=Conditions(host(), policy, error=error)).grouped


def group(program: GroupedProgram | None, options: argparse.Namespace) -> Group:
    """Find the group named by `--group`. Raises InputError for an unknown name, and for a program without groups."""
    if program is None:
        raise InputError(f"{options.program} is one program: it has no groups, such as '{options.group}'")
    return program.group(options.group)


def task_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that select a program to tune, and its target."""
    add = parser.add_argument
    add("program", metavar="FILE|NAME", help="an MLIR file (- is standard input), an ONNX model, or a workload")
    shape_argument(parser)
    add("--scale", type=scale, default=Fraction(1), help="multiply every extent of a workload: 1/4 or 0.25")
    add("--function", help="which of several functions of a file")
    add("--group", metavar="NAME", help="that group of a whole program alone")
    add("--constants", metavar="A,B", help="inputs that never change: their layout is made once, and not timed")
    add("--threads", type=positive, help="threads for parallel loops (default: OMP_NUM_THREADS, or the cores)")
    add("--target", default="cpu", help="what it is for: cpu, the default, or a GPU's target")
    add("--arch", help="of a GPU: the architecture (default: that of the GPU at hand, or sm_80)")


def task(
    options: argparse.Namespace,
    policy: str = "contract",
    machine: Machine | None = None,
    error: float | None = None,
) -> SearchTask:
    """The tuning task of the program, or of its `--group`, for a machine (None: this). `error`: the rounding error up
    to which laws apply. Raises InputError for an invalid program or group, TargetError for an unknown target."""
    from compiler.autotune.task import SearchTask

    benchmark, model = workload(options.program, options.scale), model_of(options.program, options.shape)
    constants = [name.strip() for name in options.constants.split(",")] if options.constants is not None else []
    make_task = partial(
        SearchTask,
        target=options.target,
        threads=options.threads,
        policy=policy,
        constants=constants,
        arch=options.arch,
        machine=machine,
        error=error,
    )
    try:
        if benchmark is not None:
            selected_task = make_task(benchmark.function(), name=benchmark.name)
        elif model is not None:
            selected_task = make_task(model)
        else:
            selected_task = make_task(_module_with(module(options.program), options.function))
        return selected_task if options.group is None else selected_task.group(options.group)
    except VerifyException as error:
        raise input_error(error, options.program) from error


def _module_with(module: ModuleOp, function: str | None) -> ModuleOp:
    """Move the function of a name out of `module`, and return a new module with it; None returns `module` itself.
    Raises InputError for an unknown name."""
    if function is None:
        return module
    from xdsl.dialects.builtin import ModuleOp

    from compiler.dialects.functions import find_function

    function_op = find_function(module, function)
    function_op.detach()
    return ModuleOp([function_op])
