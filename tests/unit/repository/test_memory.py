"""A process keeps nothing of the programs that it has dropped."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref

import pytest

import compiler
from benchmarks.memory import program

KINDS = ("build", "schedule")
MOST = 5.0
"""MiB that sixty programs may leave; a pass manager that is not freed leaves 7 beside what is kept."""


@pytest.mark.skipif(sys.platform != "linux", reason="resident memory is read from /proc")
@pytest.mark.parametrize("kind", KINDS)
def test_memory_does_not_grow(kind: str) -> None:
    words = [sys.executable, "-m", "benchmarks.memory", kind, "--first", "60", "--count", "120", "--step", "60"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    (grown,) = (float(line.split()[2]) for line in done.stdout.splitlines())
    assert grown < MOST


def test_machine_code_goes_with_its_kernel() -> None:
    kernel = compiler.build(program(1), threads=1)
    code = kernel.library._code
    gone = weakref.ref(kernel.library)
    assert not code.closed
    del kernel
    gc.collect()
    assert gone() is None
    assert code.closed
