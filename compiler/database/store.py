"""`Database`: the records of a file."""

from __future__ import annotations

import json
import os
import sqlite3
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from reprlib import repr as short
from threading import RLock
from typing import Self, TypeAlias

from compiler.database.fields import (
    canonical_json,
    key_fields,
    parse_json,
    record_fields,
    record_of,
    whole_program_fields,
    whole_program_of,
)
from compiler.database.lines import from_lines, to_line
from compiler.database.record import Json, Key, Record, WholeProgram, hash_of, is_program_text
from compiler.database.schema import connect, sqlite_errors, transaction
from compiler.database.summary import Removal, Summary, by_script, ranked, removals, summaries
from compiler.support.errors import InputError
from compiler.support.files import read, to_path, write, write_errors
from compiler.support.validation import LARGEST

Row: TypeAlias = tuple[Json, ...]
COLUMNS = "uuid, program, conditions, script, fields"
"""`conditions` is the key without its program, `fields` the remaining fields, both as JSON objects."""
SCRIPT = COLUMNS.split(", ").index("script")
"""The position of the script in a row."""
KEY = "program = ? AND conditions = ?"
_PLACEHOLDERS = ", ".join("?" * len(COLUMNS.split(",")))
_INSERT = f"INSERT INTO records ({COLUMNS}) VALUES ({_PLACEHOLDERS}) ON CONFLICT (uuid) DO NOTHING"
_INSERT_PROGRAM = "INSERT INTO programs (hash, text) VALUES (?, ?) ON CONFLICT (hash) DO NOTHING"
_INSERT_WHOLE = "INSERT INTO whole_programs VALUES (?, ?) ON CONFLICT (hash) DO NOTHING"
_ORPHANS = "DELETE FROM programs WHERE hash NOT IN (SELECT program FROM records)"


@dataclass(frozen=True)
class ImportCounts:
    """The number of records added, and of duplicates skipped."""

    added: int
    skipped: int


