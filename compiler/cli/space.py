"""`strata space FILE|NAME`: the search space of a program: sketches, candidates, their scripts; nothing is measured."""

from __future__ import annotations

import argparse
from argparse import ArgumentTypeError
from collections.abc import Iterator
from typing import TYPE_CHECKING

from compiler.cli import program
from compiler.cli.printing import show
from compiler.cli.values import natural, positive
from compiler.support.errors import InputError
from compiler.support.text import counted

if TYPE_CHECKING:
    from compiler.autotune.display.listing import Selection
    from compiler.autotune.task import SearchTask


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    program.task_arguments(parser)
    what = parser.add_mutually_exclusive_group()
    add = what.add_argument
    add("--show", type=natural, metavar="N", help="print the script of sketch N, its choices open")
    add("--script", type=selection, metavar="N:P,P,P", help="print the script of a candidate; N alone has the defaults")
    add("--sample", type=positive, metavar="K", help="print K random candidates, and whether they are feasible")
    add("--diff", type=selection, nargs=2, metavar=("A", "B"), help="compare two scripts, each N or N:P,P,P")
    add("--dropped", action="store_true", help="print the alternatives that were refused, and why")
    parser.add_argument("--decide", type=positions, metavar="P,P,P", help="with --show: decide its choices so")
    parser.add_argument("--filter", metavar="TEXT", help="only sketches with TEXT in their names: list and --sample")
    parser.add_argument("--seed", type=natural, default=0, help="of --sample (default 0)")


def positions(text: str) -> tuple[int, ...]:
    """Parse the decisions of a sketch's choices, `P,P,P`: positions, from 0, in the lists of their options; an empty
    text is (). Raises ArgumentTypeError for other text."""
    parts = text.split(",") if text else []
    if not all(part.isascii() and part.isdecimal() and len(part) < 10 for part in parts):
        raise ArgumentTypeError(f"'{text}' is not a list of positions such as 0,2,1")
    return tuple(map(int, parts))


def selection(text: str) -> Selection:
    """Parse a sketch `N` or a candidate `N:P,P,P` to the sketch's number, from 0, and the decisions, None for a sketch.
    Raises ArgumentTypeError for other text."""
    number, colon, decisions = text.partition(":")
    return natural(number), positions(decisions) if colon else None


def run(options: argparse.Namespace) -> int:
    """Print the scripts, samples or refusals that the options select, by default the list of sketches; return 0. Raises
    TargetError for an unknown target, InputError for `--decide` without `--show`, for `--filter` with options of
    scripts, for an option of one group with a whole program, and for a sketch or decision that the space lacks."""
    if options.decide is not None and options.show is None:
        raise InputError("--decide is for --show; --script N:P,P,P says both")
    if options.filter is not None and _is_about_scripts(options):
        raise InputError("--filter is for the list of sketches and for --sample")
    task = program.task(options)
    show("\n".join(_overview(task, options) if task.groups else _lines(task, options)))
    return 0


def _overview(task: SearchTask, options: argparse.Namespace) -> Iterator[str]:
    """Yield a line for each group of a whole program with the size of its space. Raises InputError for options that
    need one group."""
    from compiler.space.candidates import candidate_count

    if _is_about_scripts(options) or options.sample is not None or options.filter is not None:
        names = ", ".join(group.name for group in task.groups)
        raise InputError(f"{task.name} has groups, each with a space of its own: --group says which ({names})")
    yield f"{task.name} on {task.hardware}"
    for group in task.groups:
        sketches, candidates = counted(len(group.space.sketches), "sketch", "es"), candidate_count(group.space.sizes)
        calls = counted(group.occurrences, "call")
        yield f"{group.name}, {calls}: {sketches}, {counted(candidates, 'candidate')}"


def _is_about_scripts(options: argparse.Namespace) -> bool:
    return options.dropped or any(stated is not None for stated in (options.show, options.script, options.diff))


def _lines(task: SearchTask, options: argparse.Namespace) -> Iterator[str]:
    from compiler.autotune.display import listing

    space = task.space
    if options.show is not None:
        yield listing.script(space, (options.show, options.decide))
    elif options.script is not None:
        yield listing.script(space, _with_defaults(task, options.script))
    elif options.diff is not None:
        yield listing.difference(space, *options.diff) or "no difference"
    elif options.dropped:
        yield from (*task.derived.unused, *task.derived.dropped) or ["no alternative was refused"]
    elif options.sample is not None:
        yield from listing.list_candidates(
            space, listing.matching_sketches(space, options.filter), options.sample, options.seed
        )
    else:
        yield f"{task.name} on {task.hardware}"
        yield from listing.list_sketches(space, listing.matching_sketches(space, options.filter))
        yield from task.derived.unused


def _with_defaults(task: SearchTask, selection: Selection) -> Selection:
    """Return a selection with the rules' default decisions if it has none; unchanged if its sketch has no defaults."""
    number, decisions = selection
    if decisions is None and number < len(task.space.defaults):
        return number, task.space.sketches[number].recorded_positions
    return selection
