"""`strata tune FILE|NAME`: search for the fastest schedule of a program; a database records the outcomes."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from compiler.autotune.tasks.allocation import ALLOCATIONS
from compiler.cli import program
from compiler.cli.build import error_argument
from compiler.cli.printing import show, show_table
from compiler.cli.values import natural, positive, seconds
from compiler.support.command import INTERRUPTED, start_time
from compiler.support.files import to_path, write, write_errors
from compiler.support.validation import line
from compiler.types.machines import host
from compiler.types.policies import POLICIES

if TYPE_CHECKING:
    from compiler.autotune.display.facts import RunFacts
    from compiler.autotune.display.in_place import InPlace
    from compiler.autotune.display.views import RunView
    from compiler.autotune.options import TuningOptions
    from compiler.autotune.task import SearchTask
    from compiler.database import Record
    from compiler.types.machines import Machine

DATABASE = "strata.db"
TRIALS, GROUP_TRIALS = 64, 24
"""The default trials of a program, and of each group of several, without `--trials` and `--seconds`."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    program.task_arguments(parser)
    add = parser.add_argument
    add(
        "--trials",
        type=positive,
        metavar="N",
        help=f"trials in all, with earlier ones (default {TRIALS}, {GROUP_TRIALS} a group of several, or --seconds)",
    )
    add(
        "--seconds",
        type=seconds,
        metavar="S",
        help="end after so many seconds from the start of the command; a tenth compares groups inside a program",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--database", metavar="FILE", help=f"the tuning records, gone on with (default {DATABASE}, here)"
    )
    where.add_argument("--no-database", action="store_true", help="keep no records: print the best script at the end")
    add("--policy", choices=POLICIES, default="contract", help="liberties of floating point")
    error_argument(parser)
    add("--seed", type=natural, default=0, help="of the search and the random inputs (default 0)")
    add("--log", metavar="FILE", help="write the search's log, from which it repeats without hardware")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--quiet", action="store_true", help="print the result only")
    how.add_argument(
        "--json", nargs="?", const="-", metavar="FILE", help="print the result only, as JSON; or write it to a file too"
    )
    add(
        "--allocation",
        choices=sorted(ALLOCATIONS),
        default="gain",
        help="groups share trials by what they promise, or in turns (default gain)",
    )
    add("--scheduler", metavar="URL", help="measure on the workers of a dask scheduler, such as tcp://host:8786")
    add(
        "--patience",
        type=seconds,
        default=120.0,
        metavar="S",
        help="a worker's job that takes longer goes to another one (default 120)",
    )


def run(options: argparse.Namespace) -> int:
    """Tune a program, on a cluster for one machine model after another; return 1 if nothing was measured, 130 after an
    interruption, else 0. Raises InputError for an invalid program or a file that cannot be written, TargetError for an
    unknown target, for workers that cannot start, and for a scheduler that does not answer."""
    if options.json is not None and options.json != "-":
        _check_writable(to_path(options.json))
    if options.scheduler is None:
        return _tune(options)
    from compiler.autotune.fleet.cluster import machines_of

    status = 0
    for machine in machines_of(line("the scheduler", options.scheduler), options.patience):
        if options.json != "-":
            show(f"for {machine.name}")
        status = max(status, _tune(options, machine))
        if status == INTERRUPTED:
            break
    return status


def _tune(options: argparse.Namespace, machine: Machine | None = None) -> int:
    """Tune for a machine (None: this one) and print the result; return the exit status: 1 without a record, 130 after
    an interruption, else 0."""
    from compiler.autotune.display.facts import RunFacts

    task = program.task(options, options.policy, machine, options.error)
    for log in _logs(task, options.log):
        _check_writable(log)
    with _view(task, options) as view:
        record = task.tune(_tuning(options, task, view))
    if task.groups:
        return _whole(task, view, record or {}, options, machine is None or machine == host())
    assert view.last is not None
    facts = RunFacts(task, view.last, record)
    _write_json(options.json, {**facts.data(), **_workers(view.last.notes)})
    if options.json != "-":
        _print(facts, _database(options), _names(options))
    if facts.interrupted:
        return INTERRUPTED
    return int(record is None)


def _tuning(options: argparse.Namespace, task: SearchTask, view: RunView) -> TuningOptions:
    from compiler.autotune.options import TuningOptions

    trials = options.trials
    if trials is None and options.seconds is None:
        trials = GROUP_TRIALS * len(task.groups) if task.groups else TRIALS
    return TuningOptions(
        trials,
        options.seconds,
        _database(options),
        options.seed,
        log=options.log,
        callbacks=(view,),
        allocation=options.allocation,
        scheduler=options.scheduler,
        patience=options.patience,
        began=start_time()
        if options.scheduler is None
        else None,  # the seconds are for each machine model of a cluster
    )


