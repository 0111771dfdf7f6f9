"""`get` and `put`: dataclasses cached under keys of words; without a cache folder every `get` is a miss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

from compiler.driver.cache.fingerprint import fingerprint
from compiler.driver.cache.folder import cache_folder
from compiler.driver.cache.store import Store
from compiler.types.records import from_bytes, to_bytes

Kind = TypeVar("Kind")


def get(kind: type[Kind], words: Sequence[object]) -> Kind | None:
    """The value of the dataclass `kind` cached under words; None for a miss."""
    entry = _entry(kind, words)
    payload = None if entry is None else entry.store.get(entry.key)
    return None if payload is None else from_bytes(kind, payload)


def put(value: object, words: Sequence[object]) -> None:
    """Cache a dataclass under words: texts, numbers, and tuples and dataclasses of these. Nothing if caching is off."""
    entry = _entry(type(value), words)
    if entry is not None:
        entry.store.put(entry.key, to_bytes(value))


def is_enabled() -> bool:
    """Whether caching is on; if not, callers need not build keys."""
    return cache_folder().path is not None


@dataclass(frozen=True)
class _Entry:
    """An entry: its store, and the text of its key."""

    store: Store
    key: str


def _entry(kind: type, words: Sequence[object]) -> _Entry | None:
    """The entry of a class under words; its key has the compiler's fingerprint. None without folder or fingerprint."""
    path = cache_folder().path
    package = None if path is None else fingerprint()
    return None if path is None or package is None else _Entry(_opened(path), repr((package, kind.__name__, *words)))


@cache
def _opened(path: Path) -> Store:
    return Store(path)
