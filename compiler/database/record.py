"""`Key` and `Record`: a trial, and the conditions under which outcomes are comparable; invalid values are refused."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from hashlib import sha256
from importlib.metadata import version
from reprlib import repr as short
from typing import Any, TypeAlias
from uuid import uuid4

import compiler
from compiler.database.outcome import ESTIMATED, FAILURES, MEASURED, TIMINGS, WARM, Outcome
from compiler.support import display
from compiler.support.errors import InputError
from compiler.support.text import counted
from compiler.support.validation import LARGEST
from compiler.targets.cpu.presence import Disturbance

Candidate: TypeAlias = tuple[int, tuple[int, ...]]
"""The number of a sketch, and for each of its choices the position of the decision among its options."""
KINDS = (MEASURED, ESTIMATED, *FAILURES)
Json: TypeAlias = Any  # an unchecked value of a file
WRITTEN = "written"
"""The form of a group as written; the other forms have the names of their laws."""
MAX_DEPTH = 32
"""The maximal nesting of unknown fields."""


@dataclass(frozen=True, order=True)
class Key:
    """The conditions under which outcomes are comparable. program: the SHA-256 of the program's text, as of
    `program_of`, in hexadecimal. machine: a descriptive name. threads: their number. policy: of floating point. timing:
    one of TIMINGS. whole: empty, or identifies the whole program inside which a group was timed. unknown: the JSON of
    the key's unknown fields, sorted by name, or empty; outcomes are not comparable across different ones."""

    program: str
    machine: str
    threads: int
    policy: str
    timing: str = WARM
    whole: str = ""
    unknown: str = ""


_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@lru_cache(16)
def hash_of(program: str) -> str:
    """The SHA-256 of a program's text, in hexadecimal."""
    return sha256(program.encode()).hexdigest()


def is_program_text(key: object, text: object) -> bool:
    """Whether a text is valid Unicode and `key` is its hash."""
    return isinstance(text, str) and not _text("program", text) and hash_of(text) == key


