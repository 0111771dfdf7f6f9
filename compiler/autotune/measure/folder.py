"""`Folder`: a temporary folder that goes with its process, or with the next one that makes such a folder."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

PREFIX = "strata-"
ALIVE = "alive"
"""The file in a folder that its owner keeps locked: the system unlocks it when that ends, however it does."""


class Folder:
    """A folder in the system's temporary one. Those of processes that were killed are removed on the way."""

    def __init__(self) -> None:
        for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{ALIVE}"):
            with suppress(OSError):
                _remove_if_dead(path)
        hidden = Path(tempfile.mkdtemp(prefix=f".{PREFIX}"))  # until it is locked
        self._alive: BinaryIO | None = open(hidden / ALIVE, "wb")  # noqa: SIM115 - held until the folder goes
        fcntl.flock(self._alive, fcntl.LOCK_EX)
        self.path = hidden.rename(hidden.with_name(hidden.name[1:]))

    def close(self) -> None:
        """Remove it; once is enough."""
        if self._alive is not None:
            self._alive.close()
            self._alive = None
            shutil.rmtree(self.path, ignore_errors=True)


def _remove_if_dead(alive: Path) -> None:
    """Remove the folder of a lock file that nobody holds. Raises OSError where one does, or it is another user's."""
    with open(alive, "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(alive.parent, ignore_errors=True)
