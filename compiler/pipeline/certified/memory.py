"""`Memory`: the values that regions of memory hold, by bytes.

A value is whatever a call has computed, known by a digest: equal digests mean equal values.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TypeAlias


@dataclass(frozen=True)
class Value:
    """A symbolic value of `size` bytes. digest: of its origin, an input, or a call and its operands; equal digests are
    equal values."""

    digest: str
    size: int


@dataclass(frozen=True)
class Piece:
    """The bytes of a value from `start` up to `end`; unwritten bytes if the value is None."""

    value: Value | None
    start: int
    end: int


Content: TypeAlias = tuple[Piece, ...]
"""The pieces of memory, one after the other; adjacent pieces of a value are one."""


@dataclass(frozen=True)
class MemoryRange:
    """A range of memory: `size` bytes of a named region from the byte `start` on."""

    region: Hashable
    start: int
    size: int

    def overlaps(self, other: MemoryRange) -> bool:
        """Whether two ranges have bytes in common."""
        within = self.start < other.start + other.size and other.start < self.start + self.size
        return self.region == other.region and within and bool(self.size and other.size)


def value_of(size: int, *origin: object) -> Value:
    """Return the value of `size` bytes with an origin: texts, numbers, and contents."""
    return Value(sha256(repr(origin).encode()).hexdigest(), size)


def whole(value: Value) -> Content:
    """Return the content that is all bytes of a value."""
    return (Piece(value, 0, value.size),)


def joined(pieces: Iterable[Piece]) -> Content:
    """Return pieces as a content: without empty ones, and with a piece that continues the last one's value merged into
    it: a[0:4], a[4:8], b[0:4] -> a[0:8], b[0:4]. Unwritten bytes (value None) are merged whatever their offsets."""
    result = list[Piece]()
    for piece in pieces:
        last = result[-1] if result else None
        if last is not None and last.value == piece.value and (last.end == piece.start or piece.value is None):
            result[-1] = replace(last, end=last.end + piece.end - piece.start)
        elif piece.end > piece.start:
            result.append(piece)
    return tuple(result)


class Memory:
    """The contents of regions of memory, by the region's name; unwritten bytes are pieces of None."""

    def __init__(self) -> None:
        self._regions: dict[Hashable, Content] = {}

    def read(self, place: MemoryRange) -> Content:
        """Return the content of a range."""
        return joined(_cut(self._regions.get(place.region, ()), place.start, place.start + place.size))

    def write(self, place: MemoryRange, content: Content) -> None:
        """Replace the content of a range by one of the same size."""
        former, end = self._regions.get(place.region, ()), place.start + place.size
        total = max(end, sum(piece.end - piece.start for piece in former))
        around = [*_cut(former, 0, place.start), *content, *_cut(former, end, total)]
        self._regions[place.region] = joined(around)


def _cut(content: Content, start: int, end: int) -> Iterator[Piece]:
    """Yield the pieces of a content from the byte `start` up to `end`; bytes beyond the content are unwritten."""
    position = 0
    for piece in content:
        first, last = max(start - position, 0), min(end - position, piece.end - piece.start)
        if first < last:
            yield Piece(piece.value, piece.start + first, piece.start + last)
        position += piece.end - piece.start
    if end > max(position, start):
        yield Piece(None, 0, end - max(position, start))
