"""docs/operators.md: every operator on every dtype, run in every way, with the largest error over random samples.

    python -m tests.operator_table                  all of it
    python -m tests.operator_table conv2d softmax   these rows; the others stay
    python -m tests.operator_table --resume         what build/operators.json does not have, or has failed
    python -m tests.operator_table --jobs 2         two operators at once

Each operator runs in a process of its own, so that one which fails, crashes or hangs costs its own rows only:
they show what went wrong, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from compiler import te
from tests.agreement import BOUNDS
from tests.operator_runs import WAYS, Cell, Row, rows
from tests.operators import OPERATORS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "operators.md"
CACHE = ROOT / "build" / "operators.json"
SAMPLES = 2
SECONDS = 900
"""The longest that one operator may take."""

Table = dict[str, list[Row]]
Work = Callable[[str, int, Connection], None]


def main(arguments: list[str]) -> int:
    """Run operators, write the page, and say what failed: the exit status."""
    options = _options(arguments)
    table = _kept(options)
    wanted = [name for name in options.operators or OPERATORS if name not in table]
    with _progress() as progress, ThreadPoolExecutor(options.jobs) as pool:
        task = progress.add_task("operators", total=len(wanted), failed=0)
        for name, actual in zip(wanted, pool.map(lambda name: run(name, options.samples), wanted), strict=True):
            table[name] = actual
            if options.samples == SAMPLES:
                _save(table)
            failed = sum(bool(failures(row)) for row in actual)
            progress.update(task, advance=1, description=name, failed=progress.tasks[0].fields["failed"] + failed)
    table = {name: table[name] for name in OPERATORS if name in table}
    if options.samples == SAMPLES:
        PAGE.write_text(page(table))
    return report(table)


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.operator_table", description="Generates docs/operators.md.")
    parser.add_argument("operators", nargs="*", metavar="OPERATOR", help="run these; the other rows stay")
    parser.add_argument("--resume", action="store_true", help="run what has no row without failure yet")
    parser.add_argument("--jobs", type=int, default=1, help="operators run at once")
    parser.add_argument("--samples", type=int, default=SAMPLES, help="samples; another number writes no page")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.operators if name not in OPERATORS]
    if unknown:
        parser.error(f"no operator {', '.join(unknown)} (there are {', '.join(OPERATORS)})")
    return options


def _kept(options: argparse.Namespace) -> Table:
    """Rows that stay: of the page all but those asked for, or of an earlier run those that are whole and right."""
    if options.samples != SAMPLES:
        return {}
    if options.operators:
        return {name: actual for name, actual in read(PAGE.read_text()).items() if name not in options.operators}
    if not options.resume or not CACHE.exists():
        return {}
    stored = {name: [Row.from_json(row) for row in rows] for name, rows in json.loads(CACHE.read_text()).items()}
    return {name: actual for name, actual in stored.items() if name in OPERATORS and _whole(name, actual)}


def _whole(name: str, found: list[Row]) -> bool:
    return {row.dtype for row in found} == set(OPERATORS[name].dtypes) and not any(map(failures, found))


def _save(table: Table) -> None:
    CACHE.parent.mkdir(exist_ok=True)
    CACHE.write_text(json.dumps({name: [row.as_json() for row in actual] for name, actual in table.items()}))


def _progress() -> Progress:
    columns = (
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}, {task.fields[failed]} failed"),
    )
    return Progress(*columns)


def work(name: str, samples: int, sender: Connection) -> None:
    """Make the rows of an operator and send them."""
    sender.send([row.as_json() for row in rows(OPERATORS[name], samples)])


def run(name: str, samples: int, work: Work = work, seconds: float = SECONDS) -> list[Row]:
    """The rows of an operator, made in a process of its own."""
    context = get_context("forkserver")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=work, args=(name, samples, sender))
    process.start()
    sender.close()
    try:
        actual = receiver.recv() if receiver.poll(seconds) else f"no end after {seconds} s"
    except EOFError:
        process.join()
        actual = f"its process ended with status {process.exitcode}"
    process.kill()
    process.join()
    if isinstance(actual, str):
        return [Row(name, dtype, {}, actual) for dtype in OPERATORS[name].dtypes]
    return [Row.from_json(row) for row in actual]


def failures(row: Row) -> list[str]:
    """What went wrong in a row, a line each."""
    where = f"{row.operator} {row.dtype}"
    if row.failed:
        return [f"{where}: {row.failed}"]
    return [f"{where}, {way}: {cell.failed}" for way, cell in row.cells.items() if cell.failed]


def report(table: Table) -> int:
    """Print what failed; the exit status."""
    failed = [line for actual in table.values() for row in actual for line in failures(row)]
    for line in failed:
        print(f"failed: {line}", file=sys.stderr)
    count = sum(map(len, table.values()))
    print(f"{len(table)} operators, {count} rows, {len(failed)} failures")
    return int(bool(failed))


def page(table: Table) -> str:
    """The document: what it says about itself, the table, and the notes."""
    notes: dict[str, int] = {}
    body = [line(row, notes, first=row is actual[0]) for actual in table.values() for row in actual]
    footnotes = [f"[^{number}]: {text}" for text, number in notes.items()]
    failed = [f"- {text}" for actual in table.values() for row in actual for text in failures(row)]
    wrong = ["## Failed", "", *failed, ""] if failed else []
    count = sum(map(len, table.values()))
    return "\n".join([_head(len(table), count), *_HEADER, *body, "", *wrong, *footnotes]).rstrip() + "\n"


_HEADER = [f"| operator | computes | dtype | {' | '.join(WAYS)} |", f"|---|---|---|{'---:|' * len(WAYS)}"]


def _head(operators: int, count: int) -> str:
    bounds = ", ".join(f"{bound:.2g} for {dtype}" for dtype, bound in BOUNDS.items())
    return f"""# Operators

