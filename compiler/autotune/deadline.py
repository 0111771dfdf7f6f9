"""`until`: interrupt a block of code at a deadline."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EVERY = 0.2
"""Seconds between two checks of the deadline."""


class TimeIsUp(BaseException):
    """Raised when the seconds of a run are spent; like KeyboardInterrupt, at any instruction."""


@contextmanager
def until(is_over: Callable[[], bool]) -> Iterator[None]:
    """Raise TimeIsUp inside the `with` block once `is_over()` holds; the caller catches it outside the block.

    Interrupts phases that do not check the clock themselves, such as the build of a whole network. Needs the main
    thread and an unused interval timer (SIGALRM); without them the block runs without a deadline.
    """
    on_main = threading.current_thread() is threading.main_thread()
    if not on_main or not hasattr(signal, "setitimer") or signal.getitimer(signal.ITIMER_REAL) != (0.0, 0.0):
        yield
        return

    def look(number: int, frame: object) -> None:
        if is_over():
            raise TimeIsUp

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, EVERY, EVERY)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
