"""A lock of a host for all processes of a user: any number of builds, or a single timing."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def building() -> Iterator[None]:
    """Hold the host's lock in shared mode during a build: waits while anything is timed or waits to be timed."""
    with _locked(fcntl.LOCK_SH):
        yield


@contextmanager
def timing() -> Iterator[None]:
    """Hold the host's lock in exclusive mode during a timing: waits while anything is built or timed."""
    with _locked(fcntl.LOCK_EX):
        yield


@contextmanager
def _locked(kind: int) -> Iterator[None]:
    """Hold the lock `room` in the mode `kind`, acquired while the lock `door` is held. An exclusive waiter holds the
    door, so that later shared holders cannot starve it."""
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
        os.close(number)  # closing unlocks it, as does the end of the process
