"""All fuzzers, one after the other, from a fresh seed that is printed: what they find becomes a fixed case."""

from __future__ import annotations

import random
import sys
from importlib import import_module
from pkgutil import iter_modules

import tests.fuzz
from tests.fuzz.alarm import asked

HELPERS = ("__main__", "alarm")


def fuzzers() -> list[str]:
    """The modules of this folder that have a `main(seed, cases)`."""
    return sorted(module.name for module in iter_modules(tests.fuzz.__path__) if module.name not in HELPERS)


def main() -> int:
    """Run them; 1 where one has found something."""
    seed, cases = asked(__doc__, random.SystemRandom().randrange(1_000_000_000))
    failures = 0
    for name in fuzzers():
        print(f"{name}: python -m tests.fuzz.{name} --seed {seed} --cases {cases}", flush=True)
        failures += import_module(f"tests.fuzz.{name}").main(seed, cases)
    print(f"{failures} failures")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
