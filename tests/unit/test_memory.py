"""A process keeps nothing of the programs that it has dropped."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref

import pytest

import compiler
from benchmarks.memory import program

MOST = {"build": 5.0, "schedule": 5.0}
"""MiB that a hundred programs may leave; a pass manager that is not freed leaves 12."""


@pytest.mark.skipif(sys.platform != "linux", reason="resident memory is read from /proc")
@pytest.mark.parametrize("kind", MOST)
def test_memory_does_not_grow(kind: str) -> None:
    words = [sys.executable, "-m", "benchmarks.memory", kind, "--first", "100", "--count", "200"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    (grown,) = (float(line.split()[2]) for line in done.stdout.splitlines())
    assert grown < MOST[kind]


def test_machine_code_goes_with_its_kernel() -> None:
    kernel = compiler.build(program(1), threads=1)
    engine = kernel.library._engine
    gone = weakref.ref(kernel.library)
    assert not engine.closed
    del kernel
    gc.collect()
    assert gone() is None
    assert engine.closed
