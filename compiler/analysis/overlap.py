"""`Overlaps`: the accesses to one buffer, by where they are, so that few are compared with another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from compiler.affine.linear import Linear
from compiler.analysis.accesses import LowAccess
from compiler.analysis.index_forms import Forms

_Row = dict[int, list[LowAccess]]
"""Accesses that differ in the last index only, by its constant part."""


@dataclass(frozen=True)
class _Where:
    """The indices of an access, split: the variable part, the constants of all dimensions but the last, and the
    constant of the last."""

    variable: tuple[Linear, ...]
    leading: tuple[int, ...]
    last: int


class Overlaps:
    """Accesses to one buffer. Those whose indices differ by constants are found by these; others are compared."""

    def __init__(self, forms: Forms) -> None:
        self._forms = forms
        self._rows: dict[tuple[Linear, ...], dict[tuple[int, ...], _Row]] = {}
        self._widest = 1

    def add(self, access: LowAccess) -> None:
        """Take an access in."""
        where = self._where(access)
        row = self._rows.setdefault(where.variable, {}).setdefault(where.leading, {})
        row.setdefault(where.last, []).append(access)
        self._widest = max(self._widest, access.lanes)

    def remove(self, access: LowAccess) -> None:
        """Leave out an access that was taken in."""
        where = self._where(access)
        self._rows[where.variable][where.leading][where.last].remove(access)

    def meeting(self, access: LowAccess) -> list[LowAccess]:
        """The accesses that may touch an element which another one touches."""
        return [near for near in self._near(access) if not self._disjoint(near, access)]

    def _near(self, access: LowAccess) -> Iterator[LowAccess]:
        where = self._where(access)
        for variable, rows in self._rows.items():
            if variable != where.variable:
                yield from (
                    near_access for row in rows.values() for accesses in row.values() for near_access in accesses
                )
            elif where.leading in rows:
                row = rows[where.leading]
                for last in range(where.last - self._widest + 1, where.last + access.lanes):
                    yield from row.get(last, ())

    def _where(self, access: LowAccess) -> _Where:
        forms = [self._forms.of(index) for index in access.indices]
        constants = [form.constant for form in forms]
        variable = tuple(replace(form, constant=0) for form in forms)
        return _Where(variable, tuple(constants[:-1]), constants[-1] if constants else 0)

    def _disjoint(self, a: LowAccess, b: LowAccess) -> bool:
        """Whether two accesses never touch a common element; False if that is not evident."""
        last = len(a.indices) - 1
        for dim, (i, j) in enumerate(zip(a.indices, b.indices, strict=True)):
            gap = self._forms.of(i) - self._forms.of(j)
            if gap.is_constant and (gap.constant != 0 if dim != last else not -a.lanes < gap.constant < b.lanes):
                return True
        return False
