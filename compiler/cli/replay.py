"""`strata replay FILE|NAME LOG`: repeat a search from its log, without hardware, and report a difference."""

from __future__ import annotations

import argparse

from compiler.cli import program
from compiler.cli.printing import show
from compiler.support.errors import InputError
from compiler.support.files import read


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    program.task_arguments(parser)
    parser.add_argument("log", metavar="LOG", help="what `strata tune --log` has written")


def run(options: argparse.Namespace) -> int:
    """Repeat the search of a log and print its best script, if any; return 0. Raises InputError at the first
    difference, for text that is no log, and for a program of several groups; TargetError for an unknown target."""
    from compiler.autotune.search import replay
    from compiler.graph.user_names import script_with_user_names

    task, log = program.task(options), read(options.log)
    if task.groups:
        names = ", ".join(group.name for group in task.groups)
        raise InputError(f"{task.name} has groups, each with a log of its own: --group says which ({names})")
    try:
        search = replay(task.space, log)
    except InputError as error:
        raise InputError(f"{options.log}: {error}") from error
    if search.best is None:
        show(f"{task.name}: {len(search)} candidates were tried, none was measured")
        return 0
    show(f"// {task.name}: the search repeats; {len(search)} candidates were tried. {search.quality.line()}")
    script, provenance = task.space.short(search.best), task.space.names
    show(str(script if provenance is None else script_with_user_names(script, provenance)))
    return 0
