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
    parsed,
    record_fields,
    record_of,
    whole_fields,
    whole_of,
)
from compiler.database.lines import from_lines, to_line
from compiler.database.record import Json, Key, Record, WholeProgram, hash_of, is_program
from compiler.database.schema import connect, said, transaction
from compiler.database.summary import Removal, Summary, by_script, ranked, removals, summaries
from compiler.support.errors import InputError
from compiler.support.files import named, read, write, writing
from compiler.support.validation import LARGEST

Row: TypeAlias = tuple[Json, ...]
COLUMNS = "uuid, program, conditions, script, fields"
"""`conditions` is the key without its program, `fields` what no other column has, both as objects of JSON."""
SCRIPT = COLUMNS.split(", ").index("script")
"""Where the script stands in a row."""
KEY = "program = ? AND conditions = ?"
_MARKS = ", ".join("?" * len(COLUMNS.split(",")))
_INSERT = f"INSERT INTO records ({COLUMNS}) VALUES ({_MARKS}) ON CONFLICT (uuid) DO NOTHING"
_INSERT_PROGRAM = "INSERT INTO programs (hash, text) VALUES (?, ?) ON CONFLICT (hash) DO NOTHING"
_INSERT_WHOLE = "INSERT INTO whole_programs VALUES (?, ?) ON CONFLICT (hash) DO NOTHING"
_ORPHANS = "DELETE FROM programs WHERE hash NOT IN (SELECT program FROM records)"


@dataclass(frozen=True)
class Imported:
    """How many records came in, and how many were skipped because they were there already."""

    added: int
    skipped: int


