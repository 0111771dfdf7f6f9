"""Opening a file: its tables, its format, and error messages."""

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
"""The timeout in seconds for a lock that another process holds."""
LARGEST = 64 << 20
"""The maximum bytes of a value; the largest programs and scripts take 1 MiB."""
MIN_STEPS = 10_000_000
"""The limit of SQLite's VM steps for checking a small file, against cyclic structures; it grows by 8 a byte."""
STEPS_PER_CALL = 100_000
"""The VM steps between calls of the progress handler."""
MEMORY = ":memory:"
"""The name of an in-memory database, which ends with its connection."""
APPLICATION = 0x53747274
"""The `application_id` of our files ("Strt")."""

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
"""The statements that create a file, whose `user_version` is the format. They are stable: later versions add fields to
the JSON objects in `conditions` and `fields`. Ids are never reused."""

_MESSAGES = {
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
"""The SQL statements of a file's schema, by type and name."""


@contextmanager
def sqlite_errors(path: Path) -> Iterator[None]:
    """Raise InputError in place of SQLite's errors about a file within the context; misuse of SQLite stays an internal
    error."""
    try:
        yield
    except (sqlite3.ProgrammingError, sqlite3.IntegrityError):
        raise
    except sqlite3.DatabaseError as error:
        raise InputError(f"{path} {_MESSAGES.get(_code(error), f'cannot be used: {error}')}") from error
    except UnicodeDecodeError as error:  # from SQLite's message, which may quote the file
        raise InputError(f"{path} is damaged") from error


def _code(error: sqlite3.DatabaseError) -> int:
    """The primary error code of SQLite; 0 without one."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


@contextmanager
def transaction(connection: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    """A durable transaction, rolled back on an exception; it excludes other writers, unless its kind is DEFERRED."""
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def connect(path: Path, create: bool) -> sqlite3.Connection:
    """Connect to a file; with `create` it is created if missing.

    Transactions are durable, through a write-ahead log. A file that is not writable is opened read-only, unless
    `create`. A refused file is left unchanged, and none of its SQL is run: only the tables of tuning records are
    accepted, no view or trigger. Raises InputError for a file that is missing or empty without `create`, foreign, of
    another format, damaged, not accessible, or held by another process for PATIENCE seconds; with `create`, also for
    one that is not writable and for a missing folder.
    """
    _check_path(path, create)
    with sqlite_errors(path):
        try:
            return _open(path, "rwc" if create else "rw")
        except sqlite3.OperationalError as error:
            if create or _code(error) not in _UNWRITABLE:
                raise
        try:
            return _open(path, "ro")
        except sqlite3.OperationalError as error:
            if _code(error) not in _UNWRITABLE:
                raise
        _check_no_log(path)
        return _open(path, "ro&immutable=1")


def _open(path: Path, mode: str) -> sqlite3.Connection:
    name = MEMORY if str(path) == MEMORY else f"file://{quote(os.fsencode(path.absolute()))}?mode={mode}"
    connection = sqlite3.connect(
        name, timeout=PATIENCE, isolation_level=None, check_same_thread=False, uri=name != MEMORY
    )
    try:
        _distrust(connection, path)
        _prepare(connection, path, mode)
        connection.set_progress_handler(None, STEPS_PER_CALL)
        return connection
    except BaseException:
        connection.close()
        raise


def _check_path(path: Path, create: bool) -> None:
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


def _check_no_log(path: Path) -> None:
    """Raise InputError for a read-only file with a pending log, which cannot be replayed."""
    for suffix in ("-wal", "-journal"):
        log = _sibling(path, suffix)
        if log.exists() and log.stat().st_size:
            raise InputError(f"{path} cannot be read without {log.name}, which asks to be written: copy both elsewhere")


def _sibling(path: Path, suffix: str) -> Path:
    """Return the path of a file beside a database, whose name is the database's with a suffix, such as `-wal` for its
    log."""
    return path.with_name(path.name + suffix)


def _distrust(connection: sqlite3.Connection, path: Path) -> None:
    """Configure SQLite for an untrusted file: limits of value sizes and VM steps, no functions in its schema."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST)
    connection.text_factory = lambda content: content.decode(
        "utf-8", "surrogateescape"
    )  # so that invalid UTF-8 is refused
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
    size = sum(file.stat().st_size for file in (path, _sibling(path, "-wal")) if file.exists())
    max_calls, calls = (MIN_STEPS + 8 * size) // STEPS_PER_CALL, count()
    connection.set_progress_handler(lambda: next(calls) > max_calls, STEPS_PER_CALL)


def _prepare(connection: sqlite3.Connection, path: Path, mode: str) -> None:
    with transaction(connection, "DEFERRED"):  # a consistent state: another process may be creating it
        is_new = _is_new(connection, path, mode == "rwc")
    connection.execute("PRAGMA foreign_keys = ON")
    if mode.startswith("ro"):
        return
    _write_ahead(connection)
    connection.execute("PRAGMA synchronous = FULL")
    if is_new:
        with transaction(connection):
            if _is_new(connection, path, mode == "rwc"):  # another process may have created it
                _create_tables(connection)


def _create_tables(connection: sqlite3.Connection) -> None:
    for statement in STATEMENTS:
        connection.execute(statement)


def _is_new(connection: sqlite3.Connection, path: Path, create: bool) -> bool:
    """Whether a file is empty, so that its tables have to be created. Raises InputError for a foreign or damaged file,
    another format, and an empty file without `create`."""
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
    for (kind, name), _ in tables.items() ^ _expected_tables().items():
        raise InputError(f"{path} is a database of something else than tuning records: so its {kind} '{name}' says")
    (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if verdict != "ok":
        raise InputError(f"{path} is damaged: {' '.join(verdict.split())}")
    return False


def _tables(connection: sqlite3.Connection) -> Tables:
    """The SQL of a file's tables, indices, views and triggers, by type and name; white space is normalised."""
    rows = connection.execute("SELECT type, name, sql FROM sqlite_master")
    return {(kind, name): " ".join(re.findall(r"\w+|[^\w\s]", str(sql))) for kind, name, sql in rows}


@cache
def _expected_tables() -> Tables:
    """The SQL of the tables of a file of tuning records, by type and name, with white space normalised."""
    connection = sqlite3.connect(MEMORY)
    _create_tables(connection)
    tables = _tables(connection)
    connection.close()
    return tables


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Enable the write-ahead log. SQLite's own timeout does not cover this change, so it is retried for PATIENCE
    seconds."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
