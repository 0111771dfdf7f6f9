"""A record, or a whole program whose groups have records, as a line of JSON, complete in itself: lines may be picked,
joined and sorted by any tool."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from reprlib import repr as short
from typing import NoReturn

from compiler.database.outcome import Outcome
from compiler.database.program import respelled
from compiler.database.record import Json, Key, Record, WholeProgram, hash_of, is_program
from compiler.support.errors import InputError
from compiler.targets.cpu.presence import Disturbance

FORMAT = 4
"""The version of a line. Those of version 1 do not say how the machine was disturbed; those of 1 and 2 have programs as
they were written (see `respelled`); those of 1 to 3 were timed warm, and do not say so. All are read as well."""
WHOLE_FORMAT = 5
"""The version of the line of a whole program, which Stratas that know of none refuse."""
_KEY = ("program", "machine", "threads", "policy", "timing")
_OUTCOME = ("kind", "seconds", "rates", "reason", "build_seconds")
_DISTURBANCE = tuple(field.name for field in fields(Disturbance))
_PLAIN = ("uuid", "name", "program", "script", "predicted", "seed", "run", "created", "versions")
_WHOLE = tuple(field.name for field in fields(WholeProgram))
_FIELDS = ("format", "key", "outcome", "candidate", *_PLAIN)


def to_line(record: Record) -> str:
    """The line of a record, without its number in the file; `from_line` gives an equal record."""
    values = asdict(record) | {"format": FORMAT, "versions": dict(record.versions)}
    return json.dumps({name: values[name] for name in _FIELDS}, allow_nan=False)


def to_whole_line(program: WholeProgram) -> str:
    """The line of a whole program."""
    return json.dumps({"format": WHOLE_FORMAT, "whole_program": asdict(program)}, allow_nan=False)


def _json(line: str) -> Json:
    try:
        return json.loads(line, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise InputError(f"it is not JSON: {error.msg} (column {error.colno})") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"it is not JSON: {error}") from error


def from_line(line: str) -> Record:
    """The record of a line. Raises InputError, with a sentence, for a line that is none."""
    return _record(_json(line))


def _whole(values: Mapping[str, Json]) -> WholeProgram:
    """The whole program of a line."""
    stated = _fields("the line", values, ("format", "whole_program"))
    if stated["format"] != WHOLE_FORMAT or isinstance(stated["format"], bool):
        raise InputError(f"its format is {short(stated['format'])}, expected {WHOLE_FORMAT} for a whole program")
    program = _fields("the whole program", stated["whole_program"], _WHOLE)
    return WholeProgram(program["name"], program["text"], _tuple_of_positions(program["constants"]))


def _tuple_of_positions(value: Json) -> Json:
    return tuple(value) if isinstance(value, list) else value


def _record(values: Json) -> Record:
    version = values.get("format") if isinstance(values, dict) else None
    if isinstance(version, int) and version > FORMAT:
        raise InputError(f"it has format {version}, and this Strata knows them up to {FORMAT}")
    record = _fields("the record", values, _FIELDS)
    if isinstance(version, bool) or version not in range(1, FORMAT + 1):
        raise InputError(f"its format is {short(version)}, expected {FORMAT}")
    names = _OUTCOME if version == 1 else (*_OUTCOME, "disturbance")
    if version in (1, 2):
        record = _respelled(record)
    key = _fields("the key", record["key"], _KEY[:-1] if version in (1, 2, 3) else _KEY)
    outcome = _fields("the outcome", record["outcome"], names)
    return Record(
        **{name: record[name] for name in _PLAIN if name != "predicted"},
        key=Key(**key),
        outcome=Outcome(
            kind=outcome["kind"],
            seconds=_tuple(outcome["seconds"]),
            rates=_tuple(outcome["rates"]),
            reason=outcome["reason"],
            build_seconds=_float(outcome["build_seconds"]),
            disturbance=_disturbance(outcome.get("disturbance")),
        ),
        candidate=_candidate(record["candidate"]),
        predicted=_float(record["predicted"]),
    )


def _respelled(record: Mapping[str, Json]) -> Mapping[str, Json]:
    """The fields of an older line, with the program and its hash in today's form; damaged fields stay."""
    text, key = record["program"], record["key"]
    if not isinstance(text, str) or not isinstance(key, dict) or not is_program(key.get("program"), text):
        return record
    new = respelled(text)
    return {**record, "program": new, "key": {**key, "program": hash_of(new)}}


def from_lines(text: str, file: str) -> Iterator[Record | WholeProgram]:
    """The records and whole programs of a text; empty lines are none. Raises InputError with the file and the line."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                values = _json(line)
                is_whole = isinstance(values, dict) and "whole_program" in values
                yield _whole(values) if is_whole else _record(values)
            except InputError as error:
                raise InputError(f"{file}:{number}: {error}") from error


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON")


def _fields(what: str, values: Json, names: tuple[str, ...]) -> Mapping[str, Json]:
    if not isinstance(values, dict):
        raise InputError(f"{what} is not an object with the fields {', '.join(names)}")
    for name in names:
        if name not in values:
            raise InputError(f"{what} has no field '{name}'")
    for name in values:
        if name not in names:
            raise InputError(f"{what} has a field {short(name)}, which is unknown")
    return values


def _float(value: Json) -> Json:
    """A number as a float; any other value, or one too large, is left for the record to refuse."""
    try:
        return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
    except OverflowError:
        return value


def _disturbance(value: Json) -> Disturbance | None:
    if value is None:
        return None
    values = _fields("the disturbance", value, _DISTURBANCE)
    return Disturbance(_float(values["seconds"]), _float(values["away"]), values["repeated"], values["used"])


def _tuple(value: Json) -> Json:
    return tuple(map(_float, value)) if isinstance(value, list) else value


def _candidate(value: Json) -> Json:
    match value:
        case [sketch, [*positions]]:
            return sketch, tuple(positions)
    return value