class Database:
    """Tuning records in an SQLite file, which is created if it is missing and `create` is true.

    Several processes and threads may use a file concurrently; an object does not survive a fork. Writes are durable
    when a method returns; a killed process loses at most the write in progress. As a context manager, it closes the
    file on exit.

    A file that is not writable is opened read-only, unless `create` is true. A damaged record is skipped with a warning
    and listed in `damaged` with the fault; its script is never the best, since the record may have been a failure.

    Raises InputError for a file that is missing or empty without `create`, not writable with it, foreign, of another
    format or damaged. Methods raise it, too, for a file that cannot be read or written, or that another process holds
    for a minute.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, strata.database.Database(f"{folder}/f.db") as database:
    ...     database.keep(strata.database.WholeProgram("f", "builtin.module {}"))
    ...     [program.name for program in database.whole_programs]
    ['f']
    """

    def __init__(self, path: str | os.PathLike[str], create: bool = True) -> None:
        self.path = to_path(path)
        self.damaged: dict[int, str] = {}
        self._lock = RLock()
        self._connection = connect(self.path, create)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; no other method works from then on."""
        self._connection.close()

    def add(self, record: Record) -> int:
        """Add a record durably and return its id. Raises InputError if the file has a record of its uuid."""
        with self._writing() as connection:
            self._add(connection, record)
            (number,) = connection.execute("SELECT last_insert_rowid()").fetchone()
        return int(number)

    def choose(self, records: Sequence[Record]) -> None:
        """Add the records of groups timed inside a whole program, in one transaction: the last record of each key
        is that of the chosen schedule or form. Raises InputError, and adds none, if the file has a record of one's
        uuid."""
        with self._writing() as connection:
            for record in records:
                self._add(connection, record)

    def _add(self, connection: sqlite3.Connection, record: Record) -> None:
        if not _insert(connection, record):
            raise InputError(f"record {record.uuid} is in {self.path} already")

    def record(self, id: int) -> Record:
        """Return the record with an id. Raises InputError for an unknown id, or a damaged record."""
        records = self._records("id = ?", (id,)) if abs(id) <= LARGEST else []
        if not records:
            raise InputError(self.damaged.get(id, f"there is no record {id} in {self.path}"))
        return records[0]

    def records(self, key: Key | None = None, after: int = 0) -> list[Record]:
        """Return the records of a key (None: of all keys) whose ids are above `after`, in the order of ids; damaged
        ones are left out with a warning."""
        if key is None:
            return self._records("id > ?", (after,))
        return self._records(f"{KEY} AND id > ?", (*key_values(key), after))

    def best(self, key: Key) -> Record | None:
        """Return the best script of a key: its first measured record, with the samples of all its records.

        It has the lowest median cost of all samples, and ties go to the earliest; one with a final failure is never the
        best. None without a measured script; scripts with a damaged record are left out.
        """
        for script in ranked(by_script(self._sound(KEY, key_values(key))))[:1]:
            first, merged = script.first, script.outcome
            outcome = replace(first.outcome, seconds=merged.seconds, rates=merged.rates, disturbance=merged.disturbance)
            return replace(first, outcome=outcome)
        return None

    def chosen(self, key: Key, whole: str = "") -> Record | None:
        """Return the record for a group in the whole program `whole`: the last one chosen there, unless it is not the
        default and another record of its script is a final failure; else, and for an empty `whole`, the best of the
        key, or None without any."""
        in_program = self.records(replace(key, whole=whole)) if whole else []
        last = next(reversed(by_time(record for record in in_program if not record.form)), None)
        return last if last is not None and self._is_valid(key, last) else self.best(key)

    def choices(self, key: Key) -> dict[str, Record]:
        """Map the names that the group of a key has in whole programs to the record last chosen there, forms excepted.
        Records that are not the default and whose script has a final failure are left out."""
        of_program = self._records("program = ?", (key.program,))
        in_programs = [r for r in of_program if r.key.whole and not r.form and replace(r.key, whole="") == key]
        last = {record.name: record for record in by_time(in_programs)}
        return {name: record for name, record in last.items() if self._is_valid(key, record)}

    def forms(self, key: Key | None = None) -> list[Record]:
        """Return the records of forms that were timed inside a whole program, of a key (None: of all keys), by creation
        time: in each comparison the chosen form is last."""
        return by_time(record for record in self.records(key) if record.form)

    def _is_valid(self, key: Key, chosen: Record) -> bool:
        """Whether a chosen record still applies: it is the default, or no record of its script is a final failure."""
        return chosen.default or not self._has_failed(key, chosen.script)

    def _has_failed(self, key: Key, script: str) -> bool:
        return any(record.outcome.is_final for record in self.records(key) if record.script == script)

    def keys(self) -> list[Summary]:
        """Return a summary of each key, in the order of their first records. Keys inside whole programs are left out,
        and so are scripts with a damaged record."""
        return summaries(record for record in self._sound() if not record.key.whole)

    @property
    def programs(self) -> dict[str, str]:
        """The texts of the programs by hash, without damaged ones."""
        with self._lock, sqlite_errors(self.path):
            rows = self._connection.execute("SELECT hash, text FROM programs ORDER BY hash").fetchall()
        return {key: text for key, text in rows if is_program_text(key, text)}

    def keep(self, program: WholeProgram) -> None:
        """Store a program whose groups are tuned, since records have the groups only; a program that is stored already
        is not added."""
        with self._writing() as connection:
            connection.execute(_INSERT_WHOLE, to_whole_row(program))

    @property
    def whole_programs(self) -> list[WholeProgram]:
        """The programs whose groups were tuned, oldest first, without damaged ones."""
        with self._lock, sqlite_errors(self.path):
            rows = self._connection.execute("SELECT hash, fields FROM whole_programs ORDER BY rowid").fetchall()
        return [program for row in rows if (program := from_whole_row(*row)) is not None]

    def prune(
        self, keep: int | None = None, failed: bool = False, before: datetime | None = None, dry_run: bool = False
    ) -> list[Removal]:
        """Remove, for each key, the records of all but the `keep` best scripts, of failures (`failed`), and those made
        before a time (`before`, with a time zone); return the removals. With `dry_run` nothing is removed.

        Criteria combine by union; one that is None or False removes nothing. `keep` is at least 0. Measured scripts are
        better than others, ties go to the earliest; the best script is not exempt from `before`. The removal of a final
        failure removes all records of its script, which would seem right without it. `keep` does not apply to records
        inside whole programs. Scripts with a damaged record stay. Programs without records are removed.
        """
        if dry_run:
            return removals(self._sound(), keep, failed, before)
        with self._writing() as connection:
            removed = removals(self._sound(), keep, failed, before)
            connection.executemany("DELETE FROM records WHERE id = ?", [(n,) for r in removed for n in r.ids])
            connection.execute(_ORPHANS)
        if removed:
            with self._lock, suppress(sqlite3.OperationalError):  # if it fails, free pages are reused
                self._connection.execute("VACUUM")
        return removed

    def lines(self) -> Iterator[str]:
        """Yield the whole programs, then the records by id, as lines of JSON, without damaged ones."""
        yield from map(to_line, self.whole_programs)
        yield from map(to_line, self.records())

    def export(self, file: str | os.PathLike[str]) -> int:
        """Write all whole programs and records, except damaged ones, as lines of JSON; return the number of records. A
        file is replaced atomically, a pipe written to. Raises InputError for a file that is not writable, or is this
        one."""
        path = to_path(file)
        with write_errors(path):
            if path.exists() and path.samefile(self.path):
                raise InputError(f"{path} is the database itself")
        records = self.records()
        lines = [*map(to_line, self.whole_programs), *map(to_line, records)]
        write(path, [f"{line}\n" for line in lines])
        return len(records)

    def import_(self, file: str | os.PathLike[str]) -> ImportCounts:
        """Import lines written by `export` from a file (`-` is standard input), all or none. Duplicate records (by
        `uuid`) and whole programs are skipped. Raises InputError for a file that cannot be read, and for an invalid
        line, with its number."""
        name = os.fspath(file)
        contents = list(from_lines(read(name), "<stdin>" if name == "-" else name))
        records = [content for content in contents if isinstance(content, Record)]
        with self._writing() as connection:
            for content in contents:
                if isinstance(content, WholeProgram):
                    connection.execute(_INSERT_WHOLE, to_whole_row(content))
            added = sum(_insert(connection, record) for record in records)
        return ImportCounts(added, len(records) - added)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock, sqlite_errors(self.path), transaction(self._connection):
            yield self._connection

    def _records(self, condition: str = "1", values: Row = (), doubtful: set[object] | None = None) -> list[Record]:
        """Read the records that match an SQL condition; warn of damaged rows, and add their scripts to `doubtful`."""
        query = f"SELECT id, {COLUMNS}, text FROM records LEFT JOIN programs ON program = hash"
        texts: dict[str, str] = {}  # texts are shared by records
        records = []
        with self._lock, sqlite_errors(self.path):
            for id, *row, text in self._connection.execute(f"{query} WHERE {condition} ORDER BY id", values):
                try:
                    records.append(from_row(id, tuple(row), texts.setdefault(text, text)))
                except InputError as error:
                    self._warn(id, f"{self.path}: {error}")
                    if doubtful is not None:
                        doubtful.add(row[SCRIPT])
        return records

    def _sound(self, condition: str = "1", values: Row = ()) -> list[Record]:
        """Read the records that match an SQL condition, without scripts that have a damaged record: it may have been a
        failure."""
        doubtful: set[object] = set()
        records = self._records(condition, values, doubtful)
        return [record for record in records if record.script not in doubtful]

    def _warn(self, id: int, reason: str) -> None:
        """Warn of a damaged record, once for each id."""
        if id not in self.damaged:
            self.damaged[id] = reason
            warnings.warn(f"{reason}; it is left out", RuntimeWarning, stacklevel=2)


def by_time(records: Iterable[Record]) -> list[Record]:
    """Sort records by creation time, then by id."""
    return sorted(records, key=lambda record: (record.created, record.id))


def _insert(connection: sqlite3.Connection, record: Record) -> bool:
    """Insert a record; return False if the file has one with its uuid."""
    connection.execute(_INSERT_PROGRAM, (record.key.program, record.program))
    return connection.execute(_INSERT, to_row(record)).rowcount == 1


# --- rows: columns for queries, JSON for the rest ---------------------------------------------------------------------


def key_values(key: Key) -> Row:
    """The values of a key for the placeholders in KEY: its program, and the JSON of its other fields."""
    conditions = key_fields(key)
    return conditions.pop("program"), canonical_json(conditions)


def to_row(record: Record) -> Row:
    """The values of a record for COLUMNS."""
    values = record_fields(record)
    for name in ("uuid", "key", "program", "script"):
        del values[name]
    return record.uuid, *key_values(record.key), record.script, json.dumps(values, allow_nan=False)


def from_row(id: int, row: Row, text: Json) -> Record:
    """Return the record with an id, from the values of COLUMNS in `row` and the text of its program. Raises InputError
    for a damaged row."""
    uuid, program, conditions, script, fields = row
    try:
        columns = {"uuid": uuid, "key": _object(conditions) | {"program": program}, "program": text, "script": script}
        return record_of(_object(fields) | columns, id)
    except InputError as error:
        raise InputError(f"record {id} is damaged: {error}") from error


def _object(text: Json) -> dict[str, Json]:
    values = parse_json(text)
    if not isinstance(values, dict):
        raise InputError(f"{short(text)} is not an object of JSON")
    return values


def to_whole_row(program: WholeProgram) -> Row:
    """Return a row of the table `whole_programs`: the hash of the program's JSON, and the JSON."""
    text = canonical_json(whole_program_fields(program))
    return hash_of(text), text


def from_whole_row(hash: Json, text: Json) -> WholeProgram | None:
    """Read the program of a row of the table `whole_programs`; None for a damaged row."""
    try:
        program = whole_program_of(parse_json(text))
        return program if hash_of(text) == hash else None
    except (ValueError, InputError):  # ValueError: invalid Unicode
        return None
