"""Opening a file: its tables, the steps that bring older files up to date, and errors as sentences."""

from __future__ import annotations

import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from compiler.errors import InputError

PATIENCE = 60.0
"""Seconds to wait while another process writes."""
APPLICATION = 0x53747274
"""`application_id` of our files ("Strt"): what tells them from other databases."""

STEPS = (
    (
        f"PRAGMA application_id = {APPLICATION}",
        "CREATE TABLE programs (hash TEXT PRIMARY KEY, text TEXT NOT NULL)",
        """CREATE TABLE records (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            uuid TEXT NOT NULL UNIQUE,
            name TEXT NOT NULL,
            program TEXT NOT NULL REFERENCES programs (hash),
            machine TEXT NOT NULL,
            threads INTEGER NOT NULL,
            policy TEXT NOT NULL,
            script TEXT NOT NULL,
            kind TEXT NOT NULL,
            seconds TEXT NOT NULL,
            rates TEXT NOT NULL,
            reason TEXT NOT NULL,
            build_seconds REAL NOT NULL,
            sketch INTEGER,
            positions TEXT,
            seed INTEGER NOT NULL,
            run TEXT NOT NULL,
            created TEXT NOT NULL,
            versions TEXT NOT NULL
        )""",
    ),
    (
        "ALTER TABLE records ADD COLUMN predicted REAL",
        "CREATE INDEX records_by_key ON records (program, machine, threads, policy)",
    ),
    ("ALTER TABLE records ADD COLUMN disturbance TEXT",),
)
"""What makes each version, as `PRAGMA user_version` counts them, of the one before; version 0 is an empty file.

A step that has left the house is never edited: a change is a further step. Numbers of records are never given twice.
"""
VERSION = len(STEPS)

_SAID = {
    sqlite3.SQLITE_NOTADB: "is not a database of tuning records",
    sqlite3.SQLITE_BUSY: f"has been held by another process for {PATIENCE:.0f} seconds",
    sqlite3.SQLITE_READONLY: "cannot be written",
    sqlite3.SQLITE_PERM: "cannot be opened for writing",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened for writing",
    sqlite3.SQLITE_FULL: "cannot be written: the disk is full",
    sqlite3.SQLITE_CORRUPT: "is damaged",
}


@contextmanager
def said(path: Path) -> Iterator[None]:
    """Turn what SQLite says of a file into an InputError; a wrong use of SQLite stays what it is."""
    try:
        yield
    except (sqlite3.ProgrammingError, sqlite3.IntegrityError):
        raise
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the rest says more than a user asks for
        raise InputError(f"{path} {_SAID.get(code, f'cannot be used: {error}')}") from error


@contextmanager
def transaction(connection: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    """All of what is done inside or nothing, on disk at the end; nobody else writes meanwhile, but where DEFERRED."""
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def connect(path: Path, create: bool) -> sqlite3.Connection:
    """A connection to a file of the current version, made or brought up to date where need be.

    Each transaction is on disk when it ends, through a write-ahead log. A file that is refused is left as it was.
    Raises InputError.
    """
    _check_place(path, create)
    with said(path):
        connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
        try:
            _prepare(connection, path, create)
        except BaseException:
            connection.close()
            raise
    return connection


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
    except ValueError as error:
        raise InputError(f"{str(path)!r} is not the name of a file: {error}") from error
    else:
        if not stat.S_ISREG(mode):
            raise InputError(f"{path} is {'a folder' if stat.S_ISDIR(mode) else 'not a file'}")


def _prepare(connection: sqlite3.Connection, path: Path, create: bool) -> None:
    with transaction(connection, "DEFERRED"):  # one state of the file, which another process may be making
        version = _version(connection, path, create)
    _write_ahead(connection)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    if version < VERSION:
        with transaction(connection):
            for number in range(_version(connection, path, create), VERSION):  # another process may have been faster
                for statement in STEPS[number]:
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {VERSION}")


def _version(connection: sqlite3.Connection, path: Path, create: bool) -> int:
    """The version of a file, 0 where it is to be made. Raises InputError for a file that is not ours, or too new."""
    (version,), (application,), (tables,) = (
        connection.execute(query).fetchone()
        for query in ("PRAGMA user_version", "PRAGMA application_id", "SELECT count(*) FROM sqlite_master")
    )
    if not tables and not version:
        if not create:
            raise InputError(f"{path} is empty: it has no tuning records")
        return 0
    if application != APPLICATION or version < 1:
        raise InputError(f"{path} is a database of something else than tuning records")
    if version > VERSION:
        raise InputError(f"{path} has version {version} of the tables, and this Strata knows them up to {VERSION}")
    return int(version)


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Keep a write-ahead log. A file's first change to that does not wait by itself while another process writes."""
    patient = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > patient:
                raise
            time.sleep(0.01)
