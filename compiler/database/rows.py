"""Records and whole programs as rows of their tables: what is asked for by SQL has columns, all else is JSON."""

from __future__ import annotations

import json
from reprlib import repr as short
from typing import TypeAlias

from compiler.database.fields import (
    canonical_json,
    key_fields,
    parsed,
    record_fields,
    record_of,
    whole_fields,
    whole_of,
)
from compiler.database.record import Json, Key, Record, WholeProgram, hash_of
from compiler.support.errors import InputError

Row: TypeAlias = tuple[Json, ...]
COLUMNS = "uuid, program, conditions, script, fields"
"""`conditions` is the key without its program, `fields` what no other column has, both as objects of JSON."""
SCRIPT = COLUMNS.split(", ").index("script")
"""Where the script stands in a row."""
KEY = "program = ? AND conditions = ?"


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
