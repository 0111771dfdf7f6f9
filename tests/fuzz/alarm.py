"""What fuzzers share: a limit of seconds, the run over seeds, and their command line."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class TooLong(BaseException):
    """A case that took longer than its limit; no `except Exception` on the way stops it."""


@contextmanager
def limit(seconds: float) -> Iterator[None]:
    """Raise TooLong in the main thread where what is inside takes longer."""

    def ring(signum: int, frame: FrameType | None) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Raise AssertionError where what is inside takes longer."""
    try:
        with limit(seconds):
            yield
    except TooLong:
        raise AssertionError(f"took longer than {seconds:g} s") from None


def failures_of(name: str, check: Callable[[int], object], seeds: range, seconds: float) -> int:
    """Check each seed within so many seconds, and report those that fail; the number of failures."""
    failures = 0
    for number, seed in enumerate(seeds, 1):
        try:
            with alarm(seconds):
                check(seed)
        except Exception as error:  # each seed is judged on its own, and all of them are reported
            failures += 1
            print(f"{name}: seed {seed}: {type(error).__name__}: {str(error)[:300]}", flush=True)
        if number % 100 == 0:
            print(f"{name}: {number} seeds, {failures} failures", flush=True)
    return failures


def asked(description: str | None, seed: int = 0) -> tuple[int, int]:
    """The first seed, by default this one, and the number of cases that the command line asks for."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=seed, help="the first seed")
    parser.add_argument("--cases", type=int, default=300, help="how many seeds")
    arguments = parser.parse_args()
    return arguments.seed, arguments.cases
