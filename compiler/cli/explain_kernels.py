"""`strata explain --target`: the estimated time of a program's kernels on a GPU, and what bounds each."""

from __future__ import annotations

import argparse
import json

from compiler.cli import program
from compiler.cli.printing import show_table
from compiler.support.errors import InputError
from compiler.targets.gpus import DEFAULT_ARCH

OF_CPU = ("cpu", "loop", "asm", "schedule", "error", "threads", "source", "line", "module", "trials", "scheduled")
"""The options of machine loops and of times, by their names in the arguments."""
DEFAULTS = {"asm": False, "threads": 1, "source": False, "scheduled": False}
"""Their values if they are not given; None for others."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that select a GPU."""
    add = parser.add_argument
    add("--target", metavar="NAME", help="a GPU's target: an estimate of its kernels, nothing is run")
    add("--arch", help=f"with --target, the architecture (default: {DEFAULT_ARCH})")


def is_chosen(options: argparse.Namespace) -> bool:
    """Return whether kernels of a GPU are explained. Raises InputError for `--arch` without `--target`."""
    if options.arch is not None and options.target is None:
        raise InputError("--arch is the architecture of a GPU: give its --target, too")
    return options.target is not None


def print_kernels(selected: object, options: argparse.Namespace) -> None:
    """Print the estimates of the kernels of a program, or of its group `--group`, as a table or as JSON. Raises
    InputError for options of machine loops and a program without kernels, TargetError for an unknown target or
    architecture and for a target without kernels."""
    from compiler.dialects.functions import find_function
    from compiler.explain.kernels import GpuSettings, estimated_kernels, summary, table_of
    from compiler.pipeline.models import program_and_constants
    from compiler.pipeline.source import module_of
    from compiler.targets.registry import gpu_of, target_named

    excluded = next((name for name in OF_CPU if getattr(options, name) != DEFAULTS.get(name)), None)
    if excluded is not None:
        name = "--try" if excluded == "trials" else f"--{excluded}"
        raise InputError(f"{name} is of machine code, and --target explains the kernels of a GPU")
    arch = options.arch or DEFAULT_ARCH
    settings = GpuSettings(target_named(options.target), arch, gpu_of(options.target, arch), options.policy)
    whole = None if options.script or options.function else program.whole(selected, options.policy, error=0)
    if options.group is not None:
        groups = [program.group(whole, options)]
        parts = [(group.module_with_user_names, group.name, group.occurrences) for group in groups]
    elif whole is not None:
        parts = [(group.module_with_user_names, group.name, group.occurrences) for group in whole.groups]
    else:
        module = module_of(program_and_constants(selected, None)[0])
        parts = [(module, find_function(module, options.function).sym_name.data, 1)]
    kernels = [kernel for part in parts for kernel in estimated_kernels(*part, settings, options.function)]
    if not kernels:
        raise InputError("the program has no kernels: nothing is launched")
    if options.json:
        print(json.dumps([kernel.data for kernel in kernels], indent=1))
        return
    show_table(summary(kernels, settings.gpu) + "\n")
    show_table(table_of(kernels))
