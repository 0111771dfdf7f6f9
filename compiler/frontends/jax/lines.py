"""Lines of the user's program: the locations that JAX prints behind ops."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

_USE = re.compile(r"loc\((#loc\d*)\)\s*$")
_FILE = re.compile(r'"([^"]+)":(\d+)')
_ALIAS = re.compile(r"#loc\d*")
_FUNCTION = re.compile(r'func\.func private (@"[^"]*"|@[\w.$]+)')
OURS = str(Path(__file__).parents[2])
"""The folder whose files are not the user's."""


def source_line(text: str, line: int) -> str | None:
    """Return the innermost line of the user's files, such as `model.py:12`, in the location of the op that begins at
    line `line` of a text (counted from 1); without one, that of a call of the function around the op; None without
    any."""
    lines = text.split("\n")
    definitions = {
        name: value for name, sep, value in (entry.partition(" = ") for entry in lines if entry[:4] == "#loc") if sep
    }
    visited: set[int] = set()
    while line not in visited:
        visited.add(line)
        file = _file(lines, line, definitions)
        if file is not None:
            return file
        line = _caller(lines, line)
    return None


def _file(lines: Sequence[str], line: int, definitions: Mapping[str, str]) -> str | None:
    """Return the user's `file:line` in the location of the op at a line; None without one. The location of an op with
    regions is behind them, so that of its first inner op is used."""
    use = next(filter(None, map(_USE.search, lines[line - 1 :])), None)
    pending, seen = [use[1]] if use else [], set[str]()
    while pending:
        alias = pending.pop(0)
        if alias in seen:
            continue
        seen.add(alias)
        value = definitions.get(alias, "")
        file = _FILE.search(value)
        if file is not None and not file[1].startswith(OURS):
            return f"{file[1]}:{file[2]}"
        pending += _ALIAS.findall(value)
    return None


def _caller(lines: Sequence[str], line: int) -> int:
    """Return the line of a call of the function that is around a line; the line itself without a call."""
    function = next(filter(None, map(_FUNCTION.search, reversed(lines[:line]))), None)
    if function is None:
        return line
    return next((n for n, entry in enumerate(lines, 1) if f"call {function[1]}(" in entry), line)
