"""What a compiling process runs: it compiles the units that its parent sends, until the pipe closes."""

from __future__ import annotations

import signal
import sys
from multiprocessing.connection import Connection

from compiler.driver.units.compile import Job, compile_unit
from compiler.driver.units.unit import Unit
from compiler.support.errors import StrataError


def main() -> None:
    """Serve; an interruption of the terminal is the parent's affair."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection: Connection[Unit | None, Job] = Connection(int(sys.argv[1]))
    while True:
        try:
            job = connection.recv()
        except (EOFError, OSError):
            return
        connection.send(_compiled(job))


def _compiled(job: Job) -> Unit | None:
    """The unit; None for what the parent has to refuse itself, with the place."""
    try:
        return compile_unit(job)
    except StrataError:
        return None
