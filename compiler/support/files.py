"""Read text files, replace them atomically; failures are InputErrors."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from reprlib import repr as short
from typing import TextIO

from compiler.support.errors import InputError

DESCRIPTORS = ("/dev/fd", "/dev/stdout", "/dev/stderr", "/proc")
"""Paths of open files, which must not be replaced: their processes would keep the old file."""
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
"""The flags that create a file; opening fails if the path exists, be it as a dangling link."""


def is_stream(path: Path) -> bool:
    """Whether a path exists and must not be replaced, only written to: a pipe, a device, a descriptor (or a folder)."""
    return path.exists() and (not path.is_file() or any(map(path.absolute().is_relative_to, DESCRIPTORS)))


def read(name: str | os.PathLike[str]) -> str:
    """Read the text of a file, or of standard input for `-`, with LF for CR LF and without a byte order mark. Raises
    InputError, also for text that is not UTF-8 or has zeros."""
    return text_of(read_bytes(name), name)


def read_bytes(name: str | os.PathLike[str]) -> bytes:
    """Read the bytes of a file, or of standard input for `-`. Raises InputError if that fails."""
    path = to_path(name)
    with read_errors(path):
        if str(path) != "-":
            return path.read_bytes()
        if sys.stdin is None:
            raise InputError("standard input is closed")
        return sys.stdin.buffer.read() if hasattr(sys.stdin, "buffer") else sys.stdin.read().encode()


def text_of(content: bytes, name: str | os.PathLike[str]) -> str:
    """Decode the bytes of the file `name`: CR LF as LF, no byte order mark. Raises InputError for zeros or no UTF-8."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{to_path(name)} is not text (byte {error.start} is not UTF-8)") from error
    if "\0" in text:
        raise InputError(f"{to_path(name)} is not text (character {text.index(chr(0))} is a zero)")
    return text.replace("\r\n", "\n")


def write(name: str | os.PathLike[str], lines: Iterable[str]) -> None:
    """Write lines, which include their line ends: replace a file atomically, also through a link; append to a stream.
    Raises InputError if that fails."""
    path = to_path(name)
    with write_errors(path):
        if not is_stream(path):
            _replace(path.resolve(), lines)
            return
        if sys.stdout is not None:
            sys.stdout.flush()  # it may be the stream
        with open(path, "a", encoding="utf-8", newline="\n") as out:
            out.writelines(lines)


def to_path(name: object) -> Path:
    """Convert a file name to a path. Raises InputError for an empty one, or one that is no file name at all."""
    try:
        text = os.fsdecode(name)  # type: ignore[arg-type]
        if text and b"\0" not in os.fsencode(text):
            return Path(text)
    except (TypeError, UnicodeEncodeError):
        pass
    raise InputError(f"{short(name)} is not the name of a file")


@contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Turn the system's errors in the context into an InputError: the file cannot be written."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error


@contextmanager
def read_errors(path: Path) -> Iterator[None]:
    """Turn the system's errors in the context into an InputError: the file cannot be read."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


def _replace(path: Path, lines: Iterable[str]) -> None:
    """Write lines to a temporary file with the permissions of the old file, sync it to disk, and rename it to `path`;
    after an error, delete the temporary file and leave the old one."""
    partial = path.with_name(f".{secrets.token_hex(8)}.partial")
    with os.fdopen(os.open(partial, NEW, 0o666), "w", encoding="utf-8", newline="\n") as out:
        try:
            _keep_permissions(path, out)
            out.writelines(lines)
            out.flush()
            os.fsync(out.fileno())
            os.replace(partial, path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


def _keep_permissions(path: Path, out: TextIO) -> None:
    """Copy the permissions of the file at `path`, if there is one, to the open file that will replace it."""
    with suppress(FileNotFoundError):
        os.fchmod(out.fileno(), path.stat().st_mode & 0o777)
