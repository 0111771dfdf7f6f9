"""Text for people: what comes from outside as a terminal or a page may have it, counts, times, and near names."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


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
    close = get_close_matches(name, list(names), 1)
    return f"there is no {what} '{name}'{where}" + (f"; did you mean '{close[0]}'?" if close else "")


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode()
