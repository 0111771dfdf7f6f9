"""Text for people: what comes from outside as a terminal or a page may have it, and counts."""

from __future__ import annotations


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


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode()
