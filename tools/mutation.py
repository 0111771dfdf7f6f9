"""Mutation score of the tests: small faults are planted in the compiler, and the tests that run them should fail.

    python -m tools.mutation build/mutation.json --seed 20261125 --count 60

draws lines of `ROOMS` and one change for each, runs all tests once with a probe at each of these places, which records
the tests that reach it, and then each mutant under its own tests, shortest first, until one fails or LIMIT seconds are
over. All of it happens in a copy of the files that git tracks. The file holds mutants, tests and results: called again,
the command goes on where it ended. `--afresh` measures the same mutants again, also when their lines have moved.

A test counts only if it passes in the run with probes, and a kill only if the test passes without the mutant as well.
What lasts from one test to the next (a cached result, a fixture of a module) counts for the first of them.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("compiler/analysis", "compiler/schedule", "compiler/lowering", "compiler/driver")
LIMIT = 30.0
"""Seconds of tests for a mutant, without the time in which they are collected."""
HUNG = 240.0
"""Seconds after which a mutant's tests are ended: it loops."""
TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    before: after
    for pair in ((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn))
    for before, after in (pair, pair[::-1])
}
SKIPPED = (ast.Assert, ast.Import, ast.ImportFrom, ast.JoinedStr, ast.pattern)
PROBE = '''"""Recorder of the tests that reach a mutant, and of how long each test takes and how it ends."""

import os
import time

FOLDER = {folder!r}
REACHED = set()


def write(name, line):
    descriptor = os.open(os.path.join(FOLDER, name), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, (line + "\\n").encode())
    os.close(descriptor)


def hit(number):
    key = number, os.environ.get("PYTEST_CURRENT_TEST", " ").rpartition(" ")[0]
    if key not in REACHED:
        REACHED.add(key)
        write("reached", f"{{key[0]}} {{key[1]}}")


def pytest_runtest_logreport(report):
    if "PYTEST_XDIST_WORKER" not in os.environ:  # once, in the process that gathers them
        write("tests", f"{{report.duration}} {{report.when}} {{report.outcome}} {{report.nodeid}}")


STARTED = []


def pytest_runtest_protocol(item):
    STARTED.append(time.monotonic())
    if STARTED[-1] - STARTED[0] > float(os.environ.get("MUTATION_LIMIT", "inf")):
        item.session.shouldstop = "the limit is over"
'''


@dataclass
class Mutant:
    """A change of an expression or statement: its file, function, the text of its line, its kind, and `BEFORE ->
    AFTER`. occurrence: its number among equal changes of equal lines of the function. reached: the number of tests that
    run it; None before the run with probes. tests: those to run, shortest first. outcome: killed, survived, hung or
    uncovered; "" before it is measured. killer: the test that failed."""

    file: str
    function: str
    line: str
    kind: str
    change: str
    occurrence: int = 0
    reached: int | None = None
    tests: list[str] = field(default_factory=list)
    outcome: str = ""
    killer: str = ""

    def key(self) -> tuple[str, str, str, str, int]:
        """The identity of the mutant, independent of line numbers: file, function, line, change and occurrence."""
        return self.file, self.function, self.line, self.change, self.occurrence


@dataclass(frozen=True)
class Place:
    """A node of a file's syntax tree, and the text that a mutant puts in its place."""

    node: ast.expr | ast.stmt
    text: str


def changes(node: ast.AST, boolean: bool) -> Iterator[tuple[str, Place]]:
    """Yield the changes of a node itself, each with its kind: comparison, sign, constant, and/or, return, statement or
    condition. `boolean`: whether the function around it returns bool; then a return is negated, not emptied."""
    match node:
        case ast.Compare(ops=[operator]):
            turned = copy.copy(node)
            turned.ops = [TURNED[type(operator)]()]
            yield "comparison", Place(node, f"({ast.unparse(turned)})")
        case ast.BinOp(op=ast.Add() | ast.Sub() as sign) if not any(map(_is_sequence, (node.left, node.right))):
            flipped = ast.BinOp(node.left, ast.Sub() if isinstance(sign, ast.Add) else ast.Add(), node.right)
            yield "sign", Place(node, f"({ast.unparse(flipped)})")
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            yield "constant", Place(node, f"({value + 1})")
        case ast.BoolOp(op=operator, values=values):
            swapped = ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values)
            yield "and/or", Place(node, f"({ast.unparse(swapped)})")
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield "return", Place(node, f"return not ({ast.unparse(value)})" if boolean else "return None")
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Delete():
            yield "statement", Place(node, "pass")
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "statement", Place(node, "pass")
    tests = [node.test] if isinstance(node, (ast.If, ast.While, ast.IfExp)) else getattr(node, "ifs", [])
    for test in tests:
        yield "condition", Place(test, f"(not ({ast.unparse(test)}))")


