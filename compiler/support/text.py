"""Text for people: what comes from outside as a terminal or a page may have it, counts, times, and near names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher


def printable(text: str) -> str:
    """A text whose control characters and changes of direction are escapes, such as \\x1b; lines and tabs stay.

    What a file or a record says could otherwise move the cursor, clear the screen, or read as something else.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in "\n\t" else _escape(char) for char in text)


def counted(number: int, noun: str, plural: str = "s") -> str:
    """`1 record`, `2 records`."""
    return f"{number} {noun}{'' if number == 1 else plural}"


def duration(seconds: float) -> str:
    """A time with three digits, in a unit that suits it."""
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def remark(form: str, text: str) -> str:
    """A line that says something in a text of a form: script, python, llvm, asm or MLIR."""
    return f"{_REMARKS.get(form, '//')} {text}"


_REMARKS = {"python": "#", "llvm": ";", "asm": "#"}


def unknown(what: str, name: str, names: Iterable[str], where: str = "") -> str:
    """`there is no pass 'tlie'; did you mean 'tile'?`; `where` follows the name."""
    return f"there is no {what} '{name}'{where}{meant(name, names)}"


def meant(name: str, names: Iterable[str], otherwise: str = "") -> str:
    """`; did you mean 'tile'?` for the nearest of some names; `otherwise` where none is near."""
    close = near(name, names)
    return f"; did you mean '{close[0]}'?" if close else otherwise


def near(name: str, names: Iterable[str], most: int = 1) -> list[str]:
    """The names that may be meant by another one, the nearest first: those that differ in the case of letters, in one
    character of four, or in their order, and those that share a beginning or a word with it.

    difflib rates the characters that two names share anywhere, so that it takes `undo` for `unroll`.
    """
    folded = name.casefold()
    rated = [(_edits(folded, other.casefold()), other) for other in dict.fromkeys(names)]
    close = [(edits, other) for edits, other in rated if _is_near(folded, other.casefold(), edits)]
    return [other for _, other in sorted(close, key=lambda pair: (pair[0], -_likeness(name, pair[1])))][:most]


def _likeness(name: str, other: str) -> float:
    return SequenceMatcher(None, name, other).ratio()


def _is_near(name: str, other: str, edits: int) -> bool:
    if edits <= max(len(name), len(other)) // 4 or sorted(name) == sorted(other):
        return True
    short, long = sorted((name, other), key=len)
    return len(short) >= SHARED and (long.startswith(short) or short in re.split(r"\W|_", long))


SHARED = 4
"""The characters that a beginning has, or a word, by which one name may stand for another."""


def _edits(a: str, b: str) -> int:
    """How many characters to insert, drop, replace or swap with their neighbour to make one text of another."""
    rows = [list(range(len(b) + 1))]
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            swapped = i > 1 and j > 1 and (x, a[i - 2]) == (b[j - 2], y)
            swap = [rows[i - 2][j - 2] + 1] if swapped else []
            row.append(min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (x != y), *swap))
        rows.append(row)
    return rows[-1][-1]


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode()
