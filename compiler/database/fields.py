"""Records and whole programs as JSON objects, the format of files and lines.

The format is stable from the first release on. A version may add fields, also to a record's key, outcome and
disturbance; unknown ones are stored in `unknown` and written back. Existing fields never change their meaning.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from reprlib import repr as short
from typing import NoReturn, TypeAlias

from compiler.database.outcome import Outcome
from compiler.database.record import Json, Key, Record, WholeProgram
from compiler.support.errors import InputError
from compiler.targets.cpu.presence import Disturbance

FORMAT = 7
"""The format number of files and lines. Lower numbers are from before the first release."""
Fields: TypeAlias = dict[str, Json]
_KEY = ("program", "machine", "threads", "policy", "timing")
_WITHIN = "whole"
"""The optional field of a key: the whole program of a group."""
_DEFAULT = "default"
"""The optional field of a record: true for the default script."""
_FORM = "form"
"""The optional field of a record: the form of a group that it timed."""
_OUTCOME = ("kind", "seconds", "rates", "reason", "build_seconds", "disturbance")
_DISTURBANCE = tuple(field.name for field in fields(Disturbance))
_PLAIN = ("uuid", "name", "program", "script", "seed", "run", "created", "versions")
_RECORD = ("key", "outcome", "candidate", "predicted", *_PLAIN)
_NAMES: Fields = {
    **dict.fromkeys((*_RECORD, _DEFAULT, _FORM)),
    "outcome": {**dict.fromkeys(_OUTCOME), "disturbance": dict.fromkeys(_DISTURBANCE)},
}
"""The fields of a record and of its nested objects, except the key, which has its own unknown fields."""
_WHOLE = ("name", "text", "constants")


def check_format(number: int, what: str) -> None:
    """Raise InputError, with advice, unless the number of a file's or a line's format is FORMAT. what: the subject of
    the message."""
    if number < FORMAT:
        reason = f"of before the first release; only format {FORMAT} is read: tune again, into a new file"
        raise InputError(f"{what} has format {number}, {reason}")
    if number > FORMAT:
        reason = f"of a newer Strata; only format {FORMAT} is read: update Strata"
        raise InputError(f"{what} has format {number}, {reason}")


def parse_json(text: object) -> Json:
    """Parse JSON text. Raises InputError for an object that is no text, for malformed text, and for NaN and
    infinities."""
    if not isinstance(text, str):
        raise InputError(f"{short(text)} is not the text of JSON")
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise InputError(f"it is not JSON: {error.msg} (column {error.colno})") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"it is not JSON: {error}") from error


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def canonical_json(values: Mapping[str, Json]) -> str:
    """The JSON text of an object with its fields sorted by name. Raises InputError for NaN, infinities, cycles and too
    deep nesting, TypeError for objects that JSON lacks."""
    try:
        return json.dumps(values, sort_keys=True, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{short(values)} cannot be written as JSON") from error


# --- records --------------------------------------------------------------------------------------------------------


def key_fields(key: Key) -> Fields:
    """Convert a key to a JSON object, with its unknown fields; the inverse of `key_of_fields`."""
    within = {_WITHIN: key.whole} if key.whole else {}
    return {name: getattr(key, name) for name in _KEY} | within | (json.loads(key.unknown) if key.unknown else {})


def record_fields(record: Record) -> Fields:
    """Convert a record, without its id, to a JSON object; the inverse of `record_of`."""
    outcome, disturbance = record.outcome, record.outcome.disturbance
    own_fields = {
        "key": key_fields(record.key),
        "outcome": {name: getattr(outcome, name) for name in _OUTCOME}
        | {"disturbance": None if disturbance is None else asdict(disturbance)},
        "candidate": record.candidate,
        "predicted": record.predicted,
        **{name: getattr(record, name) for name in _PLAIN},
        "versions": dict(record.versions),
    } | ({_DEFAULT: True} if record.default else {})
    own_fields |= {_FORM: record.form} if record.form else {}
    return _merged(own_fields, record.unknown)


def record_of(values: Json, id: int = 0) -> Record:
    """Convert a JSON object to a record with an id (0: in no file). Raises InputError for a missing field or an invalid
    value."""
    fields_read = _fields("the record", values, _RECORD)
    outcome = _fields("the outcome", fields_read["outcome"], _OUTCOME)
    return Record(
        **{name: fields_read[name] for name in _PLAIN},
        key=key_of_fields(fields_read["key"]),
        outcome=Outcome(
            kind=outcome["kind"],
            seconds=_tuple(outcome["seconds"]),
            rates=_tuple(outcome["rates"]),
            reason=outcome["reason"],
            build_seconds=_float(outcome["build_seconds"]),
            disturbance=_disturbance(outcome["disturbance"]),
        ),
        candidate=_candidate(fields_read["candidate"]),
        predicted=_float(fields_read["predicted"]),
        default=fields_read.get(_DEFAULT, False),
        form=fields_read.get(_FORM, ""),
        unknown=_unknown(fields_read, _NAMES),
        id=id,
    )


def key_of_fields(values: Json) -> Key:
    """Convert a JSON object to a key. Unknown fields are part of the key, since they may affect outcomes. Raises
    InputError for another value than an object and for a missing field; values of fields are not checked."""
    fields_read = _fields("the key", values, _KEY)
    unknown = _unknown(fields_read, dict.fromkeys((*_KEY, _WITHIN)))
    own_fields = {name: fields_read[name] for name in _KEY}
    return Key(**own_fields, whole=fields_read.get(_WITHIN, ""), unknown=canonical_json(unknown) if unknown else "")


def _fields(what: str, values: Json, names: tuple[str, ...]) -> Fields:
    if not isinstance(values, dict):
        raise InputError(f"{what} is not an object with the fields {', '.join(names)}")
    for name in names:
        if name not in values:
            raise InputError(f"{what} has no field '{name}'")
    return values


def _float(value: Json) -> Json:
    """An integer as a float; other values, and integers too large for a float, are returned as they are: the record
    refuses invalid ones."""
    try:
        return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
    except OverflowError:
        return value


def _tuple(value: Json) -> Json:
    return tuple(map(_float, value)) if isinstance(value, list) else value


def _disturbance(value: Json) -> Disturbance | None:
    if value is None:
        return None
    fields_read = _fields("the disturbance", value, _DISTURBANCE)
    return Disturbance(
        _float(fields_read["seconds"]), _float(fields_read["away"]), fields_read["repeated"], fields_read["used"]
    )


def _candidate(value: Json) -> Json:
    match value:
        case [sketch, [*positions]]:
            return sketch, tuple(positions)
    return value


# --- whole programs -------------------------------------------------------------------------------------------------


def whole_program_fields(program: WholeProgram) -> Fields:
    """Convert a whole program to a JSON object; the inverse of `whole_program_of`."""
    return _merged({name: getattr(program, name) for name in _WHOLE}, program.unknown)


def whole_program_of(values: Json) -> WholeProgram:
    """Convert a JSON object to a whole program. Raises InputError for a missing field or an invalid value."""
    fields_read = _fields("the whole program", values, _WHOLE)
    constants = fields_read["constants"]
    positions = tuple(constants) if isinstance(constants, list) else constants
    return WholeProgram(
        fields_read["name"], fields_read["text"], positions, _unknown(fields_read, dict.fromkeys(_WHOLE))
    )


# --- fields of newer versions ---------------------------------------------------------------------------------------


def _unknown(stated: Fields, known: Fields) -> Fields:
    """The fields of an object that are not in `known`, recursively in nested objects.

    {"seed": 0, "laws": [], "outcome": {"kind": "crash", "joules": 2}} beside {"seed": None, "outcome": {"kind": None}}
    is {"laws": [], "outcome": {"joules": 2}}.
    """
    unknown = {name: value for name, value in stated.items() if name not in known}
    for name, value in known.items():
        if isinstance(value, dict) and isinstance(stated[name], dict) and (inner := _unknown(stated[name], value)):
            unknown[name] = inner
    return unknown


def _merged(known: Fields, unknown: Mapping[str, Json]) -> Fields:
    """Merge an object with its unknown fields, nested objects too; a field that is in both has the value in `known`."""
    merged = dict(known)
    for name, value in unknown.items():
        if name not in known:
            merged[name] = value
        elif isinstance(value, dict) and isinstance(known[name], dict):
            merged[name] = _merged(known[name], value)
    return merged
