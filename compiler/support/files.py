"""Reading text files, writing them in one step; what cannot be is said in a sentence."""

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
"""Where the names of open files are: what these lead to is held by a process, which would go on with the old file."""
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
"""How a file is opened that must not exist, as a link to nothing either."""


def is_stream(path: Path) -> bool:
    """Whether what is at a path can only be written to, not replaced: a pipe, a device, an open file by its number."""
    return path.exists() and (not path.is_file() or any(map(path.absolute().is_relative_to, DESCRIPTORS)))


def read(name: str | os.PathLike[str]) -> str:
    """The text of a file, or of standard input for `-`. Raises InputError where it cannot be read."""
    path = named(name)
    try:
        with reading(path):
            content = _bytes(path)
        text = content if isinstance(content, str) else content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text (byte {error.start} is not UTF-8)") from error
    if "\0" in text:
        raise InputError(f"{path} is not text (character {text.index(chr(0))} is a zero)")
    return text.replace("\r\n", "\n")


def _bytes(path: Path) -> bytes | str:
    if str(path) != "-":
        with open(path, "rb") as file:
            return file.read()
    if sys.stdin is None:
        raise InputError("standard input is closed")
    return sys.stdin.buffer.read() if hasattr(sys.stdin, "buffer") else sys.stdin.read()


def write(name: str | os.PathLike[str], lines: Iterable[str]) -> None:
    """Write lines, each with its end: a file is replaced when all are on disk, not before; through a link, the file
    that it leads to. A stream is written to, after what is there. Raises InputError where it cannot be written."""
    path = named(name)
    with writing(path):
        if not is_stream(path):
            _replace(path.resolve(), lines)
            return
        if sys.stdout is not None:
            sys.stdout.flush()  # which the stream may be
        with open(path, "a", encoding="utf-8", newline="\n") as out:
            out.writelines(lines)


def named(name: object) -> Path:
    """The path of a name. Raises InputError for what cannot be one."""
    try:
        text = os.fsdecode(name)  # type: ignore[arg-type]
        if text and b"\0" not in os.fsencode(text):
            return Path(text)
    except (TypeError, UnicodeEncodeError):
        pass
    raise InputError(f"{short(name)} is not the name of a file")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say why a file cannot be written: an InputError for what the system refuses."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Say why a file cannot be read: an InputError for what the system refuses."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


def _replace(path: Path, lines: Iterable[str]) -> None:
    """Write lines to a new file beside the old one, with that one's permissions, which then takes its place."""
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
    """Give a new file the permissions of the one that it will replace; without one, those of the umask stay."""
    with suppress(FileNotFoundError):
        os.fchmod(out.fileno(), path.stat().st_mode & 0o777)
