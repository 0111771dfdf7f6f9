"""Records and whole programs as rows of their tables."""

from __future__ import annotations

import json
from dataclasses import astuple
from reprlib import repr as short
from typing import TypeAlias

from compiler.database.outcome import Outcome
from compiler.database.record import Json, Key, Record, WholeProgram
from compiler.support.errors import InputError
from compiler.targets.cpu.presence import Disturbance

Row: TypeAlias = tuple[Json, ...]
COLUMNS = (
    "uuid, name, program, machine, threads, policy, script, kind, seconds, rates, reason, build_seconds, "
    "sketch, positions, predicted, seed, run, created, versions, disturbance, timing"
)
SCRIPT = COLUMNS.split(", ").index("script")
"""Where the script stands in a row."""
KEY = "program = ? AND machine = ? AND threads = ? AND policy = ? AND timing = ?"


def key_values(key: Key) -> Row:
    """What the marks of KEY stand for."""
    return key.program, key.machine, key.threads, key.policy, key.timing


def to_row(record: Record) -> Row:
    """The values of COLUMNS."""
    outcome = record.outcome
    sketch, positions = (None, None) if record.candidate is None else record.candidate
    return (
        record.uuid,
        record.name,
        *key_values(record.key)[:-1],
        record.script,
        outcome.kind,
        json.dumps(outcome.seconds),
        json.dumps(outcome.rates),
        outcome.reason,
        outcome.build_seconds,
        sketch,
        None if positions is None else json.dumps(positions),
        record.predicted,
        record.seed,
        record.run,
        record.created,
        json.dumps(dict(record.versions)),
        None if outcome.disturbance is None else json.dumps(astuple(outcome.disturbance)),
        record.key.timing,
    )


def from_row(id: int, row: Row, text: str) -> Record:
    """The record of a number, the values of COLUMNS and a program. Raises InputError for a damaged row."""
    uuid, name, program, machine, threads, policy, script = row[:7]
    kind, seconds, rates, reason, built, sketch, positions = row[7:14]
    predicted, seed, run, created, versions, disturbance, timing = row[14:]
    try:
        return Record(
            key=Key(program, machine, threads, policy, timing),
            name=name,
            program=text,
            script=script,
            outcome=Outcome(kind, _numbers(seconds), _numbers(rates), reason, built, _disturbance(disturbance)),
            candidate=None if sketch is None else (sketch, _numbers(positions)),
            predicted=predicted,
            seed=seed,
            run=run,
            created=created,
            versions=_read(versions, dict),
            uuid=uuid,
            id=id,
        )
    except (InputError, ValueError) as error:
        raise InputError(f"record {id} is damaged: {error}") from error


def whole_program(hash: str, name: Json, text: Json, constants: Json) -> WholeProgram | None:
    """The program of a row of the table `whole_programs`; None for a row that is damaged."""
    try:
        kept = WholeProgram(name, text, _numbers(constants))
        return kept if kept.hash == hash else None
    except (ValueError, InputError):  # also for what is no Unicode
        return None


def _disturbance(text: object) -> Disturbance | None:
    if text is None:
        return None
    try:
        return Disturbance(*_numbers(text))
    except TypeError as error:
        raise ValueError(f"{short(text)} is no disturbance") from error


def _numbers(text: object) -> tuple[Json, ...]:
    numbers: list[Json] = _read(text, list)
    return tuple(numbers)


def _read(text: object, kind: type) -> Json:
    """A list or an object from its JSON. Raises ValueError for anything else."""
    try:
        parsed = json.loads(text) if isinstance(text, str) else None
    except RecursionError:
        parsed = None
    if not isinstance(parsed, kind):
        raise ValueError(f"{short(text)} is not the JSON of {'a list' if kind is list else 'an object'}")
    return parsed