def _is_sequence(node: ast.expr) -> bool:
    text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return text or isinstance(node, (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp))


def inside(node: ast.AST, name: str = "", boolean: bool = False) -> Iterator[tuple[str, str, Place]]:
    """Yield all changes within the functions below a node: the function's qualified name `name`, the kind, the place.
    Nothing for nodes of SKIPPED, messages of exceptions, and bodies of classes."""
    for _, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, SKIPPED):
                continue
            if isinstance(child, ast.FunctionDef):
                is_test = isinstance(child.returns, ast.Name) and child.returns.id == "bool"
                yield from inside(ast.Module(child.body, []), f"{name}{child.name}.", is_test)
            elif isinstance(child, ast.ClassDef):
                yield from inside(ast.Module(child.body, []), f"{name}{child.name}.")
            else:
                if name and not name.split(".")[-2][:1].isupper():  # not the body of a class
                    yield from ((name[:-1], kind, place) for kind, place in changes(child, boolean))
                if isinstance(child, ast.AnnAssign):
                    child = ast.Module([child.value] if child.value else [], [])  # type: ignore[list-item]
                if not isinstance(child, ast.Raise):  # a message
                    yield from inside(child, name, boolean)


def candidates(file: str, root: Path = ROOT) -> dict[tuple[str, str, str, str, int], tuple[Mutant, Place]]:
    """Map the keys of all mutants of a file, relative to `root`, to the mutants and their places."""
    source = (root / file).read_text("utf-8")
    lines, alike, by_key = source.splitlines(), Counter[tuple[str, ...]](), {}
    for function, kind, place in inside(ast.parse(source)):
        line, before = lines[place.node.lineno - 1].strip(), ast.unparse(place.node)
        mutant = Mutant(file, function, line, kind, f"{before} -> {place.text}")
        described = (function, line, mutant.change)
        mutant.occurrence = alike[described]
        alike[described] += 1
        by_key[mutant.key()] = mutant, place
    return by_key


def draw(rooms: list[str], seed: int, count: int) -> list[Mutant]:
    """Draw `count` different lines from the Python files of the rooms, and one change of each. Raises ValueError if
    there are fewer lines."""
    chosen = random.Random(seed)
    lines: dict[tuple[str, int], list[Mutant]] = defaultdict(list)
    for room in rooms:
        for path in sorted((ROOT / room).rglob("*.py")):
            file = str(path.relative_to(ROOT))
            for mutant, place in candidates(file).values():
                lines[file, place.node.lineno].append(mutant)
    return [chosen.choice(lines[line]) for line in chosen.sample(sorted(lines), count)]


def edited(source: str, edits: list[tuple[int, int, int, int, str, str]]) -> str:
    """Return a text with edits (line, column in bytes, last line, its column, before, after): `before` and `after` are
    put around the place or, if `after` is a line feed, `before` replaces it."""
    starts, text = [0], source.encode()
    for row in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(row))
    pieces: list[tuple[int, int, bytes]] = []
    for line, column, last, end, before, after in edits:
        first, final = starts[line - 1] + column, starts[last - 1] + end
        if after == "\n":
            pieces.append((first, final, before.encode()))
        else:
            pieces += [(first, first, before.encode()), (final, final, after.encode())]
    for first, final, new in sorted(pieces, reverse=True):
        text = text[:first] + new + text[final:]
    return text.decode()


def edit(place: Place, before: str, after: str) -> tuple[int, int, int, int, str, str]:
    """Return an edit for `edited` at a place."""
    node = place.node
    assert node.end_lineno is not None and node.end_col_offset is not None
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset, before, after


