"""The sections of an ELF file that are loaded with it. Source: the System V ABI, chapter 4, for 64 bits."""

from __future__ import annotations

import struct
from typing import NamedTuple

from compiler.support.errors import InputError

_ALLOCATED, _NO_BITS = 2, 8
_VOLATILE = (".note", ".gnu.hash", ".dynsym", ".dynstr", ".gnu.version", ".hash")
"""The beginnings of names of sections that tools such as patchelf rewrite."""


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int


_ARCHIVE = b"!<arch>\n"
"""The first bytes of a static library."""


def _first_object(archive: bytes) -> bytes:
    """The first ELF file of an archive, whose members follow headers of 60 bytes with the size as text; empty without
    one."""
    start = len(_ARCHIVE)
    while size := archive[start + 48 : start + 58].strip():
        member = archive[start + 60 : start + 60 + int(size)] if size.isdigit() else b""
        if member.startswith(b"\x7fELF") or not member:
            return member
        start += 60 + len(member) + len(member) % 2
    return b""


def sections(payload: bytes, source: str) -> dict[str, bytes]:
    """Return the contents of the sections that are loaded with a program, by name; sections of equal names are
    concatenated, and those without contents or of a name that begins as in _VOLATILE are left out. For an archive they
    are those of its first object file. Raises InputError for a file, called `source`, that is not little-endian ELF of
    64 bits, or is damaged."""
    if payload.startswith(_ARCHIVE):
        payload = _first_object(payload)
    if payload[:6] != b"\x7fELF\x02\x01":
        raise InputError(f"{source} is not an ELF file of 64 bits")
    try:
        (table,) = struct.unpack_from("<Q", payload, 0x28)
        size, count, names_at = struct.unpack_from("<HHH", payload, 0x3A)
        rows = [_Section(*struct.unpack_from("<IIQQQQ", payload, table + n * size)) for n in range(count)]
        texts = rows[names_at]
        contents = dict[str, bytes]()
        for row in rows:
            start = texts.offset + row.name
            name = payload[start : payload.index(b"\0", start)].decode()
            if row.flags & _ALLOCATED and row.kind != _NO_BITS and not name.startswith(_VOLATILE):
                contents[name] = contents.get(name, b"") + payload[row.offset : row.offset + row.size]
        return contents
    except (struct.error, IndexError, ValueError) as error:
        raise InputError(f"{source} is a damaged ELF file: {error}") from error
