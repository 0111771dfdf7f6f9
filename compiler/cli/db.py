"""`strata db list|best|export|import|replay|report|prune FILE`: the tuning records of a file."""

from __future__ import annotations

import argparse
import json
from argparse import ArgumentTypeError
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING

from xdsl.utils.exceptions import VerifyException

from compiler.cli import program
from compiler.cli.model import shape_argument
from compiler.cli.printing import sentence, show, show_table
from compiler.cli.values import natural, positive
from compiler.database.outcome import NETWORK, TIMINGS
from compiler.support.command import plugins_behind
from compiler.support.errors import InputError, ScheduleError
from compiler.support.files import write
from compiler.support.text import counted, duration, printable, remark, unknown
from compiler.types.policies import POLICIES

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from compiler.database import Database, Key, Record, Removal, Summary
    from compiler.schedule import Schedule

HASH_DIGITS = 12
"""The number of displayed digits of a program's hash."""
BEST = "best"
MODES = ("script", "steps", "json", "python", "llvm", "asm")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments: a subcommand, with the file and the subcommand's options."""
    actions = parser.add_subparsers(title="actions", required=True, metavar="ACTION")

    def action(name: str, help: str, run_action: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        sub = actions.add_parser(name, help=help, description=help)
        sub.add_argument("file", metavar="FILE", help="the database")
        plugins_behind(sub)
        sub.set_defaults(run_action=run_action)
        return sub

    listed = action("list", "show the tasks, their trials and the best time of each", _list)
    listed.add_argument("--json", action="store_true", help="print the same as JSON")
    best = action("best", "print the best script of a task", _best)
    _record_arguments(best)
    best.add_argument(
        "--mode",
        choices=MODES,
        default="script",
        help="its script (default), all steps of that, the script in Python, its line, or what it is compiled to here",
    )
    best.add_argument(
        "--names",
        metavar="FILE|NAME",
        help="print scripts under the names of that program, which it was tuned for, for people to read",
    )
    shape_argument(best)
    exported = action("export", "write all records as lines of JSON", _export)
    exported.add_argument("output", metavar="OUTPUT", nargs="?", default="-", help="default: standard output")
    model_of = action("import", "take in the lines of JSON that export has written", _import)
    model_of.add_argument("input", metavar="INPUT", help="the lines; - is standard input")
    replayed = action("replay", "apply a record's script to its program and print the loops", _replay)
    _record_arguments(replayed)
    replayed.add_argument("--verify", action="store_true", help="prove that the loops compute what the program does")
    report = action("report", "write a page: how the searches went, what failed, the best scripts", _report)
    report.add_argument("output", metavar="OUTPUT", help="an HTML file; - is standard output")
    report.add_argument(
        "--code", type=natural, metavar="N", help="how many tasks of a program have their machine code (default 4)"
    )
    _task_arguments(report)
    _prune_arguments(action("prune", "remove records", _prune))


def _record_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--record", type=_record, default=BEST, metavar="ID", help="its number (default: best)")
    _task_arguments(parser)


def _task_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--task",
        metavar="NAME|HASH",
        help="the task, where there are several: its name, or how its hash begins",
    )
    add("--machine", help="the task on that machine")
    add("--threads", type=positive, help="the task with so many threads")
    add("--policy", choices=POLICIES, help="the task under that policy")
    add("--timing", choices=TIMINGS, help="the task timed by itself, or as in a network")


def _prune_arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--keep", type=positive, metavar="N", help="all but the N best of each task")
    which.add_argument("--failed", action="store_true", help="those that were not measured, or are wrong")
    which.add_argument("--older-than", type=_days, metavar="DAYS", help="those made before that, the best as well")
    parser.add_argument("--dry-run", action="store_true", help="say what would be removed, and remove nothing")


def run(options: argparse.Namespace) -> int:
    """Run the selected action and return its exit status. Raises InputError for a database, task or record that does
    not exist, for lines that are no records, for a file that cannot be read or written, and for a script that does not
    apply."""
    run_action: Callable[[argparse.Namespace], int] = options.run_action
    return run_action(options)