class Copy:
    """A copy of the tracked files, in which tests run with the probe's module as a plugin."""

    def __init__(self, folder: Path, workers: int) -> None:
        self.root, self.records, self.workers, self.writes = folder / "copy", folder / "records", workers, 0
        self.records.mkdir()
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True)
        for name in filter(None, listed.stdout.split("\0")):
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, self.root / name, follow_symlinks=False)
        (self.root / "mutation_probe.py").write_text(PROBE.format(folder=str(self.records)))

    def write(self, file: str, source: str) -> None:
        """Write a source to the copy, with a later time than the one before, so that no old bytecode is used for it."""
        self.writes += 1
        (self.root / file).write_text(source)
        os.utime(self.root / file, (self.writes * 10, self.writes * 10))

    def run(self, *arguments: str, limit: float | None = None) -> int | None:
        """Run pytest on arguments in the copy, and return its exit status. limit: seconds after which no further test
        begins; then a run of more than HUNG seconds is ended, and the status is None."""
        environment = {**os.environ, "PYTHONPATH": str(self.root)}
        if limit is not None:
            environment["MUTATION_LIMIT"] = str(limit)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "mutation_probe", "-p", "no:cacheprovider", *arguments]
        with (self.records / "output").open("w") as output:
            process = subprocess.Popen(
                command, cwd=self.root, env=environment, stdout=output, stderr=output, start_new_session=True
            )
            try:
                return process.wait(None if limit is None else HUNG)
            except BaseException as reason:
                os.killpg(process.pid, 9)
                process.wait()
                if isinstance(reason, subprocess.TimeoutExpired):
                    return None
                raise

    def record(self, name: str) -> list[str]:
        """Return the lines of a record, `tests` or `reached`, and delete it."""
        path = self.records / name
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines


def probe(work: Copy, mutants: list[Mutant], tests: list[str]) -> None:
    """Run the tests once with a probe at each mutant, and set `reached` and `tests` of each: the shortest passing ones,
    for twice LIMIT seconds, at least one."""
    edits = defaultdict(list)
    for number, mutant in enumerate(mutants):
        place, call = candidates(mutant.file)[mutant.key()][1], f'__import__("mutation_probe").hit({number})'
        statement = isinstance(place.node, ast.stmt)
        edits[mutant.file].append(edit(place, f"{call}; " if statement else f"({call}, ", "" if statement else ")[1]"))
    for file, places in edits.items():
        work.write(file, edited((ROOT / file).read_text("utf-8"), places))
    status = work.run("-n", str(work.workers), *tests)
    for file in edits:
        work.write(file, (ROOT / file).read_text("utf-8"))
    seconds, failed, reached = defaultdict[str, float](float), set(), defaultdict(set)
    for line in work.record("tests"):
        duration, _, outcome, test = line.split(" ", 3)
        seconds[test] += float(duration)
        failed |= {test} - ({test} if outcome == "passed" else set())
    for line in work.record("reached"):
        place_number, _, test = line.partition(" ")
        reached[int(place_number)].add(test)
    print(
        f"{len(seconds)} tests in {sum(seconds.values()):.0f} s, {len(failed)} skipped or failed, status {status}",
        flush=True,
    )
    for number, mutant in enumerate(mutants):
        mine = sorted((seconds[test], test) for test in reached[number] if test in seconds and test not in failed)
        mutant.reached, total = len(mine), 0.0
        for length, test in mine:
            total += length
            if total < 2 * LIMIT or not mutant.tests:
                mutant.tests.append(test)


def kill(work: Copy, mutant: Mutant) -> None:
    """Run a mutant's tests and set its outcome."""
    mutant.outcome, mutant.killer = "survived" if mutant.tests else "uncovered", ""
    if not mutant.tests:
        return
    source, place = (ROOT / mutant.file).read_text("utf-8"), candidates(mutant.file)[mutant.key()][1]
    (work.records / "mine").write_text("\n".join(mutant.tests))
    work.write(mutant.file, edited(source, [edit(place, place.text, "\n")]))
    status = work.run("-x", f"@{work.records / 'mine'}", limit=LIMIT)
    work.write(mutant.file, source)
    lines = work.record("tests")
    failed = [line.split(" ", 3)[3] for line in lines if " failed " in line]
    if status is None:
        mutant.outcome = "hung"
    elif failed or status < 0 or (status and not lines):  # or it has crashed, or nothing can be imported
        mutant.outcome, mutant.killer = "killed", failed[0] if failed else mutant.tests[0]


