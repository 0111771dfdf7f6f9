"""`OnDemand`: a mapping whose values are computed at first use."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TypeVar

Value = TypeVar("Value")


class OnDemand(Mapping[str, Value]):
    """A mapping from `names` to the results of `compute` on each, computed at first use, then stored."""

    def __init__(self, names: Collection[str], compute: Callable[[str], Value]) -> None:
        self._names, self._compute = names, compute
        self._values: dict[str, Value] = {}

    def __getitem__(self, name: str) -> Value:
        if name not in self._values:
            if name not in self._names:
                raise KeyError(name)
            self._values[name] = self._compute(name)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
