"""Names that nothing has yet: of values, buffers, blocks and functions."""

from __future__ import annotations

from collections.abc import Collection, Iterable


class Names:
    """Names that are given once: a stem, or the first of stem.1, stem.2 ... that is free, found without a search."""

    def __init__(self, taken: Iterable[str] = (), separator: str = ".") -> None:
        self._taken = set(taken)
        self._separator = separator
        self._last: dict[str, int] = {}

    def fresh(self, stem: str) -> str:
        """A name that nothing has."""
        number, name = self._last.get(stem, 0), stem
        while name in self._taken:
            number += 1
            name = f"{stem}{self._separator}{number}"
        self._last[stem] = number
        self._taken.add(name)
        return name


def fresh(name: str, taken: Collection[str]) -> str:
    """One name: this one, or the first of name.1, name.2 ... that is not taken. Who gives several keeps `Names`."""
    number, unique = 0, name
    while unique in taken:
        number += 1
        unique = f"{name}.{number}"
    return unique
