"""Processes that write entries of one cache are killed, a hundred or as many as asked: what is left works."""

from __future__ import annotations

import random
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.alarm import asked
from tests.unit.driver.test_cache import works, writer

AT_ONCE = 10
"""Processes that write at the same time."""


def main(seed: int, cases: int) -> int:
    """Kill that many processes, at most a hundred; 1 where the cache does not work afterwards."""
    rng, left = random.Random(seed), min(cases, 100)
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache"
        while left > 0:
            writers = [writer(cache, 1_000_000) for _ in range(min(AT_ONCE, left))]
            for process in writers:
                assert process.stdout
                process.stdout.readline()
            time.sleep(rng.uniform(0, 0.1))
            for process in writers:
                process.send_signal(signal.SIGKILL)
                process.communicate()
            left -= len(writers)
            if not works(cache):
                print("the cache does not work: entries are wrong, or none are stored")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*asked(__doc__)))
