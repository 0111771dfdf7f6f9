"""Databases from elsewhere are data: nothing in them is run, nothing in them hangs; those that cannot be written are
read."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from compiler.__main__ import main
from compiler.database import Database
from compiler.support.errors import InputError
from tests.unit.database.test_database import filled, made

ROOT = Path(__file__).resolve().parents[3]
FOREVER = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
RENAMED = "ALTER TABLE records RENAME TO kept"
SCHEMA = "PRAGMA writable_schema = ON"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return filled(tmp_path / "tuning.db", made(1.0), made(2.0))


def alter(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()


HOSTILE = {
    "a view that never ends": [RENAMED, f"CREATE VIEW records AS {FOREVER}"],
    "a view beside": [f"CREATE VIEW more AS {FOREVER}"],
    "a trigger": ["CREATE TRIGGER t AFTER INSERT ON records BEGIN DELETE FROM records; END"],
    "a trigger that hides": [
        "CREATE TRIGGER t BEFORE DELETE ON records BEGIN DELETE FROM records WHERE id <> OLD.id; END"
    ],
    "a further table": ["CREATE TABLE more (x)"],
    "a virtual table": ["CREATE VIRTUAL TABLE more USING fts5(x)"],
    "a generated column": ["ALTER TABLE records ADD COLUMN more AS (abs(id)) VIRTUAL"],
    "an index on an expression": ["CREATE INDEX more ON records (abs(id))"],
    "a missing index": ["DROP INDEX records_by_key"],
    "a check": [SCHEMA, "UPDATE sqlite_master SET sql = replace(sql, 'script TEXT', 'script TEXT CHECK (abs(1) = 1)')"],
    "a default": [SCHEMA, "UPDATE sqlite_master SET sql = replace(sql, 'script TEXT', 'script TEXT DEFAULT (abs(1))')"],
    "no AUTOINCREMENT": [SCHEMA, "UPDATE sqlite_master SET sql = replace(sql, ' AUTOINCREMENT', '')"],
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_database_that_says_what_to_do_is_refused(case: str, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    alter(path, *HOSTILE[case])
    before = path.read_bytes()
    for act in ("list", "best", "export", "replay"):
        assert main(["db", act, str(path)]) == 1
        said = capsys.readouterr()
        assert "is a database of something else than tuning records" in said.err and not said.out
    assert main(["db", "prune", str(path), "--failed"]) == 1
    with pytest.raises(InputError, match="something else"):
        Database(path)
    assert path.read_bytes() == before


def test_pages_that_lead_in_circles_are_damage(path: Path) -> None:
    """Every child of the table of tables is that table's page."""
    content = bytearray(path.read_bytes())
    size = struct.unpack(">H", content[16:18])[0]
    cells, at = 200, 100 + 12 + 400
    content[100:112] = struct.pack(">BHHHBI", 5, 0, cells, at, 0, 1)
    content[112 : 112 + 2 * cells] = struct.pack(f">{cells}H", *(at + 5 * n for n in range(cells)))
    content[at : at + 5 * cells] = struct.pack(">IB", 1, 1) * cells
    assert len(content) % size == 0
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"tuning\.db (is damaged|cannot be used)"):
        Database(path, create=False)


def test_an_index_that_is_not_of_its_table_is_damage(path: Path) -> None:
    """A record that the index does not know is never found by its key: that would be no error, but a wrong answer."""
    alter(path)
    content, key = path.read_bytes(), made().key.program.encode()
    second = sqlite3.connect(path)
    (page,) = second.execute("SELECT rootpage FROM sqlite_master WHERE name = 'records_by_key'").fetchone()
    (size,) = second.execute("PRAGMA page_size").fetchone()
    second.close()
    at = content.index(key, (page - 1) * size)
    path.write_bytes(content[:at] + b"f" * len(key) + content[at + len(key) :])
    with pytest.raises(InputError, match=r"tuning\.db is damaged: "):
        Database(path, create=False)


