"""Reading a file that a user names."""

from __future__ import annotations

import sys

from compiler.errors import InputError


def read(name: str) -> str:
    """The text of a file, or of standard input for `-`. Raises InputError where it cannot be read."""
    try:
        data = _bytes(name)
        text = data if isinstance(data, str) else data.decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not text (byte {error.start} is not UTF-8)") from error
    except ValueError as error:
        raise InputError(f"{name!r} is not the name of a file: {error}") from error
    if "\0" in text:
        raise InputError(f"{name} is not text (character {text.index(chr(0))} is a zero)")
    return text.replace("\r\n", "\n")


def _bytes(name: str) -> bytes | str:
    if name == "-":
        return sys.stdin.buffer.read() if hasattr(sys.stdin, "buffer") else sys.stdin.read()
    with open(name, "rb") as file:
        return file.read()
