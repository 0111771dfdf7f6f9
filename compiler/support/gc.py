"""`paused`: disable the garbage collector of cycles; `collect_young`: collect the youngest generation."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """Disable the collector of cycles in the context: it scans thousands of new objects repeatedly, a fifth of the time
    of canonicalising a program. Objects without cycles are still freed at once."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def collect_young() -> None:
    """Collect the youngest generation, the objects created since the last collection, while this process waits."""
    gc.collect(0)