def test_a_value_that_is_too_large_is_refused(path: Path) -> None:
    alter(path, "UPDATE records SET fields = zeroblob(70000000) WHERE id = 1")
    with pytest.raises(InputError, match="takes no value of more than 64 MiB"), Database(path) as database:
        database.records()


def test_no_pickle_is_loaded(path: Path) -> None:
    """What files hold is JSON, text and numbers."""
    for file in (ROOT / "compiler" / "autotune").rglob("*.py"):
        if file.parent.name != "measure":
            assert not re.search(r"import pickle|pickle\.|\beval\(", file.read_text()), file


# --- files that cannot be written ------------------------------------------------------------------------------------

READS = """
import contextlib, io, json, os, sys
from compiler.__main__ import main

def done(command):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(["db", *command])
    return status, out.getvalue(), err.getvalue()

own, *commands = json.load(sys.stdin)
for act in ("list", "export"):
    done([act, own])  # the other user may not read what this loads
os.setgroups([]); os.setgid(65534); os.setuid(65534)
print(json.dumps([done(command) for command in commands]))
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder to which everybody finds the way."""
    folder = Path("/tmp") / f"strata-test-{os.getpid()}"
    folder.mkdir(mode=0o755)
    yield folder
    shutil.rmtree(folder)


def as_nobody(*commands: list[str]) -> list[tuple[int, str, str]]:
    """Commands about files, of somebody who may write nowhere: the status, the output and the errors of each."""
    if os.getuid() != 0:
        pytest.skip("only root can be another user")
    with tempfile.TemporaryDirectory() as folder:
        told = json.dumps([str(filled(Path(folder) / "own.db", made())), *commands])
        command = [sys.executable, "-c", READS]
        done = subprocess.run(command, input=told, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return [(status, out, err) for status, out, err in json.loads(done.stdout)]


@pytest.mark.parametrize("journal", ["WAL", "DELETE"])
@pytest.mark.parametrize("folder_mode", [0o755, 0o777], ids=oct)
def test_a_file_of_another_user_is_read(journal: str, folder_mode: int, open_folder: Path) -> None:
    path = filled(open_folder / "tuning.db", made(1.0), made(2.0))
    alter(path, f"PRAGMA journal_mode = {journal}")
    if journal == "WAL":
        sqlite3.connect(path).execute("PRAGMA journal_mode = WAL").connection.close()
    path.chmod(0o644)
    open_folder.chmod(folder_mode)
    before = path.read_bytes()
    listed, exported, *refused = as_nobody(
        ["list", str(path)],
        ["export", str(path)],
        ["prune", str(path), "--keep", "1"],
        ["import", str(path), os.devnull],
    )
    assert listed[0] == 0 and "task" in listed[1], listed
    assert exported[0] == 0 and exported[1].count("\n") == 2
    for status, _, said in refused:
        assert status == 1 and "cannot be" in said
    assert path.read_bytes() == before


def test_a_file_that_was_not_finished_is_not_read_in_part(open_folder: Path) -> None:
    path = filled(open_folder / "a.db", made(1.0))
    with Database(path) as database:
        database.add(made(2.0))
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", open_folder / f"b.db{suffix}")
    open_folder.chmod(0o755)
    ((status, _, said),) = as_nobody(["list", str(open_folder / "b.db")])
    assert status == 1 and "cannot be read without b.db-wal" in said


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_file_on_a_file_system_that_cannot_be_written_is_read(disk: Path) -> None:
    path = filled(disk / "tuning.db", made(1.0), made(2.0))
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    with Database(path, create=False) as database:
        assert len(database.records()) == 2
        with pytest.raises(InputError, match="cannot be written"):
            database.prune(keep=1)
    with pytest.raises(InputError, match="cannot be written"):
        Database(path)


def test_a_full_disk_is_said(disk: Path) -> None:
    with Database(disk / "tuning.db") as database:
        database.add(made(1.0))
        with pytest.raises(InputError, match="cannot be written: the disk is full"):
            for number in range(1000):
                database.add(made(2.0, script=f"{number}" * 1000))
        assert len(database.records()) >= 1