def _record(text: str) -> int | str:
    return BEST if text == BEST else positive(text)


def _days(text: str) -> timedelta:
    try:
        days = timedelta(days=float(text))
        if days >= timedelta(0):
            datetime.now(UTC) - days  # an error where there was no such day
            return days
    except (ValueError, OverflowError):
        pass
    raise ArgumentTypeError(f"'{text}' is not a number of days")


def _open(options: argparse.Namespace, create: bool = False) -> Database:
    from compiler.database import Database

    return Database(options.file, create)


def _list(options: argparse.Namespace) -> int:
    with _open(options) as database:
        tasks = database.keys()
    if options.json:
        show(json.dumps([_data(task) for task in tasks], indent=1))
    elif not tasks:
        show("no records")
    else:
        headings = (
            "task",
            "program",
            "machine",
            "threads",
            "policy",
            "timing",
            "trials",
            "ok",
            "failed",
            "best ms",
            "record",
        )
        _print_table(headings, [_cells(task) for task in tasks], right={"threads", "trials", "ok", "best ms", "record"})
    return 0


def _data(task: Summary) -> dict[str, object]:
    from compiler.database.fields import key_fields

    best = None if task.best is None else {"record": task.best, "seconds": task.seconds}
    counts = {"trials": task.trials, "ok": task.ok, "failed": task.failed}
    return {"names": task.names, **key_fields(task.key), **counts, "best": best}


def _cells(task: Summary) -> Sequence[str]:
    key = task.key
    return (
        ", ".join(task.names),
        key.program[:HASH_DIGITS],
        key.machine,
        str(key.threads),
        key.policy,
        key.timing,
        str(task.trials),
        str(task.ok),
        ", ".join(f"{kind} {count}" for kind, count in task.failed.items()) or "-",
        "-" if task.seconds is None else f"{1e3 * task.seconds:.4g}",
        "-" if task.best is None else str(task.best),
    )


def _print_table(headings: Sequence[str], rows: Sequence[Sequence[str]], right: set[str]) -> None:
    """Print a table; the columns whose headings are in `right` are aligned to the right."""
    from rich.table import Column, Table

    columns = (Column(heading, justify="right" if heading in right else "left") for heading in headings)
    table = Table(*columns, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*map(printable, row))
    show_table(table)


def _best(options: argparse.Namespace) -> int:
    with _open(options) as database:
        tasks = _tasks(database, options) if options.record == BEST else []
        if options.mode != "json" and _is_whole(tasks, options):
            _print_groups(database, tasks, options)
            return 0
        for record in _selected_records(database, tasks, options):
            if options.record == BEST and options.mode != "json" and (choice := _choice(database, tasks[0], record)):
                show(remark(options.mode, choice))
            show(_record_text(record, options))
    return 0


def _is_whole(tasks: list[Summary], options: argparse.Namespace) -> bool:
    """Whether all selected tasks are groups of the program `--task`, with the same machine, threads, policy, timing."""
    prefix = f"{options.task}."
    common_keys = {(task.key.machine, task.key.threads, task.key.policy, task.key.timing) for task in tasks}
    return len(common_keys) == 1 and all(any(name.startswith(prefix) for name in task.names) for task in tasks)


def _print_groups(database: Database, tasks: list[Summary], options: argparse.Namespace) -> None:
    """Print the timed forms of groups, then the best script of each group below a comment with the group's name, and
    the best time or the reason why another record was chosen."""
    from compiler.autotune.display.forms import chosen_forms, sentences

    for sentence_of_forms in sentences(chosen_forms(options.task, database.forms())):
        show(remark(options.mode, sentence_of_forms))
    for task in tasks:
        name = next(name for name in task.names if name.startswith(f"{options.task}."))
        time = "nothing measured" if task.seconds is None else duration(task.seconds)
        record = _best_of(database, task) if task.best is not None else None
        choice = "" if record is None else _choice(database, task, record)
        show(remark(options.mode, f"{name}: {choice or time}"))
        if record is not None:
            show(_record_text(record, options))