Generated by `python -m tests.operator_table`: {operators} operators, {count} pairs of operator and dtype, each on at
least {SAMPLES} random sets of parameters (shapes, strides, axes ...; odd ones and extents of 1 among them) and random
inputs, from fixed seeds.

A number is the largest error against a reference in numpy, in float64 or int64 and independent of Strata, which takes
the same inputs, already rounded to the dtype. For floats it is max |x - reference| / max(1, max |reference|); it must
not exceed {bounds}.
Integers and bits must be equal: 0. Where the reference is NaN, or infinite once rounded to the dtype, the result must
be so too. Torch is there to compare with, and held to nothing.

- evaluator: numpy, one te.compute after another
- interpreter: the loop level, one iteration after another, on poisoned outputs
- compiled: native code under the policy `contract`, on poisoned outputs
- mlir-22: our low level, lowered by mlir-opt-22's own passes and run by mlir-runner-22, on poisoned outputs
- torch: the same operator of torch on the CPU
"""


def read(text: str) -> Table:
    """The table of a page: `page(read(text))` is the text again, up to its head."""
    notes = {f"[^{number}]": said for number, said in re.findall(r"^\[\^(\d+)\]: (.*)$", text, re.MULTILINE)}
    wrong = dict(re.findall(r"^- (\w+ \w+(?:, [\w-]+)?): (.*)$", text.partition("## Failed")[2], re.MULTILINE))
    table: Table = {}
    name = ""
    for cells in map(_cells, text.splitlines()):
        if len(cells) == 3 + len(WAYS) and cells[2] not in ("dtype", "---"):
            name = cells[0].strip("`") or name
            where = f"{name} {cells[2]}"
            ways = {
                way: _read_cell(shown, notes, wrong.get(f"{where}, {way}", ""))
                for way, shown in zip(WAYS, cells[3:], strict=True)
            }
            failed = wrong.get(where, "")
            table.setdefault(name, []).append(Row(name, cells[2], {} if failed else ways, failed))
    return table


def _cells(text: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", text)[1:-1]]


def _read_cell(shown: str, notes: dict[str, str], failed: str) -> Cell:
    """What `_shown` has written."""
    number, mark, remaining = shown.replace("*", "").partition("[")
    error = None if number in ("-", "failed") else float(number)
    return Cell(error, notes.get(mark + remaining, ""), failed)


def line(row: Row, notes: dict[str, int], first: bool = True) -> str:
    """One line of the table; reasons become numbered notes."""
    name, formula = (f"`{row.operator}`", computes(row.operator)) if first else ("", "")
    cells = [_shown(row.cells.get(way, Cell(failed=row.failed)), notes) for way in WAYS]
    return f"| {' | '.join([name, formula, row.dtype, *cells])} |"


def _shown(cell: Cell, notes: dict[str, int]) -> str:
    if cell.failed and cell.error is None:
        return "**failed**"
    number = "-" if cell.error is None else "0" if cell.error == 0 else f"{cell.error:.1e}"
    number = f"**{number}**" if cell.failed else number
    return number + (f"[^{notes.setdefault(cell.absent, len(notes) + 1)}]" if cell.absent else "")


def computes(name: str) -> str:
    """The first line of an operator's docstring, without the errors that it names."""
    said = (getattr(te.nn, name, None).__doc__ or "").strip().partition("\n")[0]
    return said.partition(" Raises ")[0].replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
