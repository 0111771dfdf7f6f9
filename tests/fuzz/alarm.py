"""A limit of seconds for a piece of code in the main thread."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


class TooLongError(BaseException):
    """The code took longer than its limit; no handler of the code itself catches it."""


@contextmanager
def limit(seconds: int) -> Iterator[None]:
    """Run code for some seconds at most. Raises TooLongError."""

    def ring(number: int, frame: object) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
