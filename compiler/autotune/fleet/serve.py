"""`serve`: run a worker of a dask scheduler, with the resources `build` and `time`."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time

from compiler.autotune.fleet import jobs
from compiler.autotune.fleet.cluster import BUILD, TIME, checked
from compiler.support.errors import InputError
from compiler.targets.cpu.openmp import cores

AGAIN = 2.0
"""Seconds between two attempts to reach the scheduler."""
SPARE = 2
"""Threads beside the builders: one for timing, one for the facts of the worker."""


def serve(address: str, builders: int | None = None, is_timing: bool = True, once: bool = False) -> None:
    """Serve the scheduler at an address; when it ends or does not answer, wait for another one there, or return if
    `once`.

    builders: the candidates built at once, by default one a core. is_timing: whether the worker times as well. Prints a
    line when it has joined a scheduler, and for each that ended or does not answer. Raises InputError where dask is
    missing or the address is malformed.
    """
    checked(address)
    from distributed import Worker

    logging.getLogger("distributed").setLevel(logging.ERROR)
    count = jobs.BUILDERS = builders or cores()
    resources: dict[str, float] = {BUILD: count, **({TIME: 1} if is_timing else {})}
    name = f"strata-{socket.gethostname()}-{os.getpid()}"

    async def served() -> None:
        async with Worker(address, nthreads=count + SPARE, resources=resources, name=name, memory_limit=0) as worker:
            print(f"{worker.address}: {count} builders{', one timer' if is_timing else ''}, for {address}", flush=True)
            await worker.finished()

    while True:
        try:
            asyncio.run(served())
            print(f"the scheduler at {address} has ended", flush=True)
        except (OSError, TimeoutError) as error:
            print(f"no scheduler answers at {address}: {error}", flush=True)
        except (ValueError, TypeError) as error:
            raise InputError(f"no scheduler at {address}: {error}") from error
        if once:
            return
        time.sleep(AGAIN)