def _selected_records(database: Database, tasks: list[Summary], options: argparse.Namespace) -> list[Record]:
    """The selected record; in JSON mode, without `--record ID`, the best record of each selected task, without tasks
    that have none. Raises InputError if there is no record."""
    if options.mode != "json" or options.record != BEST:
        return [_selected_record(database, options)]
    return [_best_of(database, task) for task in tasks if task.best is not None or len(tasks) == 1]


def _record_text(record: Record, options: argparse.Namespace) -> str:
    """The text of a record in the selected mode, such as assembly. Except in JSON mode, raises InputError for the
    record of a form, which has no script, and for a script that does not apply."""
    if record.form and options.mode != "json":
        reason = f"is the time of the form {record.form}, and has no script"
        raise InputError(f"record {record.id} of {options.file} {reason}")
    if options.mode == "script":
        return record.script if options.names is None else str(_named_script(record, options))
    if options.mode == "steps":
        return str(_named_script(record, options))
    if options.mode == "json":
        from compiler.database.lines import to_line

        return to_line(record)
    if options.mode == "python":
        from compiler.schedule.python import as_python

        return as_python(_named_script(record, options))
    from compiler.driver import build_as_written

    kernel = build_as_written(_replay_record(record, options), threads=record.key.threads, policy=record.key.policy)
    return kernel.text(options.mode)


def _named_script(record: Record, options: argparse.Namespace) -> ModuleOp:
    """The script of a record; in the mode `steps` with all steps of the recipes that it includes; with `--names` under
    the names of that program. Raises InputError for a script that does not apply."""
    from compiler.pipeline.source import parse

    replayed = _replay_record(record, options).script
    script = replayed if options.mode == "steps" else parse(record.script, "the script")
    if options.names is None:
        if options.shape:
            raise InputError("--shape is for the model that --names names")
        return script
    from compiler.driver.parts.naming import names_of
    from compiler.graph.user_names import script_with_user_names

    workload = program.workload(options.names, Fraction(1))
    try:
        selected = program.module(options.names, options.shape) if workload is None else workload.function()
        return script_with_user_names(script, names_of(selected, record))
    except (VerifyException, InputError) as error:
        raise InputError(f"{options.names}: {sentence(error)}") from error


def _tasks(database: Database, options: argparse.Namespace) -> list[Summary]:
    """The tasks selected by `--task`, `--machine`, `--threads`, `--policy` and `--timing`. Raises InputError if
    none."""
    tasks = database.keys()
    if not tasks:
        raise InputError(f"there are no records in {options.file}")
    selected = _tasks_named(tasks, options.task)
    if not selected:
        names = dict.fromkeys(name for task in tasks for name in task.names)
        message = unknown("task", options.task, names, f" in {options.file}")
        raise InputError(f"{message} (it has {', '.join(names)})")
    for name in ("machine", "threads", "policy", "timing"):
        value = getattr(options, name)
        values = ", ".join(dict.fromkeys(str(getattr(task.key, name)) for task in selected))
        selected = [task for task in selected if value is None or getattr(task.key, name) == value]
        if not selected:
            raise InputError(f"there is no such task with {name} {value} in {options.file} (it has {values})")
    return selected


def _tasks_named(tasks: list[Summary], task: str | None) -> list[Summary]:
    if task is None:
        return tasks
    by_name = [summary for summary in tasks if task in summary.names]
    groups = [summary for summary in tasks if task and any(name.startswith(f"{task}.") for name in summary.names)]
    return by_name or groups or [summary for summary in tasks if task and summary.key.program.startswith(task.lower())]


def _single_task(tasks: list[Summary], options: argparse.Namespace) -> Summary:
    if len(tasks) > 1:
        titles = "; ".join(_title(task.key, task.names[-1]) for task in tasks)
        raise InputError(f"there are several tasks ({titles}): say --task, --machine, --threads, --policy or --timing")
    return tasks[0]


