"""Python processes of this package that their parent talks to through a pipe."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any
from weakref import WeakSet

import compiler

Job = Any
"""What goes through a pipe: anything that pickles."""


_running: WeakSet[subprocess.Popen[bytes]] = WeakSet()
NOWHERE = subprocess.DEVNULL
"""Where the output goes of a process that has nothing to say."""


@dataclass(frozen=True)
class Started:
    """A process, and this end of its pipe."""

    process: subprocess.Popen[bytes]
    connection: Connection[Job, Job]


def start(
    module: str, output: IO[bytes] | int, environment: Mapping[str, str] | None = None, files: Sequence[int] = ()
) -> Started:
    """Start the function `main` of a module of this package in a process of its own.

    The number of its end of the pipe is its first argument. It is a fresh process, never a fork, and the program of
    this process is not imported there; it looks for modules where this process does, and never in the current folder.
    `environment` is added to this process's, `files` stay open, `output` is where its output and errors go.
    """
    ours, theirs = Pipe()
    begins = f"import sys; sys.path[:] = sys.argv[2:]; from {module} import main; main()"
    process = subprocess.Popen(
        [sys.executable, *_flags(), "-c", begins, str(theirs.fileno()), *path()],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | dict(environment or {}),
        pass_fds=[theirs.fileno(), *files],
        process_group=0,
    )
    _running.add(process)
    theirs.close()
    return Started(process, ours)


def end_all() -> None:
    """Kill the processes that still run, without waiting: for a command that is interrupted again while it ends."""
    for process in list(_running):
        with suppress(OSError):
            process.kill()


def _flags() -> list[str]:
    """What keeps the current folder out of a worker, and whatever this process was told to keep out."""
    kept = (("-E", sys.flags.ignore_environment), ("-s", sys.flags.no_user_site))
    return ["-P", *(flag for flag, is_set in kept if is_set)]


def path() -> list[str]:
    """Where a worker finds this package and what it needs: where this process does, but for what depends on the current
    folder."""
    root = str(Path(compiler.__file__).resolve().parents[1])
    return list(dict.fromkeys([*(place for place in sys.path if os.path.isabs(place)), root]))
