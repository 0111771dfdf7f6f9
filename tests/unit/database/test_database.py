"""The database of tuning records: what is kept, what survives, what is refused, and `strata db`."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import compiler
from compiler import te
from compiler.__main__ import main
from compiler.database import Database, Key, Record, WholeProgram, key_of, program_of, schema
from compiler.database.fields import FORMAT, canonical_json, key_fields, whole_program_fields
from compiler.database.lines import from_line, to_line
from compiler.database.outcome import FAILURES, MEASURED, NETWORK, PASSING, Outcome
from compiler.database.record import hash_of, now
from compiler.database.replay import plan_record, replay
from compiler.database.schema import APPLICATION, PATIENCE
from compiler.pipeline.source import parse
from compiler.schedule import Schedule
from compiler.support.errors import InputError, ScheduleError
from compiler.targets.cpu.presence import Disturbance
from tests.programs import matmul
from tests.said import Strata, refusal

ROOT = Path(__file__).resolve().parents[3]
FAKE = "a program of which nothing asks more than its hash"


def product(name: str = "product", m: int = 8) -> te.Function:
    return matmul(m, 4, 6, name=name)


def script_of(function: te.Function) -> str:
    schedule = Schedule(compiler.lower(function))
    m, n, _ = schedule.get_loops(schedule.get_block("C"))
    schedule.vectorize(schedule.split(n, [None, 2])[1])
    schedule.split(m, [None, 3])
    return str(schedule)


PROGRAM, SCRIPT = program_of(product()), script_of(product())


def made(cost: float | str = 1.0, program: str = FAKE, threads: int = 1, **fields: Any) -> Record:
    """A record of a cost, or of a kind of failure, each with a script of its own."""
    outcome = Outcome(MEASURED, (cost,), (1.0,)) if isinstance(cost, float) else Outcome(cost, reason="because")
    key = Key(hash_of(program), "lab", threads, "contract")
    script = f"// {cost}\n{SCRIPT}"
    return Record(**{"key": key, "name": "task", "program": program, "script": script, "outcome": outcome} | fields)


FULL = made(
    name="größe \U0001f600",
    outcome=Outcome(
        MEASURED, (0.1, 1 / 3, 5e-324), (1e11, 0.0, 1.7e308), "fine\x00 \u2028\n", 0.25, Disturbance(1 / 3, 0.1, 7, 2)
    ),
    candidate=(3, (0, 7, 2**63 - 1)),
    predicted=-0.1,
    seed=2**63 - 1,
    run="b7e1",
    created="2024-02-29T23:59:59.000001+00:00",
    versions={"strata": "0", "ünï": "\n"},
)
PLAIN = made("crash")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tuning.db"


def filled(path: Path, *records: Record) -> Path:
    with Database(path) as database:
        for record in records:
            database.add(record)
    return path


# --- programs and keys ----------------------------------------------------------------------------------------------


def test_a_key_is_of_the_loops_whatever_the_function_is_called() -> None:
    key = key_of(product(), "lab", 2, "fast")
    assert key == Key(hash_of(PROGRAM), "lab", 2, "fast")
    assert "loop.for" in PROGRAM and "@program" in PROGRAM and "product" not in PROGRAM
    for same in (product("other"), product().module, compiler.lower(product()), str(product().module), PROGRAM):
        assert key_of(same, "lab", 2, "fast") == key
    others = [(product(m=9), "lab", 2, "fast"), (PROGRAM, "x", 2, "fast"), (PROGRAM, "lab", 1, "fast")]
    assert len({key_of(*second) for second in [*others, (PROGRAM, "lab", 2, "strict")]} - {key}) == 4


def test_a_key_leaves_the_module_as_it_was() -> None:
    module = compiler.lower(product())
    before = str(module)
    program_of(module)
    assert str(module) == before


def test_a_program_below_the_loops_has_no_key() -> None:
    with pytest.raises(InputError, match="below loops"):
        program_of("func.func @f(%A: memref<4xf32>) {\n  func.return\n}\n")


# --- what is kept ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("record", [FULL, PLAIN], ids=["full", "plain"])
def test_what_is_added_is_read_again(record: Record, path: Path) -> None:
    with Database(path) as database:
        assert database.add(record) == 1
        assert database.record(1) == record and database.records() == [record]
        assert database.programs == {record.key.program: FAKE}
    with Database(path, create=False) as database:
        assert database.records(record.key) == [record] and database.records()[0].id == 1
    assert from_line(to_line(record)) == record


def test_whole_programs_are_kept_once(path: Path) -> None:
    kept_program = WholeProgram("größe", "text\n", (0, 3))
    for _ in range(2):
        with Database(path) as database:
            database.keep(kept_program)
            assert database.whole_programs == [kept_program]
    text = canonical_json(whole_program_fields(kept_program))
    for fields in (
        text.replace("3", "4"),
        text.replace("[0, 3]", "0"),
        "{",
        "null",
        b"\xff",
        f'{{"a": "\udcff", {text[1:]}',
    ):
        with sqlite3.connect(path) as connection:
            value = fields.encode("utf-8", "surrogateescape") if isinstance(fields, str) else fields
            connection.execute("UPDATE whole_programs SET fields = CAST(? AS TEXT)", (value,))
        connection.close()
        with Database(path) as database:
            assert database.whole_programs == [], "it says something else than it did"


def test_records_come_in_order_of_their_numbers_by_key(path: Path) -> None:
    records = [made(3.0), made(1.0, threads=2), made("wrong"), made(2.0)]
    filled(path, *records)
    with Database(path) as database:
        key = records[0].key
        assert [r.id for r in database.records(key)] == [1, 3, 4]
        assert [r.id for r in database.records(key, after=1)] == [3, 4]
        assert database.records() == records and database.records(after=4) == []
        assert database.records(replace(key, policy="fast")) == []


def test_a_program_is_stored_once(path: Path) -> None:
    filled(path, made(), made(), made(program="another"))
    assert sqlite3.connect(path).execute("SELECT count(*) FROM programs").fetchone() == (2,)


def test_the_best_is_the_least_cost_and_never_a_failure(path: Path) -> None:
    """A slow moment of the machine slows its ceiling too: times alone do not say which is best."""
    slow = made(3.0, outcome=Outcome(MEASURED, (3.0, 9.0, 2.0), (1.0, 1.0, 1.0)))
    fast = made(2.0, outcome=Outcome(MEASURED, (4.0,), (0.5,)))
    with Database(path) as database:
        assert database.best(slow.key) is None
        for kind in FAILURES:
            database.add(made(kind))
        assert database.best(slow.key) is None
        stopped = made(0.5, outcome=Outcome(MEASURED, (0.0,), (1.0,)))
        for record in (slow, fast, made(2.0), made(1.0, threads=2), stopped):
            database.add(record)
        best = database.best(slow.key)
        assert best is not None and best.id == len(FAILURES) + 2 and best.outcome.cost == 2.0
        assert best == replace(fast, outcome=Outcome(MEASURED, (4.0, 2.0), (0.5, 1.0))), "all of its script together"


def test_one_lucky_sample_does_not_win(path: Path) -> None:
    lucky, steady = made(1.0), made(2.0)
    filled(path, made("timeout", script=steady.script), lucky, steady)
    with Database(path) as database:
        best = database.best(lucky.key)
        assert best == lucky and database.keys()[0].best == 2
        for cost in (3.0, 3.2):
            database.add(made(cost, script=lucky.script))
        best = database.best(lucky.key)
        assert best == steady, "and a timeout does not undo what was measured"
        (summary,) = database.keys()
        assert (summary.trials, summary.ok, summary.best, summary.seconds) == (2, 2, 3, 2.0)


@pytest.mark.parametrize("kind", FAILURES)
def test_what_failed_once_for_good_is_never_best(kind: str, path: Path) -> None:
    stands = kind not in PASSING
    filled(path, made(1.0), made(2.0), made(kind, script=made(1.0).script))
    with Database(path) as database:
        best = database.best(made().key)
        assert best is not None and best.outcome.cost == (2.0 if stands else 1.0)
        (summary,) = database.keys()
        assert (summary.trials, summary.ok) == (2, 1 if stands else 2)
        assert dict(summary.failed) == ({kind: 1} if stands else {})
        assert [removal.ids for removal in database.prune(failed=True)] == [(1, 3) if stands else (3,)]
        best = database.best(made().key)
        assert best is not None and best.outcome.cost == (2.0 if stands else 1.0), "nor after its failure was pruned"


def test_a_summary_for_each_key(path: Path) -> None:
    records = [made("wrong"), made(3.0, name="new"), made("build"), made("wrong"), made(2.0), made("crash", threads=2)]
    filled(path, *records)
    with Database(path) as database:
        first, second = database.keys()
    assert (first.trials, first.ok, first.failed, first.best, first.seconds) == (4, 2, {"build": 1, "wrong": 1}, 5, 2.0)
    assert first.names == ("new", "task") and first.key == records[0].key
    assert (second.trials, second.ok, second.failed, second.best, second.seconds) == (1, 0, {"crash": 1}, None, None)


MALFORMED: dict[str, Callable[[], object]] = {
    "program is not the one": lambda: replace(PLAIN, program="edited"),
    "name '' is not a line": lambda: made(name=""),
    "name 'a.nb' is not a line": lambda: made(name="a\nb"),
    "surrogate": lambda: made(script="\ud800"),
    "script is 3": lambda: made(script=3),
    "threads is 0": lambda: made(threads=0),
    "threads is True": lambda: made(threads=True),
    "seed is 9223372036854775808": lambda: made(seed=2**63),
    "outcome 'fine' is unknown": lambda: made(outcome=Outcome("fine")),
    "has no seconds": lambda: made(outcome=Outcome(MEASURED)),
    "1 seconds and 0 rates": lambda: made(outcome=Outcome(MEASURED, (1.0,))),
    "seconds has -1.0": lambda: made(-1.0),
    "seconds has nan": lambda: made(float("nan")),
    "rates has 1,": lambda: made(outcome=Outcome(MEASURED, (1.0,), (1,))),
    "seconds is .1.0., expected a list": lambda: made(outcome=Outcome(MEASURED, [1.0], (1.0,))),  # type: ignore[arg-type]
    "build_seconds has inf": lambda: made(outcome=Outcome("build", build_seconds=float("inf"))),
    "predicted has inf": lambda: made(predicted=float("inf")),
    "candidate 5": lambda: made(candidate=5),
    "a position is -1": lambda: made(candidate=(0, (-1,))),
    "sketch is 'x'": lambda: made(candidate=("x", ())),
    "created 'today'": lambda: made(created="today"),
    "created '2024-01-01": lambda: made(created="2024-01-01T00:00:00+01:00"),
    "created '2025-01-01": lambda: made(created="2025-01-01T00:00:00"),
    "uuid 'x' is not": lambda: made(uuid="x"),
    "versions are not": lambda: made(versions=[]),
    "a version is 3": lambda: made(versions={"xdsl": 3}),
    "the unknown fields are \\[\\], expected": lambda: made(unknown=[]),
    "the unknown fields are {'laws': \\(\\)}, expected": lambda: made(unknown={"laws": ()}),
    "the unknown fields are {1: 2}, expected": lambda: made(unknown={1: 2}),
    "the unknown fields are {'laws': nan}, expected": lambda: WholeProgram("net", "", (), {"laws": float("nan")}),
    "the key's unknown fields are 3, expected": lambda: made(key=replace(made().key, unknown=3)),
    "the key's unknown fields are '{}', expected": lambda: made(key=replace(made().key, unknown="{}")),
    "the key's unknown fields are '{', expected": lambda: made(key=replace(made().key, unknown="{")),
    "the key's unknown fields are '{\"b\": 1": lambda: made(key=replace(made().key, unknown='{"b": 1, "a": 1}')),
}


@pytest.mark.parametrize("said", MALFORMED)
def test_what_no_file_could_hold_is_no_record(said: str) -> None:
    with pytest.raises(InputError, match=said):
        MALFORMED[said]()


def test_a_record_is_added_once(path: Path) -> None:
    filled(path, FULL)
    with Database(path) as database, pytest.raises(InputError, match="already"):
        database.add(replace(FULL, name="other"))
    with Database(path) as database, pytest.raises(InputError, match="no record 2"):
        database.record(2)
    with Database(path) as database, pytest.raises(InputError, match="no record 1"):
        database.record(10**30)


# --- what survives --------------------------------------------------------------------------------------------------


def test_a_trial_is_on_disk_when_add_returns(path: Path) -> None:
    with Database(path) as database:
        assert database._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert database._connection.execute("PRAGMA synchronous").fetchone() == (2,), "FULL"
        database.add(made())
        assert not database._connection.in_transaction
        copies = [path.with_name(f"copy{end}") for end in ("", "-wal")]
        for copy, end in zip(copies, ("", "-wal"), strict=True):  # the files as a crash would leave them
            copy.write_bytes(Path(f"{path}{end}").read_bytes())
    with Database(copies[0], create=False) as database:
        assert len(database.records()) == 1


WRITER = """
import os, sys
from compiler.database import Database, Key, Record
from compiler.database.record import hash_of
from compiler.database.outcome import Outcome
os.write(1, b"ready\\n")
os.read(0, 1)
with Database(sys.argv[1]) as database:
    for _ in range(int(sys.argv[2])):
        key = Key(hash_of("f"), "lab", 1, "fast")
        record = Record(key, "task", "f", "x" * 2000, Outcome("measured", (1.0,), (1.0,)), run=sys.argv[3])
        os.write(1, f"{database.add(record)} {record.uuid}\\n".encode())
