"""`Store`: entries in a private folder, by the digests of their keys."""

from __future__ import annotations

import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from compiler.support.files import NEW

MOST_BYTES = 512 << 20
"""The limit of the bytes of a folder; several processes may exceed it by the bytes written between two counts."""
_BETWEEN_COUNTS = 64
"""A process counts the bytes of the folder after it has written 1/64 of the limit."""
_LEFT = 7 / 8
"""The share of the limit to which eviction shrinks the folder."""
_ABANDONED = 600.0
"""Seconds after which a partial file counts as abandoned."""
_MAGIC = b"strata cache 01\n"
_DIGEST = sha256().digest_size
_START = len(_MAGIC) + 2 * _DIGEST
_ENTRY = re.compile(r"[0-9a-f]{64}")
_PARTIAL = re.compile(r"\.[0-9a-f]{16}\.partial")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class _Unusable(OSError):
    """Raised for a folder that another user may have written; the message states why."""


@dataclass(frozen=True)
class CacheSummary:
    """The number of entries of a folder, and the bytes of all its files, partial ones included."""

    entries: int
    bytes: int


@dataclass(frozen=True)
class _File:
    """A file of the folder: its name, its size in bytes, and the time of its last use in seconds since the epoch."""

    name: str
    bytes: int
    used: float


class Store:
    """Entries in a folder, created with the first entry. Each is a magic, the digests of key and payload, the payload.
    Beyond `most_bytes` in all, the least recently used are removed.

    An entry is read only from a regular file with the right digests that only this user may write, without further hard
    links, in a folder that only this user may enter. Any other file is a miss, and the next entry of its name replaces
    it. Files are written under a temporary name and renamed. System errors are misses.
    """

    def __init__(self, path: Path, most_bytes: int = MOST_BYTES) -> None:
        self.path = path
        self.most_bytes = most_bytes
        self._written: float = most_bytes
        """Bytes written since the last count; initially the limit, so that the first write counts."""

    def get(self, key: str) -> bytes | None:
        """The payload of a key; None for a miss, and for a store that cannot be read."""
        digest = sha256(key.encode())
        try:
            with self._folder() as folder:
                return _checked(folder, digest.hexdigest(), digest.digest())
        except OSError:
            return None

    def put(self, key: str, payload: bytes) -> bool:
        """Store a payload under a key and return True; False if the entry exceeds `most_bytes`, or for a system
        error."""
        digest = sha256(key.encode())
        content = b"".join((_MAGIC, digest.digest(), sha256(payload).digest(), payload))
        if len(content) > self.most_bytes:
            return False
        try:
            self._make()
            with self._folder() as folder:
                _write(folder, digest.hexdigest(), content)
                self._written += len(content)
                if self._written > self.most_bytes / _BETWEEN_COUNTS:
                    self._written = 0
                    self._bound(folder)
        except OSError:
            return False
        return True

    def summary(self) -> CacheSummary:
        """The summary of the folder, which is created if needed. Raises OSError if that fails or it is not private."""
        self._make()
        with self._folder() as folder:
            files = list(_files(folder))
        entries = [file for file in files if _ENTRY.fullmatch(file.name)]
        return CacheSummary(len(entries), sum(file.bytes for file in files))

    def clear(self) -> CacheSummary:
        """Remove all entries and partial files, and return the summary before. Raises OSError for a folder that is not
        private."""
        before = self.summary()
        with self._folder() as folder:
            for file in list(_files(folder)):
                _remove(folder, file.name)
        return before

    def _make(self) -> None:
        if not self.path.exists():
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileExistsError):
                self.path.mkdir(mode=0o700)

    @contextmanager
    def _folder(self) -> Iterator[int]:
        """Open the folder in the context, as a descriptor. Raises OSError if the folder does not exist or belongs to
        another user, or if another user may enter it."""
        folder = os.open(self.path, _FOLDER)
        try:
            status = os.fstat(folder)
            if status.st_uid != os.geteuid():
                raise _Unusable("the folder belongs to another user")
            if status.st_mode & 0o077:
                mode = stat.S_IMODE(status.st_mode)
                raise _Unusable(f"the folder is open to other users: its mode is {mode:04o}, expected 0700")
            yield folder
        finally:
            os.close(folder)

    def _bound(self, folder: int) -> None:
        """Remove abandoned partial files; from a folder beyond the limit of bytes, also the least recently used files,
        until 7/8 of the limit remain."""
        files = sorted(_files(folder), key=lambda file: file.used)
        remaining = total = sum(file.bytes for file in files)
        for file in files:
            is_abandoned = _PARTIAL.fullmatch(file.name) and file.used < time.time() - _ABANDONED
            if is_abandoned or (total > self.most_bytes and remaining > self.most_bytes * _LEFT):
                _remove(folder, file.name)
                remaining -= file.bytes


def _checked(folder: int, name: str, key: bytes) -> bytes | None:
    """The payload of the file `name` in an open folder, which is marked as most recently used; None if the file is no
    valid entry of the digest `key`. Raises OSError if there is no such file."""
    file = os.open(name, _FILE, dir_fd=folder)
    try:
        content = _read(file) if _is_ours(os.fstat(file)) else b""
        payload = content[_START:]
        if content[:_START] != b"".join((_MAGIC, key, sha256(payload).digest())):
            return None
        with suppress(OSError):
            os.utime(file)
        return payload
    finally:
        os.close(file)


def _is_ours(status: os.stat_result) -> bool:
    """Whether only this user can have written an open file. A file without links is valid too: it was replaced after it
    was opened."""
    is_own = status.st_uid == os.geteuid() and not status.st_mode & 0o022
    return stat.S_ISREG(status.st_mode) and is_own and status.st_nlink <= 1


def _read(file: int) -> bytes:
    with os.fdopen(os.dup(file), "rb") as stream:
        return stream.read()


def _write(folder: int, name: str, content: bytes) -> None:
    partial = f".{secrets.token_hex(8)}.partial"
    with os.fdopen(os.open(partial, NEW, 0o600, dir_fd=folder), "wb") as out:
        try:
            out.write(content)
            out.flush()
            os.replace(partial, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            _remove(folder, partial)
            raise


def _remove(folder: int, name: str) -> None:
    with suppress(OSError):
        os.unlink(name, dir_fd=folder)


def _files(folder: int) -> Iterator[_File]:
    """The entries and partial files in a folder; other files are skipped."""
    with os.scandir(folder) as files:
        for file in files:
            if _ENTRY.fullmatch(file.name) or _PARTIAL.fullmatch(file.name):
                with suppress(FileNotFoundError):
                    status = file.stat(follow_symlinks=False)
                    yield _File(file.name, status.st_size, status.st_mtime)