def confirm(work: Copy, mutants: list[Mutant]) -> None:
    """Withdraw the kills by tests that also fail without a mutant, and measure those mutants with their other tests,
    until there is no such kill."""
    while killers := {mutant.killer for mutant in mutants if mutant.outcome == "killed"}:
        (work.records / "mine").write_text("\n".join(sorted(killers)))
        work.run("-n", str(work.workers), f"@{work.records / 'mine'}")
        passed = {line.split(" ", 3)[3] for line in work.record("tests") if " call passed " in line}
        failed = killers - passed
        if not failed:
            return
        for mutant in mutants:
            mutant.tests = [test for test in mutant.tests if test not in failed]
            if mutant.killer in failed:
                kill(work, mutant)


def table(mutants: list[Mutant]) -> str:
    """Format counts of outcomes by room and by kind of change, and the mutants that no test has killed."""
    outcomes = ("killed", "survived", "hung", "uncovered")
    rows = [f"{'':24}" + "".join(f"{name:>11}" for name in outcomes)]
    for title, name in [("all", ""), *((x, "room") for x in ROOMS), *((x, "kind") for x in _kinds(mutants))]:
        mine = [m for m in mutants if not name or (m.file.startswith(title) if name == "room" else m.kind == title)]
        counts = Counter(mutant.outcome for mutant in mine)
        rows.append(f"{title:24}" + "".join(f"{counts[outcome]:11}" for outcome in outcomes))
    for mutant in sorted(mutants, key=lambda mutant: (mutant.outcome, mutant.file)):
        if mutant.outcome != "killed":
            rows.append(f"{mutant.outcome}: {mutant.file}, {mutant.function}: {mutant.line}\n    {mutant.change}")
    return "\n".join(rows)


def _kinds(mutants: list[Mutant]) -> list[str]:
    return sorted({mutant.kind for mutant in mutants})


def main() -> None:
    """Draw mutants, or take those of the file; run those without an outcome, save each outcome to the file, and print
    the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="mutants, their tests and results, as JSON")
    parser.add_argument("--seed", type=int, default=20261125)
    parser.add_argument("--count", type=int, default=60, help="the number of mutants (default: 60)")
    parser.add_argument("--rooms", nargs="+", default=ROOMS, help="folders of sources")
    parser.add_argument("--tests", nargs="+", default=["tests"], help="the tests to run (default: all)")
    parser.add_argument("--workers", type=int, default=1, help="processes of the run with probes (default: 1)")
    parser.add_argument("--afresh", action="store_true", help="measure the mutants of the file again")
    arguments = parser.parse_args()
    file: Path = arguments.file
    mutants = [Mutant(**m) for m in json.loads(file.read_text("utf-8"))] if file.exists() else []
    if not mutants:
        mutants = draw(arguments.rooms, arguments.seed, arguments.count)
    if arguments.afresh:
        gone = [m for m in mutants if not (ROOT / m.file).exists() or m.key() not in candidates(m.file)]
        for mutant in gone:
            print(f"gone: {mutant.file}, {mutant.function}: {mutant.line}")
        mutants = [mutant for mutant in mutants if mutant not in gone]
        for mutant in mutants:
            mutant.reached, mutant.tests, mutant.outcome, mutant.killer = None, [], "", ""

    def keep() -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps([asdict(mutant) for mutant in mutants], indent=1) + "\n")

    keep()
    with tempfile.TemporaryDirectory(prefix="strata-mutation-") as folder:
        work = Copy(Path(folder), arguments.workers)
        if any(mutant.reached is None for mutant in mutants):
            probe(work, mutants, arguments.tests)
            keep()
        for mutant in mutants:
            if not mutant.outcome:
                kill(work, mutant)
                print(f"{mutant.outcome:10} {mutant.file} {mutant.change}", flush=True)
                keep()
        confirm(work, mutants)
        keep()
    print(table(mutants))


if __name__ == "__main__":
    main()