class Database:
    """Tuning records in an SQLite file, which is made if there is none and `create` is true.

    Several processes, and several threads of each, may use one file at once; an object does not survive a fork.
    What a method that writes has done is on disk when it returns, and a process that is killed loses at most what it
    was writing. A context manager: leaving it closes the file.

    A file that cannot be written is read, unless `create` is true. A record that is damaged is left out, with a
    warning; its script is never the best, since that record may have said that it is wrong. `damaged` says what is
    wrong with each that was met.

    Raises InputError for a file that is missing, is no such database, has another format, is damaged or cannot be
    written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, strata.database.Database(f"{folder}/f.db") as database:
    ...     database.keep(strata.database.WholeProgram("f", "builtin.module {}"))
    ...     [program.name for program in database.whole_programs]
    ['f']
    """

    def __init__(self, path: str | os.PathLike[str], create: bool = True) -> None:
        self.path = named(path)
        self.damaged: dict[int, str] = {}
        self._lock = RLock()
        self._connection = connect(self.path, create)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def add(self, record: Record) -> int:
        """Keep a record, and give its number in the file; it is on disk before this returns.

        Raises InputError for a record that is there already.
        """
        with self._writing() as connection:
            self._add(connection, record)
            (number,) = connection.execute("SELECT last_insert_rowid()").fetchone()
        return int(number)

    def choose(self, records: Sequence[Record]) -> None:
        """Keep what groups were measured to take inside a whole program, all of it or nothing: of each key the last
        record has the schedule, or the form, that was chosen, those before it have the others.

        Raises InputError for a record that is there already.
        """
        with self._writing() as connection:
            for record in records:
                self._add(connection, record)

    def _add(self, connection: sqlite3.Connection, record: Record) -> None:
        if not _insert(connection, record):
            raise InputError(f"record {record.uuid} is in {self.path} already")

    def record(self, id: int) -> Record:
        """The record of a number. Raises InputError for an unknown number, and for a damaged record."""
        records = self._records("id = ?", (id,)) if abs(id) <= LARGEST else []
        if not records:
            raise InputError(self.damaged.get(id, f"there is no record {id} in {self.path}"))
        return records[0]

    def records(self, key: Key | None = None, after: int = 0) -> list[Record]:
        """The records of a key, or all, in order of their numbers; only those with a number above `after`."""
        if key is None:
            return self._records("id > ?", (after,))
        return self._records(f"{KEY} AND id > ?", (*key_values(key), after))

    def best(self, key: Key) -> Record | None:
        """The best script of a key: the first record that measured it, with all that was measured of it together.

        The best has the lowest median cost over the samples of all its records, of equals it is the earliest; a script
        with a failure that stands is never the best. None where none was measured.
        """
        for script in ranked(by_script(self._sound(KEY, key_values(key))))[:1]:
            first, every = script.first, script.outcome
            both = replace(first.outcome, seconds=every.seconds, rates=every.rates, disturbance=every.disturbance)
            return replace(first, outcome=both)
        return None

    def chosen(self, key: Key, whole: str = "") -> Record | None:
        """The record by which a group is built inside a whole program: what was last chosen there, unless its script
        failed since; else the best."""
        inside = self.records(replace(key, whole=whole)) if whole else []
        last = next(reversed(in_time(record for record in inside if not record.form)), None)
        return last if last is not None and self._stands(key, last) else self.best(key)

    def choices(self, key: Key) -> dict[str, Record]:
        """The records that were last chosen inside whole programs, by the names that the group has there; without those
        whose scripts failed since."""
        of_program = self._records("program = ?", (key.program,))
        inside = [r for r in of_program if r.key.whole and not r.form and replace(r.key, whole="") == key]
        last = {record.name: record for record in in_time(inside)}
        return {name: record for name, record in last.items() if self._stands(key, record)}

    def forms(self, key: Key | None = None) -> list[Record]:
        """The records of the forms of a group, or of all, timed inside a whole program: the better ones later, and what
        was chosen by one comparison after all others of it."""
        return in_time(record for record in self.records(key) if record.form)

    def _stands(self, key: Key, chosen: Record) -> bool:
        """Whether what was chosen did not fail since."""
        return chosen.default or not self._has_failed(key, chosen.script)

    def _has_failed(self, key: Key, script: str) -> bool:
        return any(record.outcome.stands for record in self.records(key) if record.script == script)

    def keys(self) -> list[Summary]:
        """What there is for each key, in the order in which the keys came into the file; groups inside programs are
        under their own keys only."""
        return summaries(record for record in self._sound() if not record.key.whole)

    @property
    def programs(self) -> dict[str, str]:
        """The texts of the programs by their hashes, without damaged ones."""
        with self._lock, said(self.path):
            rows = self._connection.execute("SELECT hash, text FROM programs ORDER BY hash").fetchall()
        return {key: text for key, text in rows if is_program(key, text)}

    def keep(self, program: WholeProgram) -> None:
        """Keep a program whose groups are tuned: the records alone do not tell the program that calls the groups."""
        with self._writing() as connection:
            connection.execute(_INSERT_WHOLE, to_whole_row(program))

    @property
    def whole_programs(self) -> list[WholeProgram]:
        """The programs whose groups were tuned, in the order in which they came, without damaged ones."""
        with self._lock, said(self.path):
            rows = self._connection.execute("SELECT hash, fields FROM whole_programs ORDER BY rowid").fetchall()
        return [program for row in rows if (program := from_whole_row(*row)) is not None]

    def prune(
        self, keep: int | None = None, failed: bool = False, before: datetime | None = None, dry_run: bool = False
    ) -> list[Removal]:
        """Remove, of each key, the records of all but the `keep` best scripts, those that `failed`, those made `before`
        a moment.

        What is asked for together is removed together. Scripts that were measured are better than those that were
        not, and of equals the earlier; the best is not spared if it was made before the moment (of a time zone). With
        a failure that stands goes all that was measured of its script, which would seem right without it. What was
        chosen inside whole programs goes by its moment only.
        Programs without records go as well, and the file shrinks. Says what is removed; with `dry_run` what would be.
        """
        if dry_run:
            return removals(self._sound(), keep, failed, before)
        with self._writing() as connection:
            removed = removals(self._sound(), keep, failed, before)
            connection.executemany("DELETE FROM records WHERE id = ?", [(n,) for r in removed for n in r.ids])
            connection.execute(_ORPHANS)
        if removed:
            with self._lock, suppress(sqlite3.OperationalError):  # where it cannot be, free pages are used again
                self._connection.execute("VACUUM")
        return removed

    def lines(self) -> Iterator[str]:
        """All whole programs, then all records in order of their numbers, as lines of JSON."""
        yield from map(to_line, self.whole_programs)
        yield from map(to_line, self.records())

    def export(self, file: str | os.PathLike[str]) -> int:
        """Write all records and whole programs as lines of JSON, and say how many records; a file is replaced when all
        are written, not before.

        What is no file, such as a pipe, is written to.
        Raises InputError for a file that cannot be written, or is this one.
        """
        path = named(file)
        with writing(path):
            if path.exists() and path.samefile(self.path):
                raise InputError(f"{path} is the database itself")
        records = self.records()
        lines = [*map(to_line, self.whole_programs), *map(to_line, records)]
        write(path, [f"{line}\n" for line in lines])
        return len(records)

    def import_(self, file: str | os.PathLike[str]) -> Imported:
        """Take in the lines that `export` has written (`-` is standard input): all, or none where one is malformed.

        A record whose `uuid` is there already is skipped, and so is a whole program that is. Raises InputError, with
        the file and the line.
        """
        name = os.fspath(file)
        found = list(from_lines(read(name), "<stdin>" if name == "-" else name))
        records = [one for one in found if isinstance(one, Record)]
        with self._writing() as connection:
            for one in found:
                if isinstance(one, WholeProgram):
                    connection.execute(_INSERT_WHOLE, to_whole_row(one))
            added = sum(_insert(connection, record) for record in records)
        return Imported(added, len(records) - added)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock, said(self.path), transaction(self._connection):
            yield self._connection

    def _records(self, condition: str = "1", values: Row = (), doubtful: set[object] | None = None) -> list[Record]:
        """The records that fit; a row that is damaged is left out, and `doubtful` gains its script."""
        query = f"SELECT id, {COLUMNS}, text FROM records LEFT JOIN programs ON program = hash"
        texts: dict[str, str] = {}  # each text once, however many records have it
        records = []
        with self._lock, said(self.path):
            for id, *row, text in self._connection.execute(f"{query} WHERE {condition} ORDER BY id", values):
                try:
                    records.append(from_row(id, tuple(row), texts.setdefault(text, text)))
                except InputError as error:
                    self._warn(id, f"{self.path}: {error}")
                    if doubtful is not None:
                        doubtful.add(row[SCRIPT])
        return records

    def _sound(self, condition: str = "1", values: Row = ()) -> list[Record]:
        """The records of scripts without a damaged record: it may have said that the script is wrong."""
        doubtful: set[object] = set()
        records = self._records(condition, values, doubtful)
        return [record for record in records if record.script not in doubtful]

    def _warn(self, id: int, reason: str) -> None:
        """Say once that a record is damaged."""
        if id not in self.damaged:
            self.damaged[id] = reason
            warnings.warn(f"{reason}; it is left out", RuntimeWarning, stacklevel=2)


