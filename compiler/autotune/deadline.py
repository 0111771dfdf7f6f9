"""`until`: work that ends when its time is over, whatever it is doing."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EVERY = 0.2
"""Seconds between two looks at the clock."""


class TimeIsUp(BaseException):
    """The seconds of a run are spent; like an interruption, it may be raised anywhere."""


@contextmanager
def until(is_over: Callable[[], bool]) -> Iterator[None]:
    """Raise TimeIsUp in what is done inside once `is_over`. Whoever catches it stands outside.

    Long phases look at the clock themselves; this one is for what cannot, such as a build of a whole network. It needs
    the main thread and a timer that nobody else uses, and does nothing elsewhere.
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
