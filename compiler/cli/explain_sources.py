"""`strata explain --source`, `--line` and `--module`: the time of a program by the parts of the user's model."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from compiler.cli.printing import show_table
from compiler.cli.values import positive
from compiler.support.errors import InputError
from compiler.support.text import counted

if TYPE_CHECKING:
    from compiler.explain.advice import Answer
    from compiler.explain.sources import SourceTable, SourceTime
    from compiler.explain.trial import TriedSchedule

SHOWN, ADVISED = 10, 3
"""The rows of the short table, and those of them for which advice is derived."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that select parts of the model."""
    add = parser.add_argument
    add("--source", action="store_true", help="the time by modules, nodes and lines of the model: all of them")
    picked = parser.add_mutually_exclusive_group()
    picked.add_argument("--line", metavar="FILE:LINE", help="only what a line of the model's source computes")
    picked.add_argument("--module", metavar="NAME", help="only a module of torch, or a node of ONNX")
    add("--try", dest="trials", type=positive, metavar="N", help="try N schedules of the first group that is shown")


def is_chosen(options: argparse.Namespace) -> bool:
    """Whether an option asks for the parts of the model."""
    return bool(options.source or options.trials) or _is_narrowed(options)


def _is_narrowed(options: argparse.Namespace) -> bool:
    return options.line is not None or options.module is not None


def print_sources(program: object, options: argparse.Namespace) -> None:
    """Print the time of a program by the parts of its model, those with most time to be won first, and without
    `--static` the primitives that would change it. Raises InputError for a line or a name that the program lacks,
    before anything is built, for `--try` with `--static`, and the errors of `source_table`."""
    from compiler.explain.advice import Answer, answer
    from compiler.explain.source_text import source_data
    from compiler.explain.sources import RUNS, source_table
    from compiler.explain.trial import tried

    if options.trials and options.static:
        raise InputError("--try runs schedules, and --static runs nothing")
    arguments = (program, options.threads, options.policy, options.schedule, options.error)
    runs = 0 if options.static else RUNS
    if runs and _is_narrowed(options):
        _selected(source_table(*arguments, 0), options)
    table = source_table(*arguments, runs)
    rows = _selected(table, options)
    answers = [answer(table, row, options.calls) for row in rows[:ADVISED]] if runs else []
    trial = tried(table, rows[0].slowest.group, options.trials) if options.trials else None
    if options.json:
        answers += [Answer(())] * (len(rows) - len(answers))
        data = [source_data(*pair) for pair in zip(rows, answers, strict=True)]
        print(json.dumps([data[0] | {"tried": asdict(trial)}, *data[1:]] if trial else data, indent=1))
    else:
        _print_text(table, rows, answers, trial, options)


def _print_text(
    table: SourceTable,
    rows: Sequence[SourceTime],
    answers: Sequence[Answer],
    trial: TriedSchedule | None,
    options: argparse.Namespace,
) -> None:
    from compiler.explain.source_text import answer_lines, source_heading, source_rows, tried_line

    show_table(source_heading(table, options.program))
    show_table(source_rows(table, rows))
    if len(rows) < len(table.rows) and not _is_narrowed(options):
        show_table(f"and {counted(len(table.rows) - len(rows), 'other')}: --source prints all")
    if answers:
        show_table("\nWhat would change it\n")
    for number, (row, answered) in enumerate(zip(rows, answers, strict=False)):
        show_table("\n".join(answer_lines(row, answered)))
        if options.trials and number == 0:
            show_table(tried_line(trial))


def _selected(table: SourceTable, options: argparse.Namespace) -> tuple[SourceTime, ...]:
    if options.line is not None:
        return table.of_line(options.line)
    if options.module is not None:
        return table.of_name(options.module)
    return table.rows if options.source else table.rows[:SHOWN]
