"""`Folder`: a temporary folder that goes with its process, or with the next one of its user that makes such a folder.

Folders are in one of the user's own, `strata-UID` in the system's temporary folder, which nobody else may enter. A
folder there is removed only if it holds the marker that we write, and nobody holds that marker's lock.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

MARKER = "alive"
"""The file in a folder that its owner keeps locked: the system unlocks it when that ends, however it does."""
WRITTEN = b"a temporary folder of Strata: removed when the process that made it has ended\n"
"""What the marker holds once it is locked."""
TRIES = 10
"""How often a folder is made in one that may vanish."""


class Folder:
    """A temporary folder. Those of processes of the same user that were killed are removed on the way."""

    def __init__(self) -> None:
        _sweep()
        self.path = _made()
        self._lock: int | None = os.open(self.path / MARKER, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            os.write(self._lock, WRITTEN)
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Remove it; once is enough."""
        if self._lock is not None:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = None
            if self.path.parent == _name():
                with suppress(OSError):  # others have folders there
                    self.path.parent.rmdir()


def _sweep() -> None:
    """Remove the folders of processes of this user that have ended."""
    with suppress(FileNotFoundError):
        own = _own()
        for path in own.iterdir() if own is not None else ():
            with suppress(OSError):
                _remove_if_dead(path)


def _made() -> Path:
    """A new folder. Another process of the user may just have removed the one around it, which was empty."""
    for _ in range(TRIES):
        with suppress(FileNotFoundError):
            own = _own()
            return Path(tempfile.mkdtemp(prefix="strata-" if own is None else "", dir=own))
    return Path(tempfile.mkdtemp(prefix="strata-"))


def _name() -> Path:
    """What the user's folder of folders is called."""
    return Path(tempfile.gettempdir()) / f"strata-{os.geteuid()}"


def _own() -> Path | None:
    """The user's folder of folders; None where somebody else has made what is called so."""
    path = _name()
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    return path if _is_own(path.lstat()) else None


def _is_own(found: os.stat_result) -> bool:
    """Whether something is a folder of this user, in which nobody else may do anything."""
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o077


def _remove_if_dead(folder: Path) -> None:
    """Remove a folder of ours whose marker nobody holds. Raises OSError where one does, or it is not ours."""
    if not _is_own(folder.lstat()):
        return
    lock = os.open(folder / MARKER, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if stat.S_ISREG(os.fstat(lock).st_mode) and os.read(lock, len(WRITTEN) + 1) == WRITTEN:
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)
