"""Text for output: escapes of untrusted text, counts, durations, and similar names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher


def printable(text: str) -> str:
    """Escape control characters and changes of direction, such as \\x1b, except line ends and tabs.

    Text of a file or a record could otherwise control the terminal, or read as something else.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in "\n\t" else _escape(char) for char in text)


def counted(number: int, noun: str, plural: str = "s") -> str:
    """A number and a noun: `1 record`, `2 records`; `plural` is the noun's suffix for numbers other than 1."""
    return f"{number} {noun}{'' if number == 1 else plural}"


def duration(seconds: float) -> str:
    """The text of a time in s, ms or us, with three significant digits: `1.5 ms`; below 1 ms in us."""
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def remark(form: str, text: str) -> str:
    """A text as a comment line for a form of code: after `#` for python and asm, `;` for llvm, `//` for other forms."""
    return f"{_REMARKS.get(form, '//')} {text}"


_REMARKS = {"python": "#", "llvm": ";", "asm": "#"}


def unknown(what: str, name: str, names: Iterable[str], where: str = "") -> str:
    """The sentence `there is no pass 'tlie'; did you mean 'tile'?` for what = pass; `where` follows the name."""
    return f"there is no {what} '{name}'{where}{suggestion(name, names)}"


def suggestion(name: str, names: Iterable[str], otherwise: str = "") -> str:
    """The suggestion `; did you mean 'tile'?` of the one of `names` most similar to `name`; `otherwise` if none is."""
    close = similar_names(name, names)
    return f"; did you mean '{close[0]}'?" if close else otherwise


def similar_names(name: str, names: Iterable[str], limit: int = 1) -> list[str]:
    """Return at most `limit` of `names` similar to a name, most similar first: they differ in case, in a quarter of the
    characters at most, or in their order, or one is a prefix or a word (of at least SHARED characters) of the other.

    difflib compares common characters at any position, and so finds `undo` similar to `unroll`.
    """
    folded = name.casefold()
    rated = [(_edits(folded, candidate.casefold()), candidate) for candidate in dict.fromkeys(names)]
    similar = [(edits, candidate) for edits, candidate in rated if _is_similar(folded, candidate.casefold(), edits)]
    return [candidate for _, candidate in sorted(similar, key=lambda pair: (pair[0], -_likeness(name, pair[1])))][
        :limit
    ]


def _likeness(name: str, other: str) -> float:
    return SequenceMatcher(None, name, other).ratio()


def _is_similar(name: str, candidate: str, edits: int) -> bool:
    if edits <= max(len(name), len(candidate)) // 4 or sorted(name) == sorted(candidate):
        return True
    short, long = sorted((name, candidate), key=len)
    return len(short) >= SHARED and (long.startswith(short) or short in re.split(r"\W|_", long))


SHARED = 4
"""The minimal length of a prefix or a word that makes names similar."""


def _edits(a: str, b: str) -> int:
    """The edit distance of two texts: insertions, deletions, replacements, swaps of neighbours. If their lengths differ
    by more than a quarter, that difference, which is the distance of a prefix or a word."""
    if abs(len(a) - len(b)) > max(len(a), len(b)) // 4:
        return abs(len(a) - len(b))
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
