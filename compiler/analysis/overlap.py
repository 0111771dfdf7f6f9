"""`Overlaps`: the accesses to one buffer, by where they are, so that few are compared with another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compiler.affine.linear import Atom
from compiler.analysis.accesses import LowAccess
from compiler.analysis.index_forms import Forms


@dataclass(frozen=True)
class _Place:
    """An access, and its index split: the variable parts of all dimensions, and their constants."""

    access: LowAccess
    variable: tuple[tuple[tuple[Atom, int], ...], ...]
    constants: tuple[int, ...]

    @property
    def leading(self) -> tuple[int, ...]:
        """The constants of all dimensions but the last."""
        return self.constants[:-1]

    @property
    def last(self) -> int:
        """The constant of the last dimension."""
        return self.constants[-1] if self.constants else 0

    def is_apart(self, place: _Place) -> bool:
        """Whether two accesses never touch a common element; False if that is not evident."""
        last = len(self.constants) - 1
        for dim, (mine, its) in enumerate(zip(self.variable, place.variable, strict=True)):
            if mine == its:
                gap = self.constants[dim] - place.constants[dim]
                if gap != 0 if dim != last else not -self.access.lanes < gap < place.access.lanes:
                    return True
        return False


_Row = dict[int, list[_Place]]
"""Accesses that differ in the last index only, by its constant part."""


class Overlaps:
    """Accesses to one buffer. Those whose indices differ by constants are found by these; others are compared."""

    def __init__(self, forms: Forms) -> None:
        self._forms = forms
        self._rows: dict[object, dict[tuple[int, ...], _Row]] = {}
        self._widest = 1

    def add(self, access: LowAccess) -> None:
        """Take an access in."""
        place = self._place(access)
        row = self._rows.setdefault(place.variable, {}).setdefault(place.leading, {})
        row.setdefault(place.last, []).append(place)
        self._widest = max(self._widest, access.lanes)

    def remove(self, access: LowAccess) -> None:
        """Leave out an access that was taken in."""
        place = self._place(access)
        self._rows[place.variable][place.leading][place.last].remove(place)

    def meeting(self, access: LowAccess) -> list[LowAccess]:
        """The accesses that may touch an element which another one touches."""
        place = self._place(access)
        return [near.access for near in self._near(place) if not near.is_apart(place)]

    def _near(self, place: _Place) -> Iterator[_Place]:
        for variable, rows in self._rows.items():
            if variable != place.variable:
                yield from (near for row in rows.values() for places in row.values() for near in places)
            elif place.leading in rows:
                row = rows[place.leading]
                for last in range(place.last - self._widest + 1, place.last + place.access.lanes):
                    yield from row.get(last, ())

    def _place(self, access: LowAccess) -> _Place:
        forms = [self._forms.of(index) for index in access.indices]
        return _Place(access, tuple(form.terms for form in forms), tuple(form.constant for form in forms))
