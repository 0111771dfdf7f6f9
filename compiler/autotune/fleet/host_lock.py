"""A lock of a host: any number of builds at once, or one timing alone, over all processes of a user."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def building() -> Iterator[None]:
    """While nothing is timed on this host."""
    with _locked(fcntl.LOCK_SH):
        yield


@contextmanager
def timing() -> Iterator[None]:
    """While nothing else is built or timed on this host."""
    with _locked(fcntl.LOCK_EX):
        yield


@contextmanager
def _locked(kind: int) -> Iterator[None]:
    """Hold the room. Who waits for it alone keeps the door closed meanwhile: newcomers cannot starve it."""
    with _file("door") as door, _file("room") as room:
        fcntl.flock(door, kind)
        fcntl.flock(room, kind)
        fcntl.flock(door, fcntl.LOCK_UN)
        yield


@contextmanager
def _file(name: str) -> Iterator[int]:
    folder = Path(tempfile.gettempdir()) / f"strata-fleet-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    number = os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        yield number
    finally:
        os.close(number)  # which unlocks it, as the end of the process does
