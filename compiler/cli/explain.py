"""`strata explain FILE|NAME`: what was generated for a program, and what it costs; compiler/explain finds it out."""

from __future__ import annotations

import argparse
import json
from fractions import Fraction
from secrets import randbits
from typing import TYPE_CHECKING

from xdsl.utils.exceptions import VerifyException

from compiler.cli import program
from compiler.cli.checkout import Workload, benchmarks
from compiler.cli.run import draw
from compiler.cli.said import sentence, show_table
from compiler.cli.values import positive, scale, seed
from compiler.errors import InputError
from compiler.policies import POLICIES

if TYPE_CHECKING:
    from compiler.explain.builds import Builds
    from compiler.explain.explanation import Draw, Explanation
    from compiler.explain.profile import Probe

HELP = "show the innermost loops of the machine code, where the time goes, and the temporaries"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """State the command's arguments."""
    add = parser.add_argument
    add("program", metavar="FILE|NAME", help="an MLIR file at any level (- is standard input), or a workload of bench")
    add("--scale", type=scale, default=Fraction(1), help="multiply every extent of a workload: 1/4 or 0.25")
    schedules = parser.add_mutually_exclusive_group()
    schedules.add_argument("--script", metavar="FILE", help="a schedule script to apply first")
    schedules.add_argument("--scheduled", action="store_true", help="a workload as bench measures it, on one thread")
    add("--function", help="which of several functions")
    add("--policy", choices=POLICIES, default="contract", help="liberties of floating point")
    add("--loop", type=positive, metavar="N", help="only that machine loop, in detail; nothing is run")
    add("--asm", action="store_true", help="print the assembly of the machine loops")
    add("--static", action="store_true", help="run nothing: no times")
    add("--calls", type=positive, default=5, help="how many calls to measure (default 5)")
    add("--seed", type=seed, help="of the random inputs (a new one each time by default), and of the script's choices")
    add("--json", action="store_true", help="print the same as JSON")


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from compiler.explain.explanation import explain, numbered

    workload = program.workload(options.program, options.scale)
    built = _built(options, workload)
    static = options.static or options.loop is not None
    found = explain(built) if static else explain(built, _inputs(options, workload), options.calls, _probe())
    if options.loop is not None:
        numbered(found, options.loop)
    if options.json:
        _print_json(found, options.loop)
    else:
        _print_text(found, options)
    return 0


def _print_json(found: Explanation, loop: int | None) -> None:
    from compiler.explain.data import as_data, loop_data

    print(json.dumps(as_data(found) if loop is None else loop_data(found.codes[loop - 1]), indent=1))


def _print_text(found: Explanation, options: argparse.Namespace) -> None:
    from compiler.explain import text

    show_table(text.title(found))
    if options.loop is None:
        for number, (heading, table) in enumerate(text.sections(found)):
            show_table(f"\n{heading}\n")
            show_table(table if table.row_count else "none")
            if number == 0:
                show_table(text.outside(found))
    chosen = found.codes if options.loop is None else found.codes[options.loop - 1 : options.loop]
    for one in chosen if options.asm or options.loop is not None else ():
        show_table("\n" + "\n".join(text.details(one)))
        show_table(one.text if options.asm else "")


def _built(options: argparse.Namespace, workload: Workload | None) -> Builds:
    """The program, scheduled and built."""
    from compiler.explain.builds import builds

    try:
        return builds(_program(options, workload), options.policy, options.function)
    except VerifyException as error:
        raise InputError(f"{options.program}: {sentence(error)}") from error


def _program(options: argparse.Namespace, workload: Workload | None) -> object:
    """The program as it is to be built: under its own script, under one that is given, or as it comes."""
    if workload is None:
        if options.scheduled:
            raise InputError(f"{options.program} is a file: --scheduled is for the workloads of strata bench")
        return _scripted(program.module(options.program), options)
    if not options.scheduled:
        return _scripted(workload.function(), options)
    schedule = benchmarks().scheduled(workload)
    if schedule is None:
        raise InputError(f"benchmarks/schedules has no script for {workload.name}")
    return schedule


def _scripted(x: object, options: argparse.Namespace) -> object:
    """The program after the script, where there is one."""
    if options.script is None:
        return x
    from compiler import universe
    from compiler.driver import lower
    from compiler.passes.schedule.script import ApplySchedulePass

    module = lower(x)
    ApplySchedulePass(options.script, options.function, options.seed or 0).apply(universe.context(), module)
    return module


def _probe() -> Probe:
    """The rate of floating-point operations that the machine reaches beside the program."""
    from compiler.targets.cpu.ceilings import Arithmetic

    ceiling = Arithmetic(1)
    return lambda seconds: ceiling.probe(seconds).rate


def _inputs(options: argparse.Namespace, workload: Workload | None) -> Draw:
    """How inputs are drawn: as the workload has them, or as `strata run` does."""
    import numpy as np

    chosen = randbits(32) if options.seed is None else options.seed
    if workload is not None:
        return lambda kernel: workload.draw(chosen)
    random = np.random.default_rng(chosen)
    return lambda kernel: [
        draw(a.shape, a.dtype, random) for a in kernel.arguments[: len(kernel.arguments) - kernel.outputs]
    ]
