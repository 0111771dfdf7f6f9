"""What tests of calls of kernels share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

import pytest

from compiler.support.errors import TargetError


def said(call: Callable[[], object], *fragments: str) -> None:
    """Check that a call raises TargetError with these fragments."""
    with pytest.raises(TargetError) as error:
        call()
    for fragment in fragments:
        assert fragment in str(error.value)


def at_once(work: Callable[[int], None], numbers: Iterable[int] = range(4)) -> None:
    """Run `work(number)` for each of the numbers, each in a Python thread of its own."""
    threads = [threading.Thread(target=work, args=(number,)) for number in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
