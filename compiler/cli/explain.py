"""`strata explain FILE|NAME`: the generated code of a program, and its cost, by the room `explain`."""

from __future__ import annotations

import argparse
import json
from contextlib import nullcontext
from fractions import Fraction
from math import prod
from secrets import randbits
from typing import TYPE_CHECKING, Any

from xdsl.utils.exceptions import VerifyException

from compiler.cli import explain_kernels, explain_sources, program
from compiler.cli.build import error_argument, schedule_argument
from compiler.cli.model import shape_argument
from compiler.cli.printing import input_error, show_table
from compiler.cli.run import random_inputs
from compiler.cli.values import natural, positive, scale
from compiler.support.errors import InputError
from compiler.support.text import counted
from compiler.types.machines import host, missing_features
from compiler.types.policies import POLICIES
from compiler.types.selection import compiling_for, machine_for

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from compiler.bench.workload import Workload
    from compiler.driver.parts.groups import Group, GroupedProgram
    from compiler.explain.explanation import Explanation, InputSource
    from compiler.explain.profile import PeakProbe


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add = parser.add_argument
    help = "an MLIR file at any level (- is standard input), an ONNX model, or a workload of bench"
    add("program", metavar="FILE|NAME", help=help)
    shape_argument(parser)
    add("--scale", type=scale, default=Fraction(1), help="multiply every extent of a workload: 1/4 or 0.25")
    schedules = parser.add_mutually_exclusive_group()
    schedules.add_argument("--script", metavar="FILE", help="a schedule script to apply first")
    schedules.add_argument("--scheduled", action="store_true", help="a workload as bench measures it, on one thread")
    schedule_argument(schedules)
    error_argument(parser)
    add("--cpu", metavar="NAME", help="the code for that processor; one that cannot run here has no times")
    add("--function", help="which of several functions")
    add("--group", metavar="NAME", help="that group of a whole program; without it the groups are listed")
    add("--policy", choices=POLICIES, default="contract", help="liberties of floating point")
    add("--threads", type=positive, default=1, help="for how many threads it is built (default 1); one is timed")
    add("--loop", type=positive, metavar="N", help="only that machine loop, in detail; nothing is run")
    add("--asm", action="store_true", help="print the assembly of the machine loops")
    add("--static", action="store_true", help="run nothing: no times")
    add("--calls", type=positive, default=5, help="how many calls to measure (default 5)")
    add(
        "--seed",
        type=natural,
        help="of the random inputs (a new one each time by default), and of the script's choices",
    )
    add("--json", action="store_true", help="print the same as JSON")
    explain_sources.add_arguments(parser)
    explain_kernels.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Print the code and the cost of a program or of its group `--group`; of a program with groups, without `--group`,
    the time by parts of the model (not with `--json`) and the work of each group; with `--source`, `--line`, `--module`
    or `--try` such times alone; with `--target` the estimates of a GPU's kernels. Return 0. Raises TargetError for an
    unknown `--cpu` or `--target`, InputError for a program that does not verify, for an unknown name, group, line or
    module, and for options that need one group."""
    workload = program.workload(options.program, options.scale)
    with nullcontext() if options.cpu is None else compiling_for(machine_for(options.cpu)):
        return _run(options, workload)


def _run(options: argparse.Namespace, workload: Workload | None) -> int:
    try:
        of_kernels = explain_kernels.is_chosen(options)
        selected = _program(options, workload)
        if of_kernels:
            explain_kernels.print_kernels(_scripted(selected, options), options)
            return 0
        if explain_sources.is_chosen(options):
            _print_sources(selected, options)
            return 0
        program_of_groups = _whole(selected, options)
        if program_of_groups is not None and options.group is None:
            if not (options.json or options.loop or options.asm):
                _print_sources(selected, options)
                show_table("")
            _print_groups(program_of_groups, options)
            return 0
        if options.group is not None:
            selected, workload = _group(program_of_groups, options), None
        _explain(_scripted(selected, options), workload, options)
    except VerifyException as error:
        raise input_error(error, options.program) from error
    return 0


def _print_sources(selected: object, options: argparse.Namespace) -> None:
    """Print the time by parts of the model. Raises InputError for options that select one program or loop."""
    chosen = {"--group": options.group, "--loop": options.loop, "--script": options.script, "--asm": options.asm}
    name = next((name for name, value in chosen.items() if value), None)
    if name is not None:
        raise InputError(f"{name} selects loops, and --source, --line, --module and --try parts of the model")
    if options.cpu is not None and not options.static:
        options.static = bool(missing_features(host()))
    explain_sources.print_sources(selected, options)


def _explain(selected: object, workload: Workload | None, options: argparse.Namespace) -> None:
    """Print the generated code of one program and its cost, as text or JSON; run it unless `--static`, `--loop`, or if
    this computer lacks features of the machine. Inputs are the workload's, random if it is None."""
    from compiler.explain.builds import builds
    from compiler.explain.data import as_data, loop_data
    from compiler.explain.explanation import explain, loop_numbered

    built = builds(selected, options.policy, options.function, options.schedule, options.threads)
    static = options.static or options.loop is not None or bool(missing_features(host()))
    explanation = explain(built) if static else explain(built, _inputs(options, workload), options.calls, _probe())
    if options.loop is not None:
        loop_numbered(explanation, options.loop)
    if options.json:
        loop = options.loop
        print(json.dumps(as_data(explanation) if loop is None else loop_data(explanation.codes[loop - 1]), indent=1))
    else:
        _print_text(explanation, options)


