"""Files of tuning with bytes flipped, cut and doubled: each is read in right words, quickly.

`python -m tests.fuzz.files --seed 0 --cases 500` draws many, and prints those that find something.
"""

from __future__ import annotations

import random
import sqlite3
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from compiler.autotune.search import Search, replay
from compiler.autotune.task import SearchTask
from compiler.bench.workloads import find
from compiler.database import Database, Key, Record, WholeProgram, program_of
from compiler.database.outcome import MEASURED, Outcome
from compiler.database.record import hash_of
from compiler.report.page import page
from compiler.report.programs import gather
from compiler.space.candidates import defaults_of
from compiler.support.errors import StrataError
from tests.fuzz.alarm import alarm, asked
from tests.whole import whole

PATIENCE = 10
"""Seconds after which a file hangs its reader."""


def flipped(content: bytes, draw: random.Random) -> bytes:
    """A few changes: a bit, a byte, a stretch of zeros, a stretch from elsewhere, an end that is missing."""
    changed = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 5, 20))):
        at, size = draw.randrange(len(changed)), draw.choice((1, 2, 8, 100))
        match draw.choice(("bit", "byte", "byte", "zeros", "copy", "digit", "cut")):
            case "bit":
                changed[at] ^= 1 << draw.randrange(8)
            case "byte":
                changed[at] = draw.randrange(256)
            case "zeros":
                changed[at : at + size] = bytes(len(changed[at : at + size]))
            case "copy":
                second = draw.randrange(len(changed))
                changed[at : at + size] = changed[second : second + len(changed[at : at + size])]
            case "digit":
                changed[at] = ord(draw.choice('0123456789eE-+.,[]{}"'))
            case "cut" if draw.random() < 0.2:
                del changed[max(1, at) :]
    return bytes(changed)


@cache
def task() -> SearchTask:
    """A small program."""
    return SearchTask(find("matmul:8x6x4").function(), threads=1)


@cache
def records() -> tuple[Record, ...]:
    """Records of all kinds of outcomes, some of them again."""
    program = program_of(task().module)
    space, actual = task().space, []
    for number, candidate in enumerate([*defaults_of(task().space)][:6] * 2):
        outcome = Outcome(MEASURED, (0.1 + number, 0.2), (1e9, 2e9), "", 0.5)
        failure = Outcome(("crash", "wrong", "timeout")[number % 3], reason="because")
        key = Key(hash_of(program), "lab", 1, "contract")
        made = outcome if number % 4 else failure
        actual.append(Record(key, "task", program, space.script(candidate), made, candidate, 1.5, number, "run"))
    return tuple(actual)


@cache
def database() -> bytes:
    """A file of these."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tuning.db"
        with Database(path) as opened:
            opened.keep(WholeProgram("net", whole(), (1,)))
            for record in records():
                opened.add(record)
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        return path.read_bytes()


@cache
def lines() -> bytes:
    """These as lines of JSON."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "tuning.db").write_bytes(database())
        with Database(Path(folder) / "tuning.db") as opened:
            return "\n".join(opened.lines()).encode()


@cache
def log() -> bytes:
    """The log of a search of a few rounds."""
    search, draw = Search(task().space, 1), random.Random(1)
    for _ in range(4):
        for proposal in search.propose(6):
            search.update(proposal.candidate, Outcome(MEASURED, (draw.random(),), (1e9,)))
    search.descend()
    search.propose(2)
    return search.log().encode()


def read_database(content: bytes, folder: Path) -> None:
    """All that is done with a file: listed, asked for the best, exported, reported, added to, pruned."""
    path = folder / "tuning.db"
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    path.write_bytes(content)
    for act in (_listed, _exported, _reported, _written):
        with sentences(), Database(path, create=False) as opened:
            act(opened)


def _listed(opened: Database) -> None:
    tasks = opened.keys()
    for task in tasks:
        opened.best(task.key)
    opened.best(records()[0].key)
    assert opened.programs is not None and opened.whole_programs is not None


def _exported(opened: Database) -> None:
    for record in opened.records():
        assert opened.record(record.id) == record
    list(opened.lines())


def _reported(opened: Database) -> None:
    assert list(page(gather(opened, opened.keys()), codes=0))[-1] == "</body></html>"


def _written(opened: Database) -> None:
    from dataclasses import replace
    from uuid import uuid4

    number = opened.add(replace(records()[0], uuid=str(uuid4())))
    assert opened.record(number).script == records()[0].script
    opened.prune(keep=1)


def read_lines(content: bytes, folder: Path) -> None:
    """Lines are imported, all or none."""
    file = folder / "lines"
    file.write_bytes(content)
    with Database(":memory:") as opened:
        try:
            with sentences():
                opened.import_(file)
        finally:
            assert len(opened.records()) in (0, *range(len(records()) + 1))
        with sentences():
            _reported(opened)


def read_log(content: bytes, folder: Path) -> None:
    """A log replays, or says where it differs."""
    task().__dict__.pop("space", None)  # what it answers depends on what it was asked before
    with sentences():
        replay(task().space, content.decode(errors="replace"))


KINDS: dict[str, tuple[Callable[[], bytes], Callable[[bytes, Path], None]]] = {
    "database": (database, read_database),
    "lines": (lines, read_lines),
    "log": (log, read_log),
}


@contextmanager
def sentences() -> Iterator[None]:
    """Whatever is wrong is said in one, and soon."""

    with alarm(PATIENCE), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        except StrataError as error:
            assert str(error).strip()


def trial(kind: str, seed: int, folder: Path) -> None:
    """One changed file of a kind."""
    make, use = KINDS[kind]
    use(flipped(make(), random.Random(seed)), folder)


def main(seed: int, cases: int) -> int:
    """Draw so many files of each kind, from a seed on; the number of failures."""
    failures = 0
    for each_seed in range(seed, seed + cases):
        for kind in KINDS:
            try:
                with tempfile.TemporaryDirectory() as folder:
                    trial(kind, each_seed, Path(folder))
            except Exception as error:  # each file is judged on its own, and all failures are reported
                failures += 1
                print(f"files: {kind}, seed {each_seed}: {type(error).__name__}: {error}", flush=True)
    print(f"files: {cases} files of each kind, {failures} failures")
    return failures


if __name__ == "__main__":
    sys.exit(main(*asked(__doc__)) > 0)
