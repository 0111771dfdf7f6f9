"""Writing files in one step."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

DESCRIPTORS = ("/dev/fd", "/dev/stdout", "/dev/stderr", "/proc")
"""Where the names of open files are: what these lead to is held by a process, which would go on with the old file."""


def is_stream(path: Path) -> bool:
    """Whether what is at a path can only be written to, not replaced: a pipe, a device, an open file by its number."""
    return path.exists() and (not path.is_file() or any(map(path.absolute().is_relative_to, DESCRIPTORS)))


def write(path: Path, lines: Iterable[str]) -> None:
    """Write lines, each with its end: a file is replaced when all are written, not before; through a link, the file
    that it leads to. A stream is written to, after what is there. Raises OSError."""
    if is_stream(path):
        sys.stdout.flush()  # which the stream may be
        with open(path, "a", encoding="utf-8", newline="\n") as out:
            out.writelines(lines)
        return
    path = path.resolve()
    partial = path.with_name(f"{path.name}.partial")
    try:
        with open(partial, "w", encoding="utf-8", newline="\n") as out:
            out.writelines(lines)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
