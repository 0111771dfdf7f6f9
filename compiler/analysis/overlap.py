"""`Overlaps`: an index of the accesses to one buffer, to find those that may overlap with a given access."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compiler.affine.linear import Atom
from compiler.analysis.accesses import LowAccess
from compiler.analysis.index_forms import Forms


@dataclass(frozen=True)
class _Entry:
    """An access whose index is split, in each dimension, into its linear terms (`variable`) and its constant."""

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

    def is_apart(self, entry: _Entry) -> bool:
        """Whether constant differences of the indices prove that two accesses touch no common element."""
        last = len(self.constants) - 1
        for dim, (mine, its) in enumerate(zip(self.variable, entry.variable, strict=True)):
            if mine == its:
                gap = self.constants[dim] - entry.constants[dim]
                if gap != 0 if dim != last else not -self.access.lanes < gap < entry.access.lanes:
                    return True
        return False


_Row = dict[int, list[_Entry]]
"""Accesses that differ in the constant of the last index only, by this constant."""


class Overlaps:
    """Index of the accesses to one buffer, to find overlaps; keyed by their indices' linear terms and constants."""

    def __init__(self, forms: Forms) -> None:
        self._forms = forms
        self._rows: dict[object, dict[tuple[int, ...], _Row]] = {}
        self._widest = 1

    def add(self, access: LowAccess) -> None:
        """Add an access to the buffer."""
        entry = self._entry(access)
        row = self._rows.setdefault(entry.variable, {}).setdefault(entry.leading, {})
        row.setdefault(entry.last, []).append(entry)
        self._widest = max(self._widest, access.lanes)

    def remove(self, access: LowAccess) -> None:
        """Remove an access that was added."""
        entry = self._entry(access)
        self._rows[entry.variable][entry.leading][entry.last].remove(entry)

    def meeting(self, access: LowAccess) -> list[LowAccess]:
        """Return the added accesses that may overlap with an access: those not proved apart by a constant distance."""
        entry = self._entry(access)
        return [near.access for near in self._near(entry) if not near.is_apart(entry)]

    def _near(self, entry: _Entry) -> Iterator[_Entry]:
        for variable, rows in self._rows.items():
            if variable != entry.variable:
                yield from (near for row in rows.values() for entries in row.values() for near in entries)
            elif entry.leading in rows:
                row = rows[entry.leading]
                for last in range(entry.last - self._widest + 1, entry.last + entry.access.lanes):
                    yield from row.get(last, ())

    def _entry(self, access: LowAccess) -> _Entry:
        forms = [self._forms.of(index) for index in access.indices]
        return _Entry(access, tuple(form.terms for form in forms), tuple(form.constant for form in forms))