"""


def writer(path: Path, count: int, run: str) -> subprocess.Popen[bytes]:
    """A process that, once told to begin, adds records and says the number and uuid of each when it has been added."""
    arguments = [sys.executable, "-c", WRITER, str(path), str(count), run]
    process = subprocess.Popen(arguments, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    return process


def begin(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.write(b"!")
    process.stdin.flush()


def test_what_was_added_survives_a_kill(path: Path) -> None:
    rng = random.Random(0)
    finished: list[tuple[int, str]] = []
    for attempt in range(4):
        process = writer(path, 10**9, str(attempt))
        assert process.stdout is not None
        begin(process)
        first = process.stdout.readline()
        time.sleep(rng.uniform(0, 0.1))
        process.send_signal(signal.SIGKILL)
        remaining = process.stdout.read().splitlines()
        process.wait()
        finished += [(int(n), uuid) for n, uuid in (line.decode().split() for line in [first, *remaining])]
        with Database(path, create=False) as database:
            collected = [(record.id, record.uuid) for record in database.records()]
            assert database._connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert set(finished) <= set(collected)
        assert len(collected) <= len(finished) + attempt + 1, "at most the trial in flight is there and was not said"
    assert len(finished) >= 4


def test_several_tuners_share_one_file(path: Path) -> None:
    """They all find no file, and make it at once."""
    processes = [writer(path, 20, str(number)) for number in range(4)]
    for process in processes:
        begin(process)
    said = [process.communicate()[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    with Database(path, create=False) as database:
        records = database.records()
    assert [record.id for record in records] == list(range(1, 81))
    assert sorted(record.uuid for record in records) == sorted(u.decode() for lines in said for u in lines[1::2])
    assert [sum(record.run == str(number) for record in records) for number in range(4)] == [20] * 4


def test_threads_share_one_database(path: Path) -> None:
    with Database(path) as database, ThreadPoolExecutor(4) as pool:
        numbers = list(pool.map(lambda n: database.add(made(float(n + 1))), range(40)))
        best = database.best(made().key)
        assert sorted(numbers) == list(range(1, 41)) and best is not None and best.outcome.cost == 1.0


WEIRD = [None, True, -1, 2**70, 1.5, 1e999, "", "x", "\ud800", "a\nb", "\0", [], [[]], [None], [1.0, "x"], {}, {"a": 1}]


@pytest.mark.parametrize("name", [*json.loads(to_line(FULL)), "key.*", "outcome.*"])
def test_no_value_of_a_field_ends_otherwise_than_in_a_sentence(name: str) -> None:
    content = json.loads(to_line(FULL))
    room, inner = (content[name[:-2]], [*content[name[:-2]]]) if name.endswith(".*") else (content, [name])
    for field in inner:
        right = room[field]
        for value in WEIRD:
            room[field] = value
            with suppress(InputError):
                assert to_line(from_line(json.dumps(content))), "what is taken in can be written again"
        room[field] = right


def test_a_file_that_another_process_holds_is_waited_for_and_then_said(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compiler.database.schema.PATIENCE", 0.05)
    with Database(path) as database:
        second = sqlite3.connect(path, isolation_level=None)
        second.execute("BEGIN IMMEDIATE")
        with pytest.raises(InputError, match=f"held by another process for {PATIENCE:.0f} seconds"):
            database.add(made())
        second.execute("ROLLBACK")
        second.close()
        assert database.add(made()) == 1


def test_opening_waits_while_a_file_without_a_log_is_written(path: Path) -> None:
    """SQLite itself does not wait where it would change a file to a write-ahead log."""
    filled(path, made())
    second = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    second.execute("PRAGMA journal_mode = DELETE")
    second.execute("BEGIN IMMEDIATE")
    released: list[bool] = []
    release = threading.Timer(0.3, lambda: (released.append(True), second.execute("ROLLBACK")))
    release.start()
    with Database(path) as database:
        assert len(database.records()) == 1 and released
    release.join()
    second.close()


def test_an_interrupted_write_leaves_nothing_and_holds_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(record: Record) -> None:
        raise KeyboardInterrupt

    with Database(path) as database:
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr("compiler.database.store.to_row", interrupt)
            database.add(made())
        assert database.programs == {} and database.add(made()) == 1


# --- formats --------------------------------------------------------------------------------------------------------


def _of_format(path: Path, number: int) -> bytes:
    """Make a file of ours with another format, and give what it holds."""
    filled(path, made())
    _altered(path, f"PRAGMA user_version = {number}")
    return path.read_bytes()


TUNE_AGAIN = f"of before the first release; only format {FORMAT} is read: tune again, into a new file"
UPDATE = f"of a newer Strata; only format {FORMAT} is read: update Strata"
OTHER_FORMATS = {**dict.fromkeys(range(1, FORMAT), TUNE_AGAIN), 99: UPDATE}


@pytest.mark.parametrize("number", OTHER_FORMATS)
def test_a_file_of_another_format_is_refused_and_left_alone(
    number: int, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = _of_format(path, number)
    sentence = f"{path} is a database of tuning records that has format {number}, {OTHER_FORMATS[number]}"
    for arguments in (["db", "list", str(path)], ["tune", "matmul:8x6x4", "--trials", "1", "--database", str(path)]):
        assert main(arguments) == 1
        assert refusal(capsys.readouterr().err) == f"strata: error: {sentence}"
    assert path.read_bytes() == before


def test_a_file_of_a_former_format_is_refused_whatever_its_tables_are(path: Path) -> None:
    columns = "CREATE TABLE records (id INTEGER PRIMARY KEY, kind TEXT)"
    pragmas = f"PRAGMA user_version = 1; PRAGMA application_id = {APPLICATION}"
    sqlite3.connect(path).executescript(f"{columns}; {pragmas}").close()
    with pytest.raises(InputError, match="has format 1, of before the first release"):
        Database(path)


def test_making_a_file_that_fails_leaves_it_empty(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "STATEMENTS", (*schema.STATEMENTS, "nonsense"))
    with pytest.raises(InputError, match="cannot be used"):
        Database(path)
    monkeypatch.undo()
    with pytest.raises(InputError, match="is empty"):
        Database(path, create=False)
    filled(path, made())


def _text(path: Path) -> None:
    path.write_text("hello\n" * 1000)


def _other(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE places (name)")
    connection.close()


def _numbered(path: Path) -> None:
    """Other programs count versions as well."""
    sqlite3.connect(path).executescript("CREATE TABLE records (id); PRAGMA user_version = 1").close()


def _cut(path: Path) -> None:
    """A file of several pages, most of them lost."""
    filled(path, *(made(script="x" * 3000) for _ in range(20)))
    path.write_bytes(path.read_bytes()[:4096])


FILES: dict[str, Callable[[Path], object]] = {
    "is not a database of tuning records": _text,
    "is a database of something else": _other,
    "is a database of something else than tuning records": _numbered,
    "is a folder": Path.mkdir,
    "is not a file": lambda path: os.mkfifo(path),
    "is damaged": _cut,
    "is empty": Path.touch,
    "there is no file": lambda path: None,
}


def test_another_process_may_be_the_first_to_make_a_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_ahead = schema._write_ahead

    def later(connection: sqlite3.Connection) -> None:
        monkeypatch.undo()
        filled(path, made())
        write_ahead(connection)

    monkeypatch.setattr(schema, "_write_ahead", later)
    assert filled(path, made()) == path
    with Database(path) as database:
        assert [record.id for record in database.records()] == [1, 2]


def test_what_a_file_is_is_asked_of_one_state_of_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a file that another process is making has tables already and had no format yet."""
    is_new = schema._is_new

    def seen(connection: sqlite3.Connection, *remaining: Any) -> bool:
        assert connection.in_transaction
        return is_new(connection, *remaining)

    monkeypatch.setattr(schema, "_is_new", seen)
    filled(path, made())


