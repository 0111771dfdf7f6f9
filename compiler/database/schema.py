"""Opening a file: its tables, its format, and errors as sentences."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from urllib.parse import quote

from compiler.database.fields import FORMAT, check_format
from compiler.support.errors import InputError

PATIENCE = 60.0
"""Seconds to wait while another process writes."""
LARGEST = 64 << 20
"""Bytes that a value may have; the largest programs and scripts have one."""
FEWEST = 10_000_000
"""Steps of SQLite's machine in which a small file must be read, or it leads in circles; a large one has more."""
SLICE = 100_000
"""Steps after which they are counted."""
MEMORY = ":memory:"
"""The database that is no file: its records end with the connection."""
APPLICATION = 0x53747274
"""`application_id` of our files ("Strt"): what tells them from other databases."""

STATEMENTS = (
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {FORMAT}",
    "CREATE TABLE programs (hash TEXT PRIMARY KEY, text TEXT NOT NULL)",
    """CREATE TABLE records (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        uuid TEXT NOT NULL UNIQUE,
        program TEXT NOT NULL REFERENCES programs (hash),
        conditions TEXT NOT NULL,
        script TEXT NOT NULL,
        fields TEXT NOT NULL
    )""",
    "CREATE INDEX records_by_key ON records (program, conditions)",
    "CREATE TABLE whole_programs (hash TEXT PRIMARY KEY, fields TEXT NOT NULL)",
)
"""The statements that make a file, whose `user_version` is the format. They stay: what a later version adds are fields
of the objects of JSON in `conditions` and `fields`. Numbers of records are never given twice."""

_SAID = {
    sqlite3.SQLITE_NOTADB: "is not a database of tuning records",
    sqlite3.SQLITE_BUSY: f"has been held by another process for {PATIENCE:.0f} seconds",
    sqlite3.SQLITE_READONLY: "cannot be written",
    sqlite3.SQLITE_PERM: "cannot be opened for writing",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened for writing",
    sqlite3.SQLITE_FULL: "cannot be written: the disk is full",
    sqlite3.SQLITE_CORRUPT: "is damaged",
    sqlite3.SQLITE_INTERRUPT: "is damaged: it leads in circles",
    sqlite3.SQLITE_TOOBIG: f"takes no value of more than {LARGEST >> 20} MiB",
}
_UNWRITABLE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN)
Tables = Mapping[tuple[str, str], str]
"""The statements that made what a file has, by type and name."""


@contextmanager
def said(path: Path) -> Iterator[None]:
    """Turn SQLite's errors about a file into an InputError; a wrong use of SQLite stays an internal error."""
    try:
        yield
    except (sqlite3.ProgrammingError, sqlite3.IntegrityError):
        raise
    except sqlite3.DatabaseError as error:
        raise InputError(f"{path} {_SAID.get(_code(error), f'cannot be used: {error}')}") from error
    except UnicodeDecodeError as error:  # Python reads what SQLite says, which may quote the file
        raise InputError(f"{path} is damaged") from error