def _write_json(file: str | None, document: Mapping[str, object]) -> None:
    """Print data as JSON for `-`, write it to any other file, and do nothing for None."""
    text = json.dumps(document, indent=1)
    if file == "-":
        print(text)
    elif file is not None:
        write(file, [text, "\n"])


def _workers(notes: Sequence[str]) -> dict[str, object]:
    """The notes on a cluster's workers as an entry of the JSON document; empty without notes."""
    return {"workers": list(notes)} if notes else {}


def _database(options: argparse.Namespace) -> str | None:
    return None if options.no_database else options.database or DATABASE


def _view(task: SearchTask, options: argparse.Namespace) -> RunView:
    from compiler.autotune.display.views import RunView, view

    return RunView(task) if options.quiet or options.json == "-" else view(task, sys.stdout)


def _logs(task: SearchTask, log: str | None) -> list[Path]:
    """The log files for `--log`: one for each group and one for the turns, or one for a program that is one group;
    empty without `--log`."""
    from compiler.autotune.tasks.scheduler import log_of

    if log is None:
        return []
    names = [*(group.name for group in task.groups), "turns"]
    return [path for name in names if (path := log_of(log, name))] if task.groups else [to_path(log)]


def _check_writable(path: Path) -> None:
    """Raise InputError for a file that is not writable; a missing file is created."""
    with write_errors(path), open(path, "a", encoding="utf-8"):
        pass


def _whole(
    task: SearchTask, view: RunView, records: Mapping[str, Record], options: argparse.Namespace, is_here: bool
) -> int:
    """Print, or write as JSON, the results of a program's groups; return the exit status: 1 without records, 130 after
    an interruption, else 0. Times inside the program are printed if it was tuned for this machine (`is_here`)."""
    from compiler.autotune.display.facts import INTERRUPTED as STOPPED
    from compiler.autotune.display.forms import sentences

    interrupted = view.last is not None and view.last.phase == STOPPED
    in_place_times = None if view.last is None else view.last.in_place
    facts = [replace(view.facts(run), record=records.get(name)) for name, run in view.runs.items()]
    groups, tasks = [group_facts.data() for group_facts in facts], list(view.board.data())
    times = None if in_place_times is None else in_place_times.data()
    _write_json(
        options.json,
        {"name": task.name, "tasks": tasks, "groups": groups, "whole": times, "interrupted": interrupted}
        | ({"forms": [form.data() for form in task.forms]} if task.forms else {})
        | _workers([] if view.last is None else view.last.notes),
    )
    if options.json != "-":
        show_table(view.board.table())
        for line in (line for group_facts in facts for line in (*group_facts.failures, *group_facts.busy)):
            show(line)
        for sentence in sentences(task.forms):
            show(sentence)
        for sentence in _in_place_lines(in_place_times, view) if records and is_here and not interrupted else ():
            show(sentence)
        if records and (database := _database(options)) is not None:
            words = ["strata", "db", "best", database, "--task", task.name, *_names(options)]
            show(f"the scripts: {shlex.join(words)}")
    return INTERRUPTED if interrupted else int(not records)


def _in_place_lines(in_place: InPlace | None, view: RunView) -> Iterable[str]:
    """Sentences with the times of groups inside the whole program, or, for None, with the reason why they were not
    measured."""
    if in_place is not None:
        return in_place.sentences()
    if any(run.measured for run in view.runs.values()):
        return ("the groups were not compared inside the whole: the time was spent before",)
    return ("nothing new was measured: what was chosen inside the whole stays",)


def _names(options: argparse.Namespace) -> list[str]:
    """The arguments `--names PROGRAM` of a `strata db` command; none for standard input, `--function` or `--scale`."""
    unnamed = options.program == "-" or options.function is not None or options.scale != 1
    return [] if unnamed else ["--names", options.program]


def _print(facts: RunFacts, database: str | None, names: Sequence[str]) -> None:
    for sentence in facts.sentences():
        show(sentence)
    if facts.record is None:
        return
    if database is None:
        show(facts.task.script(facts.record))
    else:
        show(f"the script: {shlex.join([*_command(facts, Path(database)), *names])}")


def _command(facts: RunFacts, path: Path) -> list[str]:
    """The words of the shortest command that prints the best script: without `--record` if the database has no other
    task and its best record has the same script."""
    from compiler.database import Database

    assert facts.record is not None
    with Database(path, create=False) as database:
        best = database.best(facts.task.key)
        is_only = len(database.keys()) == 1 and best is not None and best.script == facts.record.script
    words = ["strata", "db", "best", str(path)]
    return words if is_only else [*words, "--record", str(facts.record.id)]