def _title(key: Key, name: str) -> str:
    conditions = [key.machine, counted(key.threads, "thread"), key.policy]
    if key.timing == NETWORK:
        conditions.append("as in a network")
    if key.unknown:
        conditions.append(key.unknown)
    return f"{name} ({key.program[:HASH_DIGITS]}) on {', '.join(conditions)}"


def _best_of(database: Database, task: Summary) -> Record:
    """The record chosen by times inside the whole program, else the best one of the task. Raises InputError if nothing
    was measured."""
    best, choices = database.best(task.key), database.choices(task.key)
    if best is None:
        raise InputError(f"no trial of {_title(task.key, task.names[-1])} was measured")
    chosen = next((choices[name] for name in reversed(task.names) if name in choices), best)
    return best if chosen.script == best.script else chosen


def _choice(database: Database, task: Summary, record: Record) -> str:
    """The reason why a record was chosen over the best one by trials; empty if both have one script."""
    best = database.best(task.key)
    if best is None or best.script == record.script:
        return ""
    if record.default:
        return f"the default, which was faster inside the program than record {best.id}"
    return f"chosen inside the program, before record {best.id} was found"


def _export(options: argparse.Namespace) -> int:
    with _open(options) as database:
        if options.output == "-":
            for line in database.lines():
                show(line)
        else:
            show(f"{counted(database.export(options.output), 'record')} written to {options.output}")
    return 0


def _import(options: argparse.Namespace) -> int:
    with _open(options, create=True) as database:
        model_of = database.import_(options.input)
    skipped = f", {model_of.skipped} skipped that were there already" if model_of.skipped else ""
    show(f"{counted(model_of.added, 'record')} added to {options.file}{skipped}")
    return 0


def _report(options: argparse.Namespace) -> int:
    from compiler.report.page import CODES, page
    from compiler.report.programs import gather

    with _open(options) as database:
        tasks = _tasks(database, options)
        report = gather(database, tasks)
    lines = page(report, CODES if options.code is None else options.code)
    if options.output == "-":
        show("\n".join(lines))
        return 0
    write(options.output, (f"{line}\n" for line in lines))
    show(f"{counted(len(tasks), 'task')} written to {options.output}")
    return 0


def _replay_record(record: Record, options: argparse.Namespace) -> Schedule:
    """Apply the script of a record to its program, and return the schedule. Raises InputError for a script that does
    not apply."""
    from compiler.database.replay import replay

    try:
        return replay(record)
    except ScheduleError as error:
        raise InputError(f"record {record.id} of {options.file} does not apply: {error}") from error


def _replay(options: argparse.Namespace) -> int:
    with _open(options) as database:
        record = _selected_record(database, options)
    schedule = _replay_record(record, options)
    if options.verify:
        verdict = schedule.verify()
        if not verdict:
            raise InputError(f"record {record.id} of {options.file} applies, but is not right: {verdict}")
        show(f"// {verdict}")
    show(str(schedule.module))  # an op has a format of its own
    return 0


def _selected_record(database: Database, options: argparse.Namespace) -> Record:
    if options.record == BEST:
        return _best_of(database, _single_task(_tasks(database, options), options))
    for name in ("task", "machine", "threads", "policy", "timing"):
        if getattr(options, name) is not None:
            raise InputError(f"--record {options.record} says which record; --{name} is for the best of a task")
    return database.record(options.record)


def _prune(options: argparse.Namespace) -> int:
    before = None if options.older_than is None else datetime.now(UTC) - options.older_than
    with _open(options) as database:
        removed = database.prune(options.keep, options.failed, before, options.dry_run)
    verb = "would be removed" if options.dry_run else "removed"
    for removal in removed:
        show(_removal_text(removal, verb))
    if not removed:
        show(f"nothing {'would be ' if options.dry_run else ''}removed")
    return 0


def _removal_text(removal: Removal, verb: str) -> str:
    count = len(removal.ids)
    best = "; the best is among them" if removal.best else ""
    what = f"{removal.ok} measured, {removal.failed} failed{best}"
    return f"{_title(removal.key, removal.name)}: {count} of {counted(count + removal.left, 'record')} {verb} ({what})"