@pytest.mark.parametrize("said", FILES)
def test_files_that_are_none_are_refused_and_left_alone(said: str, path: Path) -> None:
    FILES[said](path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(InputError, match=said), Database(path, create=False) as database:
        database.records()
    assert (path.read_bytes() if path.is_file() else None) == before


@pytest.mark.parametrize(
    ("name", "said"),
    [("no/such.db", "there is no folder"), ("x" * 300, "File name too long"), ("a\0b", "is not the name")],
)
def test_places_where_no_file_can_be(name: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        Database(tmp_path / name)


@pytest.mark.parametrize(
    "name", ["a?mode=memory", "a#b", "a%41", "größe", "a b", "file:x", "-", "'", os.fsdecode(b"\xff")]
)
def test_names_of_files_are_taken_as_they_are(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for path in (Path(name), Path(f"/{tmp_path}") / name):
        filled(path, made())
        with Database(path, create=False) as database:
            assert len(database.records()) == 1
        assert os.listdir(tmp_path) == [name]
        (tmp_path / name).unlink()


def test_a_file_that_cannot_be_written_is_said(path: Path) -> None:
    with Database(path) as database:
        database._connection.execute("PRAGMA query_only = 1")
        with pytest.raises(InputError, match="cannot be written"):
            database.add(made())


def _set(field: str, value: str, column: str = "fields") -> str:
    """The change of a column that gives a field a value, which SQL writes so."""
    return f"{column} = json_set({column}, '$.{field}', {value})"


ELSEWHERE = [
    _set("timing", "'x'", "conditions"),
    _set("machine", "char(27)", "conditions"),
    _set("policy", "''", "conditions"),
    "conditions = '3'",
    "conditions = x'ff'",
    "conditions = CAST(x'ff' AS TEXT)",
    "script = x'00'",
]
"""Changes after which a record is of no key, or no script, that is known."""


@pytest.mark.parametrize(
    "change",
    [
        _set("outcome.seconds", "'x'"),
        _set("outcome.seconds", "3"),
        _set("outcome.rates", "json('[]')"),
        _set("outcome.kind", "'x'"),
        _set("outcome.seconds", "json('[\"x\"]')"),
        _set("outcome.reason", "3"),
        _set("outcome.disturbance", "json('[1, 2, 3, 4]')"),
        _set("created", "'x'"),
        _set("name", "char(27) || '[31m'"),
        _set("name", "char(0x202e)"),
        _set("versions", "json('[1]')"),
        _set("run", "0"),
        _set("seed", "'x'"),
        _set("candidate", "json('{}')"),
        "fields = json_remove(fields, '$.candidate')",
        f"fields = '{'[' * 100_000}'",
        f"""fields = json_set(fields, '$.laws', json('{"[" * 40}{"]" * 40}'))""",
        "fields = replace(fields, '1.0', 'NaN')",
        "fields = replace(fields, '1.0', '1e999')",
        "fields = '[]'",
        "fields = x'7b7d'",
        "fields = CAST(x'7bff7d' AS TEXT)",
        *ELSEWHERE,
    ],
    ids=lambda change: change[:48],
)
def test_a_row_that_was_tampered_with_is_said(change: str, path: Path) -> None:
    """The others are there as before; a script of which the key has a damaged record is never the best."""
    first, wrong, again, last = made(2.0), made(1.0), made(1.0, seed=1), made(3.0)
    filled(path, first, wrong, again, last)
    _altered(path, f"UPDATE records SET {change} WHERE id = 2")
    with Database(path) as database:
        with pytest.warns(RuntimeWarning, match=r"tuning\.db: record 2 is damaged: .*; it is left out") as said:
            assert database.records() == [first, again, last]
            assert database.best(first.key) == (again if change in ELSEWHERE else first)
            assert database.keys()[0].trials == 2 + ("script" in change)
        assert len(said) == 1 and list(database.damaged) == [2]
        with pytest.raises(InputError, match=r"tuning\.db: record 2 is damaged"):
            database.record(2)
        assert database.record(4) == last


def _altered(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def test_the_command_warns_of_damage_and_shows_the_others(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    filled(path, made(2.0), made(1.0), made(3.0))
    _altered(path, f"UPDATE records SET {_set('seed', 'NULL')} WHERE id = 2")
    assert main(["db", "export", str(path)]) == 0
    said = capsys.readouterr()
    assert said.out.count("\n") == 2
    assert said.err.startswith(f"strata: warning: {path}: record 2 is damaged: ") and said.err.count("\n") == 1
    assert main(["db", "best", str(path), "--record", "2"]) == 1
    assert f"strata: error: {path}: record 2 is damaged: " in capsys.readouterr().err
    assert main(["db", "best", str(path), "--record", "3"]) == 0


def test_a_record_of_a_lost_program_is_damaged(path: Path) -> None:
    lost, kept = made(1.0), made(2.0, program="another")
    filled(path, lost, kept)
    _altered(path, f"DELETE FROM programs WHERE hash = '{lost.key.program}'")
    with Database(path) as database, pytest.warns(RuntimeWarning, match="record 1 is damaged: program is None"):
        assert database.records() == [kept]
        assert database.best(lost.key) is None and database.best(kept.key) == kept


# --- lines of JSON --------------------------------------------------------------------------------------------------


def test_an_export_is_imported_exactly_and_once(path: Path, tmp_path: Path) -> None:
    filled(path, FULL, PLAIN, made(2.0, program="another"))
    file, again = tmp_path / "records.jsonl", tmp_path / "again.jsonl"
    with Database(path) as database, Database(tmp_path / "copy.db") as copy:
        database.keep(whole := WholeProgram("größe", "text\n", (0, 3)))
        assert database.export(file) == 3
        actual = copy.import_(file)
        assert (actual.added, actual.skipped) == (3, 0)
        assert copy.records() == database.records() and copy.programs == database.programs
        assert copy.whole_programs == [whole] and len(list(copy.lines())) == 4
        actual = copy.import_(file)
        assert (actual.added, actual.skipped) == (0, 3)
        copy.export(again)
    assert again.read_bytes() == file.read_bytes() and not list(tmp_path.glob("*.partial"))
    heads = [[*json.loads(line).items()][:2] for line in file.read_text().split("\n")[:-1]]
    contents = ("whole_program", "record", "record", "record")
    assert heads == [[("format", FORMAT), ("content", content)] for content in contents]


def test_records_of_a_network_are_not_compared_with_warm_ones(path: Path) -> None:
    warm = made(1.0)
    cold = made(2.0, script="cold")
    cold = replace(cold, key=replace(cold.key, timing=NETWORK))
    with Database(filled(path, warm, cold)) as database:
        assert database.best(warm.key) == warm and database.best(cold.key) == cold
        actual = database.keys()
        assert [summary.key for summary in actual] == [warm.key, cold.key]
        assert from_line(to_line(cold)) == cold


def test_what_is_chosen_inside_a_program_is_apart(path: Path, tmp_path: Path) -> None:
    """It has keys of its own, is no task, and counts before the best; pruning the worse scripts leaves it."""
    best, worse = made(1.0), made(2.0, script="worse")
    key = replace(best.key, whole="net")
    tuned, plain = (
        replace(record, key=key, default=default, uuid=str(uuid4()), created=now())
        for record, default in ((best, False), (worse, True))
    )
    with Database(filled(path, best, worse)) as database:
        assert database.chosen(best.key, "net") == database.chosen(best.key) == best
        database.choose([tuned, plain])
        assert database.chosen(best.key, "net") == plain, "the last moment counts, of equal ones the last number"
        assert database.chosen(best.key, "other") == database.chosen(best.key) == database.best(best.key) == best
        summaries = database.keys()
        assert [summary.key for summary in summaries] == [best.key]
        assert [from_line(line) for line in database.lines()] == database.records() == [best, worse, tuned, plain]
        assert [removal.ids for removal in database.prune(keep=1)] == [(2,)]
        assert database.chosen(best.key, "net") == plain
    assert "whole" not in to_line(best) and "default" not in to_line(best), "older versions know such lines"


def test_a_choice_is_kept_whole_or_not_at_all(path: Path) -> None:
    first, second = (replace(made(1.0), key=replace(PLAIN.key, whole="net"), uuid=str(uuid4())) for _ in range(2))
    with Database(filled(path, second)) as database:
        with pytest.raises(InputError, match="already"):
            database.choose([first, second])
        assert database.records() == [second]


def test_the_best_knows_how_all_its_measurements_were_disturbed(path: Path) -> None:
    first = made(1.0)
    records = [
        replace(first, outcome=replace(first.outcome, disturbance=Disturbance(1.0, 0.25, n, 1)), uuid=str(uuid4()))
        for n in (2, 3)
    ]
    with Database(filled(path, *records, made(2.0))) as database:
        best = database.best(records[0].key)
    assert best is not None and best.outcome.disturbance == Disturbance(2.0, 0.5, 5, 2)


def test_lines_that_come_twice_are_counted(path: Path, tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text("\n".join(["", to_line(FULL), to_line(PLAIN), to_line(FULL), ""]), newline="\r\n")
    with Database(path) as database:
        database.add(PLAIN)
        actual = database.import_(file)
        assert (actual.added, actual.skipped) == (1, 2) and database.records() == [PLAIN, FULL]


def edited(**fields: Any) -> str:
    return json.dumps(json.loads(to_line(FULL)) | fields)


def disturbed(value: Any) -> str:
    return edited(outcome=json.loads(to_line(FULL))["outcome"] | {"disturbance": value})


LAWS = key_fields(FULL.key) | {"laws": 0}
"""The fields of a key, with one that this version does not know."""
WHOLE = to_line(WholeProgram("net", "main", (2,)))
LINES = {
    "it is not JSON: Expecting property name .*column 2": "{",
    "it is not JSON: maximum": "[" * 100_000,
    "\\[\\] is not an object": "[]",
    "the record has no field 'key'": WHOLE.replace("whole_program", "record"),
    "its content is 'certificate', expected record or whole_program": WHOLE.replace("whole_program", "certificate"),
    "its content is \\[\\], expected record or whole_program": edited(content=[]),
    "the whole program has no field 'text'": WHOLE.replace('"text": ', '"txt": '),
    "text is 7, expected a text": WHOLE.replace('"main"', "7"),
    "the name is ' ', expected a line of text": WHOLE.replace('"net"', '" "'),
    "constants is \\(-1,\\), expected positions of inputs": WHOLE.replace("[2]", "[-1]"),
    "NaN is no number": to_line(PLAIN).replace("null", "NaN"),
    "has no field 'uuid'": to_line(FULL).replace('"uuid"', '"id"'),
    "format is None": edited(format=None),
    "format is True": edited(format=True),
    **{f"it has format {number}, {words}": edited(format=number) for number, words in OTHER_FORMATS.items()},
    "the key has no field 'timing'": edited(key={"program": "", "machine": "", "threads": 1, "policy": ""}),
    "the timing 'hot' is unknown": edited(key=key_fields(FULL.key) | {"timing": "hot"}),
    "the unknown fields are {'laws': .*, at most 32 levels deep": edited(laws=json.loads("[" * 40 + "]" * 40)),
    "the unknown fields are {'laws': inf}, expected": edited(laws=0).replace('"laws": 0', '"laws": 1e999'),
    "the unknown fields are {'laws': \\[-inf\\]}, expected": WHOLE.replace("{", '{"laws": [-1e999], ', 1),
    "{'laws': inf} cannot be written as JSON": edited(key=LAWS).replace('"laws": 0', '"laws": 1e999'),
    "the unknown fields are {'laws': .*, at most 32 ": edited(key=LAWS | {"laws": json.loads("[" * 40 + "]" * 40)}),
    "the disturbance is not an object": disturbed(3),
    "the disturbance has no field 'used'": disturbed({"seconds": 1.0, "away": 0.1, "repeated": 1}),
    "the disturbance has -1": disturbed({"seconds": 1.0, "away": -1, "repeated": 1, "used": 0}),
    "repeated is 0.5": disturbed({"seconds": 1.0, "away": 0.1, "repeated": 0.5, "used": 0}),
    "the key is not an object": edited(key=3),
    "the outcome has no field 'kind'": edited(outcome={}),
    "the program is not the one that its key names": edited(program="edited"),
    "candidate": edited(candidate=[1]),
    "positions": edited(candidate=[1, 2]),
    "predicted has 'x'": edited(predicted="x"),
    "predicted has 1000": edited(predicted=10**400),
    "seconds is 'xy'": edited(outcome=json.loads(to_line(FULL))["outcome"] | {"seconds": "xy"}),
    "seed is 1.5": edited(seed=1.5),
    "default is 'yes', expected true or false": edited(default="yes"),
    "the key's whole is 7, expected a text": edited(key=key_fields(FULL.key) | {"whole": 7}),
    "name has half of a surrogate pair": edited(name="\ud800"),
    "versions are not": edited(versions=3),
}


@pytest.mark.parametrize("said", LINES)
def test_a_malformed_line_is_said_and_nothing_imported(said: str, path: Path, tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text(f"{to_line(PLAIN)}\n{LINES[said]}\n")
    with Database(path) as database:
        with pytest.raises(InputError, match=said) as refusal:
            database.import_(file)
        assert str(refusal.value).startswith(f"{file}:2: ") and len(str(refusal.value)) < 400
        assert database.records() == [] and database.programs == {}


def test_integers_in_lines_are_numbers(path: Path) -> None:
    outcome = json.loads(to_line(FULL))["outcome"] | {"seconds": [1, 2, 3], "build_seconds": 0}
    actual = from_line(edited(outcome=outcome, predicted=3))
    assert actual.outcome.seconds == (1.0, 2.0, 3.0) and actual.predicted == 3.0
    with Database(path) as database:
        database.add(actual)
        assert database.records() == [actual]


def test_an_export_goes_through_links_and_into_pipes(path: Path, tmp_path: Path) -> None:
    filled(path, made())
    link, pipe, file = tmp_path / "link", tmp_path / "pipe", tmp_path / "records.jsonl"
    link.symlink_to(file)
    os.mkfifo(pipe)
    collected: list[str] = []
    reader = threading.Thread(target=lambda: collected.append(pipe.read_text()))
    reader.start()
    with Database(path) as database:
        assert database.export(pipe) == database.export(link) == 1
    reader.join()
    assert link.is_symlink() and pipe.is_fifo() and collected == [file.read_text()] and len(collected[0]) > 100


def test_an_export_never_replaces_the_database(path: Path, tmp_path: Path) -> None:
    filled(path, made())
    before = path.read_bytes()
    with Database(path) as database:
        with pytest.raises(InputError, match="is the database itself"):
            database.export(path)
        (tmp_path / "folder").mkdir()
        for wrong in (tmp_path / "folder", tmp_path / "no" / "such", "/", ""):
            with pytest.raises(InputError, match=r"cannot be written|is not the name"):
                database.export(wrong)
    assert path.read_bytes() == before and not list(tmp_path.glob("*.partial"))


# --- fields of newer versions ---------------------------------------------------------------------------------------

NEWER = [None, True, -1, 2**70, 1 / 3, "größe \0", "\ud800", [], {}, {"a": {"": 1}}, [{"law": "winograd", "at": [0]}]]
"""What a field may be that this version does not know."""


def newer(record: Record, value: Any) -> dict[str, Any]:
    """The object of a record's line, with a field of a newer version in each of the objects in it."""
    content: dict[str, Any] = json.loads(to_line(record))
    outcome = content["outcome"] | {"laws": value}
    if outcome["disturbance"] is not None:
        outcome["disturbance"] |= {"laws": value}
    return content | {"laws": value, "outcome": outcome}


@pytest.mark.parametrize("value", NEWER, ids=repr)
def test_unknown_fields_survive(value: Any, path: Path, tmp_path: Path) -> None:
    """Through lines, a file, that file read again, and lines."""
    whole = json.loads(to_line(WholeProgram("net", "main", (2,)))) | {"laws": value}
    full = newer(FULL, value)
    lines = [whole, full | {"key": full["key"] | {"laws": value}}, newer(PLAIN, value)]
    (tmp_path / "lines").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with Database(path) as database:
        database.import_(tmp_path / "lines")
    with Database(path, create=False) as database:
        assert [json.loads(line) for line in database.lines()] == lines
        assert [from_line(line) for line in database.lines()] == [*database.whole_programs, *database.records()]
        database.export(tmp_path / "again")
    with Database(tmp_path / "copy.db") as copy:
        assert copy.import_(tmp_path / "again").added == 2
        assert copy.import_(tmp_path / "again").skipped == 2 and len(copy.whole_programs) == 1
        assert [json.loads(line) for line in copy.lines()] == lines


def test_unknown_fields_of_a_key_make_another_key(path: Path, strata: Strata) -> None:
    """What they say of the machine, for one, decides which outcomes are comparable."""
    known, key = made(2.0), made().key
    capped = replace(made(1.0), key=replace(key, unknown='{"watts": 15}'))
    with Database(filled(path, known, capped, made(3.0))) as database:
        best, of_capped = database.best(key), database.best(capped.key)
        assert best == known and of_capped == capped
        summaries = database.keys()
    assert [(summary.key, summary.trials) for summary in summaries] == [(key, 2), (capped.key, 1)]
    content = json.loads(strata("db", "list", str(path), "--json"))
    assert [task.get("watts") for task in content] == [None, 15] and "unknown" not in content[0]
    assert 'on lab, 1 thread, contract, {"watts": 15})' in strata("db", "best", str(path), status=1)


def test_the_best_has_its_unknown_fields(path: Path, strata: Strata) -> None:
    record = replace(made(1.0), unknown={"laws": ["winograd"]})
    filled(path, record, made(2.0))
    assert json.loads(strata("db", "best", str(path), "--mode", "json"))["laws"] == ["winograd"]


def test_a_whole_program_of_other_unknown_fields_is_another_one(path: Path) -> None:
    programs = [WholeProgram("net", "main", (2,), {"ranges": [n]}) for n in (1, 2)]
    with Database(path) as database:
        for program in (*programs, programs[0]):
            database.keep(program)
        assert database.whole_programs == programs


# --- pruning --------------------------------------------------------------------------------------------------------


def test_pruning_keeps_the_best_of_each_key(path: Path) -> None:
    filled(path, made(3.0), made("wrong"), made(1.0), made(2.0), made("build", threads=2), made("crash", threads=2))
    with Database(path) as database:
        would = database.prune(keep=2, dry_run=True)
        assert len(database.records()) == 6
        removed = database.prune(keep=2)
        assert removed == would and [(r.ids, r.ok, r.failed, r.left, r.best) for r in removed] == [
            ((1, 2), 1, 1, 2, False)
        ]
        assert [record.id for record in database.records()] == [3, 4, 5, 6]
        assert database.prune(keep=2) == []
        assert database.add(made()) == 7


def test_pruning_failures_and_old_ones(path: Path) -> None:
    old = made(0.5, program="old", created="2020-01-01T00:00:00+00:00")
    filled(path, made(3.0), made("wrong"), old)
    with Database(path) as database:
        assert [r.ids for r in database.prune(failed=True)] == [(2,)]
        assert [(r.ids, r.best) for r in database.prune(before=datetime.now(UTC) - timedelta(days=1))] == [((3,), True)]
        assert list(database.programs.values()) == [FAKE], "programs without records go as well"
        assert database.prune(before=datetime.now(UTC) + timedelta(days=1), failed=True, keep=1)[0].ids == (1,)
        assert database.add(made()) == 4, "numbers are not given twice"


def test_pruning_shrinks_the_file(path: Path) -> None:
    filled(path, *(made(script=f"{n} " * 2000) for n in range(50)))
    size = path.stat().st_size
    with Database(path) as database:
        database.prune(keep=1)
    assert path.stat().st_size < size / 3


# --- replay ---------------------------------------------------------------------------------------------------------


def replayable(script: str = SCRIPT, program: str = PROGRAM) -> Record:
    return made(program=program, script=script, name="product")


def test_a_record_replays_from_the_file_alone(path: Path) -> None:
    filled(path, replayable())
    with Database(path) as database:
        schedule = replay(database.records()[0])
    assert str(schedule) == SCRIPT and "vectorized" in str(schedule.module) and schedule.verify()


TWO = "\n".join(f"transform.named_sequence @s{n}(%f: !transform.any_op) {{\n  transform.yield\n}}" for n in (1, 2))
NONE = "transform.named_sequence @s() {\n  transform.yield\n}"
REFUSED = {
    "split twice": (
        ("split %m", "split %n"),
        "step 5, sched.split: 'sched.split' uses a handle '%n'",
        "(line 7: %m.0, %m.1 = sched.split %n by",
    ),
    "no such factor": (
        ("[-1, 3]", "[-1, 0]"),
        "step 5, sched.split: ",
        "(line 7: %m.0, %m.1 = sched.split %m by [-1, 0]",
    ),
    "a reduction in lanes": (("vectorize %n.1", "vectorize %k"), "step 4, sched.vectorize: ", "(line 6: "),
    "no such block": (('"C"', '"X"'), "step 1, sched.get_block: ", '(line 3: %C = sched.get_block %f "X")'),
    "an open choice": (
        ("%n.0,", "%u = sched.sample_categorical [1] probabilities [1.0]\n    %n.0,"),
        "step 3, sched.sample_categorical: it has no decision",
        "(line 5: ",
    ),
    "not defined": (("split %n", "split %z"), "its script cannot be read: line 5: %z is used but not defined", ""),
    "not MLIR": ((SCRIPT, "nonsense"), "its script cannot be read: line 1: ", ""),
    "a type of xDSL's": (("!sched.loop", "!sched.loop<3>"), "its script cannot be read: line 4: ", ""),
    "two blocks": (
        (SCRIPT, TWO.split("\n}")[0] + "\n^b:\n  transform.yield\n}"),
        "its script cannot be read: line 1: Region",
        "",
    ),
    "no script": ((SCRIPT, "builtin.module {\n}\n"), "a script is one transform.named_sequence, and there are 0", ""),
    "two scripts": ((SCRIPT, TWO), "a script is one transform.named_sequence, and there are 2", ""),
    "no function": ((SCRIPT, NONE), "its script takes 0 handles, expected the function", ""),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_script_that_no_longer_applies_says_the_step(case: str) -> None:
    change, begins, ends = REFUSED[case]
    assert change[0] in SCRIPT
    with pytest.raises(ScheduleError) as refusal:
        replay(replayable(SCRIPT.replace(*change)))
    assert str(refusal.value).startswith(begins) and ends in str(refusal.value)


def test_a_script_is_planned_without_judgement() -> None:
    """Twice as fast as a replay, with the same result and the same words; a step is not refused for being illegal."""
    original, scheduled = plan_record(replayable())
    assert original == Schedule(parse(PROGRAM)).program
    assert scheduled == replay(replayable()).program
    for change, begins, ends in (REFUSED[case] for case in REFUSED if case != "a reduction in lanes"):
        with pytest.raises(ScheduleError) as refusal:
            plan_record(replayable(SCRIPT.replace(*change)))
        assert str(refusal.value).startswith(begins) and ends in str(refusal.value)
    plan_record(replayable(SCRIPT.replace(*REFUSED["a reduction in lanes"][0])))


def test_a_program_that_is_none_is_said() -> None:
    for program, said in (
        (FAKE, "its program cannot be read: line 1"),
        (str(product().module), "not at the loop level"),
    ):
        with pytest.raises(ScheduleError, match=said):
            replay(replayable(program=program))


# --- strata db ------------------------------------------------------------------------------------------------------

OTHER = program_of(product(m=9))
COLUMNS = [
    "task",
    "program",
    "machine",
    "threads",
    "policy",
    "timing",
    "trials",
    "ok",
    "failed",
    "best",
    "ms",
    "record",
]


@pytest.fixture
def file(path: Path) -> str:
    """A file with two tasks of one program, and one of another that has only failed."""
    good = made(2e-3, program=PROGRAM, name="product", script=SCRIPT)
    filled(path, replayable("builtin.module {\n}\n"), good, made("wrong", program=PROGRAM, name="product"))
    second = made(4e-3, program=PROGRAM, name="product", threads=2, script=SCRIPT)
    filled(path, second, made("build", program=OTHER, name="other"))
    return str(path)


def test_list_shows_the_tasks(file: str, strata: Strata) -> None:
    heading, *rows = strata("db", "list", file).splitlines()
    assert heading.split() == COLUMNS
    short = hash_of(PROGRAM)[:12]
    assert [row.split() for row in rows] == [
        ["product", short, "lab", "1", "contract", "warm", "3", "2", "wrong", "1", "2", "2"],
        ["product", short, "lab", "2", "contract", "warm", "1", "1", "-", "4", "4"],
        ["other", hash_of(OTHER)[:12], "lab", "1", "contract", "warm", "1", "0", "build", "1", "-", "-"],
    ]
    content = json.loads(strata("db", "list", file, "--json"))
    assert content[0] == {
        "names": ["product"],
        "program": hash_of(PROGRAM),
        "machine": "lab",
        "threads": 1,
        "policy": "contract",
        "timing": "warm",
        "trials": 3,
        "ok": 2,
        "failed": {"wrong": 1},
        "best": {"record": 2, "seconds": 2e-3},
    }
    assert content[2]["best"] is None


def test_list_of_nothing(path: Path, strata: Strata) -> None:
    filled(path)
    assert strata("db", "list", str(path)) == "no records\n"
    assert json.loads(strata("db", "list", str(path), "--json")) == []
    assert strata("db", "export", str(path)) == ""
    assert "there are no records in" in strata("db", "best", str(path), status=1)


def test_best_prints_a_script_or_a_line(file: str, strata: Strata) -> None:
    for task in ("product", hash_of(PROGRAM)[:6].upper()):
        assert strata("db", "best", file, "--task", task, "--threads", "1") == f"{SCRIPT}\n"
    line = strata("db", "best", file, "--task", "product", "--threads", "2", "--mode", "json")
    assert from_line(line).outcome.seconds == (4e-3,)
    actual = strata("db", "best", file, "--mode", "json").splitlines()
    assert [from_line(line).key.threads for line in actual] == [1, 2], "what has no best has no line"


def test_replay_prints_the_loops(file: str, strata: Strata) -> None:
    out = strata("db", "replay", file, "--task", "product", "--threads", "2")
    module = Schedule(parse(PROGRAM)).apply(parse(SCRIPT)).module
    assert out == str(module) + "\n" and str(parse(out)) == str(module)
    assert strata("db", "replay", file, "--record", "4") == out
    assert strata("db", "replay", file, "--record", "4", "--verify") == f"// proved\n{out}"


def test_replay_says_what_is_not_proved(file: str, strata: Strata, monkeypatch: pytest.MonkeyPatch) -> None:
    from compiler.analysis.verify.prove import Verdict

    monkeypatch.setattr(Schedule, "verify", lambda self: Verdict("refuted", "a planted fault"))
    error = strata("db", "replay", file, "--record", "4", "--verify", status=1)
    assert "record 4 of" in error and "refuted: a planted fault" in error


def test_export_and_import(file: str, tmp_path: Path, strata: Strata, monkeypatch: pytest.MonkeyPatch) -> None:
    lines, copy = str(tmp_path / "lines"), str(tmp_path / "copy.db")
    assert strata("db", "export", file, lines) == f"5 records written to {lines}\n"
    assert strata("db", "export", file) == strata("db", "export", file, "-") == Path(lines).read_text()
    assert strata("db", "import", copy, lines) == f"5 records added to {copy}\n"
    assert strata("db", "import", copy, lines) == f"0 records added to {copy}, 5 skipped that were there already\n"
    assert strata("db", "list", copy) == strata("db", "list", file)
    with open(lines) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert strata("db", "import", str(tmp_path / "third.db"), "-").startswith("5 records added")


def test_prune_says_what_it_removes(file: str, strata: Strata) -> None:
    short = hash_of(PROGRAM)[:12]
    dry = strata("db", "prune", file, "--keep", "1", "--dry-run")
    assert dry == (
        f"product ({short}) on lab, 1 thread, contract: 2 of 3 records would be removed (1 measured, 1 failed)\n"
    )
    assert strata("db", "prune", file, "--keep", "1") == dry.replace("would be removed", "removed")
    assert strata("db", "prune", file, "--keep", "1") == "nothing removed\n"
    assert "other" in strata("db", "prune", file, "--failed")
    assert strata("db", "prune", file, "--older-than", "0.5") == "nothing removed\n"
    assert strata("db", "prune", file, "--older-than", "0").count("; the best is among them") == 2
    assert strata("db", "list", file) == "no records\n"


WRONG: dict[str, tuple[list[str], str]] = {
    "missing": (["list", "{folder}/nowhere.db"], "there is no file {folder}/nowhere.db"),
    "folder": (["list", "{folder}"], "is a folder"),
    "text": (["list", "{text}"], "{text} is not a database of tuning records"),
    "import into text": (["import", "{text}", "{text}"], "{text} is not a database"),
    "missing lines": (["import", "{file}", "{folder}/nowhere"], "cannot be read"),
    "lines that are none": (["import", "{file}", "{text}"], "{text}:1: it is not JSON"),
    "export to a folder": (["export", "{file}", "{folder}"], "cannot be written"),
    "several tasks": (["best", "{file}"], "there are several tasks (product ("),
    "several of a name": (["replay", "{file}", "--task", "product"], "2 threads, contract): say --task"),
    "unknown task": (["best", "{file}", "--task", "conv"], "there is no task 'conv' in {file} (it has product, other)"),
    "empty task": (["best", "{file}", "--task", ""], "there is no task ''"),
    "unknown threads": (["best", "{file}", "--threads", "9"], "with threads 9 in {file} (it has 1, 2)"),
    "unknown machine": (["best", "{file}", "--machine", "moon"], "(it has lab)"),
    "nothing measured": (["best", "{file}", "--task", "other"], "no trial of other ("),
    "nothing measured, json": (["best", "{file}", "--task", "other", "--mode", "json"], "no trial of other ("),
    "unknown record": (["replay", "{file}", "--record", "99"], "there is no record 99 in {file}"),
    "no such number": (["replay", "{file}", "--record", "9" * 18], "there is no record"),
    "record and task": (["replay", "{file}", "--record", "1", "--task", "product"], "--task is for the best of a task"),
    "no longer applies": (["replay", "{file}", "--record", "1"], "record 1 of {file} does not apply: a script is one"),
    "another program": (["replay", "{file}", "--record", "6"], "does not apply: step 1, sched.get_block: "),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_ends_in_a_sentence(case: str, file: str, tmp_path: Path, strata: Strata) -> None:
    filled(Path(file), made("refused", program=OTHER, script=SCRIPT.replace('"C"', '"X"'), name="other"))
    text = tmp_path / "text"
    text.write_text("hello\n")
    names = {"folder": str(tmp_path), "file": file, "text": str(text)}
    arguments, sentence = WRONG[case]
    error = strata("db", *(argument.format(**names) for argument in arguments), status=1)
    assert sentence.format(**names) in error
    assert not (tmp_path / "nowhere.db").exists() and text.read_text() == "hello\n"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["list"],
        ["fly", "x"],
        ["prune", "x"],
        ["prune", "x", "--keep", "0"],
        ["prune", "x", "--keep", "1", "--failed"],
        ["prune", "x", "--older-than", "-1"],
        ["prune", "x", "--older-than", "1e9"],
        ["prune", "x", "--older-than", "nan"],
        ["replay", "x", "--record", "worst"],
        ["replay", "x", "--record", "9" * 30],
        ["best", "x", "--mode", "xml"],
    ],
)
def test_wrong_options_end_in_a_sentence(arguments: list[str], strata: Strata) -> None:
    assert strata("db", *arguments, status=1).endswith(" --help says more)")