def now() -> str:
    """The current time in UTC, as ISO 8601 with microseconds."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def versions() -> dict[str, str]:
    """Map the packages that affect the speed of a compiled script (strata, xdsl, llvmlite) to their versions."""
    return dict(_versions())


@cache
def _versions() -> tuple[tuple[str, str], ...]:
    return ("strata", compiler.__version__), *((name, version(name)) for name in ("xdsl", "llvmlite"))


@dataclass(frozen=True)
class Record:
    """A trial: a program, a script that schedules it, and the outcome.

    name: the task's descriptive name. program: the text whose hash is `key.program`. script: has all its decisions and
    replays by itself. candidate: the sketch and the decisions of the script in the tuner's space; None if it is not
    from one. predicted: the cost by the model at selection, in the unit of `Outcome.cost`; None without a prediction.
    seed, run (a text, such as a UUID): those of the tuner's run. default: true if the script, or the form, is the one
    of a build without a database. form: empty, or the form of a group that was timed inside a whole program, WRITTEN or
    the name of a law; such a record has no script. created: a time in UTC, as from `now`. versions: of the packages
    that compiled the script, by name. uuid: identifies the record across files. unknown: JSON fields of newer versions,
    which are written back. id: the record's number in its file, 0 outside of one; it is not compared.

    Raises InputError for a field of a wrong type, a value that is not finite, or fields that contradict each other.
    """

    key: Key
    name: str
    program: str
    script: str
    outcome: Outcome
    candidate: Candidate | None = None
    predicted: float | None = None
    seed: int = 0
    run: str = ""
    default: bool = False
    form: str = ""
    created: str = field(default_factory=now)
    versions: Mapping[str, str] = field(default_factory=versions)
    uuid: str = field(default_factory=lambda: str(uuid4()))
    unknown: Mapping[str, Json] = field(default_factory=dict)
    id: int = field(default=0, compare=False)

    def __repr__(self) -> str:
        setting = f"{self.key.machine}, {counted(self.key.threads, 'thread')}"
        return display.line(f"<Record of {self.name}: {self.outcome!r} on {setting}, {self.created[:10]}>")

    def __post_init__(self) -> None:
        fault = next(_faults(self), None)
        if fault is not None:
            raise InputError(fault)


@dataclass(frozen=True)
class WholeProgram:
    """A program whose groups were tuned: its descriptive name, the text of its te module, whose main calls the groups,
    the positions of the constant inputs, and JSON fields of newer versions. Raises InputError for an invalid field.

    >>> whole = strata.database.WholeProgram("f", "builtin.module {}", constants=(1,))
    >>> strata.database.from_line(strata.database.to_line(whole)) == whole
    True
    """

    name: str
    text: str
    constants: tuple[int, ...] = ()
    unknown: Mapping[str, Json] = field(default_factory=dict)

    def __post_init__(self) -> None:
        name, positions = self.name, self.constants
        for fault in (*_text("name", name), *_text("text", self.text), *_unknown(self.unknown)):
            raise InputError(fault)
        if not name.isprintable() or not name.strip():
            raise InputError(f"the name is {short(name)}, expected a line of text")
        if not isinstance(positions, tuple) or not all(type(n) is int and 0 <= n <= LARGEST for n in positions):
            raise InputError(f"constants is {short(positions)}, expected positions of inputs")


def utc_time(text: str) -> datetime:
    """Parse an ISO 8601 time in UTC. Raises ValueError for other texts and time zones."""
    time = datetime.fromisoformat(text)
    if time.utcoffset() != timedelta(0):
        raise ValueError("it is not in UTC")
    return time


def _faults(record: Record) -> Iterator[str]:
    """Yield the faults of a record, a sentence each; later checks assume that the earlier ones passed."""
    key = record.key
    for name in ("program", "run", "uuid", "script", "created", "form"):
        yield from _text(name, getattr(record, name))
    yield from _text("the key's program", key.program)
    yield from _text("the key's whole", key.whole)
    for what, line in (("name", record.name), ("machine", key.machine), ("policy", key.policy)):
        yield from _text(what, line)
        if not line.strip() or not line.isprintable():
            yield f"{what} {short(line)} is not a line of text"
    yield from _integer("threads", key.threads, 1)
    if key.timing not in TIMINGS:
        yield f"the timing {short(key.timing)} is unknown (there are {', '.join(TIMINGS)})"
    try:
        utc_time(record.created)
    except ValueError:
        yield f"created {short(record.created)} is not a moment in UTC, such as {now()}"
    yield from outcome_faults(record.outcome)
    yield from _integer("seed", record.seed, 0)
    if not isinstance(record.default, bool):
        yield f"default is {short(record.default)}, expected true or false"
    if record.form and (record.script or not key.whole):
        yield f"the record of the form {short(record.form)} has a script, or is not of a whole program"
    yield from _identity(record)
    if record.predicted is not None:
        yield from _numbers("predicted", (record.predicted,), -math.inf)
    yield from _candidate_faults(record.candidate)
    if not isinstance(record.versions, Mapping):
        yield "versions are not texts by name"
    for text in (entry for pair in record.versions.items() for entry in pair):
        yield from _text("a version", text)
    yield from _unknown(record.unknown)
    yield from _unknown_of_key(key.unknown)


def _identity(record: Record) -> Iterator[str]:
    if hash_of(record.program) != record.key.program:
        yield f"the program is not the one that its key names ({short(record.key.program)})"
    if not _UUID.fullmatch(record.uuid):
        yield f"uuid {short(record.uuid)} is not a UUID"


def outcome_faults(outcome: Outcome) -> Iterator[str]:
    """Yield the faults of an outcome, a sentence each."""
    yield from _text("reason", outcome.reason)
    if outcome.kind not in KINDS:
        yield f"the outcome {short(outcome.kind)} is unknown (there are {', '.join(KINDS)})"
    yield from _numbers("seconds", outcome.seconds, 0.0)
    yield from _numbers("rates", outcome.rates, 0.0)
    yield from _numbers("build_seconds", (outcome.build_seconds,), 0.0)
    if len(outcome.seconds) != len(outcome.rates):
        yield f"there are {len(outcome.seconds)} seconds and {len(outcome.rates)} rates"
    if outcome.ok and not outcome.seconds:
        yield "it is measured, but has no seconds"
    if outcome.disturbance is not None:
        yield from _disturbance(outcome.disturbance)


def _disturbance(disturbance: object) -> Iterator[str]:
    if not isinstance(disturbance, Disturbance):
        yield f"the disturbance is {short(disturbance)}"
        return
    yield from _numbers("the disturbance", (disturbance.seconds, disturbance.away), 0.0)
    yield from _integer("repeated", disturbance.repeated, 0)
    yield from _integer("used", disturbance.used, 0)


def _candidate_faults(candidate: object) -> Iterator[str]:
    if candidate is None:
        return
    match candidate:
        case (sketch, tuple(positions)):
            yield from _integer("sketch", sketch, 0)
            for position in positions:
                yield from _integer("a position", position, 0)
        case _:
            yield f"the candidate {short(candidate)} is not a sketch and positions"


def _unknown(values: object) -> Sequence[str]:
    """Return a sentence, in a sequence of one, about unknown fields that JSON does not preserve, or that are nested
    deeper than MAX_DEPTH; empty without a fault."""
    if values == {}:
        return ()
    try:
        round_trip = json.loads(json.dumps(values, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        round_trip = None
    if isinstance(values, dict) and round_trip == values and _depth_is_within(values, MAX_DEPTH):
        return ()
    return (f"the unknown fields are {short(values)}, expected an object of JSON, at most {MAX_DEPTH} levels deep",)


def _depth_is_within(value: Json, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_depth_is_within(child, levels - 1) for child in inner)


def _unknown_of_key(text: object) -> Sequence[str]:
    if text == "":
        return ()
    try:
        values = json.loads(text) if isinstance(text, str) else None
        if values and text == json.dumps(values, sort_keys=True):
            return _unknown(values)
    except (ValueError, RecursionError):
        pass
    return (f"the key's unknown fields are {short(text)}, expected the JSON of an object, its names in order",)


def _text(name: str, value: object) -> Sequence[str]:
    if isinstance(value, str):
        if value.isascii() or value.encode(errors="replace").decode() == value:
            return ()
        return (f"{name} has half of a surrogate pair, which is no text",)
    return (f"{name} is {short(value)}, expected a text",)


def _integer(name: str, value: object, minimum: int) -> Sequence[str]:
    if isinstance(value, int) and not isinstance(value, bool) and minimum <= value <= LARGEST:
        return ()
    return (f"{name} is {short(value)}, expected an integer from {minimum} to 2^63 - 1",)


def _numbers(name: str, values: object, minimum: float) -> Sequence[str]:
    if not isinstance(values, tuple):
        return (f"{name} is {short(values)}, expected a list of numbers",)
    invalid = [v for v in values if not isinstance(v, float) or not math.isfinite(v) or v < minimum]
    return [f"{name} has {short(v)}, expected a finite float" + (" from 0" if minimum == 0 else "") for v in invalid]
