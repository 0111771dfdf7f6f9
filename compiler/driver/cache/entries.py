"""`get` and `put`: dataclasses cached by words; without a cache folder `get` finds none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

from compiler.driver.cache.fingerprint import fingerprint
from compiler.driver.cache.place import place
from compiler.driver.cache.record import from_bytes, to_bytes
from compiler.driver.cache.store import Store

Kind = TypeVar("Kind")


def get(kind: type[Kind], words: Sequence[object]) -> Kind | None:
    """The dataclass that was cached under these words; None for a miss."""
    entry = _entry(kind, words)
    payload = None if entry is None else entry.store.get(entry.key)
    return None if payload is None else from_bytes(kind, payload)


def put(value: object, words: Sequence[object]) -> None:
    """Keep a dataclass under words: texts, numbers, and tuples and dataclasses of these."""
    entry = _entry(type(value), words)
    if entry is not None:
        entry.store.put(entry.key, to_bytes(value))


def kept() -> bool:
    """Whether anything is cached: keys need not be written where nothing is."""
    return place().path is not None


@dataclass(frozen=True)
class _Entry:
    """An entry: its store, and the text of its key."""

    store: Store
    key: str


def _entry(kind: type, words: Sequence[object]) -> _Entry | None:
    """Where a dataclass is kept, by its words, its class, and what all machine code of this process depends on."""
    path = place().path
    here = None if path is None else fingerprint()
    return None if path is None or here is None else _Entry(_opened(path), repr((here, kind.__name__, *words)))


@cache
def _opened(path: Path) -> Store:
    return Store(path)
