"""The statuses that functions of a library return."""

from __future__ import annotations

from typing import NamedTuple


class Status(NamedTuple):
    """A status: its name without the library's prefix, and its meaning. Its number is its position in STATUSES."""

    name: str
    message: str


STATUSES = (
    Status("OK", "done"),
    Status("NULL", "a pointer is null"),
    Status("MISALIGNED", "an address is not aligned as the header states"),
    Status("TOO_SMALL", "the memory for the constants or the workspace is too small"),
    Status("OVERLAP", "an output, the workspace or the constants overlap other memory"),
    Status("UNPREPARED", "the constants were not filled by prepare of this library and version"),
    Status("THREADS", "the thread count is not positive, or too large"),
    Status("MEMORY", "the system has no memory for the preparations"),
    Status("PROCESSOR", "no version of the library runs on this processor"),
    Status("FILE", "the file of the weights cannot be read"),
    Status("DAMAGED", "the file of the weights is not the one that was written with the library"),
)
