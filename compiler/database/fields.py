"""Records and whole programs as objects of JSON, by which files and lines hold them.

The format is kept from the first release on. A version may add fields, also to a record's key, outcome and disturbance;
those that this version does not know are kept in `unknown`, and written again. A field that is there keeps its meaning.
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
"""The number of the format, of files and of lines. Formats below were those of before the first release."""
Fields: TypeAlias = dict[str, Json]
_KEY = ("program", "machine", "threads", "policy", "timing")
_WITHIN = "whole"
"""The field of a key that only those of groups inside a program have."""
_DEFAULT = "default"
"""The field of a record that only those have whose script is the default."""
_FORM = "form"
"""The field of a record that only those of forms have."""
_OUTCOME = ("kind", "seconds", "rates", "reason", "build_seconds", "disturbance")
_DISTURBANCE = tuple(field.name for field in fields(Disturbance))
_PLAIN = ("uuid", "name", "program", "script", "seed", "run", "created", "versions")
_RECORD = ("key", "outcome", "candidate", "predicted", *_PLAIN)
_NAMES: Fields = {
    **dict.fromkeys((*_RECORD, _DEFAULT, _FORM)),
    "outcome": {**dict.fromkeys(_OUTCOME), "disturbance": dict.fromkeys(_DISTURBANCE)},
}
"""The fields of a record, and of the objects in it; a key keeps its own unknown fields."""
_WHOLE = ("name", "text", "constants")


def check_format(number: int, what: str) -> None:
    """Check that a file or a line has this version's format. Raises InputError, which says what to do."""
    if number < FORMAT:
        reason = f"of before the first release; only format {FORMAT} is read: tune again, into a new file"
        raise InputError(f"{what} has format {number}, {reason}")
    if number > FORMAT:
        reason = f"of a newer Strata; only format {FORMAT} is read: update Strata"
        raise InputError(f"{what} has format {number}, {reason}")


def parsed(text: object) -> Json:
    """The value of a text of JSON. Raises InputError for any other."""
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
    """The one text of an object, whatever the order of its fields. Raises InputError for one that has none."""
    try:
        return json.dumps(values, sort_keys=True, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{short(values)} cannot be written as JSON") from error


# --- records --------------------------------------------------------------------------------------------------------


def key_fields(key: Key) -> Fields:
    """The fields of a key."""
    within = {_WITHIN: key.whole} if key.whole else {}
    return {name: getattr(key, name) for name in _KEY} | within | (json.loads(key.unknown) if key.unknown else {})


def record_fields(record: Record) -> Fields:
    """The fields of a record, without its number in the file; `record_of` gives an equal record."""
    outcome, disturbance = record.outcome, record.outcome.disturbance
    known = {
        "key": key_fields(record.key),
        "outcome": {name: getattr(outcome, name) for name in _OUTCOME}
        | {"disturbance": None if disturbance is None else asdict(disturbance)},
        "candidate": record.candidate,
        "predicted": record.predicted,
        **{name: getattr(record, name) for name in _PLAIN},
        "versions": dict(record.versions),
    } | ({_DEFAULT: True} if record.default else {})
    known |= {_FORM: record.form} if record.form else {}
    return _merged(known, record.unknown)


def record_of(values: Json, id: int = 0) -> Record:
    """The record of an object. Raises InputError for one that lacks a field, or has a wrong value of one."""
    stated = _fields("the record", values, _RECORD)
    outcome = _fields("the outcome", stated["outcome"], _OUTCOME)
    return Record(
        **{name: stated[name] for name in _PLAIN},
        key=key_of_fields(stated["key"]),
        outcome=Outcome(
            kind=outcome["kind"],
            seconds=_tuple(outcome["seconds"]),
            rates=_tuple(outcome["rates"]),
            reason=outcome["reason"],
            build_seconds=_float(outcome["build_seconds"]),
            disturbance=_disturbance(outcome["disturbance"]),
        ),
        candidate=_candidate(stated["candidate"]),
        predicted=_float(stated["predicted"]),
        default=stated.get(_DEFAULT, False),
        form=stated.get(_FORM, ""),
        unknown=_unknown(stated, _NAMES),
        id=id,
    )


def key_of_fields(values: Json) -> Key:
    """The key of an object. One with unknown fields is no other's: what they say of its outcomes is not known."""
    stated = _fields("the key", values, _KEY)
    unknown = _unknown(stated, dict.fromkeys((*_KEY, _WITHIN)))
    known = {name: stated[name] for name in _KEY}
    return Key(**known, whole=stated.get(_WITHIN, ""), unknown=canonical_json(unknown) if unknown else "")


def _fields(what: str, values: Json, names: tuple[str, ...]) -> Fields:
    if not isinstance(values, dict):
        raise InputError(f"{what} is not an object with the fields {', '.join(names)}")
    for name in names:
        if name not in values:
            raise InputError(f"{what} has no field '{name}'")
    return values


def _float(value: Json) -> Json:
    """A number as a float; any other value, or one too large, is left for the record to refuse."""
    try:
        return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
    except OverflowError:
        return value


def _tuple(value: Json) -> Json:
    return tuple(map(_float, value)) if isinstance(value, list) else value


def _disturbance(value: Json) -> Disturbance | None:
    if value is None:
        return None
    stated = _fields("the disturbance", value, _DISTURBANCE)
    return Disturbance(_float(stated["seconds"]), _float(stated["away"]), stated["repeated"], stated["used"])


def _candidate(value: Json) -> Json:
    match value:
        case [sketch, [*positions]]:
            return sketch, tuple(positions)
    return value


# --- whole programs -------------------------------------------------------------------------------------------------


def whole_fields(program: WholeProgram) -> Fields:
    """The fields of a whole program; `whole_of` gives an equal one."""
    return _merged({name: getattr(program, name) for name in _WHOLE}, program.unknown)


def whole_of(values: Json) -> WholeProgram:
    """The whole program of an object. Raises InputError for one that lacks a field, or has a wrong value of one."""
    stated = _fields("the whole program", values, _WHOLE)
    constants = stated["constants"]
    positions = tuple(constants) if isinstance(constants, list) else constants
    return WholeProgram(stated["name"], stated["text"], positions, _unknown(stated, dict.fromkeys(_WHOLE)))


# --- fields of newer versions ---------------------------------------------------------------------------------------


def _unknown(stated: Fields, known: Fields) -> Fields:
    """The fields of an object that another lacks; where a field of both is an object, those that the other's lacks.

    {"seed": 0, "laws": [], "outcome": {"kind": "crash", "joules": 2}} beside {"seed": None, "outcome": {"kind": None}}
    gives {"laws": [], "outcome": {"joules": 2}}.
    """
    unknown = {name: value for name, value in stated.items() if name not in known}
    for name, value in known.items():
        if isinstance(value, dict) and isinstance(stated[name], dict) and (inner := _unknown(stated[name], value)):
            unknown[name] = inner
    return unknown


def _merged(known: Fields, unknown: Mapping[str, Json]) -> Fields:
    """An object with the fields of both, the inverse of `_unknown`; what is known counts."""
    merged = dict(known)
    for name, value in unknown.items():
        if name not in known:
            merged[name] = value
        elif isinstance(value, dict) and isinstance(known[name], dict):
            merged[name] = _merged(known[name], value)
    return merged