def in_time(records: Iterable[Record]) -> list[Record]:
    """Records in the order in which they were made."""
    return sorted(records, key=lambda record: (record.created, record.id))


def _insert(connection: sqlite3.Connection, record: Record) -> bool:
    """Whether the record was new."""
    connection.execute(_INSERT_PROGRAM, (record.key.program, record.program))
    return connection.execute(_INSERT, to_row(record)).rowcount == 1


# --- rows: what is asked for by SQL has columns, all else is JSON -----------------------------------------------------


def key_values(key: Key) -> Row:
    """What the marks of KEY stand for."""
    conditions = key_fields(key)
    return conditions.pop("program"), canonical_json(conditions)


def to_row(record: Record) -> Row:
    """The values of COLUMNS."""
    values = record_fields(record)
    for name in ("uuid", "key", "program", "script"):
        del values[name]
    return record.uuid, *key_values(record.key), record.script, json.dumps(values, allow_nan=False)


def from_row(id: int, row: Row, text: Json) -> Record:
    """The record of a number, the values of COLUMNS and a program. Raises InputError for a damaged row."""
    uuid, program, conditions, script, fields = row
    try:
        columns = {"uuid": uuid, "key": _object(conditions) | {"program": program}, "program": text, "script": script}
        return record_of(_object(fields) | columns, id)
    except InputError as error:
        raise InputError(f"record {id} is damaged: {error}") from error


def _object(text: Json) -> dict[str, Json]:
    values = parsed(text)
    if not isinstance(values, dict):
        raise InputError(f"{short(text)} is not an object of JSON")
    return values


def to_whole_row(program: WholeProgram) -> Row:
    """The values of the table `whole_programs`: the hash that tells it from others, of everything in it, and that."""
    text = canonical_json(whole_fields(program))
    return hash_of(text), text


def from_whole_row(hash: Json, text: Json) -> WholeProgram | None:
    """The program of a row of the table `whole_programs`; None for a row that is damaged."""
    try:
        program = whole_of(parsed(text))
        return program if hash_of(text) == hash else None
    except (ValueError, InputError):  # also for what is no Unicode
        return None
