"""Records and whole programs as self-contained lines of JSON, which may be filtered, joined and sorted by any tool."""

from __future__ import annotations

import json
from collections.abc import Iterator
from reprlib import repr as short

from compiler.database.fields import (
    FORMAT,
    check_format,
    parse_json,
    record_fields,
    record_of,
    whole_program_fields,
    whole_program_of,
)
from compiler.database.record import Record, WholeProgram
from compiler.support.errors import InputError

RECORD, WHOLE = "record", "whole_program"
"""The values of a line's field `content`."""


def to_line(content: Record | WholeProgram) -> str:
    """Return the line of a record, without its id, or of a whole program; the inverse of `from_line`.

    >>> whole = strata.database.WholeProgram("f", "builtin.module {}", constants=(1,))
    >>> strata.database.to_line(whole)
    '{"format": 7, "content": "whole_program", "name": "f", "text": "builtin.module {}", "constants": [1]}'
    """
    is_whole = isinstance(content, WholeProgram)
    header = {"format": FORMAT, "content": WHOLE if is_whole else RECORD}
    values = whole_program_fields(content) if isinstance(content, WholeProgram) else record_fields(content)
    return json.dumps(header | values, allow_nan=False)


def from_line(line: str) -> Record | WholeProgram:
    """Parse the line of a record or of a whole program. Raises InputError for an invalid line.

    >>> line = strata.database.to_line(strata.database.WholeProgram("f", "builtin.module {}"))
    >>> strata.database.from_line(line).name
    'f'
    >>> strata.database.from_line("{}")
    Traceback (most recent call last):
        ...
    compiler.support.errors.InputError: its format is None, expected 7
    """
    values = parse_json(line)
    if not isinstance(values, dict):
        raise InputError(f"{short(values)} is not an object of JSON")
    number, content = values.pop("format", None), values.pop("content", None)
    if type(number) is not int:
        raise InputError(f"its format is {short(number)}, expected {FORMAT}")
    check_format(number, "it")
    if content not in (RECORD, WHOLE):
        raise InputError(f"its content is {short(content)}, expected {RECORD} or {WHOLE}")
    return record_of(values) if content == RECORD else whole_program_of(values)


def from_lines(text: str, file: str) -> Iterator[Record | WholeProgram]:
    """Parse the lines of a text; empty ones are skipped. Raises InputError, with the name `file` and the number of the
    line."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield from_line(line)
            except InputError as error:
                raise InputError(f"{file}:{number}: {error}") from error