def _code(error: sqlite3.DatabaseError) -> int:
    """What went wrong; the rest of the code says more than a user asks for."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


@contextmanager
def transaction(connection: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    """A durable transaction: exclusive for writers, unless its kind is DEFERRED."""
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def connect(path: Path, create: bool) -> sqlite3.Connection:
    """A connection to a file, which is made where need be.

    Each transaction is on disk when it ends, through a write-ahead log. A file that cannot be written is read only,
    unless it is to be made where there is none. A file that is refused is left as it was, and nothing that it says is
    run: it has the tables of tuning records, and no view or trigger. Raises InputError.
    """
    _check_place(path, create)
    with said(path):
        try:
            return _opened(path, "rwc" if create else "rw")
        except sqlite3.OperationalError as error:
            if create or _code(error) not in _UNWRITABLE:
                raise
        try:
            return _opened(path, "ro")
        except sqlite3.OperationalError as error:
            if _code(error) not in _UNWRITABLE:
                raise
        _check_finished(path)
        return _opened(path, "ro&immutable=1")


def _opened(path: Path, mode: str) -> sqlite3.Connection:
    name = MEMORY if str(path) == MEMORY else f"file://{quote(os.fsencode(path.absolute()))}?mode={mode}"
    connection = sqlite3.connect(
        name, timeout=PATIENCE, isolation_level=None, check_same_thread=False, uri=name != MEMORY
    )
    try:
        _distrust(connection, path)
        _prepare(connection, path, mode)
        connection.set_progress_handler(None, SLICE)
        return connection
    except BaseException:
        connection.close()
        raise


def _check_place(path: Path, create: bool) -> None:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        if not create:
            raise InputError(f"there is no file {path}") from None
        if not path.parent.is_dir():
            raise InputError(f"there is no folder {path.parent}") from None
    except OSError as error:
        raise InputError(f"{path} cannot be used: {error.strerror}") from error
    else:
        if not stat.S_ISREG(mode):
            raise InputError(f"{path} is {'a folder' if stat.S_ISDIR(mode) else 'not a file'}")
        if not os.access(path, os.R_OK):
            raise InputError(f"{path} cannot be read: Permission denied")
        if create and not os.access(path, os.W_OK):
            raise InputError(f"{path} cannot be written")


def _check_finished(path: Path) -> None:
    """Check that a file is all of its database: what another process has left beside it cannot be taken in here."""
    for suffix in ("-wal", "-journal"):
        beside = _beside(path, suffix)
        if beside.exists() and beside.stat().st_size:
            raise InputError(
                f"{path} cannot be read without {beside.name}, which asks to be written: copy both elsewhere"
            )


def _beside(path: Path, suffix: str) -> Path:
    """The write-ahead log of a database, and the shared memory beside it."""
    return path.with_name(path.name + suffix)


def _distrust(connection: sqlite3.Connection, path: Path) -> None:
    """Have SQLite take a file as data that anybody may have written."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST)
    connection.text_factory = lambda content: content.decode(
        "utf-8", "surrogateescape"
    )  # bytes that are no text are so refused
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
    size = sum(part.stat().st_size for part in (path, _beside(path, "-wal")) if part.exists())
    most, slices = (FEWEST + 8 * size) // SLICE, count()
    connection.set_progress_handler(lambda: next(slices) > most, SLICE)


def _prepare(connection: sqlite3.Connection, path: Path, mode: str) -> None:
    with transaction(connection, "DEFERRED"):  # one state of the file, which another process may be making
        is_new = _is_new(connection, path, mode == "rwc")
    connection.execute("PRAGMA foreign_keys = ON")
    if mode.startswith("ro"):
        return
    _write_ahead(connection)
    connection.execute("PRAGMA synchronous = FULL")
    if is_new:
        with transaction(connection):
            if _is_new(connection, path, mode == "rwc"):  # another may have been faster
                _make(connection)


def _make(connection: sqlite3.Connection) -> None:
    for statement in STATEMENTS:
        connection.execute(statement)


def _is_new(connection: sqlite3.Connection, path: Path, create: bool) -> bool:
    """Whether a file is to be made. Raises InputError for a file that is not ours, has another format, or is
    damaged."""
    (number,), (application,) = (
        connection.execute(f"PRAGMA {name}").fetchone() for name in ("user_version", "application_id")
    )
    tables = _tables(connection)
    if not tables and not number:
        if not create:
            raise InputError(f"{path} is empty: it has no tuning records")
        return True
    if application != APPLICATION or number < 1:
        raise InputError(f"{path} is a database of something else than tuning records")
    check_format(number, f"{path} is a database of tuning records that")
    for (kind, name), _ in tables.items() ^ _own_tables().items():
        raise InputError(f"{path} is a database of something else than tuning records: so its {kind} '{name}' says")
    (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if verdict != "ok":
        raise InputError(f"{path} is damaged: {' '.join(verdict.split())}")
    return False


def _tables(connection: sqlite3.Connection) -> Tables:
    """What a file has, indices, views and triggers among it; how lines are broken does not matter."""
    rows = connection.execute("SELECT type, name, sql FROM sqlite_master")
    return {(kind, name): " ".join(re.findall(r"\w+|[^\w\s]", str(sql))) for kind, name, sql in rows}


@cache
def _own_tables() -> Tables:
    """What a file of ours has."""
    connection = sqlite3.connect(MEMORY)
    _make(connection)
    tables = _tables(connection)
    connection.close()
    return tables


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Keep a write-ahead log. A file's first change to that does not wait by itself while another process writes."""
    patient = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > patient:
                raise
            time.sleep(0.01)