def _whole(selected: object, options: argparse.Namespace) -> GroupedProgram | None:
    """The groups of a program; None if it is explained as a single group: a scheduled one, one function of several, or
    a program with one group only."""
    scheduled = options.scheduled or (options.script is not None and options.group is None)
    return None if scheduled or options.function is not None else program.whole(selected, options.policy, options.error)


def _group(program_of_groups: GroupedProgram | None, options: argparse.Namespace) -> ModuleOp:
    group = program.group(program_of_groups, options)
    return group.module_with_user_names if options.script is None else group.module  # scripts refer to canonical groups


def _print_groups(program_of_groups: GroupedProgram, options: argparse.Namespace) -> None:
    """Print the work of each group of a whole program. Raises InputError for options that need one group."""
    from rich.table import Column, Table

    if options.loop is not None or options.asm:
        names = ", ".join(group.name for group in program_of_groups.groups)
        raise InputError(
            f"{options.program} has groups, and each group has loops of its own: --group picks one ({names})"
        )
    if options.json:
        print(json.dumps([_group_data(group) for group in program_of_groups.groups], indent=1))
        return
    show_table(f"{options.program} has {counted(len(program_of_groups.groups), 'group')}; --group NAME explains one")
    numbers = (Column(heading, justify="right") for heading in ("calls", "computes", "Mflop", "MB of arguments"))
    table = Table("group", *numbers, box=None)
    for figures in map(_group_data, program_of_groups.groups):
        amounts = (f"{figures[name] / 1e6:.3g}" for name in ("operations", "bytes"))
        table.add_row(str(figures["name"]), str(figures["calls"]), str(figures["computes"]), *amounts)
    show_table(table)


def _group_data(group: Group) -> dict[str, Any]:
    """The data of a group: name, numbers of calls and computes; by call, floating-point operations and argument
    bytes."""
    from compiler.analysis.cost import total_flops
    from compiler.dialects.functions import find_function
    from compiler.pipeline.loops import lower
    from compiler.program.read import read
    from compiler.types.elements import element_bytes

    loops = read(find_function(lower(group.module)))
    argument_bytes = sum(prod(buffer.shape) * element_bytes(buffer.element) for buffer in loops.arguments)
    flops = total_flops(loops, loops.body)
    return {
        "name": group.name,
        "calls": group.occurrences,
        "computes": len(loops.blocks),
        "operations": flops,
        "bytes": argument_bytes,
    }


def _print_text(explanation: Explanation, options: argparse.Namespace) -> None:
    from compiler.explain import text

    show_table(text.title(explanation))
    if options.loop is None:
        for number, (heading, table) in enumerate(text.sections(explanation)):
            show_table(f"\n{heading}\n")
            show_table(table if table.row_count else "none")
            if number == 0:
                show_table(text.outside(explanation))
    shown_codes = explanation.codes if options.loop is None else explanation.codes[options.loop - 1 : options.loop]
    for code in shown_codes if options.asm or options.loop is not None else ():
        show_table("\n" + "\n".join(text.details(code)))
        show_table(code.text if options.asm else "")


def _program(options: argparse.Namespace, workload: Workload | None) -> object:
    """The selected program; with `--scheduled` a workload under the script of `bench`. Raises InputError for
    `--scheduled` with a file, or with a workload that has no script."""
    if not options.scheduled:
        return program.selected(options)
    if workload is None:
        raise InputError(f"{options.program} is a file: --scheduled is for the workloads of strata bench")
    from compiler.bench.schedules import scheduled

    schedule = scheduled(workload)
    if schedule is None:
        raise InputError(f"compiler/bench/schedules.py has no script for {workload.name}")
    return schedule


def _scripted(x: object, options: argparse.Namespace) -> object:
    """Apply the schedule of `--script` to a program, at the loop level; without one, return the program as it is."""
    if options.script is None:
        return x
    from compiler import universe
    from compiler.passes.schedule.script import ApplySchedulePass
    from compiler.pipeline.loops import lower

    module = lower(x)
    ApplySchedulePass(options.script, options.function, options.seed or 0).apply(universe.context(), module)
    return module


def _probe() -> PeakProbe:
    """Return a function that measures one core's floating-point operations per second for some seconds."""
    from compiler.targets.cpu.ceilings import Arithmetic

    ceiling = Arithmetic(1)
    return lambda seconds: ceiling.probe(seconds).rate


def _inputs(options: argparse.Namespace, workload: Workload | None) -> InputSource:
    """Return a function that draws a kernel's inputs: those of the workload, or random ones as in `strata run`."""
    seed = randbits(32) if options.seed is None else options.seed
    if workload is not None:
        return lambda kernel: workload.draw(seed)
    return lambda kernel: random_inputs(kernel, seed)
