"""`strata explain --source`, `--line` and `--module`: the time of a program by the parts of the user's model."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from compiler.cli.printing import show_table
from compiler.cli.values import positive
from compiler.support.text import counted

if TYPE_CHECKING:
    from compiler.explain.sources import SourceTable, SourceTime

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
    return bool(options.source or options.line or options.module or options.trials)


def print_sources(program: object, options: argparse.Namespace) -> None:
    """Print the time of a program by the parts of its model, those with most time to be won first, and without
    `--static` the primitives that would change it. `--try` is ignored with `--static` or `--json`. Raises InputError
    for a line or a name that the program lacks, and the errors of `source_table`."""
    from compiler.explain.advice import Answer, answer
    from compiler.explain.source_text import answer_lines, source_data, source_heading, source_rows, tried_line
    from compiler.explain.sources import RUNS, source_table
    from compiler.explain.trial import tried

    runs = 0 if options.static else RUNS
    table = source_table(program, options.threads, options.policy, options.schedule, options.error, runs)
    rows = _selected(table, options)
    answers = [] if options.static else [answer(table, row, options.calls) for row in rows[:ADVISED]]
    if options.json:
        answers += [Answer(())] * (len(rows) - len(answers))
        print(json.dumps([source_data(*pair) for pair in zip(rows, answers, strict=True)], indent=1))
        return
    show_table(source_heading(table, options.program))
    show_table(source_rows(table, rows))
    if len(rows) < len(table.rows) and not (options.line or options.module):
        show_table(f"and {counted(len(table.rows) - len(rows), 'other')}: --source prints all")
    if answers:
        show_table("\nWhat would change it\n")
    for number, (row, answered) in enumerate(zip(rows, answers, strict=False)):
        show_table("\n".join(answer_lines(row, answered)))
        if options.trials and number == 0:
            show_table(tried_line(tried(table, row.slowest.group, options.trials)))


def _selected(table: SourceTable, options: argparse.Namespace) -> tuple[SourceTime, ...]:
    if options.line:
        return table.of_line(options.line)
    if options.module:
        return table.of_name(options.module)
    return table.rows if options.source else table.rows[:SHOWN]
