"""Names of values, buffers, blocks and functions: text spelled as a name, and unique names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from compiler.affine.text import RESERVED

_SPELLED = re.compile(r"(?!(_\d+)+\Z)[A-Za-z_][\w.$]*", re.ASCII)


def spelled(name: str) -> str:
    """Spell a text as a name of the IR: letters, digits, `_`, `.`, `$`, no reserved word. A valid name stays.

    Other characters become `_`. A number gets an `n` in front, since xDSL cuts `_7` off the end of a value's name; a
    reserved word and any other invalid start get a `_`. An empty text is spelled `value`.
    """
    if _SPELLED.fullmatch(name) and name not in RESERVED:
        return name
    word = re.sub(r"[^\w.$]", "_", name, flags=re.ASCII) or "value"
    if re.fullmatch(r"_*\d+(_\d+)*", word):
        return f"n{word.lstrip('_').replace('_', '.')}"
    return word if _SPELLED.fullmatch(word) and word not in RESERVED else f"_{word}"


def spellings(names: Sequence[str]) -> list[str]:
    """Spell each text as a name, different texts as different names; a text that is a valid name stays."""
    valid = [name for name in names if spelled(name) == name]
    unique = Names(valid)
    chosen = {name: name for name in valid}
    for name in names:
        if name not in chosen:
            chosen[name] = unique.fresh(spelled(name))
    return [chosen[name] for name in names]


class Names:
    """Allocator of unique names: a stem, then stem.1, stem.2 ...; counting goes on from the last number of the stem.
    `taken` are names in use; `separator` is before the number."""

    def __init__(self, taken: Iterable[str] = (), separator: str = ".") -> None:
        self._taken = set(taken)
        self._separator = separator
        self._last: dict[str, int] = {}

    def fresh(self, stem: str) -> str:
        """Return the stem or, if it is in use, the stem with an unused number; the result is then in use."""
        number, name = self._last.get(stem, 0), stem
        while name in self._taken:
            number += 1
            name = f"{stem}{self._separator}{number}"
        self._last[stem] = number
        self._taken.add(name)
        return name


def fresh(name: str, taken: Collection[str], separator: str = ".") -> str:
    """The name, or the first of name.1, name.2 ... that is not taken, with `separator` before the number. For several
    names use `Names`."""
    number, unique = 0, name
    while unique in taken:
        number += 1
        unique = f"{name}{separator}{number}"
    return unique
