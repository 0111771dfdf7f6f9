"""Schedulers and workers as processes of this machine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType

HERE = Path(__file__).parents[2]


class Processes:
    """A scheduler and its workers, by name; all end with it. What they say goes to a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"

    def __enter__(self) -> Processes:
        self.schedule()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for name in list(self.running):
            self.kill(name)

    def schedule(self) -> None:
        """Start the scheduler, at the same address each time."""
        words = ["--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard"]
        self.start("scheduler", "-m", "distributed.cli.dask_scheduler", *words)

    def worker(self, name: str, fault: str | None = None, machine: str | None = None) -> None:
        """Start a worker: a good one, one with a fault, or one that thinks it is another machine."""
        words = ["compiler", "worker", self.address, "--builders", "1"]
        faulty = ["tests.fleet.faulty_worker", str(fault), self.address]
        self.start(name, "-m", *(words if fault is None else faulty), STRATA_MACHINE=machine or "")

    def ready(self, names: Iterable[str]) -> None:
        until = time.monotonic() + 120
        for name in names:
            while "builders" not in (self.folder / f"{name}.txt").read_text():
                assert time.monotonic() < until and self.running[name].poll() is None, f"{name} does not serve"
                time.sleep(0.1)

    def start(self, name: str, *words: str, **environment: str) -> None:
        own = {"PYTHONPATH": str(HERE), "PYTHONWARNINGS": "ignore", "TMPDIR": str(self.folder)}  # a lock of its own
        known: Mapping[str, str] = {**os.environ, **own, **environment}
        with open(self.folder / f"{name}.txt", "ab") as said:
            command = [sys.executable, *words]
            self.running[name] = subprocess.Popen(
                command, stdout=said, stderr=said, env=known, cwd=HERE, start_new_session=True
            )

    def kill(self, name: str) -> None:
        """End a process at once, as a loss of power would."""
        process = self.running.pop(name)
        with suppress(ProcessLookupError):
            process.kill()
        process.wait()
